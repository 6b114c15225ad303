r"""New positions among old ones, by the forces of `tsee.layout.descent`; the old ones are held.

An old position :math:`y_i` is drawn back to where it was, :math:`y_i^0`, by a spring: after every step it is

.. math:: (1 - a) y_i + a y_i^0,

where a is how much it is held: 0 leaves it free, and 1 does not let it move at all.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tsee.affinities import Affinities
from tsee.distributed import rank, world_size
from tsee.layout.attraction import Attraction
from tsee.layout.descent import GAIN_DOWN, GAIN_UP, LEAST_GAIN, LONGEST_STEP, MOMENTUM, Movement
from tsee.layout.repulsion import Repulsion

__all__ = ["Growth"]


class Growth(Movement):
    """New exemplars on their way to their places among old ones, for `lay_out`.

    Over several processes the first one moves them; the others only count its steps.

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

    Attributes
    ----------
    positions : Tensor of shape (z + m, h)
        The old ones first.
    """

    def __init__(
        self,
        old: Tensor,
        start: Tensor,
        affinities: Affinities,
        *,
        hold: float,
        n_iterations: int,
        exaggeration: float = 1.0,
    ) -> None:
        self.old, self.hold, self.exaggeration = old, hold, exaggeration
        self.n_held = len(old) if hold == 1 else 0
        self.n_iterations = n_iterations if self.n_held < len(old) + len(start) else 0
        self.alone = world_size() == 1
        self.done, self.repulsion = 0, Repulsion()
        self.positions = torch.cat([old, start])
        self.velocity = torch.zeros_like(self.positions[self.n_held :])
        self.gains = torch.ones_like(self.velocity)
        # Old ones that share a position repel as one of them would: each repels the others of a layout that is found
        # with them, and there they lie side by side. The sum over all pairs would be little else than theirs.
        distinct = torch.unique(old[: self.n_held], dim=0)
        self._still = old[: self.n_held] if len(distinct) == self.n_held else distinct
        if self.n_iterations and rank() == 0:
            self.attraction = Attraction(affinities, self.n_held)
            self.rates = 1 / self.attraction.totals.clamp_min(1 / len(self.positions))[:, None]

    def step(self) -> None:
        """Take one step."""
        self.done += 1
        if rank() > 0:
            return
        old, n_held, positions = self.old, self.n_held, self.positions
        felt = torch.cat([self._still, positions[n_held:]])
        forces, normalizer = self.repulsion(felt)
        normalizer *= len(positions) / len(felt)
        gradient = self.attraction(positions).mul_(self.exaggeration)
        gradient.sub_(forces[len(self._still) :], alpha=1 / normalizer)
        turning = gradient * self.velocity < 0
        self.gains = torch.where(turning, self.gains + GAIN_UP, self.gains * GAIN_DOWN).clamp_min_(LEAST_GAIN)
        self.velocity = MOMENTUM * self.velocity - self.rates / self.exaggeration * self.gains * gradient
        length = self.velocity.norm(dim=1, keepdim=True)
        self.velocity *= (LONGEST_STEP / length.clamp_min(1e-12)).clamp_max(1)
        moved = positions[n_held:] + self.velocity
        if not n_held:
            moved[: len(old)].lerp_(old, self.hold)
            self.velocity = moved - positions
        self.positions = torch.cat([positions[:n_held], moved])

    def found(self) -> Tensor:
        """All positions. If the old ones are free, all are shifted and turned to lie as the old ones did."""
        return self.positions if self.hold else _as_before(self.positions, self.old)


def _as_before(positions: Tensor, old: Tensor) -> Tensor:
    """All positions, shifted and turned so that the first ones lie as near as possible to where they were."""
    now, before = positions[: len(old)].mean(0), old.mean(0)
    products = (positions[: len(old)] - now).T.double() @ (old - before).double()
    left, _, right = torch.linalg.svd(products)
    return (positions - now) @ (left @ right).float() + before
