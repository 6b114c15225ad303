"""An index that searches all candidates."""

from __future__ import annotations

import torch
from torch import Tensor

from tsee.data import blocks
from tsee.metric import exclude_from
from tsee.neighbors.index import SMALL_BATCH, ProductIndex
from tsee.neighbors.smallest import Scratch, columns_of_smallest

__all__ = ["ExactIndex"]

# Queries that are searched for together, and how many of them at a time once few candidates are left.
BLOCK_ROWS, CHOSEN_BLOCK_ROWS = 512, 64
# Scores in a tile: on the CPU few enough to stay in cache until their minima are taken.
TILE_SCORES, TILE_SCORES_ON_DEVICE = 2**19, 2**26
# Candidates are first compared by the minimum of a group of this many.
GROUP = 8
# Grouping pays if there are this many groups for each one chosen.
GROUPS_PER_CHOSEN = 16


class ExactIndex(ProductIndex):
    """An index that searches all candidates: no neighbor is missed."""

    @property
    def block_rows(self) -> int:
        return BLOCK_ROWS

    @property
    def n_threads(self) -> int:
        """One: its matrix products use all the threads of torch."""
        return 1

    def smallest_scores(
        self, queries: Tensor, k: int, exclude: Tensor | None, scratch: Scratch
    ) -> tuple[Tensor, Tensor]:
        candidates = self.factors.table
        n_chosen = k + (exclude is not None)
        if len(candidates) // GROUP < GROUPS_PER_CHOSEN * n_chosen or len(queries) < SMALL_BATCH:
            scores = exclude_from(queries @ candidates.T, exclude)
            return scores.topk(k, dim=1, largest=False, sorted=False)
        return _smallest_by_groups(queries, candidates, k, exclude)


def _smallest_by_groups(queries: Tensor, candidates: Tensor, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
    """The ``k`` smallest of ``queries @ candidates.T`` in each row, unsorted, and their columns.

    The k smallest lie in the k groups of smallest minimum, or in one group more if one candidate is excluded.
    The product is made in tiles that stay in cache until the minima of their groups are taken, and is not kept;
    the few scores in the chosen groups are computed again.
    """
    width = candidates.shape[1]
    n_groups = len(candidates) // GROUP
    n_chosen = k + (exclude is not None)
    whole = n_groups * GROUP
    chosen = columns_of_smallest(_group_minima(queries, candidates[:whole]), n_chosen)  # (rows, n_chosen)
    groups = candidates[:whole].view(n_groups, GROUP * width)
    rest = torch.arange(whole, len(candidates), device=candidates.device)
    smallest, columns = [], []
    for rows in blocks(len(queries), CHOSEN_BLOCK_ROWS):
        block = queries[rows]
        members = groups.index_select(0, chosen[rows].flatten()).view(len(block), n_chosen * GROUP, width)
        scores = torch.cat([torch.bmm(members, block[:, :, None]).squeeze(2), block @ candidates[whole:].T], 1)
        numbers = (chosen[rows, :, None] * GROUP + torch.arange(GROUP, device=candidates.device)).flatten(1)
        numbers = torch.cat([numbers, rest.expand(len(block), -1)], 1)  # the candidate of each score
        if exclude is not None:
            scores.masked_fill_(numbers == exclude[rows, None], torch.inf)
        score, position = scores.topk(k, dim=1, largest=False, sorted=False)
        smallest.append(score)
        columns.append(numbers.gather(1, position))
    return torch.cat(smallest), torch.cat(columns)


def _group_minima(queries: Tensor, candidates: Tensor) -> Tensor:
    """The smallest score in each group of consecutive candidates: (rows, groups)."""
    n_rows, n_groups = len(queries), len(candidates) // GROUP
    turned = queries.T.contiguous()
    tile_scores = TILE_SCORES if queries.device.type == "cpu" else TILE_SCORES_ON_DEVICE
    size = min(max(1, tile_scores // (GROUP * n_rows)), n_groups)
    tile = queries.new_empty(size * GROUP, n_rows)
    minima = queries.new_empty(n_rows, n_groups)
    for groups in blocks(n_groups, size):
        part = candidates[groups.start * GROUP : groups.stop * GROUP]
        scores = torch.mm(part, turned, out=tile[: len(part)])
        minima[:, groups] = scores.view(-1, GROUP, n_rows).amin(1).T
    return minima
