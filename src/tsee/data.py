"""Whatever ``fit(X)`` accepts, as finite numeric rows that are read by slice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

__all__ = ["blocks", "blocks_in_cache", "check_rows", "dense"]

# Rows in a block: enough to fill matrix products, few enough for wide data to stay small in memory.
BLOCK_ROWS = 1024
# Entries of a block of a large matrix that is worked on in many steps.
BLOCK_ENTRIES = 2**19


def blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover ``n_rows`` rows in order, each of at most ``size``."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def blocks_in_cache(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of the rows of a matrix, so short that what is made of one is in cache for the next step."""
    return blocks(n_rows, max(1, BLOCK_ENTRIES // max(1, n_columns)))


def check_rows(estimator: BaseEstimator, X: Any, *, reset: bool) -> Any:
    """Check ``X`` for ``estimator`` and return it as an array or CSR matrix, in the dtype it came in.

    Arrays, DataFrames, tensors, sparse matrices and memory maps of any numeric dtype pass without a
    copy of the whole where their type allows. With ``reset`` the names and number of features are
    remembered, otherwise they are compared with those remembered.
    """
    if isinstance(X, torch.Tensor):
        if X.layout != torch.strided:
            raise TypeError(f"X is a tensor of layout {X.layout}: give X.to_dense() or a scipy CSR matrix instead.")
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()
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
    _check_finite(X, columns)
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
            np.asarray(X[name]).astype(np.float64)
            numeric = getattr(dtype, "kind", "O") not in "mM"  # numpy takes dates for numbers
        except (TypeError, ValueError):
            numeric = False
        if not numeric:
            raise ValueError(
                f"Column {name!r} of X is not numeric (its type is {dtype}): drop it, or encode it as numbers."
            )


def _check_finite(X: Any, columns: list[Any]) -> None:
    """Refuse NaN and infinity, naming the first place."""
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
            f"X contains {what} in row {row}, column {name}: fill such values in "
            "(for example with sklearn.impute.SimpleImputer) or leave those rows out."
        )
