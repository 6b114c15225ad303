"""Points to be searched, very many: in cells, of which those nearest to a query are searched."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import pad

from tsee.data import apply_padded, blocks
from tsee.neighbors.candidates import FEW_QUERIES, Candidates, Space, columns_of_smallest, factors_of, queries_of

__all__ = ["Cells", "candidates_of"]

# From so many candidates on it pays to search those of the nearest cells only, one cell in ten: of the 30 nearest,
# 99.6 % are found in MNIST and 99.9 % in Fashion-MNIST, in a quarter of the time.
MANY = 2**15
CELL_ROWS, SEARCHED_SHARE = 256, 10
# Members of a cell are in chunks of this many, the last one filled up.
CHUNK = 32
# k-means that finds the cells: rows for each of them, and updates.
SAMPLE_ROWS, UPDATES = 64, 5
# Queries that a thread searches for together in cells; few (`FEW_QUERIES`) do not make up for a product a cell.
CELL_QUERIES = 1024
# Scores that a thread has at a time, and the threads that search at the same time.
CELL_SCORES = 2**24
MOST_THREADS = 16


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
    centers : Tensor of shape (n_cells, d + 1)
        Factors of the centers.
    """

    def __init__(self, rows: Tensor) -> None:
        super().__init__(rows)
        n_cells = max(1, len(rows) // CELL_ROWS)
        centered = rows - self.center
        self.centers = _centres_of_cells(centered, n_cells)
        used, home = _cells_of(centered, self.centers).unique(return_inverse=True)  # none without members
        self.centers, n_cells = self.centers[used], len(used)
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
        distances = apply_padded(lambda rows: rows @ self.centers.T, queries)
        cells = distances.topk(self.n_searched, dim=1, largest=False).indices  # (n, searched)
        if len(queries) < FEW_QUERIES:
            return self._one_by_one(queries, cells, k, exclude)
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

        position = columns_of_smallest(minima.view(len(queries), width), min(wanted, width))  # (n, chosen)
        cell = torch.searchsorted(ends, position, right=True).clamp_max_(self.n_searched - 1)
        beyond = position >= ends[:, -1:]  # where there are too few chunks
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

    def _one_by_one(self, queries: Tensor, cells: Tensor, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
        """What `smallest_scores` returns, by one product for each query, with all that is in its cells."""
        width = self.factors.shape[1]
        scores, found = [], []
        for i, own in enumerate(cells):
            lengths = self.n_chunks.index_select(0, own)
            begins = self.first.index_select(0, own) - lengths.cumsum(0) + lengths
            chunks = torch.repeat_interleave(begins, lengths)
            chunks += torch.arange(len(chunks))
            score = self.factors.view(-1, CHUNK * width).index_select(0, chunks).view(-1, width).mv(queries[i])
            members = self.members.view(-1, CHUNK).index_select(0, chunks).flatten()
            if exclude is not None:
                score.masked_fill_(members == exclude[i], torch.inf)
            if len(score) < k:
                score, members = pad(score, (0, k), value=torch.inf), pad(members, (0, k), value=-1)
            score, column = score.topk(k, largest=False, sorted=False)
            scores.append(score)
            found.append(members.index_select(0, column))
        return torch.stack(scores), torch.stack(found)

    def _scores(self, queries: Tensor, cells: Tensor, lengths: Tensor, space: Space) -> tuple[Tensor, Tensor, Tensor]:
        """The scores of the chunks of all queries' cells, a chunk a row; for each query and cell the first of them.

        And the order in which these pairs of a query and a cell are there: by cells, each cell with all queries that
        search it.
        """
        n, searched = cells.shape
        order = cells.flatten().argsort(stable=True)
        ends = lengths.flatten()[order].cumsum(0)
        begins = torch.empty_like(ends)
        begins[order] = ends - lengths.flatten()[order]
        scores = space.take(int(ends[-1]) * CHUNK, queries)
        grouped = queries.index_select(0, order // searched)
        counts = torch.bincount(cells.flatten(), minlength=len(self.centers))
        sizes = self.n_chunks * CHUNK
        row = start = 0
        for first, size, count in zip((self.first * CHUNK).tolist(), sizes.tolist(), counts.tolist(), strict=True):
            tile = scores[start : start + count * size].view(count, size)
            torch.mm(grouped[row : row + count], self.factors[first : first + size].T, out=tile)
            row, start = row + count, start + count * size
        return scores.view(-1, CHUNK), begins.view(n, searched), order


def candidates_of(rows: Tensor, k: int) -> Candidates:
    """Candidates to be searched for ``k`` of them: in cells where there are many, on the CPU, and ``k`` is small."""
    in_cells = len(rows) >= MANY and k <= CELL_ROWS // 2 and rows.device.type == "cpu"
    return Cells(rows) if in_cells else Candidates(rows)


def _centres_of_cells(rows: Tensor, n_cells: int) -> Tensor:
    """Factors of centers, by a few updates of k-means over some of the rows, evenly over all of them.

    `choose_centers` has the processes of a group share its work: a search is each process's own.
    """
    sample = rows[:: max(1, len(rows) // (SAMPLE_ROWS * n_cells))]
    centers = sample[torch.arange(n_cells) * len(sample) // n_cells]
    for _ in range(UPDATES):
        home = _cells_of(sample, factors_of(centers))
        counts = torch.bincount(home, minlength=n_cells)[:, None]
        sums = torch.zeros_like(centers).index_add_(0, home, sample)
        centers = torch.where(counts > 0, sums / counts.clamp_min(1), centers)
    return factors_of(centers)


def _cells_of(rows: Tensor, centers: Tensor) -> Tensor:
    """Which of the centers is nearest to each row."""
    return torch.cat([(queries_of(rows[part]) @ centers.T).argmin(1) for part in blocks(len(rows))])
