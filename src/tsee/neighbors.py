"""The nearest of a set of points, exactly, in blocks of matrix products."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tsee.data import blocks

__all__ = ["Candidates", "nearest"]

# Queries that are searched for together, and how many of them at a time once few candidates are left.
BLOCK_ROWS, FEW_ROWS = 512, 64
# Scores that are made at a time: few enough to be in a processor's cache when their minima are taken.
TILE_SCORES, TILE_SCORES_ON_DEVICE = 2**19, 2**26
# Candidates are first compared by the minimum of a group of this many, groups by that of this many groups.
GROUP, GROUP_OF_GROUPS = 8, 16
# Groups there must be for each that is chosen, or all scores are searched at once.
WORTH_GROUPING = 16
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
    for rows in blocks(n, BLOCK_ROWS):
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
        self.factors = torch.cat([-centred, half_norms[:, None]], 1)  # one product with [x, 1] gives the scores
        self.largest = half_norms.max()

    def __reduce__(self) -> tuple[type[Candidates], tuple[Tensor]]:
        """Copied and pickled by the rows alone: the rest is made again."""
        return Candidates, (self.rows,)

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
    queries = torch.cat([centred, centred.new_ones(len(centred), 1)], 1)
    score, found = _smallest_scores(queries, candidates.factors, wanted, exclude)
    # In the order of their numbers, so that of two at the same distance the first is first.
    found, order = found.sort(dim=1)  # (rows, wanted)
    score = score.gather(1, order)
    # The products lose digits where the norms are large beside the distance; differences do not.
    squared = (block[:, None, :] - candidates.rows[found]).square_().sum(2)  # (rows, wanted)
    squared.masked_fill_(torch.isinf(score), torch.inf)
    squared, order = squared.sort(dim=1, stable=True)
    half_norm = centred.square().sum(1) / 2
    bound = 16 * torch.finfo(block.dtype).eps * (half_norm + candidates.largest)
    certain = squared[:, k - 1] / 2 < score.amax(1) + half_norm - bound
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


def _smallest(minima: Tensor, k: int) -> Tensor:
    """The columns of the ``k`` smallest of each row, unsorted, by the same grouping once more."""
    rows, columns = minima.shape
    n_groups = columns // GROUP_OF_GROUPS
    if n_groups < 2 * k:
        return minima.topk(k, dim=1, largest=False, sorted=False).indices
    whole = n_groups * GROUP_OF_GROUPS
    # Here a group is every n_groups-th column: along the rows the minimum is vectorised.
    least = minima[:, :whole].view(rows, GROUP_OF_GROUPS, n_groups).amin(1)
    chosen = least.topk(k, dim=1, largest=False, sorted=False).indices  # (rows, k)
    members = chosen[:, :, None] + n_groups * torch.arange(GROUP_OF_GROUPS, device=minima.device)
    rest = torch.arange(whole, columns, device=minima.device).expand(rows, -1)
    left = torch.cat([members.flatten(1), rest], 1)
    position = minima.gather(1, left).topk(k, dim=1, largest=False, sorted=False).indices
    return left.gather(1, position)
