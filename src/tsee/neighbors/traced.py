"""A search as one computation that does not branch on values, so that it can be traced and exported."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from tsee.metric import Hamming, Jaccard, Metric, ProductMetric
from tsee.neighbors.cells import CHUNK, CellIndex
from tsee.neighbors.exact import ExactIndex
from tsee.neighbors.index import MARGIN, Factors
from tsee.neighbors.smallest import Scratch

__all__ = ["Cells", "TracedIndex", "scanned"]


class Cells(NamedTuple):
    """What a `CellIndex` adds to its candidates.

    Attributes
    ----------
    members : Tensor of shape (n_chunks * CHUNK,), int64
        The number of the candidate in each place; for padding, the number of candidates.
    homes : Tensor of shape (n_chunks,), int64
        The cell of each chunk.
    centers : Tensor of shape (n_cells, w)
        The factors of the centers.
    n_searched : int
        How many cells are searched for a query.
    groups : Tensor of shape (n_groups, w)
        The factors of the centers of groups of cells.
    group : Tensor of shape (n_cells,), int64
        The group of each cell.
    n_near : int
        In how many groups these are looked for; 0 for all.
    """

    members: Tensor
    homes: Tensor
    centers: Tensor
    n_searched: int
    groups: Tensor
    group: Tensor
    n_near: int

    @classmethod
    def of(cls, index: CellIndex) -> Cells:
        members = index.members.masked_fill(index.members < 0, len(index.rows))
        homes = torch.repeat_interleave(torch.arange(len(index.n_chunks)), index.n_chunks)
        group = torch.repeat_interleave(torch.arange(len(index.groups)), index.group_sizes)
        n_near = index.n_near if index.n_near < len(index.groups) else 0
        return cls(members, homes, index.centers, index.n_searched, index.groups, group, n_near)


class TracedIndex(ExactIndex):
    """An index that finds what `ExactIndex` finds, or a `CellIndex` with these cells.

    It takes many times longer than a `CellIndex`: it scores all candidates, and then leaves out other cells. No step
    depends on values or on the number of queries, except for the choice whether to search again in float64.

    Parameters
    ----------
    rows : Tensor of shape (z, d)
        The candidates.
    metric : ProductMetric
        The distance by which the nearest are chosen.
    cells : Cells, optional
        The cells to search; by default all candidates are searched.
    """

    def __init__(self, rows: Tensor, metric: ProductMetric, cells: Cells | None = None) -> None:
        super().__init__(rows, metric)
        self.cells = cells
        if cells is not None:
            table = self.factors.table
            padding = torch.cat([table.new_zeros(1, table.shape[1] - 1), table.new_full((1, 1), torch.inf)], 1)
            self.factors.table = torch.cat([table, padding]).index_select(0, cells.members)

    def query(self, rows: Tensor, k: int, exclude: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """What `Index.query` returns, for all rows at once."""
        assert exclude is None
        found, distances, certain = self._nearest_by_products(rows, k, None, Scratch())

        def keep(rows: Tensor, found: Tensor, distances: Tensor, certain: Tensor) -> tuple[Tensor, Tensor]:
            return found.clone(), distances.clone()  # `torch.cond` returns no arguments as they are

        def search_again(rows: Tensor, found: Tensor, distances: Tensor, certain: Tensor) -> tuple[Tensor, Tensor]:
            left = torch.nonzero(~certain).squeeze(1)
            again = self._nearest_precisely(rows.index_select(0, left), k, None)
            return found.index_copy(0, left, again[0]), distances.index_copy(0, left, again[1])

        nearest: tuple[Tensor, Tensor] = torch.cond(
            certain.all(), keep, search_again, (rows, found, distances, certain)
        )
        return nearest

    def smallest_scores(
        self, queries: Tensor, k: int, exclude: Tensor | None, scratch: Scratch
    ) -> tuple[Tensor, Tensor]:
        scores = queries @ self.factors.table.T
        if self.cells is None:
            return scores.topk(k, dim=1, largest=False, sorted=False)
        members, homes = self.cells.members, self.cells.homes
        n_chunks = homes.shape[0]
        chunks = scores.view(-1, CHUNK)  # (rows * chunks, CHUNK)
        elsewhere = self._elsewhere(queries).index_select(1, homes)  # (rows, chunks)
        minima = chunks.amin(1).view(-1, n_chunks).masked_fill(elsewhere, torch.inf)
        n_chosen = min(k, n_chunks)
        least, chosen = minima.topk(n_chosen, dim=1, largest=False, sorted=False)
        first = n_chunks * torch.arange(queries.shape[0])[:, None]
        inside = chunks.index_select(0, (first + chosen).flatten()).view(-1, n_chosen, CHUNK)
        inside = inside.masked_fill(torch.isinf(least)[:, :, None], torch.inf).flatten(1)
        smallest, column = inside.topk(k, dim=1, largest=False, sorted=False)
        place = chosen.gather(1, column // CHUNK) * CHUNK + column % CHUNK
        found = members.index_select(0, place.flatten()).view(-1, k)
        return smallest, found.clamp_max(len(self.rows) - 1)  # padding, which has an infinite score

    def _elsewhere(self, queries: Tensor) -> Tensor:
        """Which cells are not searched for queries, given by their factors: (rows, cells)."""
        assert self.cells is not None
        queries = queries.to(self.cells.centers.dtype)
        scores = queries @ self.cells.centers.T
        if self.cells.n_near:
            far = _above_smallest(queries @ self.cells.groups.T, self.cells.n_near)
            scores = scores.masked_fill(far.index_select(1, self.cells.group), torch.inf)
        return _above_smallest(scores, self.cells.n_searched)

    def _nearest_precisely(self, block: Tensor, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
        """The k nearest and their distances, found in float64. If more tie than are wanted, the first are taken.

        `Index` compares by differences where even products in float64 cannot tell rows apart; here these are ties.
        """
        candidates = Factors(self.rows.double(), self.metric)
        n_candidates = len(self.rows)
        wanted = min(k + MARGIN, n_candidates)
        queries = self.metric.prepare(block.double(), candidates.origin)
        scores = self.metric.query_factors(queries) @ candidates.table.T  # (rows, candidates)
        if self.cells is not None:
            members, homes = self.cells.members, self.cells.homes
            home = members.new_zeros(n_candidates + 1).scatter(0, members, homes.repeat_interleave(CHUNK))
            first = self.metric.query_factors(self.metric.prepare(block, self.factors.origin))
            elsewhere = self._elsewhere(first).index_select(1, home[:-1])
            enough = (~elsewhere).int().sum(1, keepdim=True) >= wanted
            scores = scores.masked_fill(elsewhere & enough, torch.inf)
        last = scores.topk(wanted, dim=1, largest=False).values.amax(1, keepdim=True)
        bound = self._rounding_within(last[:, 0] + queries.norms, queries, candidates)[:, None]
        # In this order: nearer than the last one, tied with it, farther; among equals by number.
        rank = (scores >= last - bound).int() + (scores > last + bound).int()
        keys = n_candidates * rank + torch.arange(n_candidates, dtype=torch.int32)
        found = keys.topk(wanted, dim=1, largest=False, sorted=False).indices
        return self._in_order(block, scores.gather(1, found), found, k)


def _above_smallest(scores: Tensor, k: int) -> Tensor:
    """Which scores of each row are above its ``k`` smallest."""
    return scores > scores.topk(k, dim=1, largest=False).values.amax(1, keepdim=True)


def scanned(rows: Tensor, candidates: Tensor, metric: Metric, k: int) -> tuple[Tensor, Tensor]:
    """What a `ScannedIndex` finds, for all rows at once. ONNX takes the first of equally near candidates first.

    Parameters
    ----------
    rows : Tensor of shape (n, d)
        The queries.
    candidates : Tensor of shape (z, d)
    metric : Manhattan, Hamming or Jaccard
    k : int

    Returns
    -------
    indices : Tensor of shape (n, k), int64
    distances : Tensor of shape (n, k)
        The squared distances, in ascending order.
    """
    if isinstance(metric, Jaccard):
        here, there = (rows != 0).float(), (candidates != 0).float()
        common = here @ there.T  # (rows, candidates)
        either = here.sum(1, keepdim=True) + there.sum(1) - common
        lengths = torch.where(either > 0, 1 - common / either.clamp_min(1), 0.0)
    elif isinstance(metric, Hamming):
        lengths = (rows[:, None] != candidates).float().sum(-1) / candidates.shape[1]
    else:
        lengths = (rows[:, None] - candidates).abs().sum(-1)
    nearest, found = lengths.square().topk(k, dim=1, largest=False)
    return found, nearest
