"""An index of very many candidates: it searches the cells that are nearest to a query."""

from __future__ import annotations

import math
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from tsee.data import blocks_in_cache, pad_rows
from tsee.metric import Metric, ProductMetric, euclidean, shifted
from tsee.neighbors.centers import cell_centers, dtype_of_centers, in_groups, nearest_centers
from tsee.neighbors.equal import EqualRows
from tsee.neighbors.exact import ExactIndex
from tsee.neighbors.index import MARGIN, SMALL_BATCH, Index, ProductIndex, part_of
from tsee.neighbors.scanned import ScannedIndex
from tsee.neighbors.smallest import Scratch, columns_of_smallest

__all__ = ["MOST_IN_CELLS", "CellIndex", "build_index"]

# From this many candidates on it pays to search only the nearest cells, one in ten: of the 30 nearest neighbors,
# 99.6 % are found in MNIST and 99.9 % in Fashion-MNIST, in a quarter of the time.
MIN_CANDIDATES = 2**15
CELL_ROWS, SEARCHED_SHARE = 256, 10
# A search for more neighbors than this looks at all candidates.
MOST_IN_CELLS = CELL_ROWS // 2
# Of more cells than this, no larger number is searched, unless a sample of candidates, evenly spaced, does not find
# this share of its 15 nearest: then the number grows by this factor until it does, and is cut down again as long as
# that spares more than this share of it.
MOST_BY_SHARE, GROWTH, SPARED = 256, 1.5, 0.1
RECALL_SAMPLE, RECALL_NEIGHBORS, LEAST_RECALL = 256, 15, 0.96
# The share that is enough where neighbors are only averaged, but never fewer than half of these cells are searched: the
# sample says little of rows between clusters, or in rare ones.
ROUGH_RECALL = 0.9
RECALL_BLOCK = 2**14
# Members of a cell are stored in chunks of this many. The last chunk is padded.
CHUNK = 32
# Of more cells than this, only those of the nearest groups are compared with a query: at least so many groups, and as
# many as hold this many times the cells that are searched if they are of usual size.
MANY_CELLS, LEAST_GROUPS, SPARE_CELLS = 2048, 16, 4
# Queries that a thread searches for together. Fewer than SMALL_BATCH do not pay for one product per cell.
CELL_QUERIES = 1024
# Among very many queries that come together, about so many have the same nearest cell.
QUERIES_OF_CELL = 64
# Scores that a thread holds at a time, and how many threads search at the same time.
CELL_SCORES = 2**24
MAX_THREADS = 16


class CellIndex(ProductIndex):
    """Candidates in the cells of a k-means. A search looks at the cells nearest to the query only.

    It takes a fraction of the time of `ExactIndex`, and misses some of the nearest candidates. It searches a tenth of
    the cells; of more than 256 cells, as many as find 96 % of the 15 nearest of a sample, or 90 % to place a row.

    Attributes
    ----------
    factors : Factors
        Its table is of shape (n_chunks * CHUNK, w), in the order of the cells. Padding has an infinite score.
    members : Tensor of shape (n_chunks * CHUNK,), int64
        The number of the candidate in each row of the table, or -1 for padding.
    first, n_chunks : Tensor of shape (n_cells,), int64
        The first chunk of each cell, and how many it has.
    centers : Tensor of shape (n_cells, w)
        The factors of the centers; in float64 if float32 would hide which of them is nearest.
    groups : Tensor of shape (n_groups, w)
        The factors of the centers of groups of cells; a group's cells have consecutive numbers.
    group_sizes : Tensor of shape (n_groups,), int64
        How many cells each of them has.
    n_searched, n_roughly : int
        How many cells a search looks at, and how many one by `roughly`.
    n_near : int
        In how many groups these are looked for.
    recall : float or None
        The share of the 15 nearest that a sample of the candidates finds; None if it was not measured.
    """

    def __init__(self, rows: Tensor, metric: ProductMetric = euclidean) -> None:
        super().__init__(rows, metric)
        moved = shifted(rows, self.factors.origin)
        # Of clusters far apart, cells would be any rows of a cluster if rounding chose them.
        dtype = dtype_of_centers(moved, metric)
        found, groups, group = in_groups(cell_centers(moved, max(1, len(rows) // CELL_ROWS), metric, dtype), metric)
        centers = metric.prepare(found)
        used, home = nearest_centers(moved, centers, metric).unique(return_inverse=True)  # no empty cells
        self.centers, n_cells = metric.candidate_factors(centers[used]), len(used)
        self.groups, self.group_sizes = (
            metric.candidate_factors(groups),
            torch.bincount(group[used], minlength=len(groups.norms)),
        )
        sizes = torch.bincount(home, minlength=n_cells)
        self.n_chunks = (sizes + CHUNK - 1) // CHUNK
        self.first = self.n_chunks.cumsum(0) - self.n_chunks
        order = home.argsort(stable=True)
        within = torch.arange(len(rows)) - (sizes.cumsum(0) - sizes)[home[order]]
        position = self.first[home[order]] * CHUNK + within
        table = self.factors.table
        padded = table.new_zeros(int(self.n_chunks.sum()) * CHUNK, table.shape[1])
        padded[:, -1] = torch.inf
        padded[position] = table[order]
        self.factors.table = padded
        self.members = torch.full((len(padded),), -1)
        self.members[position] = order
        self.recall: float | None = None
        self._search(max(1, min(n_cells, MOST_BY_SHARE) // SEARCHED_SHARE))
        self.n_roughly = self.n_searched
        if n_cells > MOST_BY_SHARE:
            self._measure()

    def _search(self, n_cells: int) -> None:
        """Search this many cells from now on."""
        self.n_searched = n_cells
        self.n_near = n_groups = len(self.groups)
        if len(self.centers) > MANY_CELLS:
            wanted = max(LEAST_GROUPS, math.ceil(SPARE_CELLS * n_cells * n_groups / len(self.centers)))
            # Even the smallest groups hold enough.
            enough = int((self.group_sizes.sort().values.cumsum(0) < n_cells).sum()) + 1
            self.n_near = min(n_groups, max(wanted, enough))
        sizes = self.n_chunks.double()
        usual = CHUNK * n_cells * float(sizes.square().sum() / sizes.sum())  # scores of a query: large cells have more
        self._block_rows = max(SMALL_BATCH, min(CELL_QUERIES, int(CELL_SCORES / usual)))

    def _measure(self) -> None:
        """Search as many cells as a sample of the candidates needs to find its nearest others."""
        sample = torch.arange(RECALL_SAMPLE) * len(self.rows) // RECALL_SAMPLE
        queries = self.metric.prepare(self.rows[sample], self.factors.origin)
        factors = self.metric.query_factors(queries)
        nearest = torch.empty(RECALL_SAMPLE, 0)
        for chunks in self.factors.table.split(RECALL_BLOCK):
            nearest = torch.cat([nearest, factors @ chunks.T], 1).topk(RECALL_NEIGHBORS + 1, largest=False).values
        reach = nearest[:, -1] + queries.norms  # one more, since the sample finds itself
        reach += self.metric.rounding(queries, self.factors.largest_norm, reach)

        def recall(n_cells: int) -> float:
            self._search(n_cells)
            _, distances = self.query(self.rows[sample], RECALL_NEIGHBORS, exclude=sample)
            return float((distances <= reach[:, None]).float().mean())

        def fewest(least: float, too_few: int, enough: int) -> int:
            while enough - too_few > max(1, SPARED * enough):
                middle = (too_few + enough) // 2
                too_few, enough = (too_few, middle) if recall(middle) >= least else (middle, enough)
            return enough

        too_few, enough = 0, self.n_searched
        while recall(enough) < LEAST_RECALL and enough < len(self.centers):
            too_few, enough = enough, min(len(self.centers), int(GROWTH * enough))
        if too_few:
            enough = fewest(LEAST_RECALL, too_few, enough)
        self.n_roughly = fewest(ROUGH_RECALL, enough // 2, enough)
        self.recall = recall(enough)

    @property
    def sought_together(self) -> int:
        """So many that those of a cell make one product."""
        return QUERIES_OF_CELL * len(self.centers)

    @cached_property
    def roughly(self) -> CellIndex:
        if self.n_roughly == self.n_searched:
            return self
        index = object.__new__(CellIndex)
        index.__dict__ |= self.__dict__
        index._search(self.n_roughly)
        return index

    def equal_to(self, rows: Tensor) -> Tensor:
        return self._equal_rows.find(rows.to(self.rows))

    @cached_property
    def _equal_rows(self) -> EqualRows:
        return EqualRows(self.rows)

    def order(self, rows: Tensor) -> Tensor:
        """By the nearest cell of the nearest group: queries that are near each other share the cells they search."""
        group = torch.empty(len(rows), dtype=torch.int64)
        for part in blocks_in_cache(len(rows), len(self.groups)):
            group[part] = (self._query_factors(rows[part]) @ self.groups.T).argmin(1)
        order, counts = group.argsort(stable=True), torch.bincount(group, minlength=len(self.groups))
        home = torch.zeros(len(rows), dtype=torch.int64)
        first, begin = 0, 0  # of the cells and of the queries of a group
        for size, count in zip(self.group_sizes.tolist(), counts.tolist(), strict=True):
            members = order[begin : begin + count]
            for part in blocks_in_cache(count if size else 0, size):
                scores = self._query_factors(rows[members[part]]) @ self.centers[first : first + size].T
                home[begin + part.start : begin + part.stop] = first + scores.argmin(1)
            first, begin = first + size, begin + count
        return order[home.argsort(stable=True)]

    def _query_factors(self, rows: Tensor) -> Tensor:
        queries = self.metric.prepare(rows.to(self.rows), self.factors.origin)
        return self.metric.query_factors(queries).to(self.centers.dtype)

    def part(self, number: int, n_parts: int) -> Tensor:
        """By cells: candidates that are near each other share the cells they search."""
        return part_of(self.members[self.members >= 0], number, n_parts)

    @property
    def block_rows(self) -> int:
        return self._block_rows

    @property
    def n_threads(self) -> int:
        """The number of torch's threads: the products of a cell are too small to share among them."""
        return min(MAX_THREADS, torch.get_num_threads()) if torch.backends.openmp.is_available() else 1

    def smallest_scores(
        self, queries: Tensor, k: int, exclude: Tensor | None, scratch: Scratch
    ) -> tuple[Tensor, Tensor]:
        cells = self._nearest_cells(queries, scratch)
        if len(queries) < SMALL_BATCH:
            return self._one_by_one(queries, cells, k, exclude)
        lengths = self.n_chunks[cells]
        ends = lengths.cumsum(1)  # counted in the chunks of a query's cells, one cell after the other
        starts = ends - lengths
        wanted = k + (exclude is not None)
        width = max(int(ends[:, -1].max()), math.ceil(wanted / CHUNK))
        scores, begins, order = self._scores(queries, cells, lengths, scratch)

        # The smallest score of each chunk, in the order of the queries and padded.
        offsets = torch.arange(len(queries))[:, None] * width + starts - begins
        shifts = torch.repeat_interleave(offsets.flatten()[order], lengths.flatten()[order])
        minima = queries.new_full((len(queries) * width,), torch.inf)
        minima[shifts + torch.arange(len(scores))] = scores.amin(1)

        position = columns_of_smallest(minima.view(len(queries), width), min(wanted, width))  # (n, chosen)
        cell = torch.searchsorted(ends, position, right=True).clamp_max_(self.n_searched - 1)
        beyond = position >= ends[:, -1:]  # if there are too few chunks
        within = (position - starts.gather(1, cell)).masked_fill_(beyond, 0)
        chosen = scores.index_select(0, (begins.gather(1, cell) + within).flatten()).view(*position.shape, CHUNK)
        chosen = chosen.masked_fill_(beyond[:, :, None], torch.inf).flatten(1)
        column = columns_of_smallest(chosen, wanted)
        score = chosen.gather(1, column)
        chunk = self.first[cells.gather(1, cell)] + within
        found = self.members[chunk.gather(1, column // CHUNK) * CHUNK + column % CHUNK]
        found.masked_fill_(torch.isinf(score), -1)
        if exclude is not None:
            score.masked_fill_(found == exclude[:, None], torch.inf)
            score, kept = score.topk(k, dim=1, largest=False, sorted=False)
            found = found.gather(1, kept)
        return score, found

    def _nearest_cells(self, queries: Tensor, scratch: Scratch) -> Tensor:
        """The cells that are searched for queries, given by their factors, of shape (n, searched)."""
        # Padded: the cells of a query must not depend on how many other queries there are.
        queries, n = pad_rows(queries.to(self.centers.dtype)), len(queries)
        if self.n_near == len(self.groups):
            shape = len(queries), len(self.centers)
            scores = torch.mm(queries, self.centers.T, out=scratch.take(math.prod(shape), queries).view(shape))
            return columns_of_smallest(scores[:n], self.n_searched)
        near = columns_of_smallest(queries @ self.groups.T, self.n_near)
        chosen = torch.zeros(len(queries), len(self.groups), dtype=torch.bool).scatter_(1, near, True)
        starts = self.group_sizes.cumsum(0) - self.group_sizes
        used = torch.nonzero(chosen.any(0) & (self.group_sizes > 0)).squeeze(1)
        cells = [
            torch.arange(start, start + size)
            for start, size in zip(starts[used].tolist(), self.group_sizes[used].tolist(), strict=True)
        ]
        shape = len(queries), sum(map(len, cells))
        scores = scratch.take(math.prod(shape), queries).view(shape).fill_(torch.inf)
        begin = 0
        for group, own in zip(used.tolist(), cells, strict=True):
            rows = torch.nonzero(chosen[:, group]).squeeze(1)
            centers = self.centers[own[0] : own[-1] + 1]
            found = (pad_rows(queries[rows]) @ centers.T)[: len(rows)]
            scores[:, begin : begin + len(own)].index_copy_(0, rows, found)
            begin += len(own)
        return torch.cat(cells)[columns_of_smallest(scores[:n], self.n_searched)]

    def _chunks(self, cells: Tensor) -> Tensor:
        """The chunks of some cells, one cell after the other."""
        lengths = self.n_chunks.index_select(0, cells)
        begins = self.first.index_select(0, cells) - lengths.cumsum(0) + lengths
        chunks = torch.repeat_interleave(begins, lengths)
        return chunks + torch.arange(len(chunks))

    def _nearest_precisely(self, block: Tensor, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
        """The k nearest in the cells of each query and their distances; of all candidates if its cells hold too few.

        The same candidates as in float32: whether rounding sends a query here depends on the others of its block.
        """
        queries = self.metric.query_factors(self.metric.prepare(block, self.factors.origin))
        wanted = min(k + MARGIN, len(self.rows))
        found, distances = [], []
        for i, cells in enumerate(self._nearest_cells(queries, Scratch())):
            query, excluded = block[i : i + 1], None if exclude is None else exclude[i : i + 1]
            members = self.members.view(-1, CHUNK).index_select(0, self._chunks(cells)).flatten()
            members = members[members >= 0].sort().values
            own = members == (-1 if excluded is None else excluded)
            if len(members) - int(own.any()) < wanted:
                numbers, squared = super()._nearest_precisely(query, k, excluded)
            else:
                among = ExactIndex(self.rows.index_select(0, members), self.metric)
                place = own.int().argmax()[None] if own.any() else None
                numbers, squared = among._nearest_precisely(query, k, place)
                numbers = members[numbers]
            found.append(numbers)
            distances.append(squared)
        return torch.cat(found), torch.cat(distances)

    def _one_by_one(self, queries: Tensor, cells: Tensor, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
        """What `smallest_scores` returns, by one product per query with all the members of its cells."""
        width = self.factors.table.shape[1]
        scores, found = [], []
        for i, own in enumerate(cells):
            chunks = self._chunks(own)
            score = self.factors.table.view(-1, CHUNK * width).index_select(0, chunks).view(-1, width).mv(queries[i])
            members = self.members.view(-1, CHUNK).index_select(0, chunks).flatten()
            if exclude is not None:
                score.masked_fill_(members == exclude[i], torch.inf)
            if len(score) < k:
                score, members = pad(score, (0, k), value=torch.inf), pad(members, (0, k), value=-1)
            score, column = score.topk(k, largest=False, sorted=False)
            scores.append(score)
            found.append(members.index_select(0, column))
        return torch.stack(scores), torch.stack(found)

    def _scores(
        self, queries: Tensor, cells: Tensor, lengths: Tensor, scratch: Scratch
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The scores of all queries in their cells, one row per chunk.

        Also the first of these rows for each query and cell, and the order of these pairs: by cell, so that one
        product serves all queries that search a cell.
        """
        n, searched = cells.shape
        order = cells.flatten().argsort(stable=True)
        ends = lengths.flatten()[order].cumsum(0)
        begins = torch.empty_like(ends)
        begins[order] = ends - lengths.flatten()[order]
        scores = scratch.take(int(ends[-1]) * CHUNK, queries)
        grouped = queries.index_select(0, order // searched)
        counts = torch.bincount(cells.flatten(), minlength=len(self.centers))
        sizes = self.n_chunks * CHUNK
        row = start = 0
        used = counts.nonzero().squeeze(1)
        places = torch.stack([self.first * CHUNK, sizes, counts], 1)[used]
        for first, size, count in places.tolist():
            tile = scores[start : start + count * size].view(count, size)
            torch.mm(grouped[row : row + count], self.factors.table[first : first + size].T, out=tile)
            row, start = row + count, start + count * size
        return scores.view(-1, CHUNK), begins.view(n, searched), order


def build_index(rows: Tensor, k: int, metric: Metric = euclidean) -> Index:
    """An index for searches of ``k`` neighbors: in cells if candidates are many, ``k`` is small, and all is on the CPU.

    If the metric is not a product, all candidates are searched.

    Parameters
    ----------
    rows : Tensor of shape (z, d)
        The candidates.
    k : int
        How many neighbors most searches will ask for.
    metric : Metric, default `euclidean`
        The distance by which the nearest are chosen.

    Examples
    --------
    >>> import torch
    >>> index = build_index(torch.tensor([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]]), k=2)
    >>> index.query(torch.tensor([[3.0, 0.0]]), k=2)
    (tensor([[0, 1]]), tensor([[ 9., 16.]]))
    """
    if not isinstance(metric, ProductMetric):
        return ScannedIndex(rows, metric)
    in_cells = len(rows) >= MIN_CANDIDATES and k <= MOST_IN_CELLS and rows.device.type == "cpu"
    return CellIndex(rows, metric) if in_cells else ExactIndex(rows, metric)
