"""Which new rows are of a kind that the map does not have."""

from __future__ import annotations

import torch
from torch import Tensor

from tsee.affinities import Affinities
from tsee.fitted import FittedMap
from tsee.placement.novelty import NEIGHBORS, exemplar_distances, share_nearer

__all__ = ["are_new_kind"]

# Around a row of a new kind, new rows are at least so many times as frequent, compared with old ones, as among all, and
# make up at least this share of the neighborhood. 0.1 % of the rows of MNIST's other digits look so by chance.
ODDS = 5.0
LEAST_SHARE = 0.5


def are_new_kind(fitted: FittedMap, inputs: Tensor, outside: Tensor, neighbors: Affinities, squared: Tensor) -> Tensor:
    """Whether new rows are of a kind that a map does not have.

    A row is if mostly new rows are around it, or if it lies farther from the old exemplars than any row of ``fit``
    that novelty is measured against.

    Parameters
    ----------
    fitted : FittedMap
        The old map, with z exemplars.
    inputs : Tensor of shape (m, d)
    outside : Tensor of shape (m,)
        The squared length of the part of each row that the inputs leave out.
    neighbors : Affinities
        Their neighbors among all z + m exemplars, the old ones first.
    squared : Tensor of shape (m, k)
        How far these are.

    Returns
    -------
    Tensor of shape (m,), bool
    """
    assert fitted.exemplars is not None
    assert fitted.novelty_reference is not None
    z, m = len(fitted.exemplars), len(inputs)
    new = neighbors.indices >= z
    share = (neighbors.probabilities * new).sum(1)
    surrounded = share >= max(LEAST_SHARE, ODDS * m / (ODDS * m + z))
    # The nearest old exemplars are mostly among the neighbors.
    nearest, _ = squared.masked_fill(new, torch.inf).topk(min(NEIGHBORS, z, squared.shape[1]), largest=False)
    distances = (nearest.mean(1) + outside).sqrt()
    unknown = torch.nonzero(torch.isinf(distances)).squeeze(1)
    if len(unknown):
        distances[unknown] = exemplar_distances(inputs[unknown], outside[unknown], fitted.exemplars.index)
    return surrounded | (share_nearer(fitted.novelty_reference.distances, distances) >= 1)
