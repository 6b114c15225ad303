"""The nearest of a set of points, exactly, in blocks of matrix products."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tsee.data import blocks

__all__ = ["Candidates", "nearest"]

# Scores of a block of rows that are made at a time: few enough to stay near the processor until they are searched.
BLOCK_SCORES = 2**22
FEWEST_ROWS, MOST_ROWS = 16, 1024
# Candidates are first compared by the minimum of a group of this many.
GROUP = 64
# Candidates taken beyond those wanted, so that rounding cannot keep out one that is nearer.
MARGIN = 8


def nearest(X: Tensor, E: Tensor | Candidates, k: int, *, exclude: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The ``k`` rows of ``E`` nearest to each row of ``X``.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        The queries. Anything whose slices are such tensors will do: it is read ``X[a:b]`` at a time.
    E : Tensor of shape (z, d), or Candidates
        The candidates; `Candidates` of them where they are searched many times.
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
    n = X.shape[0]
    candidates = Candidates(E) if isinstance(E, Tensor) else E
    E = candidates.rows
    indices = torch.empty((n, k), dtype=torch.int64)
    distances = torch.empty((n, k), dtype=E.dtype)
    for rows in blocks(n, min(max(BLOCK_SCORES // len(E), FEWEST_ROWS), MOST_ROWS)):
        block = X[rows].to(device=E.device, dtype=E.dtype)
        own = None if exclude is None else exclude[rows].to(E.device)
        found, squared, certain = _nearest_block(block, candidates, k, own)
        left = torch.nonzero(~certain).squeeze(1)
        if len(left) and E.dtype != torch.float64 and E.device.type != "mps":
            # Clusters so tight that the products of float32 rows cannot tell their members apart.
            again = _nearest_block(block[left].double(), candidates.precise, k, None if own is None else own[left])
            found[left], squared[left] = again[0], again[1].to(squared.dtype)
        indices[rows] = found.cpu()
        distances[rows] = squared.cpu()
    return indices, distances


class Candidates:
    """Candidates as they came, and around their mean, where rounding loses the least in products."""

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.centre = rows.mean(0)
        centred = rows - self.centre
        half_norms = centred.square().sum(1) / 2
        self.factors = torch.cat([-centred, half_norms[:, None]], 1).T  # one product gives the scores
        self.largest = half_norms.max()

    @cached_property
    def precise(self) -> Candidates:
        """The same in float64."""
        return Candidates(self.rows.double())


def _nearest_block(
    block: Tensor, candidates: Candidates, k: int, exclude: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The k nearest, their squared distances, and whether no other can be nearer, given what rounding loses."""
    wanted = min(k + MARGIN, len(candidates.rows))
    centred = block - candidates.centre
    # |x - e|^2 / 2 less the part that is the same for every candidate: (rows, candidates)
    scores = torch.cat([centred, centred.new_ones(len(centred), 1)], 1) @ candidates.factors
    if exclude is not None:
        rows = torch.nonzero(exclude >= 0).squeeze(1)
        scores[rows, exclude[rows]] = torch.inf
    score, found = _smallest(scores, wanted)
    # In the order of their numbers, so that of two at the same distance the first is first.
    found, order = found.sort(dim=1)  # (rows, wanted)
    score = score.gather(1, order)
    # The products lose digits where the norms are large beside the distance; differences do not.
    squared = (block[:, None, :] - candidates.rows[found]).square_().sum(2)  # (rows, wanted)
    squared.masked_fill_(torch.isinf(score), torch.inf)
    squared, order = squared.sort(dim=1, stable=True)
    half_norm = centred.square().sum(1) / 2
    bound = 8 * torch.finfo(block.dtype).eps * (half_norm + candidates.largest)
    certain = squared[:, k - 1] / 2 < score.amax(1) + half_norm - bound
    if wanted == len(candidates.rows):
        certain = torch.ones_like(certain)
    return found.gather(1, order)[:, :k], squared[:, :k], certain


def _smallest(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` smallest of each row, unsorted, and their columns.

    The k smallest lie in the k groups of smallest minimum, so that only those are searched:
    one vectorised pass in place of a selection over all of them.
    """
    rows, columns = scores.shape
    groups = columns // GROUP
    if groups < 2 * k:
        return scores.topk(k, dim=1, largest=False, sorted=False)
    whole = groups * GROUP
    minima = scores[:, :whole].view(rows, GROUP, groups).amin(1)  # (rows, groups)
    chosen = minima.topk(k, dim=1, largest=False, sorted=False).indices  # (rows, k)
    members = chosen[:, :, None] + groups * torch.arange(GROUP, device=scores.device)
    rest = torch.arange(whole, columns, device=scores.device).expand(rows, -1)
    columns_left = torch.cat([members.flatten(1), rest], 1)
    score, position = scores.gather(1, columns_left).topk(k, dim=1, largest=False, sorted=False)
    return score, columns_left.gather(1, position)
