r"""New positions among old ones, by the exact forces of `tsee.layout.descent`; the old ones are held.

An old position :math:`y_i` is drawn back to where it was, :math:`y_i^0`, by a spring: after every step it is

.. math:: (1 - a) y_i + a y_i^0,

where a is how much it is held: 0 leaves it free, and 1 does not let it move at all.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tsee.affinities import Affinities
from tsee.layout.attraction import Attraction
from tsee.layout.descent import GAIN_DOWN, GAIN_UP, LEAST_GAIN, LONGEST_STEP, MOMENTUM
from tsee.layout.repulsion import Repulsion

__all__ = ["grow"]


def grow(
    old: Tensor,
    start: Tensor,
    affinities: Affinities,
    *,
    hold: float,
    n_iterations: int,
    exaggeration: float = 1.0,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[Tensor, bool]:
    """Lay new exemplars out among old ones by exact forces.

    Parameters
    ----------
    old : Tensor of shape (z, h)
        The positions of the old ones.
    start : Tensor of shape (m, h)
        Where the new ones start.
    affinities : Affinities
        The neighbors of the new ones among all z + m, the old ones first; of all of them, unless ``hold`` is 1.
    hold : float
        How much the old ones are held, from 0 to 1.
    n_iterations : int
        Steps of gradient descent.
    exaggeration : float
        The factor on the attraction.
    progress : callable
        Called after each step with the number of steps done.

    Returns
    -------
    positions : Tensor of shape (z + m, h)
        The old ones first. If these are free, all are shifted and turned to lie as the old ones did.
    complete : bool
        Whether all steps were taken: a KeyboardInterrupt ends the descent where it is.
    """
    n_held = len(old) if hold == 1 else 0
    if n_held == len(old) + len(start):
        return old, True
    positions, complete = torch.cat([old, start]), True
    velocity = torch.zeros_like(positions[n_held:])
    gains = torch.ones_like(velocity)
    try:
        attraction, repulsion = Attraction(affinities, n_held), Repulsion()
        rates = 1 / attraction.totals.clamp_min(1 / len(positions))[:, None]
        for done in range(1, n_iterations + 1):
            forces, normalizer = repulsion(positions)
            gradient = attraction(positions).mul_(exaggeration).sub_(forces[n_held:], alpha=1 / normalizer)
            gains = torch.where(gradient * velocity < 0, gains + GAIN_UP, gains * GAIN_DOWN).clamp_min_(LEAST_GAIN)
            velocity = MOMENTUM * velocity - rates / exaggeration * gains * gradient
            length = velocity.norm(dim=1, keepdim=True)
            velocity *= (LONGEST_STEP / length.clamp_min(1e-12)).clamp_max(1)
            moved = positions[n_held:] + velocity
            if not n_held:
                moved[: len(old)].lerp_(old, hold)
                velocity = moved - positions
            positions = torch.cat([positions[:n_held], moved])
            progress(done)
    except KeyboardInterrupt:
        complete = False
    return (positions if hold else _as_before(positions, old)), complete


def _as_before(positions: Tensor, old: Tensor) -> Tensor:
    """All positions, shifted and turned so that the first ones lie as near as possible to where they were."""
    now, before = positions[: len(old)].mean(0), old.mean(0)
    products = (positions[: len(old)] - now).T.double() @ (old - before).double()
    left, _, right = torch.linalg.svd(products)
    return (positions - now) @ (left @ right).float() + before
