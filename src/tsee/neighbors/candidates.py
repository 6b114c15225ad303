"""Points to be searched, all of them: the smallest scores of queries, in blocks of matrix products."""

from __future__ import annotations

import math
import threading
from functools import cached_property

import torch
from torch import Tensor

from tsee.data import blocks

__all__ = ["FEW_QUERIES", "Candidates", "Space", "columns_of_smallest", "factors_of", "queries_of"]

# Queries that are searched for together, and how many of them at a time once few candidates are left.
BLOCK_ROWS, FEW_ROWS = 512, 64
# Scores that are made at a time: few enough to be in a processor's cache when their minima are taken.
TILE_SCORES, TILE_SCORES_ON_DEVICE = 2**19, 2**26
# Candidates are first compared by the minimum of a group of this many.
GROUP = 8
# Groups there must be for each that is chosen, and queries, or all scores are searched at once.
WORTH_GROUPING, FEW_QUERIES = 16, 16


class Space(threading.local):
    """Memory that a thread uses again: fresh memory of this size costs more than what is computed in it."""

    kept: Tensor | None = None

    def take(self, size: int, like: Tensor) -> Tensor:
        """Memory for so many numbers of the kind of ``like``, with anything in it."""
        if self.kept is None or len(self.kept) < size or self.kept.dtype != like.dtype:
            self.kept = like.new_empty(size)
        return self.kept[:size]


class Candidates:
    """Candidates as they came, and around their mean, where rounding loses the least in products."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.center = rows.mean(0)
        self.factors = factors_of(rows - self.center)
        self.largest = self.factors[:, -1].max()

    @property
    def block_rows(self) -> int:
        """Queries that are searched for together."""
        return BLOCK_ROWS

    @property
    def n_threads(self) -> int:
        """Threads that search, each for queries of its own: one, whose products take all there are."""
        return 1

    def smallest_scores(self, queries: Tensor, k: int, exclude: Tensor | None, space: Space) -> tuple[Tensor, Tensor]:
        """The ``k`` smallest scores of each query, unsorted, and whose they are."""
        return _smallest_scores(queries, self.factors, k, exclude)

    def __reduce__(self) -> tuple[type[Candidates], tuple[Tensor]]:
        """Copied and pickled by the rows alone: the rest is made again."""
        return type(self), (self.rows,)

    @cached_property
    def precise(self) -> Candidates:
        """The same in float64, all of which are searched."""
        return Candidates(self.rows.double())


def factors_of(rows: Tensor) -> Tensor:
    """Half the squared length beside each row: one product of a query [x, 1] with them gives its scores."""
    return torch.cat([-rows, rows.square().sum(1, keepdim=True) / 2], 1)


def queries_of(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.new_ones(len(rows), 1)], 1)


def _smallest_scores(queries: Tensor, factors: Tensor, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
    """The ``k`` smallest of ``queries @ factors.T`` in each row, unsorted, and their columns.

    The k smallest lie in the k groups of smallest minimum, or among one group more where one candidate is excluded.
    The product is made in tiles that stay in cache until the minima of their groups are taken, and is not kept;
    the few scores in the chosen groups are made again.
    """
    width = factors.shape[1]
    n_groups = len(factors) // GROUP
    n_chosen = k + (exclude is not None)
    if n_groups < WORTH_GROUPING * n_chosen or len(queries) < FEW_QUERIES:
        scores = queries @ factors.T
        if exclude is not None:
            known = torch.nonzero(exclude >= 0).squeeze(1)
            scores[known, exclude[known]] = torch.inf
        return scores.topk(k, dim=1, largest=False, sorted=False)
    whole = n_groups * GROUP
    chosen = columns_of_smallest(_group_minima(queries, factors[:whole]), n_chosen)  # (rows, n_chosen)
    groups = factors[:whole].view(n_groups, GROUP * width)
    rest = torch.arange(whole, len(factors), device=factors.device)
    smallest, columns = [], []
    for rows in blocks(len(queries), FEW_ROWS):
        few = queries[rows]
        members = groups.index_select(0, chosen[rows].flatten()).view(len(few), n_chosen * GROUP, width)
        scores = torch.cat([torch.bmm(members, few[:, :, None]).squeeze(2), few @ factors[whole:].T], 1)
        own = (chosen[rows, :, None] * GROUP + torch.arange(GROUP, device=factors.device)).flatten(1)
        own = torch.cat([own, rest.expand(len(few), -1)], 1)  # which candidate each score is of
        if exclude is not None:
            scores.masked_fill_(own == exclude[rows, None], torch.inf)
        score, position = scores.topk(k, dim=1, largest=False, sorted=False)
        smallest.append(score)
        columns.append(own.gather(1, position))
    return torch.cat(smallest), torch.cat(columns)


def _group_minima(queries: Tensor, factors: Tensor) -> Tensor:
    """The smallest score in each group of consecutive candidates: (rows, groups)."""
    n_rows, n_groups = len(queries), len(factors) // GROUP
    turned = queries.T.contiguous()
    tile_scores = TILE_SCORES if queries.device.type == "cpu" else TILE_SCORES_ON_DEVICE
    size = min(max(1, tile_scores // (GROUP * n_rows)), n_groups)
    tile = queries.new_empty(size * GROUP, n_rows)
    minima = queries.new_empty(n_rows, n_groups)
    for groups in blocks(n_groups, size):
        few = factors[groups.start * GROUP : groups.stop * GROUP]
        scores = torch.mm(few, turned, out=tile[: len(few)])
        minima[:, groups] = scores.view(-1, GROUP, n_rows).amin(1).T
    return minima


def columns_of_smallest(values: Tensor, k: int) -> Tensor:
    """The columns of the ``k`` smallest of each row, unsorted: they lie in the groups of smallest minimum."""
    rows, columns = values.shape
    # As many groups as there are columns in those chosen, in powers of two.
    size = 2 ** round(math.log2(columns / k) / 2)
    if size == 1:
        return values.topk(k, dim=1, largest=False, sorted=False).indices
    n_groups = columns // size
    whole = n_groups * size
    # Here a group is every n_groups-th column: along the rows the minimum is vectorized.
    least = values[:, :whole].view(rows, size, n_groups).amin(1)
    chosen = least.topk(k, dim=1, largest=False, sorted=False).indices  # (rows, k)
    members = chosen[:, :, None] + n_groups * torch.arange(size, device=values.device)
    rest = torch.arange(whole, columns, device=values.device).expand(rows, -1)
    left = torch.cat([members.flatten(1), rest], 1)
    position = values.gather(1, left).topk(k, dim=1, largest=False, sorted=False).indices
    return left.gather(1, position)
