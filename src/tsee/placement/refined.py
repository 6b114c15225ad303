r"""Positions among the nearest exemplars: where a row's own attraction to them is least."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import embedding

from tsee.affinities import gaussian
from tsee.data import blocks, pad_rows
from tsee.neighbors import Index

__all__ = ["among_neighbors", "neighbor_weights", "precision_among", "refined_positions", "settle"]

# The nearest exemplars that a row's position depends on.
NEIGHBORS = 20
# A row is an exemplar itself if the nearest is this near, compared with the farthest.
ROUNDING = 1e-9
# Rows that are settled together.
SETTLED_ROWS = 4096
# Fixed-point iterations of a row's position, and how far each goes toward its target. Going beyond it converges sooner
# (any factor below 2 converges), but if neighbors are near, the target itself is the answer. 99 of 100 rows of MNIST
# are then within five ten-thousandths of the map's extent of where more iterations would bring them.
SETTLING = (1.5, 1.5, 1.5, 1.5, 1.5, 1.0)
# The precision of the Gaussian weights, in units of the gap between a row's nearest neighbor and the one a third down
# the list. A smaller one keeps more neighbors; a larger one puts a row nearer to its very nearest neighbor. Among fewer
# exemplars than this, the same number of neighbors reaches farther, across the borders of small groups, so the
# precision grows.
PRECISION = 2.2
MANY_EXEMPLARS, GROWTH = 2**14, 1 / 8


@torch.inference_mode()
def refined_positions(inputs: Tensor, index: Index, positions: Tensor) -> Tensor:
    """Positions of inputs among their nearest exemplars; an input that equals an exemplar gets its position.

    Parameters
    ----------
    inputs : Tensor of shape (n, d)
    index : Index
        The exemplars, ready to be searched.
    positions : Tensor of shape (z, h)
        The positions of the exemplars.

    Returns
    -------
    Tensor of shape (n, h)
        NaN for a row too far away for a distance.
    """
    k = min(NEIGHBORS, len(index.rows))
    known = index.equal_to(inputs)
    if known is not None and bool((known >= 0).any()):
        found = embedding(known.clamp_min(0), positions)
        others = torch.nonzero(known < 0).squeeze(1)
        found[others] = _settled(inputs[others], index, positions, k)
        return found
    return _settled(inputs, index, positions, k)


def _settled(inputs: Tensor, index: Index, positions: Tensor, k: int) -> Tensor:
    """The positions of inputs among their ``k`` nearest exemplars."""
    found = torch.empty((len(inputs), positions.shape[1]))
    nearby = index.roughly.query(inputs, k)
    for rows in blocks(len(inputs), SETTLED_ROWS):
        # Padded: sums over few rows can be taken in another order than sums over many.
        indices, distances = (pad_rows(part[rows]) for part in nearby)
        found[rows] = among_neighbors(indices, distances, positions)[: rows.stop - rows.start]
    return found


def among_neighbors(indices: Tensor, squared_distances: Tensor, positions: Tensor) -> Tensor:
    """The position of each row among its nearest exemplars.

    Parameters
    ----------
    indices : Tensor of shape (n, k), int64
        The exemplars nearest to each row, the nearest first.
    squared_distances : Tensor of shape (n, k)
        How far they are.
    positions : Tensor of shape (z, h)
        The positions of the exemplars.

    Returns
    -------
    Tensor of shape (n, h)
    """
    weights = neighbor_weights(squared_distances, precision_among(len(positions)))
    settled = settle(embedding(indices, positions), weights)
    itself = squared_distances[:, :1] <= ROUNDING * squared_distances[:, -1:]
    settled = torch.where(itself, embedding(indices[:, 0], positions), settled)
    return settled.masked_fill_(torch.isinf(squared_distances[:, :1]), torch.nan)  # too far for a distance


def precision_among(n_exemplars: int) -> float:
    """The precision of `neighbor_weights` among this many exemplars.

    Examples
    --------
    >>> [round(precision_among(n), 2) for n in (60_000, 16_384, 4096, 1000)]
    [2.2, 2.2, 2.62, 3.12]
    """
    return PRECISION * max(1.0, MANY_EXEMPLARS / n_exemplars) ** GROWTH


def neighbor_weights(squared_distances: Tensor, precision: float = PRECISION) -> Tensor:
    """The weights of a row's neighbors in its position.

    At a precision of 2.2 their perplexity is about a third of their number if distances grow evenly, and more if
    distances tie. That is near enough for weights that are not part of the loss, and saves a search for the precision
    of each row.

    Parameters
    ----------
    squared_distances : Tensor of shape (n, k)
        The nearest first. Infinity has no weight.
    precision : float
        Of the Gaussian, in units of the gap between the nearest and the one a third down the list.

    Returns
    -------
    Tensor of shape (n, k)
        Each row sums to 1.
    """
    gap = squared_distances[:, squared_distances.shape[1] // 3] - squared_distances[:, 0]
    return gaussian(squared_distances, precision / gap.clamp(1e-30, 1e30))


def settle(neighbors: Tensor, probabilities: Tensor) -> Tensor:
    r"""The position that minimizes a row's own attraction, :math:`\sum_j p_j \log(1 + |y - v_j|^2)`.

    Neighbors that lie apart from the others hardly count: the result is more a median than a mean, and does not put a
    row in the empty space between two clusters. The search starts at the best of the neighbors' positions. With a
    multiple of 32 rows, the position of a row does not depend on the others, to the last bit.

    Parameters
    ----------
    neighbors : Tensor of shape (n, k, h)
        The positions v of each row's neighbors.
    probabilities : Tensor of shape (n, k)
        Each row sums to 1.

    Returns
    -------
    Tensor of shape (n, h)
    """
    # The rows come last: sums over the other axes then run along the rows, which is twice as fast. (No `lerp`: its
    # rounding depends on where a thread's share ends.)
    neighbors = neighbors.permute(2, 1, 0).contiguous()  # (h, k, n)
    probabilities = probabilities.T.contiguous()  # (k, n)
    apart = (neighbors[:, :, None] - neighbors[:, None]).square_().sum(0)  # (k, k, n)
    best = apart.log1p_().mul_(probabilities).sum(1).argmin(0)
    positions = neighbors.gather(1, best.expand(len(neighbors), 1, -1))  # (h, 1, n)
    for factor in SETTLING:
        pull = probabilities / (neighbors - positions).square_().sum(0).add_(1)  # (k, n)
        point = (pull * neighbors).sum(1, keepdim=True) / pull.sum(0)
        positions = positions + (point - positions).mul_(factor)
    return positions.squeeze(1).T
