"""Positions of exemplars that were found without the network, as part of a map."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from tsee.distributed import broadcast
from tsee.exceptions import TrainingWarning, warn
from tsee.fitted import FittedMap

__all__ = ["laid_out", "same_for_equal"]


def laid_out(fitted: FittedMap, positions: Tensor, *, complete: bool, n_held: int = 0) -> FittedMap:
    """The map with the positions of its exemplars that the first process found. A collective.

    The first ``n_held`` exemplars are where they have to be.
    """
    exemplars = fitted.exemplars
    assert exemplars is not None
    positions, complete = broadcast(positions), bool(broadcast(torch.tensor(float(complete))))
    if not complete:
        warn(
            "The layout was interrupted: the positions found until then are kept, but the network has not learned "
            "them.",
            TrainingWarning,
        )
    if exemplars.neighbors is None:  # rows that are equal may have been given different ones
        positions = same_for_equal(exemplars.inputs, positions, n_held)
    return replace(
        fitted,
        exemplars=exemplars.replaced(positions=positions),
        placement=fitted.placement if complete else "refined",
        history=replace(fitted.history, complete=complete),
    )


def same_for_equal(inputs: Tensor, positions: Tensor, n_held: int = 0) -> Tensor:
    """Positions in which equal inputs share the mean of their positions, or of their held ones.

    The first ``n_held`` are held. Equal ones among them share a position already.
    """
    distinct, group = torch.unique(inputs, dim=0, return_inverse=True)
    if len(distinct) == len(inputs):
        return positions
    held = torch.arange(len(inputs)) < n_held
    has_held = torch.bincount(group[held], minlength=len(distinct)) > 0
    weights = (held | ~has_held[group]).to(positions.dtype)[:, None]
    sums = positions.new_zeros(len(distinct), positions.shape[1]).index_add_(0, group, weights * positions)
    totals = positions.new_zeros(len(distinct), 1).index_add_(0, group, weights)
    return torch.where(held[:, None], positions, (sums / totals)[group])
