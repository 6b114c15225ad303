"""Whatever ``fit(X)`` accepts, as finite numeric rows that are read by slice."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse
import torch

from tsee.data.numbers import as_numbers, as_plain, narrowed
from tsee.distributed import world_size
from tsee.exceptions import DataWarning, warn
from tsee.files import open_table
from tsee.files.errors import listed
from tsee.files.fields import LARGEST_INTEGER
from tsee.files.identifiers import (
    FIRST_VALUES,
    advised,
    identifiers_of,
    in_parts,
    is_suspect,
    kept_aside,
    to_keep,
)
from tsee.files.opening import has_columns, open_share
from tsee.files.rows import ChosenColumns, Rows, check_numeric, first_not_finite
from tsee.files.sparse import checked_csr
from tsee.scikit import BaseEstimator, validate_data

__all__ = ["check_finite", "check_rows", "dense", "in_order"]


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool, distances: bool = False) -> Any:
    """Check ``X`` for ``estimator`` and return it as an array, a CSR matrix or `Rows`, in the dtype it came in.

    Arrays, DataFrames, tensors and sparse matrices of any numeric dtype are not copied if their type allows it. Files,
    memory maps and anything else that has a shape, a dtype and slices (h5py, zarr, dask) become `Rows`: they are read
    by slice, and checked for NaN and infinity only then. With ``reset`` the names and the number of the features are
    remembered, otherwise they are compared with the remembered ones. With ``distances``, a square ``X`` in memory
    holds those of its rows from each other, and no column of it is an identifier.
    """
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    if isinstance(X, str | PathLike):
        X = _open(X, names, reset=reset)
    elif _read_by_slice(X):
        X = SlicedArray(X)
    if isinstance(X, Rows):
        return _check_stored(estimator, X, names, reset=reset)
    X = as_numbers(X)
    if not reset and names is None and _plain(X) and X.shape[1] == estimator.n_features_in_:
        check_finite(X, [])  # nothing else is left to check, and further checks would slow down a single row
        return X
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, a query that has not been run: pass X.collect() instead.")
    X = with_columns(X, names)
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if names is not None and not _column_names(X) and len(shape) == 2 and shape[1] != len(names):
        raise ValueError(
            f"X has {shape[1]} features, but {type(estimator).__name__} is expecting {len(names)} features as input: "
            f"{listed(names)}. An array must have these columns alone, in this order; a DataFrame may have others, too."
        )
    _check_columns_numeric(X)
    if reset and not (distances and shape[:1] == shape[1:]):
        X = _without_identifiers(X)
    columns = _column_names(X)
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1,
    )
    X = narrowed(X)  # columns of several types, each of them numbers
    check_finite(X, columns)
    if reset:
        _check_integers(X)
    return X


class SlicedArray(Rows):
    """Anything with a shape, a dtype and slices, dense or CSR, that was not opened as a table."""

    def __init__(self, X: Any) -> None:
        check_numeric(X, "X")
        super().__init__(X.shape, X.dtype, "X")
        self._X, self._size = X, _file_size(X)

    def __getitem__(self, rows: slice) -> Any:
        self._check_length()
        block = as_plain(self._X[rows], rows.start)
        if scipy.sparse.issparse(block):
            block = checked_csr(block, "X")
        else:
            block = np.asarray(block)
        with np.errstate(over="ignore"):  # a long double that float64 cannot hold becomes infinite, and is refused
            block = block.astype(self.dtype, copy=False)
        check_finite(block, [], rows.start)
        return block

    def _check_length(self) -> None:
        """Refuse a memory map whose file has become shorter: reading past its end would end the process."""
        if self._size is not None and _file_size(self._X) not in (None, self._size):
            raise ValueError(f"{str(self._X.filename)!r} was cut off while it was being read: write it again.")


def _file_size(X: Any) -> int | None:
    """The size of the file of a memory map; None for anything else, and for a file without a name."""
    try:
        return os.stat(X.filename).st_size if isinstance(X, np.memmap) and X.filename is not None else None
    except OSError:
        return None


def _plain(X: Any) -> bool:
    """Whether ``X`` is a numpy matrix of numbers with at least one row."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf" and len(X) > 0


def _open(path: str | PathLike[str], names: Any, *, reset: bool) -> Rows:
    """The rows of a file; with ``names``, only these columns, if its columns have names. A collective to ``reset``."""
    if names is not None and has_columns(path):
        return open_table(path, columns=list(names)).rows
    table = open_share(path) if reset and world_size() > 1 else open_table(path)
    if table.notes:
        warn(" ".join(advised(table.notes, table.identifiers if reset else [], to_keep)), DataWarning)
    return table.rows


def _read_by_slice(X: Any) -> bool:
    """Whether ``X`` is rows that are not in memory, or need not be."""
    if isinstance(X, np.memmap):
        return X.ndim == 2 and X.dtype.kind in "biuf"
    if isinstance(X, np.ndarray | torch.Tensor | Rows) or scipy.sparse.issparse(X) or hasattr(X, "columns"):
        return False
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or not hasattr(X, "dtype") or not hasattr(X, "__getitem__"):
        return False
    if len(shape) != 2:
        if shape == () or hasattr(X, "index"):  # a number or a Series, for which scikit-learn has its own sentences
            return False
        raise ValueError(f"Expected 2D array, got X of shape {shape} instead: pass rows and columns.")
    if not all(side == side for side in shape):  # NaN: dask has not counted the rows
        raise ValueError("X does not know how many rows it has: call X.compute_chunk_sizes() first.")
    return True


def _check_stored(estimator: Any, X: Rows, names: Any, *, reset: bool) -> Rows:
    """Check rows that are not in memory as scikit-learn checks an array."""
    if reset:
        if len(X) < 2:
            raise ValueError(f"Found array with {len(X)} sample(s) (shape={X.shape}) while a minimum of 2 is required.")
        if X.shape[1] == 0:
            raise ValueError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
        estimator.n_features_in_ = X.shape[1]
        if X.names is not None:
            estimator.feature_names_in_ = np.array(X.names, dtype=object)
        else:
            estimator.__dict__.pop("feature_names_in_", None)
        return X
    X = in_order(X, names)
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def dense(X: Any, rows: slice) -> np.ndarray:
    """Rows of ``X`` as a dense float array: float32, or float64 if float32 would not be exact."""
    block = X[rows]
    if scipy.sparse.issparse(block):
        block = block.toarray()
    return np.asarray(block, dtype=np.result_type(X.dtype, np.float32))


def _column_names(X: Any) -> list[Any]:
    """The names of the columns of a DataFrame, an Arrow table or `Rows`; none for anything else."""
    if isinstance(X, Rows):
        return list(X.names or ())
    return list(X.column_names if hasattr(X, "column_names") else getattr(X, "columns", ()))


def _without_identifiers(X: Any) -> Any:
    """A DataFrame or an Arrow table whose columns have names, without those that identify its rows."""
    names = _column_names(X)
    if not names or not all(isinstance(name, str) for name in names):
        return X
    first = X.slice(0, FIRST_VALUES) if hasattr(X, "column_names") else X.head(FIRST_VALUES)
    suspects = [name for name in names if is_suspect(name, _perhaps_long(np.asarray(first[name])))]
    parts = {name: in_parts(np.asarray(X[name])) for name in suspects}
    found = identifiers_of(names, suspects, parts.__getitem__, len(X), together=world_size() > 1)
    if not found or len(found) == len(names):
        return X
    warn(f"{kept_aside(found)} {to_keep(found)}", DataWarning)
    return with_columns(X, [name for name in names if name not in found])


def _perhaps_long(values: np.ndarray) -> list[Any]:
    """Values, if they are of a type of integers that float64 may not hold."""
    return values.tolist() if values.dtype.kind in "iuO" and values.dtype.itemsize == 8 else []


def with_columns(X: Any, names: Any) -> Any:
    """A DataFrame or an Arrow table with no other columns than these, in its own order, if it has all of them."""
    given = _column_names(X)
    if names is None or len(given) <= len(names) or not set(names) <= set(given):
        return X
    wanted = set(names)
    return _selected(X, [name for name in given if name in wanted])


def in_order(X: Any, names: Sequence[str] | None) -> Any:
    """The columns ``names`` of a DataFrame, an Arrow table or `Rows`, in this order; without names, ``X`` as it is."""
    given = _column_names(X)
    if names is None or not given or not all(isinstance(name, str) for name in given) or given == list(names):
        return X
    _check_none_missing(names, given)
    return _selected(X, list(names))


def _check_none_missing(names: Sequence[str], given: Iterable[str]) -> None:
    known = set(given)
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"X lacks columns that the model was fitted with: {listed(missing)}.")


def _selected(X: Any, names: list[str]) -> Any:
    if isinstance(X, Rows):
        column_of = {name: column for column, name in enumerate(X.names or ())}
        return ChosenColumns(X, [column_of[name] for name in names], names)
    return X.select(names) if hasattr(X, "column_names") else X[names]


def _largest(values: np.ndarray) -> float:
    return max(abs(float(values.min())), abs(float(values.max()))) if values.size else 0.0


def _check_columns_numeric(X: Any) -> None:
    """Name the column of a DataFrame or an Arrow table that is not numeric: numpy would not say which."""
    types = X.schema.types if hasattr(X, "column_names") else getattr(X, "dtypes", None)
    if types is None or not hasattr(X, "columns"):
        return
    names = _column_names(X)
    if not names:
        raise ValueError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"X has several columns named {listed(repeated)}: rename them so that all names differ.")
    for name, dtype in zip(names, types, strict=True):
        if str(dtype) in ("Int128", "UInt128"):
            raise ValueError(f"Column {name!r} of X is {dtype}, which numpy does not have: cast it to Float64.")
        if getattr(dtype, "kind", "O") in "biuf" or str(dtype).startswith(("Int", "UInt", "Float", "Bool")):
            continue
        if not _holds_numbers(X[name]):
            raise ValueError(
                f"Column {name!r} of X is not numeric (its type is {dtype}): drop it, or encode it as numbers."
            )


def _holds_numbers(column: Any) -> bool:
    """Whether all values are numbers. numpy would also convert dates, and text that consists of digits."""
    try:
        values = np.asarray(column)
        values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        return False
    if values.dtype.kind == "O":
        return not any(isinstance(value, str | bytes | np.complexfloating) for value in values.flat)
    return values.dtype.kind in "biuf"


def _check_integers(X: Any) -> None:
    """Warn of integers that float64 does not hold exactly."""
    values = X.data if scipy.sparse.issparse(X) else X
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8 or values.size == 0:
        return
    largest = _largest(values)
    if largest > LARGEST_INTEGER:
        warn(
            "X holds integers beyond 2**53, which are rounded to multiples of up to "
            f"{int(np.spacing(largest))}: subtract the smallest from each column, or drop it if it is an identifier.",
            DataWarning,
        )


def check_finite(X: Any, columns: list[Any], start: int = 0) -> None:
    """Refuse NaN and infinity, naming the row and column of the first; ``start`` is the number of the first row."""
    found = first_not_finite(X)
    if found is None:
        return
    row, column, what = found
    name = repr(columns[column]) if columns else str(column)
    advice = (
        "fill such values in (for example with sklearn.impute.SimpleImputer)"
        if what == "NaN"
        else "replace such values with finite ones, or with NaN (X = np.where(np.isinf(X), np.nan, X)) and fill those "
        "in with sklearn.impute.SimpleImputer,"
    )
    raise ValueError(f"X contains {what} in row {start + row}, column {name}: {advice} or leave those rows out.")
