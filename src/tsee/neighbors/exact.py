"""An index that searches all candidates."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tsee.metric import exclude_from
from tsee.neighbors.index import SMALL_BATCH, ProductIndex
from tsee.neighbors.smallest import Scratch, columns_of_smallest

__all__ = ["ExactIndex"]

# Scores in memory at a time, on the CPU and on other devices, and how many queries they are for.
SCORES, SCORES_ON_DEVICE = 2**24, 2**26
LEAST_ROWS, MOST_ROWS = 32, 512


class ExactIndex(ProductIndex):
    """An index that searches all candidates: no neighbor is missed."""

    @property
    def block_rows(self) -> int:
        scores = SCORES if self.rows.device.type == "cpu" else SCORES_ON_DEVICE
        return max(LEAST_ROWS, min(MOST_ROWS, scores // len(self.rows)))

    @property
    def n_threads(self) -> int:
        """One: its matrix products use all the threads of torch."""
        return 1

    def smallest_scores(
        self, queries: Tensor, k: int, exclude: Tensor | None, scratch: Scratch
    ) -> tuple[Tensor, Tensor]:
        candidates = self.factors.table
        shape = len(queries), len(candidates)
        scores = torch.mm(queries, candidates.T, out=scratch.take(math.prod(shape), queries).view(shape))
        exclude_from(scores, exclude)
        if len(queries) < SMALL_BATCH:
            return scores.topk(k, dim=1, largest=False, sorted=False)
        columns = columns_of_smallest(scores, k)
        return scores.gather(1, columns), columns
