"""The nearest of a set of points: exactly, or of very many points very nearly so."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import Tensor

from tsee.data import apply_padded, blocks
from tsee.neighbors.candidates import FEW_QUERIES, Candidates, Space, columns_of_smallest, queries_of

__all__ = ["nearest"]

# Candidates taken beyond those wanted, so that rounding cannot keep out one that is nearer.
MARGIN = 8
# Held by the thread that searches all candidates in float64, which takes their memory twice; and for how many queries
# at a time it does so.
PRECISE = threading.Lock()
PRECISE_ROWS = 32


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
    if not bool(certain.all()) and E.dtype != torch.float64 and E.device.type != "mps":
        # Clusters so tight that the products of float32 rows cannot tell their members apart, or ties.
        left = torch.nonzero(~certain).squeeze(1)
        with PRECISE:
            for rows in left.split(PRECISE_ROWS):
                mine = None if own is None else own[rows]
                found[rows], squared[rows] = _nearest_precisely(block[rows], candidates, k, mine)
    return found.cpu(), squared.cpu()


def _nearest_block(
    block: Tensor, candidates: Candidates, k: int, exclude: Tensor | None, space: Space
) -> tuple[Tensor, Tensor, Tensor]:
    """The k nearest, their squared distances, and whether no other can be as near, given what rounding loses."""
    wanted = min(k + MARGIN, len(candidates.rows))
    centered = block - candidates.center
    score, found = candidates.smallest_scores(queries_of(centered), wanted, exclude, space)
    farthest = score.amax(1)
    half_norm = centered.square().sum(1) / 2
    found, squared = _in_order(block, candidates, score, found, k)
    certain = (squared[:, -1] / 2 < farthest + half_norm - _bound(half_norm, candidates)) & torch.isfinite(farthest)
    if wanted == len(candidates.rows):
        certain = torch.ones_like(certain)
    return found, squared, certain


def _nearest_precisely(block: Tensor, candidates: Candidates, k: int, exclude: Tensor | None) -> tuple[Tensor, Tensor]:
    """The k nearest and their squared distances; of more that tie than are wanted, those that come first.

    Found by float64 and put in order as others are, so that it does not matter which rows come here: rounding decides.
    """
    precise = candidates.precise
    wanted = min(k + MARGIN, len(precise.rows))
    centered = block.double() - precise.center
    scores = apply_padded(lambda rows: rows @ precise.factors.T, queries_of(centered))  # (rows, candidates)
    if exclude is not None:
        known = torch.nonzero(exclude >= 0).squeeze(1)
        scores[known, exclude[known]] = torch.inf
    last = scores.gather(1, columns_of_smallest(scores, wanted)).amax(1, keepdim=True)
    bound = _bound(centered.square().sum(1, keepdim=True) / 2, precise)
    # Those nearer than the last and those that tie with it, a row after the other; in a row the nearer ones first.
    row, found = torch.nonzero(~(scores > last + bound)).unbind(1)
    tied = ~(scores[row, found] < (last - bound)[row, 0])
    order = (2 * row + tied).argsort(stable=True)
    starts = torch.searchsorted(row, torch.arange(len(block), device=row.device))
    found = found[order[starts[:, None] + torch.arange(wanted, device=row.device)]]
    return _in_order(block, candidates, scores.gather(1, found), found, k)


def _in_order(block: Tensor, candidates: Candidates, score: Tensor, found: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k nearest of those found, by their distances, of equal ones the first; and their squared distances.

    Products lose digits where the norms are large beside the distance; differences do not.
    """
    found, order = found.sort(dim=1)  # (rows, wanted)
    members = candidates.rows.index_select(0, found.flatten().clamp_min(0)).view(*found.shape, -1)
    squared = (block[:, None, :] - members).square_().sum(2)  # (rows, wanted)
    squared.masked_fill_(torch.isinf(score.gather(1, order)), torch.inf)
    squared, order = squared.sort(dim=1, stable=True)
    return found.gather(1, order)[:, :k], squared[:, :k]


def _bound(half_norm: Tensor, candidates: Candidates) -> Tensor:
    """What rounding can have done to the scores of queries of this half squared length."""
    return 16 * torch.finfo(half_norm.dtype).eps * (half_norm + candidates.largest)
