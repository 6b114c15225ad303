"""An index for metrics that are no products: it computes all distances."""

from __future__ import annotations

import torch
from torch import Tensor

from tsee.metric import Metric, exclude_from
from tsee.neighbors.index import Index
from tsee.neighbors.smallest import Scratch, columns_of_smallest

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
        # One more than wanted, to see whether it ties with the last.
        found = columns_of_smallest(distances, min(k + 1, distances.shape[1])).sort(dim=1).values
        nearest, order = distances.gather(1, found).sort(dim=1, stable=True)
        found = found.gather(1, order)  # (rows, k + 1)
        if found.shape[1] > k:
            tied = torch.nonzero(nearest[:, k - 1] == nearest[:, k]).squeeze(1)
            if len(tied):
                found[tied, :k] = _first_of_tied(distances[tied], nearest[tied, k - 1 : k], k)
        return found[:, :k].cpu(), nearest[:, :k].cpu()


def _first_of_tied(distances: Tensor, last: Tensor, k: int) -> Tensor:
    """The columns of the k smallest of each row in their order, where more than k are not above the ``last``."""
    row, column = torch.nonzero(distances <= last).unbind(1)
    order = (2 * row + (distances[row, column] == last[row, 0])).argsort(stable=True)
    starts = torch.searchsorted(row, torch.arange(len(distances), device=row.device))
    first = column[order[starts[:, None] + torch.arange(k, device=row.device)]].sort(dim=1).values
    return first.gather(1, distances.gather(1, first).sort(dim=1, stable=True).indices)
