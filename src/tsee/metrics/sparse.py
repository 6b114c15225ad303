"""The neighbors of sparse test points among sparse training points, by products of sparse matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from tsee.data import blocks
from tsee.metric import euclidean
from tsee.metrics.inputs import Sides
from tsee.metrics.spaces import BLOCK_ENTRIES, Space, nearer_than
from tsee.neighbors.smallest import smallest_in_order

__all__ = ["SparseSpace", "space_of"]

# With more values than this share, products of rows whose zeros are written out are as fast.
MAX_DENSITY = 0.1


def space_of(sides: Sides) -> Space | SparseSpace:
    """The space of training and test points that suits them."""
    both = (sides.train, sides.test)
    sparse = sides.metric is euclidean and all(scipy.sparse.issparse(X) for X in both)
    if sparse and all(X.nnz <= MAX_DENSITY * X.shape[0] * X.shape[1] for X in both):
        return SparseSpace(sides)
    return Space.of(sides)


class SparseSpace:
    r"""Sparse training and test points in one Euclidean space.

    .. math:: |x - e|^2 = |x|^2 + |e|^2 - 2 x \cdot e,

    in double precision. A product of sparse rows takes as long as they have values in common columns: of texts, a
    hundredth of the time of a product of rows whose zeros are written out.
    """

    def __init__(self, sides: Sides) -> None:
        self.own = sides.own
        self.train = sides.train.astype(np.float64)
        self.test = self.train if sides.test is sides.train else sides.test.astype(np.float64)
        self._turned = self.train.T.tocsr()
        self._norms = torch.from_numpy(_squares(self.train))

    def nearest(self, k: int) -> Tensor:
        """Indices of the ``k`` training points nearest to each test point, the nearest first: (m, k)."""
        parts = [smallest_in_order(self._distances(rows), k)[0] for rows in self._blocks()]
        return torch.cat(parts)

    def ranks(self, chosen: Tensor) -> Tensor:
        """For each test point, one more than the training points nearer than each chosen one: (m, k)."""
        parts = [nearer_than(self._distances(rows), chosen[rows]) for rows in self._blocks()]
        return 1 + torch.cat(parts)

    def _blocks(self) -> Any:
        return blocks(self.test.shape[0], max(1, BLOCK_ENTRIES // self.train.shape[0]))

    def _distances(self, rows: slice) -> Tensor:
        """The squared distances of a block of test points from all training points: (rows, n)."""
        block = self.test[rows]
        products = torch.from_numpy((block @ self._turned).toarray())
        distances = products.mul_(-2).add_(self._norms).add_(torch.from_numpy(_squares(block))[:, None]).clamp_min_(0)
        if self.own:
            distances[:, rows].fill_diagonal_(torch.inf)
        return distances


def _squares(X: Any) -> np.ndarray:
    """The squared length of each row."""
    squares: np.ndarray = np.asarray(X.multiply(X).sum(1)).ravel()
    return squares
