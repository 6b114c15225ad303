"""Statistics and projections of sparse rows, whose zeros are never written out."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

__all__ = ["SPARSE_ROWS", "deviations", "divided", "mean_parts", "projected", "square_sums", "stays_sparse"]

# Sparse rows that are multiplied together: each block adds a product with as many rows as there are features.
SPARSE_ROWS = 2**14
# Rows of up to this many columns are written out: that is as fast, and gives to the bit what dense rows give.
MOST_WRITTEN_OUT = 128


def stays_sparse(X: Any) -> bool:
    """Whether rows are sparse, and too wide to be written out."""
    return scipy.sparse.issparse(X) and X.shape[1] > MOST_WRITTEN_OUT


def _parts(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """The columns and the values that a CSR matrix stores."""
    n = int(X.indptr[-1])
    return X.indices[:n], X.data[:n].astype(np.float64)


def mean_parts(X: Any, first: np.ndarray, n_rows: int) -> np.ndarray:
    """The sum of what each value exceeds that of the first row by, for each column, over ``n_rows``."""
    columns, values = _parts(X)
    first = first / n_rows
    zeros = X.shape[0] - np.bincount(columns, minlength=X.shape[1])
    return np.bincount(columns, values / n_rows - first[columns], X.shape[1]) - zeros * first


def deviations(X: Any, mean: np.ndarray) -> tuple[np.ndarray, int, int]:
    """The largest absolute deviation from the mean in each column, and the row and column of the largest of all."""
    columns, values = _parts(X)
    rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
    with np.errstate(over="ignore"):  # the caller refuses it
        apart = np.abs(values - mean[columns])
    by_feature = np.where(np.bincount(columns, minlength=X.shape[1]) < X.shape[0], np.abs(mean), 0.0)
    np.maximum.at(by_feature, columns, apart)
    column = int(by_feature.argmax())
    here = columns == column
    if (apart[here] == by_feature[column]).any():
        return by_feature, int(rows[here][apart[here].argmax()]), column
    return by_feature, int(np.setdiff1d(np.arange(X.shape[0]), rows[here])[0]), column


def divided(X: Any, divisor: Any, dtype: np.dtype) -> Any:
    """CSR rows, divided in float64 and rounded to ``dtype``."""
    columns, values = _parts(X)
    values /= np.broadcast_to(divisor, X.shape[1:])[columns]
    return scipy.sparse.csr_matrix((values.astype(dtype, copy=False), columns, X.indptr), shape=X.shape)


def square_sums(X: Any, mean: np.ndarray, divisor: Any) -> np.ndarray:
    r"""The sums of :math:`((x - \mu) / d)^2` over the rows, for each column."""
    columns, values = _parts(X)
    middle, divisor = mean / divisor, np.broadcast_to(divisor, mean.shape)
    excess = np.square(values / divisor[columns] - middle[columns]) - np.square(middle[columns])
    return np.bincount(columns, excess, X.shape[1]) + X.shape[0] * np.square(middle)


def projected(block: Any, mean: np.ndarray, divisor: Any, basis: np.ndarray) -> Tensor:
    r"""The inputs :math:`B^T (x - \mu) / d` of sparse rows, float32. A row's do not depend on the other rows."""
    scaled = basis / np.broadcast_to(divisor, mean.shape)[:, None]  # (features, inputs), float64
    return torch.from_numpy((block @ scaled - mean @ scaled).astype(np.float32))
