"""The neighbors of test points among training points, and their ranks: exact, and never more than a block at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsee.data import blocks
from tsee.metric import Metric, ProductMetric, euclidean, shifted
from tsee.metrics.inputs import Sides, dense, taken
from tsee.neighbors import ExactIndex, Index, ScannedIndex

__all__ = ["BLOCK_ENTRIES", "Space", "nearer_than", "nearest_distances"]

# How many distances, entries of rows, or comparisons of neighbors are held at once.
BLOCK_ENTRIES = 2**24
# Up to this many columns, a k-d tree finds the neighbors a hundred times faster than products of matrices.
MAX_TREE_COLUMNS = 4


class Space:
    """Training and test points in one space: the data or the map.

    If ``own`` is true, test point i is not compared with training point i: no point is its own neighbor.
    """

    def __init__(self, train: Tensor, test: Tensor, own: bool, metric: Metric) -> None:
        self.train, self.test, self.own, self.metric = train, test, own, metric

    @classmethod
    def of(cls, sides: Sides) -> Space:
        train_rows = dense(sides.train, sides.dtype)
        center = sides.metric.origin(train_rows)
        if center is not None:
            # Integers stay integers, so that equal distances between images stay equal.
            center = center.round() if sides.integer else center
            train_rows -= center
        if sides.test is sides.train:
            return cls(train_rows, train_rows, sides.own, sides.metric)
        test_rows = shifted(dense(sides.test, sides.dtype).to(train_rows.device), center)
        return cls(train_rows, test_rows, sides.own, sides.metric)

    @property
    def _few_columns(self) -> bool:
        return _in_tree(self.metric, self.train.shape[1])

    def nearest(self, k: int) -> Tensor:
        """Indices of the ``k`` training points nearest to each test point, the nearest first: (m, k)."""
        own = torch.arange(len(self.test)) if self.own else None
        if not self._few_columns:
            return _index(self.train, self.metric).query(self.test, k, exclude=own)[0]
        tree = _tree(self.train)
        found = tree.query(self.test.cpu().numpy(), k + self.own, return_distance=False)
        return torch.from_numpy(found if own is None else _drop(found, own.numpy()))

    def ranks(self, chosen: Tensor) -> Tensor:
        """For each test point, one more than the training points nearer than each chosen one: (m, k)."""
        ranks = torch.empty_like(chosen)
        train = self.metric.prepare(self.train)
        for rows in blocks(len(self.test), max(1, BLOCK_ENTRIES // len(self.train))):
            block = self.test[rows]
            if not self._few_columns:
                tile = self.metric.scores(self.metric.prepare(block), train)  # (rows, n)
            else:  # in few columns differences are as fast, and lose no digits
                tile = torch.cdist(block, self.train, compute_mode="donot_use_mm_for_euclid_dist")
            if self.own:
                tile[:, rows].fill_diagonal_(torch.inf)
            ranks[rows] = 1 + nearer_than(tile, chosen[rows])
        return ranks


def nearer_than(distances: Tensor, chosen: Tensor) -> Tensor:
    """How many distances of each row are less than those in the chosen columns: (rows, k)."""
    limits = distances.gather(1, chosen.to(distances.device))  # (rows, k)
    counts = torch.empty_like(chosen)
    # A sum of floating-point ones is many times faster than one of booleans, and as exact.
    nearer = torch.empty_like(distances)
    for j in range(chosen.shape[1]):
        torch.lt(distances, limits[:, j : j + 1], out=nearer)
        counts[:, j] = nearer.sum(1).long().cpu()
    return counts


def _in_tree(metric: Metric, n_columns: int) -> bool:
    return metric is euclidean and n_columns <= MAX_TREE_COLUMNS


def _tree(rows: Tensor) -> Any:
    from sklearn.neighbors import KDTree  # with it come all of scikit-learn's metrics, a third of torch's own import

    return KDTree(rows.cpu().numpy())


def _index(rows: Tensor, metric: Metric) -> Index:
    """An index that misses no neighbor."""
    return ExactIndex(rows, metric) if isinstance(metric, ProductMetric) else ScannedIndex(rows, metric)


def _drop(found: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each row without its own index, or without the last index if copies of the point have displaced it."""
    unwanted = found == own[:, None]
    unwanted[~unwanted.any(1), -1] = True
    kept: NDArray[np.int64] = found[~unwanted].reshape(len(found), -1)
    return kept


def nearest_distances(sides: Sides, rows: NDArray[np.int64], k: int) -> Tensor:
    """The *squared* distances from these test points to their ``k`` nearest training points, the nearest first.

    Parameters
    ----------
    sides : Sides
        If its test points are not compared with their own training points, the two must be equal.
    rows : array of shape (m,)
        The numbers of the test points.
    k : int

    Returns
    -------
    Tensor of shape (m, k)
    """
    n, n_columns = sides.train.shape
    wanted = k + sides.own  # of a point that is among the training points, the nearest is itself, at 0
    if _in_tree(sides.metric, n_columns):
        tree = _tree(dense(sides.train, torch.float64))
        found = tree.query(taken(sides.test, rows).numpy(), wanted)[0]
        return torch.from_numpy(found[:, sides.own :]).square_()
    size = max(1, BLOCK_ENTRIES // n_columns)
    nearest = torch.full((len(rows), wanted), torch.inf, dtype=sides.dtype)
    for part in blocks(n, size):
        index = _index(dense(sides.train[part], sides.dtype).cpu(), sides.metric)
        for chosen in blocks(len(rows), size):
            queries = taken(sides.test, rows[chosen], sides.dtype)
            _, distances = index.query(queries, min(wanted, part.stop - part.start))
            both = torch.cat([nearest[chosen], distances], 1)
            nearest[chosen] = both.sort(1).values[:, :wanted]
    return nearest[:, sides.own :]
