"""What every index shares: queries in blocks, exact distances, and a check that no nearer candidate was missed."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property

import torch
from torch import Tensor

from tsee.data import apply_padded, blocks
from tsee.metric import Metric, Prepared, ProductMetric, euclidean, exclude_from
from tsee.neighbors.smallest import Scratch, columns_of_smallest

__all__ = ["SMALL_BATCH", "Factors", "Index", "ProductIndex", "part_of"]

# Fewer queries than this are searched for without the preparations that only pay for many.
SMALL_BATCH = 16
# Candidates taken beyond those wanted, so that rounding cannot keep out one that is nearer.
MARGIN = 8
# Searching all candidates in float64 takes their memory twice: one thread at a time does it, for a few queries.
PRECISE_SEARCH = threading.Lock()
PRECISE_QUERIES = 32
# Up to so many candidates are kept in float64 once they are needed; of more, so many are made at a time.
PRECISE_KEPT, PASSING_ROWS = 2**18, 2**16
# A tie of products counts as a tie of distances if rounding changes these by less than this share.
TOLERABLE = 1e-6
# Candidates whose differences from a query are computed at a time.
DIFFERENCES = 4096


class Factors:
    """Candidates as factors of matrix products.

    Attributes
    ----------
    origin : Tensor of shape (d,) or None
        The point subtracted from candidates and queries.
    table : Tensor of shape (z, w)
        One row per candidate. Its product with the factors of a query is a score.
    largest_norm : Tensor of shape ()
        The largest squared length of a candidate.
    """

    def __init__(self, rows: Tensor, metric: ProductMetric) -> None:
        self.origin = metric.origin(rows)
        candidates = metric.prepare(rows, self.origin)
        self.table = metric.candidate_factors(candidates)
        self.largest_norm = candidates.norms.max()

    def scores(self, queries: Tensor) -> Tensor:
        """The scores of all candidates for queries, given by their factors."""
        return queries @ self.table.T


class PassingFactors:
    """What `Factors` is in float64, of candidates too many to keep: it makes a part of the factors at a time."""

    def __init__(self, rows: Tensor, metric: ProductMetric) -> None:
        origin = metric.origin(rows)
        self.rows, self.metric, self.origin = rows, metric, None if origin is None else origin.double()
        self.largest_norm = torch.stack([part.norms.max() for part in self._parts()]).max()

    def scores(self, queries: Tensor) -> Tensor:
        """The scores of all candidates for queries, given by their factors."""
        return torch.cat([queries @ self.metric.candidate_factors(part).T for part in self._parts()], 1)

    def _parts(self) -> Iterator[Prepared]:
        for part in blocks(len(self.rows), PASSING_ROWS):
            yield self.metric.prepare(self.rows[part].double(), self.origin)


class Index(ABC):
    """Candidates that are searched for the nearest to each query.

    Parameters
    ----------
    rows : Tensor of shape (z, d)
        The candidates.
    metric : Metric
        The distance by which the nearest are chosen.
    """

    def __init__(self, rows: Tensor, metric: Metric) -> None:
        self.rows, self.metric = rows, metric

    def __reduce__(self) -> tuple[type[Index], tuple[Tensor, Metric]]:
        """Copies and pickles hold the rows only, and build the rest from them."""
        return type(self), (self.rows, self.metric)

    @property
    @abstractmethod
    def block_rows(self) -> int:
        """How many queries are searched for together."""

    @property
    @abstractmethod
    def n_threads(self) -> int:
        """How many threads search at the same time, each for its own queries."""

    @property
    def sought_together(self) -> int:
        """How many queries it pays to bring at a time."""
        return self.block_rows

    @property
    def roughly(self) -> Index:
        """An index of the same candidates for searches that may miss one neighbor in ten, and are faster for that."""
        return self

    def part(self, number: int, n_parts: int) -> Tensor:
        """The candidates of one of several equal parts, in an order in which their neighbors are found fastest."""
        return part_of(torch.arange(len(self.rows)), number, n_parts)

    def equal_to(self, rows: Tensor) -> Tensor | None:
        """The number of the first candidate that equals each row, or -1; None if it has to be searched for."""
        return None

    def order(self, rows: Tensor) -> Tensor | None:
        """The order in which queries are searched for fastest; None for the order in which they come."""
        return None

    @abstractmethod
    def nearest(self, block: Tensor, k: int, exclude: Tensor | None, scratch: Scratch) -> tuple[Tensor, Tensor]:
        """What `query` returns, for one block of queries on the device of the candidates."""

    def query(self, rows: Tensor, k: int, exclude: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The ``k`` candidates nearest to each row.

        Parameters
        ----------
        rows : Tensor of shape (n, d)
            The queries.
        k : int
            How many to return, at most the number of candidates (minus one with ``exclude``).
        exclude : Tensor of shape (n,), optional
            For each query the number of a candidate that it must not choose, or -1. Such queries are searched for in
            the order in which they come, which should be the order of `part`.

        Returns
        -------
        indices : Tensor of shape (n, k), int64
            The numbers of the candidates, the nearest first; among equally near ones the lowest number first.
        distances : Tensor of shape (n, k)
            The *squared* distances, from differences, so that equal rows are at exactly 0.
        """
        n, n_threads, scratch = len(rows), self.n_threads, Scratch()
        indices = torch.empty((n, k), dtype=torch.int64)
        distances = torch.empty((n, k), dtype=self.rows.dtype)
        order = self.order(rows) if exclude is None and n > self.block_rows else None

        def search(part: slice) -> None:
            queries = part if order is None else order[part]
            block = rows[queries].to(device=self.rows.device, dtype=self.rows.dtype)
            excluded = None if exclude is None else exclude[queries].to(self.rows.device)
            indices[queries], distances[queries] = self.nearest(block, k, excluded, scratch)

        if n_threads == 1 or n < SMALL_BATCH * n_threads:
            for part in blocks(n, self.block_rows):
                search(part)
        else:
            _in_threads(search, blocks(n, min(self.block_rows, math.ceil(n / n_threads))), n_threads)
        return indices, distances


class ProductIndex(Index):
    """Candidates whose scores are products of matrices, put in order by exact distances.

    Parameters
    ----------
    rows : Tensor of shape (z, d)
        The candidates.
    metric : ProductMetric, default `euclidean`
        The distance by which the nearest are chosen.
    """

    metric: ProductMetric

    def __init__(self, rows: Tensor, metric: ProductMetric = euclidean) -> None:
        super().__init__(rows, metric)
        self.factors = Factors(rows, metric)

    @abstractmethod
    def smallest_scores(
        self, queries: Tensor, k: int, exclude: Tensor | None, scratch: Scratch
    ) -> tuple[Tensor, Tensor]:
        """The ``k`` smallest scores of each query, given by its factors, and the candidates they belong to, unsorted.

        The score is infinite if the candidate is excluded, or if fewer than ``k`` were found.
        """

    @cached_property
    def _precise_factors(self) -> Factors | PassingFactors:
        """All candidates in float64."""
        if len(self.rows) > PRECISE_KEPT:
            return PassingFactors(self.rows, self.metric)
        return Factors(self.rows.double(), self.metric)

    def nearest(self, block: Tensor, k: int, exclude: Tensor | None, scratch: Scratch) -> tuple[Tensor, Tensor]:
        found, distances, certain = self._nearest_by_products(block, k, exclude, scratch)
        if self.rows.dtype == torch.float64:  # as precise as can be, but the search may have found too few
            certain = torch.isfinite(distances[:, -1])
        if not bool(certain.all()) and self.rows.device.type != "mps":
            # Ties, or clusters so tight that products of float32 rows cannot tell their members apart.
            left = torch.nonzero(~certain).squeeze(1)
            with PRECISE_SEARCH:
                for rows in left.split(PRECISE_QUERIES):
                    excluded = None if exclude is None else exclude[rows]
                    found[rows], distances[rows] = self._nearest_precisely(block[rows], k, excluded)
        return found.cpu(), distances.cpu()

    def _nearest_by_products(
        self, block: Tensor, k: int, exclude: Tensor | None, scratch: Scratch
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The k nearest, their distances, and whether rounding cannot have hidden another that is as near."""
        wanted = min(k + MARGIN, len(self.rows))
        queries = self.metric.prepare(block, self.factors.origin)
        scores, found = self.smallest_scores(self.metric.query_factors(queries), wanted, exclude, scratch)
        farthest = scores.amax(1)
        found, distances = self._in_order(block, scores, found, k)
        limit = farthest + queries.norms - self.metric.rounding(queries, self.factors.largest_norm, distances[:, -1])
        certain = (distances[:, -1] < limit) & torch.isfinite(farthest)
        if wanted == len(self.rows):
            certain = torch.ones_like(certain)
        return found, distances, certain

    def _nearest_precisely(self, block: Tensor, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
        """The k nearest and their distances. If more tie than are wanted, the first of them are taken.

        They are found in float64 and then put in order as all others are: the result of a query does not depend on
        whether rounding, or another query of its block, sent it here. For this an index that searches a part of the
        candidates must search the same part here.
        """
        candidates = self._precise_factors
        wanted = min(k + MARGIN, len(self.rows))
        queries = self.metric.prepare(block.double(), candidates.origin)
        scores = apply_padded(candidates.scores, self.metric.query_factors(queries))
        exclude_from(scores, exclude)  # (rows, candidates)
        last = scores.gather(1, columns_of_smallest(scores, wanted)).amax(1, keepdim=True)
        reach = last[:, 0] + queries.norms
        bound = self._rounding_within(reach, queries, candidates)[:, None]
        # The candidates nearer than the last one and those that tie with it, row by row, the nearer ones first.
        near = ~(scores > last + bound)
        row, found = torch.nonzero(near).unbind(1)
        tied = ~(scores[row, found] < (last - bound)[row, 0])
        order = (2 * row + tied).argsort(stable=True)
        starts = torch.searchsorted(row, torch.arange(len(block), device=row.device))
        found = found[order[starts[:, None] + torch.arange(wanted, device=row.device)]]
        hidden = (near.sum(1) > wanted) & (bound[:, 0] > TOLERABLE * reach) & torch.isfinite(last[:, 0])
        for query in torch.nonzero(hidden).squeeze(1).tolist():
            found[query] = self._nearest_by_differences(block[query], torch.nonzero(near[query]).squeeze(1), wanted)
        return self._in_order(block, scores.gather(1, found), found, k)

    def _rounding_within(self, reach: Tensor, queries: Prepared, candidates: Factors | PassingFactors) -> Tensor:
        """How much rounding can change the scores of candidates whose squared distance, by products, is ``reach``."""
        bound = self.metric.rounding(queries, candidates.largest_norm, torch.full_like(reach, torch.inf))
        return self.metric.rounding(queries, candidates.largest_norm, reach + 2 * bound)

    def _nearest_by_differences(self, query: Tensor, candidates: Tensor, wanted: int) -> Tensor:
        """The nearest of the candidates of these numbers: their rows differ by less than products can tell."""
        parts: list[Tensor] = []
        n_equal = 0
        for part in blocks(len(candidates), DIFFERENCES):
            parts.append(self.metric.exact(query.double(), self.rows[candidates[part]].double()))
            n_equal += int((parts[-1] == 0).sum())
            if n_equal >= wanted:  # none of the others is nearer
                break
        return candidates[torch.cat(parts).argsort(stable=True)[:wanted]]

    def _in_order(self, block: Tensor, scores: Tensor, found: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The k nearest of the candidates found, the first of equally near ones first, and their distances."""
        found, order = found.sort(dim=1)  # (rows, wanted)
        members = self.rows.index_select(0, found.flatten().clamp_min(0)).view(*found.shape, self.rows.shape[1])
        distances = self.metric.exact(block[:, None, :], members)  # (rows, wanted)
        distances.masked_fill_(torch.isinf(scores.gather(1, order)), torch.inf)
        distances, order = distances.sort(dim=1, stable=True)
        return found.gather(1, order)[:, :k], distances[:, :k]


def part_of(candidates: Tensor, number: int, n_parts: int) -> Tensor:
    """One of several equal parts."""
    n = len(candidates)
    return candidates[number * n // n_parts : (number + 1) * n // n_parts]


def _in_threads(search: Callable[[slice], None], parts: Iterable[slice], n_threads: int) -> None:
    """Search in several Python threads with one torch thread each."""
    inference, before = torch.is_inference_mode_enabled(), torch.get_num_threads()

    def use_one_torch_thread() -> None:
        torch.get_num_threads()  # without this first call, the thread takes the global setting when it first computes
        torch.set_num_threads(1)

    def work(part: slice) -> None:
        with torch.inference_mode(inference):
            search(part)

    try:
        with ThreadPoolExecutor(n_threads, initializer=use_one_torch_thread) as pool:
            for _ in pool.map(work, parts):  # an interrupt cancels the parts that have not begun
                pass
    finally:
        torch.set_num_threads(before)  # for threads that are started later
