"""An index for metrics that are no products: it computes all distances."""

from __future__ import annotations

from torch import Tensor

from tsee.metric import Metric, exclude_from
from tsee.neighbors.index import Index
from tsee.neighbors.smallest import Scratch, smallest_in_order

__all__ = ["ScannedIndex"]

# Distances that are held at a time, and the bounds on the queries that they belong to.
BLOCK_DISTANCES = 2**21
MIN_QUERIES, MAX_QUERIES = 16, 512


class ScannedIndex(Index):
    """An index that computes the distances of all candidates: no neighbor is missed.

    Its metric gives the same distance to a pair of rows whatever else is computed with it.
    """

    def __init__(self, rows: Tensor, metric: Metric) -> None:
        super().__init__(rows, metric)
        self._candidates = metric.prepare(rows)

    @property
    def block_rows(self) -> int:
        return max(MIN_QUERIES, min(MAX_QUERIES, BLOCK_DISTANCES // len(self.rows)))

    @property
    def n_threads(self) -> int:
        """One: its distances use all the threads of torch."""
        return 1

    def nearest(self, block: Tensor, k: int, exclude: Tensor | None, scratch: Scratch) -> tuple[Tensor, Tensor]:
        distances = exclude_from(self.metric.distances(self.metric.prepare(block), self._candidates), exclude)
        found, nearest = smallest_in_order(distances, k)
        return found.cpu(), nearest.cpu()
