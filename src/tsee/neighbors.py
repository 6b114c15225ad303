"""The nearest of a set of points in blocks of matrix products: exactly, or of very many points very nearly so."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import torch
from torch import Tensor

from tsee.data import blocks
from tsee.preprocessing import evenly, filled_up

__all__ = ["Candidates", "Cells", "candidates_of", "nearest"]

# Queries that are searched for together, and how many of them at a time once few candidates are left.
BLOCK_ROWS, FEW_ROWS = 512, 64
# Scores that are made at a time: few enough to be in a processor's cache when their minima are taken.
TILE_SCORES, TILE_SCORES_ON_DEVICE = 2**19, 2**26
# Candidates are first compared by the minimum of a group of this many.
GROUP = 8
# Groups there must be for each that is chosen, or all scores are searched at once.
WORTH_GROUPING = 16
# Candidates taken beyond those wanted, so that rounding cannot keep out one that is nearer.
MARGIN = 8

# From so many candidates on it pays to search those of the nearest cells only, one cell in ten: of the 30 nearest,
# 99.6 % are found in MNIST and 99.9 % in Fashion-MNIST, in a quarter of the time.
MANY = 2**15
CELL_ROWS, SEARCHED_SHARE = 256, 10
# Members of a cell are in chunks of this many, the last one filled up.
CHUNK = 32
# k-means that finds the cells: rows for each of them, and updates.
SAMPLE_ROWS, UPDATES = 64, 5
# Queries that a thread searches for together in cells; fewer than the second do not make up for a product a cell.
CELL_QUERIES, FEW_QUERIES = 1024, 16
# Scores that a thread has at a time, and the threads that search at the same time.
CELL_SCORES = 2**24
MOST_THREADS = 16
# Held by the thread that searches all candidates in float64, which takes their memory twice.
PRECISE = threading.Lock()


def nearest(X: Tensor, E: Tensor | Candidates, k: int, *, exclude: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The ``k`` rows of ``E`` nearest to each row of ``X``.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        The queries.
    E : Tensor of shape (z, d), Candidates or Cells
        The candidates; `Candidates` of them where they are searched many times, `Cells` where a few in a thousand of
        those nearest may be missed.
    k : int
        How many to return, at most the number of candidates (less one with ``exclude``).
    exclude : Tensor of shape (n,), optional
        For each query the index of a candidate that it may not choose, or -1.

    Returns
    -------
    indices : Tensor of shape (n, k), int64
        Rows of ``E``, the nearest first.
    distances : Tensor of shape (n, k)
        The *squared* Euclidean distances, summed from differences, so that equal rows are at exactly 0.
    """
    candidates = Candidates(E) if isinstance(E, Tensor) else E
    n, n_threads, space = X.shape[0], candidates.n_threads, Space()
    indices = torch.empty((n, k), dtype=torch.int64)
    distances = torch.empty((n, k), dtype=candidates.rows.dtype)

    def search(rows: slice) -> None:
        indices[rows], distances[rows] = _search(X, rows, candidates, k, exclude, space)

    if n_threads == 1 or n < FEW_QUERIES * n_threads:
        for rows in blocks(n, candidates.block_rows):
            search(rows)
    else:
        _in_threads(search, blocks(n, min(candidates.block_rows, math.ceil(n / n_threads))), n_threads)
    return indices, distances


def _in_threads(search: Callable[[slice], None], parts: Iterable[slice], n_threads: int) -> None:
    """Search in several threads of Python with one thread of torch each."""
    inference, before = torch.is_inference_mode_enabled(), torch.get_num_threads()

    def alone() -> None:
        torch.get_num_threads()  # a thread that has not asked takes what is set for all when it first computes
        torch.set_num_threads(1)

    def work(rows: slice) -> None:
        with torch.inference_mode(inference):
            search(rows)

    try:
        with ThreadPoolExecutor(n_threads, initializer=alone) as pool:
            for _ in pool.map(work, parts):  # an interrupt cancels what has not begun
                pass
    finally:
        torch.set_num_threads(before)  # which threads take that are started later


def _search(
    X: Tensor, queries: slice, candidates: Candidates, k: int, exclude: Tensor | None, space: Space
) -> tuple[Tensor, Tensor]:
    """What `nearest` returns, for a block of the queries."""
    E = candidates.rows
    block = X[queries].to(device=E.device, dtype=E.dtype)
    own = None if exclude is None else exclude[queries].to(E.device)
    found, squared, certain = _nearest_block(block, candidates, k, own, space)
    left = torch.nonzero(~certain).squeeze(1)
    if len(left) and E.dtype != torch.float64 and E.device.type != "mps":
        # Clusters so tight that the products of float32 rows cannot tell their members apart.
        with PRECISE:
            for rows in left.split(BLOCK_ROWS):
                mine = None if own is None else own[rows]
                again = _nearest_block(block[rows].double(), candidates.precise, k, mine, space)
                found[rows], squared[rows] = again[0], again[1].to(squared.dtype)
    return found.cpu(), squared.cpu()


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
        self.centre = rows.mean(0)
        self.factors = _factors(rows - self.centre)
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
        # Evenly: of candidates that tie, those found may not hang on how many other queries there are.
        own = None if exclude is None else filled_up(exclude)
        score, found = _smallest_scores(filled_up(queries), self.factors, k, own)
        return score[: len(queries)], found[: len(queries)]

    def __reduce__(self) -> tuple[type[Candidates], tuple[Tensor]]:
        """Copied and pickled by the rows alone: the rest is made again."""
        return type(self), (self.rows,)

    @cached_property
    def precise(self) -> Candidates:
        """The same in float64, all of which are searched."""
        return Candidates(self.rows.double())


class Cells(Candidates):
    """Candidates in the cells of a k-means, of which those nearest to a query are searched.

    Attributes
    ----------
    factors : Tensor of shape (n_chunks * CHUNK, d + 1)
        The candidates in the order of their cells. What fills up the last chunk of a cell has an infinite score.
    members : Tensor of shape (n_chunks * CHUNK,), int64
        Which candidates these are, -1 for none.
    first, n_chunks : Tensor of shape (n_cells,), int64
        The first chunk of each cell, and how many it has.
    centres : Tensor of shape (n_cells, d + 1)
        Factors of the centres.
    """

    def __init__(self, rows: Tensor) -> None:
        super().__init__(rows)
        n_cells = max(1, len(rows) // CELL_ROWS)
        centred = rows - self.centre
        self.centres = _centres_of_cells(centred, n_cells)
        used, home = _cells_of(centred, self.centres).unique(return_inverse=True)  # none without members
        self.centres, n_cells = self.centres[used], len(used)
        sizes = torch.bincount(home, minlength=n_cells)
        self.n_chunks = (sizes + CHUNK - 1) // CHUNK
        self.first = self.n_chunks.cumsum(0) - self.n_chunks
        order = home.argsort(stable=True)
        within = torch.arange(len(rows)) - (sizes.cumsum(0) - sizes)[home[order]]
        place = self.first[home[order]] * CHUNK + within
        padded = self.factors.new_zeros(int(self.n_chunks.sum()) * CHUNK, self.factors.shape[1])
        padded[:, -1] = torch.inf
        padded[place] = self.factors[order]
        self.factors = padded
        self.members = torch.full((len(padded),), -1)
        self.members[place] = order
        self.n_searched = max(1, n_cells // SEARCHED_SHARE)
        most = CHUNK * int(self.n_chunks.topk(self.n_searched).values.sum())  # scores of a query
        self._block_rows = max(FEW_QUERIES, min(CELL_QUERIES, CELL_SCORES // most))

    @property
    def block_rows(self) -> int:
        return self._block_rows

    @property
    def n_threads(self) -> int:
        """Those there are: products of a cell are too small to be shared among them."""
        return min(MOST_THREADS, torch.get_num_threads()) if torch.backends.openmp.is_available() else 1

    def smallest_scores(self, queries: Tensor, k: int, exclude: Tensor | None, space: Space) -> tuple[Tensor, Tensor]:
        # Evenly: the cells of a query may not hang on how many other queries there are.
        distances = evenly(lambda rows: rows @ self.centres.T, queries)
        cells = distances.topk(self.n_searched, dim=1, largest=False).indices  # (n, searched)
        lengths = self.n_chunks[cells]
        ends = lengths.cumsum(1)  # in the chunks of a query's cells, one cell after the other
        starts = ends - lengths
        wanted = k + (exclude is not None)
        width = max(int(ends[:, -1].max()), math.ceil(wanted / CHUNK))
        scores, begins, order = self._scores(queries, cells, lengths, space)

        # The smallest score of each chunk, in the order of the queries and padded.
        offsets = torch.arange(len(queries))[:, None] * width + starts - begins
        places = torch.repeat_interleave(offsets.flatten()[order], lengths.flatten()[order])
        minima = queries.new_full((len(queries) * width,), torch.inf)
        minima[places + torch.arange(len(scores))] = scores.amin(1)

        position = _smallest(minima.view(len(queries), width), min(wanted, width))  # (n, chosen)
        cell = torch.searchsorted(ends, position, right=True).clamp_max_(self.n_searched - 1)
        beyond = position >= ends[:, -1:]  # where there are too few chunks
        within = (position - starts.gather(1, cell)).masked_fill_(beyond, 0)
        chosen = scores.index_select(0, (begins.gather(1, cell) + within).flatten()).view(*position.shape, CHUNK)
        chosen = chosen.masked_fill_(beyond[:, :, None], torch.inf).flatten(1)
        column = _smallest(chosen, wanted)
        score = chosen.gather(1, column)
        chunk = self.first[cells.gather(1, cell)] + within
        found = self.members[chunk.gather(1, column // CHUNK) * CHUNK + column % CHUNK]
        found.masked_fill_(torch.isinf(score), -1)
        if exclude is not None:
            score.masked_fill_(found == exclude[:, None], torch.inf)
            score, kept = score.topk(k, dim=1, largest=False, sorted=False)
            found = found.gather(1, kept)
        return score, found

    def _scores(self, queries: Tensor, cells: Tensor, lengths: Tensor, space: Space) -> tuple[Tensor, Tensor, Tensor]:
        """The scores of the chunks of all queries' cells, a chunk a row; for each query and cell the first of them.

        And the order in which these pairs of a query and a cell are there: by cells, each cell with all queries that
        search it, or of few queries by queries.
        """
        n, searched = cells.shape
        few = n < FEW_QUERIES
        order = torch.arange(n * searched) if few else cells.flatten().argsort(stable=True)
        ends = lengths.flatten()[order].cumsum(0)
        begins = torch.empty_like(ends)
        begins[order] = ends - lengths.flatten()[order]
        begins = begins.view(n, searched)
        scores = space.take(int(ends[-1]) * CHUNK, queries)
        if few:
            chunks = torch.repeat_interleave((self.first[cells] - begins).flatten(), lengths.flatten())
            chunks += torch.arange(len(chunks))
            factors = self.factors.view(-1, CHUNK * queries.shape[1]).index_select(0, chunks).view(-1, queries.shape[1])
            parts = lengths.sum(1).mul(CHUNK).tolist()
            for query, part, out in zip(queries, factors.split(parts), scores.split(parts), strict=True):
                torch.mv(part, query, out=out)
        else:
            grouped = queries.index_select(0, order // searched)
            counts = torch.bincount(cells.flatten(), minlength=len(self.centres))
            sizes = self.n_chunks * CHUNK
            row = start = 0
            for first, size, count in zip((self.first * CHUNK).tolist(), sizes.tolist(), counts.tolist(), strict=True):
                tile = scores[start : start + count * size].view(count, size)
                torch.mm(grouped[row : row + count], self.factors[first : first + size].T, out=tile)
                row, start = row + count, start + count * size
        return scores.view(-1, CHUNK), begins, order


def candidates_of(rows: Tensor, k: int) -> Candidates:
    """Candidates to be searched for ``k`` of them: in cells where there are many, on the CPU, and ``k`` is small."""
    in_cells = len(rows) >= MANY and k <= CELL_ROWS // 2 and rows.device.type == "cpu"
    return Cells(rows) if in_cells else Candidates(rows)


def _factors(rows: Tensor) -> Tensor:
    """Half the squared length beside each row: one product of a query [x, 1] with them gives its scores."""
    return torch.cat([-rows, rows.square().sum(1, keepdim=True) / 2], 1)


def _queries(rows: Tensor) -> Tensor:
    return torch.cat([rows, rows.new_ones(len(rows), 1)], 1)


def _centres_of_cells(rows: Tensor, n_cells: int) -> Tensor:
    """Factors of centres, by a few updates of k-means over some of the rows, evenly over all of them.

    `choose_centres` has the processes of a group share its work: a search is each process's own.
    """
    sample = rows[:: max(1, len(rows) // (SAMPLE_ROWS * n_cells))]
    centres = sample[torch.arange(n_cells) * len(sample) // n_cells]
    for _ in range(UPDATES):
        home = _cells_of(sample, _factors(centres))
        counts = torch.bincount(home, minlength=n_cells)[:, None]
        sums = torch.zeros_like(centres).index_add_(0, home, sample)
        centres = torch.where(counts > 0, sums / counts.clamp_min(1), centres)
    return _factors(centres)


def _cells_of(rows: Tensor, centres: Tensor) -> Tensor:
    """Which of the centres is nearest to each row."""
    return torch.cat([(_queries(rows[part]) @ centres.T).argmin(1) for part in blocks(len(rows))])


def _nearest_block(
    block: Tensor, candidates: Candidates, k: int, exclude: Tensor | None, space: Space
) -> tuple[Tensor, Tensor, Tensor]:
    """The k nearest, their squared distances, and whether no other can be nearer, given what rounding loses."""
    wanted = min(k + MARGIN, len(candidates.rows))
    centred = block - candidates.centre
    score, found = candidates.smallest_scores(_queries(centred), wanted, exclude, space)
    # In the order of their numbers, so that of two at the same distance the first is first.
    found, order = found.sort(dim=1)  # (rows, wanted)
    score = score.gather(1, order)
    # The products lose digits where the norms are large beside the distance; differences do not.
    members = candidates.rows.index_select(0, found.flatten().clamp_min(0)).view(*found.shape, -1)
    squared = (block[:, None, :] - members).square_().sum(2)  # (rows, wanted)
    squared.masked_fill_(torch.isinf(score), torch.inf)
    squared, order = squared.sort(dim=1, stable=True)
    half_norm = centred.square().sum(1) / 2
    bound = 16 * torch.finfo(block.dtype).eps * (half_norm + candidates.largest)
    farthest = score.amax(1)
    certain = (squared[:, k - 1] / 2 < farthest + half_norm - bound) & torch.isfinite(farthest)
    if wanted == len(candidates.rows):
        certain = torch.ones_like(certain)
    return found.gather(1, order)[:, :k], squared[:, :k], certain


def _smallest_scores(queries: Tensor, factors: Tensor, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
    """The ``k`` smallest of ``queries @ factors.T`` in each row, unsorted, and their columns.

    The k smallest lie in the k groups of smallest minimum, or among one group more where one candidate is excluded.
    The product is made in tiles that stay in cache until the minima of their groups are taken, and is not kept;
    the few scores in the chosen groups are made again.
    """
    width = factors.shape[1]
    n_groups = len(factors) // GROUP
    n_chosen = k + (exclude is not None)
    if n_groups < WORTH_GROUPING * n_chosen:
        scores = queries @ factors.T
        if exclude is not None:
            known = torch.nonzero(exclude >= 0).squeeze(1)
            scores[known, exclude[known]] = torch.inf
        return scores.topk(k, dim=1, largest=False, sorted=False)
    whole = n_groups * GROUP
    chosen = _smallest(_group_minima(queries, factors[:whole]), n_chosen)  # (rows, n_chosen)
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


def _smallest(values: Tensor, k: int) -> Tensor:
    """The columns of the ``k`` smallest of each row, unsorted: they lie in the groups of smallest minimum."""
    rows, columns = values.shape
    # As many groups as there are columns in those chosen, in powers of two.
    size = 2 ** round(math.log2(columns / k) / 2)
    if size == 1:
        return values.topk(k, dim=1, largest=False, sorted=False).indices
    n_groups = columns // size
    whole = n_groups * size
    # Here a group is every n_groups-th column: along the rows the minimum is vectorised.
    least = values[:, :whole].view(rows, size, n_groups).amin(1)
    chosen = least.topk(k, dim=1, largest=False, sorted=False).indices  # (rows, k)
    members = chosen[:, :, None] + n_groups * torch.arange(size, device=values.device)
    rest = torch.arange(whole, columns, device=values.device).expand(rows, -1)
    left = torch.cat([members.flatten(1), rest], 1)
    position = values.gather(1, left).topk(k, dim=1, largest=False, sorted=False).indices
    return left.gather(1, position)
