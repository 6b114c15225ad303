"""A matrix whose columns are known to be the features of a map."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from tsee.data.checks import check_finite, in_order
from tsee.data.numbers import as_numbers
from tsee.files.rows import Rows

__all__ = ["check_matrix"]


def check_matrix(X: Any, n_features: int, names: Sequence[str] | None = None) -> Any:
    """Check rows of a map's features, and return them in its order, as an array, a CSR matrix or `Rows`.

    Parameters
    ----------
    X : array, tensor, sparse matrix or Rows, of shape (n, n_features)
        Rows of a file are checked for finite values when they are read.
    n_features : int
    names : sequence of str, optional
        The names of the features. A DataFrame, or Rows of a file, may have them in any order, and other columns, which
        do not count.
    """
    X = as_numbers(in_order(X, names))
    if not isinstance(X, Rows) and not scipy.sparse.issparse(X):
        X = np.asarray(X)
    if len(X.shape) != 2 or X.shape[1] != n_features:
        raise ValueError(f"X must be a matrix with {n_features} columns, one per feature. Got shape {X.shape} instead.")
    if X.dtype.kind not in "biuf":
        raise ValueError(f"X must hold numbers. Got dtype {X.dtype} instead.")
    if not isinstance(X, Rows):
        check_finite(X, [])
    return X
