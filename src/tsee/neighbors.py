"""The nearest of a set of points, exactly, in blocks of matrix products."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["nearest"]

# Rows and columns of one tile of distances: small enough to stay in cache between
# the product that writes it and the reduction that reads it.
TILE_ROWS = 256
TILE_COLUMNS = 16384
# Candidates are first compared by the minimum of a group of this many.
GROUP = 64
# Candidates taken beyond those wanted, so that rounding cannot keep out one that is nearer.
MARGIN = 8


def nearest(X: Tensor, E: Tensor, k: int, *, exclude: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The ``k`` rows of ``E`` nearest to each row of ``X``.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        The queries. Anything whose slices are such tensors will do: it is read ``X[a:b]`` at a time.
    E : Tensor of shape (z, d)
        The candidates.
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
    indices = torch.empty((n, k), dtype=torch.int64)
    distances = torch.empty((n, k), dtype=E.dtype)
    # Around their own mean the candidates are as small as they can be, and so is what rounding loses.
    centre = E.mean(0)
    E = E - centre
    half_norms = E.square().sum(1) / 2
    for start in range(0, n, TILE_ROWS):
        block = X[start : start + TILE_ROWS].to(device=E.device, dtype=E.dtype) - centre
        own = None if exclude is None else exclude[start : start + TILE_ROWS].to(E.device)
        found, squared, certain = _nearest_block(block, E, half_norms, k, own)
        if not bool(certain.all()) and E.dtype != torch.float64 and E.device.type != "mps":
            # Clusters so tight that the products of float32 rows cannot tell their members apart.
            left = torch.nonzero(~certain).squeeze(1)
            again = _nearest_block(
                block[left].double(), E.double(), half_norms.double(), k, None if own is None else own[left]
            )
            found[left], squared[left] = again[0], again[1].to(squared.dtype)
        indices[start : start + len(block)] = found.cpu()
        distances[start : start + len(block)] = squared.cpu()
    return indices, distances


def _nearest_block(
    block: Tensor, E: Tensor, half_norms: Tensor, k: int, exclude: Tensor | None
) -> tuple[Tensor, Tensor, Tensor]:
    """The k nearest, their squared distances, and whether no other can be nearer, given what rounding loses."""
    scores: list[Tensor] = []
    candidates: list[Tensor] = []
    wanted = min(k + MARGIN, len(E))
    for start in range(0, len(E), TILE_COLUMNS):
        part = E[start : start + TILE_COLUMNS]
        # |x - e|^2 / 2 less the part that is the same for every candidate: (rows, columns)
        tile = torch.addmm(half_norms[start : start + len(part)], block, part.T, alpha=-1)
        if exclude is not None:
            rows = torch.nonzero((exclude >= start) & (exclude < start + len(part))).squeeze(1)
            tile[rows, exclude[rows] - start] = torch.inf
        score, column = _smallest(tile, min(wanted, len(part)))
        scores.append(score)
        candidates.append(column + start)
    score, position = torch.cat(scores, 1).topk(wanted, dim=1, largest=False, sorted=False)
    found = torch.cat(candidates, 1).gather(1, position)  # (rows, wanted)
    # The products lose digits where the norms are large beside the distance; differences do not.
    squared = (block[:, None, :] - E[found]).square_().sum(2)  # (rows, wanted)
    squared.masked_fill_(torch.isinf(score), torch.inf)
    squared, order = squared.sort(dim=1, stable=True)
    half_norm = block.square().sum(1) / 2
    bound = 8 * torch.finfo(E.dtype).eps * (half_norm + half_norms.max())
    certain = (wanted == len(E)) | (squared[:, k - 1] / 2 < score.amax(1) + half_norm - bound)
    return found.gather(1, order)[:, :k], squared[:, :k], certain


def _smallest(tile: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The ``k`` smallest of each row, unsorted, and their columns.

    The k smallest lie in the k groups of smallest minimum, so that only those are searched:
    one vectorised pass over the tile in place of a selection over all of it.
    """
    rows, columns = tile.shape
    groups = columns // GROUP
    if groups < 2 * k:
        return tile.topk(k, dim=1, largest=False, sorted=False)
    whole = groups * GROUP
    minima = tile[:, :whole].view(rows, GROUP, groups).amin(1)  # (rows, groups)
    chosen = minima.topk(k, dim=1, largest=False, sorted=False).indices  # (rows, k)
    members = chosen[:, :, None] + groups * torch.arange(GROUP, device=tile.device)
    rest = torch.arange(whole, columns, device=tile.device).expand(rows, -1)
    columns_left = torch.cat([members.flatten(1), rest], 1)
    score, position = tile.gather(1, columns_left).topk(k, dim=1, largest=False, sorted=False)
    return score, columns_left.gather(1, position)
