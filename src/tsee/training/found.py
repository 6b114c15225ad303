"""Positions of exemplars that were found without the network, as part of a map."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from tsee.distributed import broadcast
from tsee.exceptions import TrainingWarning, warn
from tsee.fitted import FittedMap
from tsee.neighbors import hashes

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
    _, group, counts = hashes(inputs).unique(return_inverse=True, return_counts=True)
    repeated = torch.nonzero(counts[group] > 1).squeeze(1)  # all rows that have an equal, and by chance others
    if len(repeated) == 0:
        return positions
    distinct, group = torch.unique(inputs[repeated], dim=0, return_inverse=True)
    held, own = repeated < n_held, positions[repeated]
    has_held = torch.bincount(group[held], minlength=len(distinct)) > 0
    weights = (held | ~has_held[group]).to(positions.dtype)[:, None]
    sums = positions.new_zeros(len(distinct), positions.shape[1]).index_add_(0, group, weights * own)
    totals = positions.new_zeros(len(distinct), 1).index_add_(0, group, weights)
    shared = torch.where(held[:, None], own, (sums / totals)[group])
    return positions.index_copy(0, repeated, shared)
