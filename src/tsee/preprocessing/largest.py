"""The values that are farthest from the mean of their column, and whether numbers can hold them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from tsee.data import blocks, dense
from tsee.distributed import all_gather, all_max, all_offset
from tsee.preprocessing.sparse import deviations, stays_sparse

__all__ = ["Largest", "check_range", "largest_deviations"]

# The largest deviations from the mean that are accepted: squares and sums of theirs, in units of one another, stay far
# from the limits of float64.
MIN_DEVIATION, MAX_DEVIATION = 1e-290, 1e300


@dataclass(frozen=True)
class Largest:
    """The largest absolute deviations from the mean, over all processes.

    Attributes
    ----------
    by_feature : ndarray of shape (n_features,)
    value : float
        The largest of them.
    row, column : int
        Where it is, the first if there are several. Rows are counted over all processes.
    """

    by_feature: np.ndarray
    value: float
    row: int
    column: int

    def where(self, names: Sequence[Any] | None) -> str:
        """Where it is, in words."""
        if names is None:
            return f"row {self.row}, column {self.column} of X (counted from 0)"
        return f"row {self.row} (counted from 0), column {str(names[self.column])!r} of X"


def largest_deviations(X: Any, mean: np.ndarray) -> Largest:
    """The largest deviations from the mean of each feature. A collective."""
    n_features = len(mean)
    by_feature, own, row, column = np.zeros(n_features), -1.0, 0, 0
    sparse = stays_sparse(X)
    if sparse:
        by_feature, row, column = deviations(X, mean)
        own = float(by_feature[column])
    for rows in () if sparse else blocks(X.shape[0]):
        with np.errstate(over="ignore"):  # refused by `check_range`
            apart = np.abs(dense(X, rows) - mean)
        in_block = apart.max(0)
        by_feature = np.maximum(by_feature, in_block)
        if in_block.max() > own:
            own, column = float(in_block.max()), int(in_block.argmax())
            row = rows.start + int(apart[:, column].argmax())
    value = all_max(own)
    offset, _ = all_offset(X.shape[0])
    # Only a process that has the largest deviation knows where it is.
    first = -all_max(-float((offset + row) * n_features + column) if own == value else -math.inf)
    by_feature = all_gather(torch.from_numpy(by_feature)[None]).amax(0).numpy()
    return Largest(by_feature, value, int(first) // n_features, int(first) % n_features)


def check_range(largest: Largest, varying: np.ndarray, names: Sequence[Any] | None, *, standardize: bool) -> None:
    """Refuse values whose squares, means or differences float64 cannot hold to full precision."""
    if largest.value > MAX_DEVIATION:
        raise ValueError(
            f"The value in {largest.where(names)} is more than {MAX_DEVIATION:g} away from the mean of its column, too "
            "far for float64: correct it, or divide X by a power of ten."
        )
    if not standardize and 0 < largest.value < MIN_DEVIATION:
        raise ValueError(
            f"No value of X is more than {MIN_DEVIATION:g} away from the mean of its column, too near for float64: "
            "multiply X by a power of ten."
        )
    tiny = np.flatnonzero(varying & (largest.by_feature < MIN_DEVIATION))
    if standardize and len(tiny):
        name = f"{tiny[0]} (counted from 0)" if names is None else repr(str(names[tiny[0]]))
        raise ValueError(
            f"No value in column {name} of X is more than {MIN_DEVIATION:g} away from its mean, too near for float64: "
            "multiply the column by a power of ten, or leave it out."
        )
