r"""Exemplars under the exact forces of the loss, and of a pull to the large shape of the data.

With all rows as exemplars, the loss of equation 12 as a function of the positions themselves, and the pull, are

.. math:: \ell = a \sum_{ij} p_{ij} \log(1 + |y_i - y_j|^2) + \log \sum_{i \ne j} (1 + |y_i - y_j|^2)^{-1}
    + \frac{2 c}{n s^2} \sum_i |y_i - s r_i|^2,

with the p of equation 3, the attraction exaggerated by a, positions r of the large shape and the size s of the map, the
root of its mean squared length, which r has as 1. The gradient has a sum over the pairs that carry probability, one
over all pairs, the repulsion, and the pull, in which s counts as a constant.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tsee.affinities import Affinities
from tsee.layout.attraction import Attraction
from tsee.layout.repulsion import Repulsion
from tsee.layout.shape import turned

__all__ = ["Guide", "lay_out"]

# The usual gradient descent of t-SNE: momentum, and a gain for each coordinate that grows while it keeps its direction.
MOMENTUM, LAST_MOMENTUM = 0.8, 0.965
GAIN_UP, GAIN_DOWN, LEAST_GAIN = 0.2, 0.8, 0.01
LONGEST_STEP = 5.0
# Attraction begins exaggerated by 12, so that clusters find each other while they are small. It is lowered to its end
# between these shares of the steps; from then on the momentum is the last one, as good as many more steps.
FIRST_EXAGGERATION = 12.0
LOWERED = (1 / 7, 3 / 7)
# The start: the large shape at this size, with noise of this size, the same for every seed. Without it rows that share
# a position, and dimensions that the data do not have, would never come apart.
NOISE = 1e-2
# The largest pull, so that a step does not go beyond its target. More would change the map no more.
MOST_PULL = 0.5


@dataclass(frozen=True)
class Guide:
    """Another map that takes the place of the large shape.

    Attributes
    ----------
    positions : Tensor of shape (n, h)
        Where rows would be there.
    weights : Tensor of shape (n,)
        How much each of them is drawn there, from 0 to 1.
    """

    positions: Tensor
    weights: Tensor

    @property
    def shape(self) -> Tensor:
        """The positions, centered, with a mean squared length of 1."""
        centered = self.positions - self.positions.mean(0)
        return centered / centered.square().sum(1).mean().sqrt().clamp_min(1e-12)

    def aligned(self, positions: Tensor) -> Tensor:
        """Positions of the rows, shifted and turned so that those that are drawn lie as near as possible to the map."""
        weights = self.weights[:, None].double() + 1e-6
        total = weights.sum()
        here, there = positions.double(), self.positions.double()
        middle, anchor = (weights * here).sum(0) / total, (weights * there).sum(0) / total
        left, _, right = torch.linalg.svd((weights * (here - middle)).T @ (there - anchor))
        return ((here - middle) @ (left @ right) + anchor).float()


def lay_out(
    shape: Tensor,
    affinities: Affinities,
    *,
    pull: float,
    n_iterations: int,
    weights: Tensor | None = None,
    exaggeration: float = 1.0,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[Tensor, bool]:
    """Lay exemplars out by exact forces, each on its own, from the large shape of the data.

    Parameters
    ----------
    shape : Tensor of shape (n, h)
        The large shape, as `large_shape` gives it.
    affinities : Affinities
        Their neighbors among themselves.
    pull : float
        The factor c on the pull to the large shape.
    n_iterations : int
        Steps of gradient descent.
    weights : Tensor of shape (n,), optional
        The share of the pull that each of them feels; 1 unless given.
    exaggeration : float
        The factor a on the attraction at the end.
    progress : callable
        Called after each step with the number of steps done.

    Returns
    -------
    positions : Tensor of shape (n, h)
        Turned to lie as the large shape does.
    complete : bool
        Whether all steps were taken: a KeyboardInterrupt ends the descent where it is.
    """
    n = len(shape)
    positions = shape + NOISE * torch.randn(shape.shape, generator=torch.Generator().manual_seed(0))
    velocity, gains = torch.zeros_like(positions), torch.ones_like(positions)
    try:
        attraction, repulsion = Attraction(affinities), Repulsion()
        rates = 1 / attraction.totals.clamp_min(1 / n)[:, None]
        for done in range(1, n_iterations + 1):
            at, last = _schedule(done / n_iterations, exaggeration)
            forces, normalizer = repulsion(positions)
            gradient = attraction(positions).mul_(at).sub_(forces, alpha=1 / normalizer)
            squared_size = float(positions.square().sum(1).mean().clamp_min(1e-12))
            strength = min(pull / squared_size, MOST_PULL * at) / n
            if weights is None:
                gradient.add_(positions, alpha=strength).sub_(shape, alpha=strength * squared_size**0.5)
            else:
                gradient.add_((positions - squared_size**0.5 * shape).mul_(weights[:, None]), alpha=strength)
            gains = torch.where(gradient * velocity < 0, gains + GAIN_UP, gains * GAIN_DOWN).clamp_min_(LEAST_GAIN)
            velocity = (LAST_MOMENTUM if last else MOMENTUM) * velocity - rates / at * gains * gradient
            length = velocity.norm(dim=1, keepdim=True)
            velocity *= (LONGEST_STEP / length.clamp_min(1e-12)).clamp_max(1)
            moved = positions + velocity
            positions = moved - moved.mean(0)
            progress(done)
    except KeyboardInterrupt:
        return turned(positions, shape), False
    return turned(positions, shape), True


def _schedule(share: float, exaggeration: float) -> tuple[float, bool]:
    """The exaggeration after a share of the steps, and whether it is the last one."""
    first, last = LOWERED
    lowered = min(1.0, max(0.0, (share - first) / (last - first)))
    return FIRST_EXAGGERATION * (exaggeration / FIRST_EXAGGERATION) ** lowered, lowered == 1
