"""Rows of data as a metric compares them: of unit length, or checked to be booleans."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from tsee.data import blocks, dense
from tsee.distributed import all_max, all_sum
from tsee.exceptions import RowError, rows_from

__all__ = ["ComparedRows", "compared_rows", "of_unit_length"]

# A row is constant if it differs from its mean by no more than this many units in the last digit of its largest value.
ROUNDING_UNITS = 8
# Larger whole numbers are not all told apart in float32.
LARGEST_CATEGORY = 2**24


def compared_rows(block: np.ndarray, metric: str) -> np.ndarray:
    r"""Rows that can be compared by ``metric_of(metric)``.

    For the cosine, rows are divided by their length; for the correlation, their mean is subtracted first. The squared
    Euclidean distance of such rows is :math:`2 (1 - \cos(x, e))`, twice the cosine (or correlation) distance. For
    Jaccard and Hamming, and for distances, rows are checked. For other metrics they stay as they are.

    Parameters
    ----------
    block : ndarray of shape (n, d), float32 or float64
    metric : str
        One of `METRICS`, or "precomputed".

    Returns
    -------
    ndarray of shape (n, d)
        In the dtype of ``block``.

    Raises
    ------
    RowError
        If a row has no direction, is not boolean, or holds no category or distance. Its number is counted in the block.
    """
    if metric == "jaccard":
        _check_boolean(block)
    if metric == "hamming":
        _check_categories(block)
    if metric == "precomputed":
        _check_not_negative(block)
    if metric not in ("cosine", "correlation"):
        return block
    rows = block.astype(np.float64)
    # Divided by the largest value first, so that no square overflows or vanishes.
    largest = np.abs(rows).max(1, keepdims=True)
    zero = largest[:, 0] == 0
    rows /= np.where(largest > 0, largest, 1)
    if metric == "correlation":
        rows -= rows.mean(1, keepdims=True)
        zero |= np.abs(rows).max(1) <= ROUNDING_UNITS * np.finfo(block.dtype).eps
    if zero.any():
        raise _no_direction(int(zero.argmax()), metric)
    rows /= np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, None]
    return rows.astype(block.dtype)


def of_unit_length(X: Any) -> Any:
    """A CSR matrix with rows of unit length, as `compared_rows` makes them for the cosine; the zeros stay unwritten.

    Raises
    ------
    RowError
        If a row is all zeros.
    """
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    counts = np.diff(X.indptr)
    n = int(X.indptr[-1])
    values = X.data[:n].astype(np.float64)
    rows = np.repeat(np.arange(X.shape[0]), counts)
    # Divided by the largest value first, so that no square overflows or vanishes.
    largest = np.zeros(X.shape[0])
    np.maximum.at(largest, rows, np.abs(values))
    if (largest == 0).any():
        raise _no_direction(int((largest == 0).argmax()), "cosine")
    values /= largest[rows]
    values /= np.sqrt(np.bincount(rows, np.square(values), X.shape[0]))[rows]
    dtype = np.result_type(X.dtype, np.float32)
    return type(X)((values.astype(dtype), X.indices[:n], X.indptr), shape=X.shape)


def _no_direction(row: int, metric: str) -> RowError:
    what = "all zeros" if metric == "cosine" else "constant"
    return RowError(
        row,
        f"is {what}, so it has no direction, which metric={metric!r} compares: leave such rows out, or choose another "
        "metric.",
    )


def _check_boolean(block: np.ndarray) -> None:
    other = (block != 0) & (block != 1)
    if other.any():
        row, column = (int(at) for at in np.argwhere(other)[0])
        raise RowError(
            row,
            f"holds {block[row, column]:g} in column {column} (counted from 0), but metric='jaccard' compares "
            "booleans: pass X != 0 to compare which values are there, or choose another metric.",
        )


def _check_categories(block: np.ndarray) -> None:
    """Whole numbers up to 2^24, and fractions down to its inverse, differ in float32 as they do in the data."""
    size = np.abs(block)
    other = (size > LARGEST_CATEGORY) | ((size > 0) & (size < 1 / LARGEST_CATEGORY))
    if other.any():
        row, column = (int(at) for at in np.argwhere(other)[0])
        raise RowError(
            row,
            f"holds {block[row, column]:g} in column {column} (counted from 0), but metric='hamming' compares "
            f"categories, numbers of at most {LARGEST_CATEGORY:,}: number the categories, or leave that column out.",
        )


def _check_not_negative(block: np.ndarray) -> None:
    if block.size and block.min() < 0:
        row, column = (int(at) for at in np.argwhere(block < 0)[0])
        raise RowError(
            row,
            f"holds {block[row, column]:g} in column {column} (counted from 0), but metric='precomputed' takes "
            "distances, which are not negative: turn similarities into distances.",
        )


class ComparedRows:
    """Data as a metric compares them, by slices: ``rows[a:b]`` passes those rows through `compared_rows`.

    Parameters
    ----------
    X : array, CSR matrix or Rows
        The data of this process, as `check_rows` returns them.
    metric : str
        One of `METRICS`.
    """

    def __init__(self, X: Any, metric: str) -> None:
        self._X, self._metric = X, metric
        self.shape, self.dtype = X.shape, np.result_type(X.dtype, np.float32)

    def __getitem__(self, rows: slice) -> np.ndarray:
        with rows_from(rows.start):
            return compared_rows(dense(self._X, rows), self._metric)

    def power_of_two(self) -> float:
        """The power of two nearest to the root mean square of all values, 1 if all are zero. A collective."""
        found = [_largest_and_squares(self[rows]) for rows in blocks(self.shape[0])]
        largest = all_max(max(unit for unit, _ in found))
        if largest == 0:
            return 1.0
        squares = torch.tensor(sum(total * (unit / largest) ** 2 for unit, total in found), dtype=torch.float64)
        mean = float(all_sum(squares)) / (all_sum(self.shape[0]) * self.shape[1])
        return 2.0 ** round(math.log2(largest) + math.log2(mean) / 2)


def _largest_and_squares(block: np.ndarray) -> tuple[float, float]:
    """The largest absolute value, and the sum of all squares in units of it: none overflows or vanishes."""
    largest = float(np.abs(block).max())
    scaled = block.ravel() / (largest or 1)
    return largest, float(np.einsum("i,i->", scaled, scaled, dtype=np.float64))
