"""Whatever ``fit(X)`` accepts, as finite numeric rows that are read by slice."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from tsee.data.slices import blocks
from tsee.exceptions import DataWarning, warn
from tsee.files import open_table
from tsee.files.errors import listed
from tsee.files.opening import has_columns
from tsee.files.rows import ChosenColumns, Rows, check_numeric

__all__ = ["check_finite", "check_rows", "dense", "without_names"]


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Check ``X`` for ``estimator`` and return it as an array, a CSR matrix or `Rows`, in the dtype it came in.

    Arrays, DataFrames, tensors and sparse matrices of any numeric dtype pass without a copy of the whole
    where their type allows. Files, memory maps and whatever else has a shape, a dtype and slices (h5py, zarr, dask)
    become `Rows`, which are read by slice, and in which values that are not finite are met only then. With ``reset``
    the names and number of features are remembered, otherwise they are compared with those remembered.
    """
    names = None if reset else getattr(estimator, "feature_names_in_", None)
    if isinstance(X, str | PathLike):
        X = _open(X, names)
    elif _read_by_slice(X):
        X = SlicedArray(X)
    if isinstance(X, Rows):
        return _check_stored(estimator, X, names, reset=reset)
    if isinstance(X, torch.Tensor):
        if X.layout != torch.strided:
            raise TypeError(f"X is a tensor of layout {X.layout}: give X.to_dense() or a scipy CSR matrix instead.")
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()
    if not reset and names is None and _plain(X) and X.shape[1] == estimator.n_features_in_:
        check_finite(X, [])  # all that is left to check; a row alone has no time for more
        return X
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X is a LazyFrame, a query that was not run yet: give X.collect() instead.")
    _check_columns_numeric(X)
    columns = list(getattr(X, "columns", []))
    X = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype="numeric",
        ensure_all_finite=False,
        ensure_min_samples=2 if reset else 1,
    )
    check_finite(X, columns)
    return X


class SlicedArray(Rows):
    """Anything with a shape, a dtype and slices, dense or CSR, that is not a file of its own."""

    def __init__(self, X: Any) -> None:
        check_numeric(X, "X")
        super().__init__(X.shape, X.dtype, "X")
        self._X = X

    def __getitem__(self, rows: slice) -> Any:
        block = self._X[rows]
        block = block.tocsr() if scipy.sparse.issparse(block) else np.asarray(block, dtype=self.dtype)
        check_finite(block, [], rows.start)
        return block


def _plain(X: Any) -> bool:
    """Whether ``X`` is a matrix of numbers, in memory, with a row at least."""
    return type(X) is np.ndarray and X.ndim == 2 and X.dtype.kind in "biuf" and len(X) > 0


def _open(path: str | PathLike[str], names: Any) -> Rows:
    """The rows of a file, of the features that are known by name where it has names."""
    if names is not None and has_columns(path):
        return open_table(path, columns=list(names)).rows
    table = open_table(path)
    if table.notes:
        warn(" ".join(table.notes), DataWarning)
    return table.rows


def _read_by_slice(X: Any) -> bool:
    """Whether ``X`` is rows that lie elsewhere than in memory."""
    if isinstance(X, np.memmap):
        return X.ndim == 2 and X.dtype.kind in "biuf"
    if isinstance(X, np.ndarray | torch.Tensor | Rows) or scipy.sparse.issparse(X) or hasattr(X, "columns"):
        return False
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2 or not hasattr(X, "dtype") or not hasattr(X, "__getitem__"):
        return False
    if not all(side == side for side in shape):  # NaN: dask has not counted them
        raise ValueError("X does not know how many rows it has: call X.compute_chunk_sizes() first.")
    return True


def _check_stored(estimator: Any, X: Rows, names: Any, *, reset: bool) -> Rows:
    """What scikit-learn checks of an array, for rows that it cannot hold."""
    if reset:
        if len(X) < 2:
            raise ValueError(f"Found array with 1 sample(s) (shape={X.shape}) while a minimum of 2 is required.")
        estimator.n_features_in_ = X.shape[1]
        if X.names is not None:
            estimator.feature_names_in_ = np.array(X.names, dtype=object)
        else:
            estimator.__dict__.pop("feature_names_in_", None)
        return X
    if names is not None and X.names is not None and list(X.names) != list(names):
        place = {name: column for column, name in enumerate(X.names)}
        missing = [name for name in names if name not in place]
        if missing:
            raise ValueError(f"X lacks columns that the model was fitted with: {listed(missing)}.")
        X = ChosenColumns(X, [place[name] for name in names], list(names))
    if X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    return X


def dense(X: Any, rows: slice) -> np.ndarray:
    """Rows of ``X`` as a dense float array: float32, or float64 where the input needs it to be exact."""
    block = X[rows]
    if scipy.sparse.issparse(block):
        block = block.toarray()
    return np.asarray(block, dtype=np.result_type(X.dtype, np.float32))


def _check_columns_numeric(X: Any) -> None:
    """Say which column of a DataFrame is not numeric, before numpy says that something is not."""
    if getattr(X, "columns", None) is None or getattr(X, "dtypes", None) is None:
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if getattr(dtype, "kind", "O") in "biuf" or any(word in str(dtype) for word in ("Int", "Float", "Bool")):
            continue
        try:
            values = np.asarray(X[name])
            values.astype(np.float64)
            numeric = values.dtype.kind not in "mM"  # numpy takes dates for numbers
        except (TypeError, ValueError):
            numeric = False
        if not numeric:
            raise ValueError(
                f"Column {name!r} of X is not numeric (its type is {dtype}): drop it, or encode it as numbers."
            )


def check_finite(X: Any, columns: list[Any], start: int = 0) -> None:
    """Refuse NaN and infinity, naming the first place; ``start`` is the number of the first row."""
    if X.dtype.kind != "f":
        return
    values = X.data if scipy.sparse.issparse(X) else X
    for rows in blocks(len(values)):
        finite = np.isfinite(values[rows])
        if finite.all():
            continue
        first = np.argwhere(~finite)[0]
        what = "NaN" if np.isnan(values[rows][tuple(first)]) else "infinity"
        if scipy.sparse.issparse(X):
            position = rows.start + first[0]
            row, column = int(np.searchsorted(X.indptr, position, side="right")) - 1, int(X.indices[position])
        else:
            row, column = rows.start + int(first[0]), int(first[1])
        name = repr(columns[column]) if columns else str(column)
        raise ValueError(
            f"X contains {what} in row {start + row}, column {name}: fill such values in "
            "(for example with sklearn.impute.SimpleImputer) or leave those rows out."
        )


def without_names(function: Callable[[Any], np.ndarray], rows: Any) -> np.ndarray:
    """A function of an estimator of rows without names, whose columns have been matched with its own already."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        return function(rows)
