r"""Exemplars under the forces of the loss, and of a pull to the large shape of the data.

With all rows as exemplars, the loss of equation 12 as a function of the positions themselves, and the pull, are

.. math:: \ell = a \sum_{ij} p_{ij} \log(1 + |y_i - y_j|^2) + \log \sum_{i \ne j} (1 + |y_i - y_j|^2)^{-1}
    + \frac{2 c}{n s^2} \sum_i |y_i - s r_i|^2,

with the p of equation 3, the attraction exaggerated by a, positions r of the large shape and the size s of the map, the
root of its mean squared length, which r has as 1. The gradient has a sum over the pairs that carry probability, one
over all pairs, the repulsion, and the pull, in which s counts as a constant.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tsee.affinities import Affinities
from tsee.distributed import all_gather, all_interrupted, rank, world_size
from tsee.layout.attraction import Attraction
from tsee.layout.repulsion import Repulsion
from tsee.layout.shape import turned
from tsee.values import need

__all__ = ["Descent", "Guide", "Movement", "lay_out"]

# The usual gradient descent of t-SNE: momentum, and a gain for each coordinate that grows while it keeps its direction.
# The last momentum is higher for more positions than these, whose map is wider and has farther to grow, and for fewer
# steps than these; what it keeps of a step's speed is at least this much below 1.
MOMENTUM, LAST_MOMENTUM = 0.8, 0.965
USUAL_ROWS, USUAL_STEPS, LEAST_BRAKING = 2**16, 420, 0.005
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
    """Another map, used instead of the large shape.

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
        """Positions of the rows, shifted, turned and scaled so that those drawn lie as near as possible to the map."""
        weights = self.weights[:, None].double() + 1e-6
        total = weights.sum()
        here, there = positions.double(), self.positions.double()
        middle, anchor = (weights * here).sum(0) / total, (weights * there).sum(0) / total
        left, sizes, right = torch.linalg.svd((weights * (here - middle)).T @ (there - anchor))
        # A layout grows with its rows. Where hardly any row is drawn, its size is its own.
        scale = sizes.sum() / (weights * (here - middle).square()).sum().clamp_min(1e-30)
        return ((here - middle) @ (left @ right) * scale.clamp(0.5, 2) + anchor).float()


class Movement(ABC):
    """Positions on their way down, step by step: what `lay_out` needs of them, and what it takes to continue.

    Attributes
    ----------
    done, n_iterations : int
        The steps that were taken, and all of them.
    alone : bool
        Whether other processes, if there are any, take no part.
    positions : Tensor of shape (n, h)
    velocity, gains : Tensor
        Of the positions that this process moves.
    """

    done: int
    n_iterations: int
    alone: bool
    positions: Tensor
    velocity: Tensor
    gains: Tensor
    repulsion: Repulsion

    @abstractmethod
    def step(self) -> None:
        """Take one step. A collective, unless this process works alone."""

    @abstractmethod
    def found(self) -> Tensor:
        """The positions as they shall lie, of shape (n, h)."""

    def state(self) -> dict[str, Tensor]:
        """What it takes to continue, the same on all processes. A collective."""
        return {
            "layout.positions": self.positions,
            "layout.velocity": self._gathered(self.velocity),
            "layout.gains": self._gathered(self.gains),
        }

    def _gathered(self, rows: Tensor) -> Tensor:
        """The rows of all processes, if each of them moves some."""
        return rows

    def resume(self, done: int, state: dict[str, Tensor]) -> None:
        """Continue where another descent of the same exemplars was. Raises ValueError if it was not one."""
        need(done <= self.n_iterations, "it has more steps than the layout")
        ours = self.state()
        need(set(state) == set(ours), "it is not the state of a layout")
        for name, value in state.items():
            like = ours[name]
            need(value.shape == like.shape and value.dtype == like.dtype, "it has other exemplars")
            need(bool(torch.isfinite(value).all()), "it has positions that are not finite")
        self.done, self.repulsion.calls = done, done
        self.positions, self.velocity, self.gains = (state[name] for name in ours)


class Descent(Movement):
    """The positions of all exemplars on their way down.

    Over several processes each one moves a part of the exemplars, and all see where the others went, unless this one
    works alone.

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
    alone : bool
        Whether other processes, if there are any, take no part.
    order : Tensor of shape (n,), optional
        An order in which neighbors are near each other, which is faster for very many exemplars.

    Attributes
    ----------
    done : int
        The steps that were taken.
    positions : Tensor of shape (n, h)
        In that order.
    """

    def __init__(
        self,
        shape: Tensor,
        affinities: Affinities,
        *,
        pull: float,
        n_iterations: int,
        weights: Tensor | None = None,
        exaggeration: float = 1.0,
        alone: bool = False,
        order: Tensor | None = None,
    ) -> None:
        n = len(shape)
        positions = shape + NOISE * torch.randn(shape.shape, generator=torch.Generator().manual_seed(0))
        if order is not None:
            shape, positions = shape[order], positions[order]
            weights = None if weights is None else weights[order]
        self.order = order
        self.shape, self.pull, self.n_iterations, self.exaggeration = shape, pull, n_iterations, exaggeration
        number, n_processes = (0, 1) if alone else (rank(), world_size())
        self.alone = n_processes == 1
        self.own = slice(number * n // n_processes, (number + 1) * n // n_processes)
        self.weights = None if weights is None else weights[self.own, None]
        self.attraction, self.repulsion = Attraction(affinities, own=self.own, order=order), Repulsion()
        self.rates = 1 / self.attraction.totals.clamp_min(1 / n)[:, None]
        self.last_momentum = _last_momentum(n, n_iterations)
        self.done = 0
        self.positions = positions
        self.velocity = torch.zeros_like(positions[self.own])
        self.gains = torch.ones_like(self.velocity)

    def step(self) -> None:
        """Take one step. A collective."""
        self.done += 1
        n, own, positions = len(self.shape), self.own, self.positions
        at, last = _schedule(self.done / self.n_iterations, self.exaggeration)
        forces, normalizer = self.repulsion(positions, None if self.alone else own)
        gradient = self.attraction(positions).mul_(at).sub_(forces, alpha=1 / normalizer)
        squared_size = float(positions.square().sum(1).mean().clamp_min(1e-12))
        strength = min(self.pull / squared_size, MOST_PULL * at) / n
        if self.weights is None:
            gradient.add_(positions[own], alpha=strength).sub_(self.shape[own], alpha=strength * squared_size**0.5)
        else:
            gradient.add_((positions[own] - squared_size**0.5 * self.shape[own]).mul_(self.weights), alpha=strength)
        turning = gradient * self.velocity < 0
        self.gains = torch.where(turning, self.gains + GAIN_UP, self.gains * GAIN_DOWN).clamp_min_(LEAST_GAIN)
        momentum = self.last_momentum if last else MOMENTUM
        self.velocity = momentum * self.velocity - self.rates / at * self.gains * gradient
        length = self.velocity.norm(dim=1, keepdim=True)
        self.velocity *= (LONGEST_STEP / length.clamp_min(1e-12)).clamp_max(1)
        moved = self._gathered(positions[own] + self.velocity)
        self.positions = moved - moved.mean(0)

    def found(self) -> Tensor:
        """The positions, turned to lie as the large shape does."""
        return self._in_rows(turned(self.positions, self.shape))

    def state(self) -> dict[str, Tensor]:
        """What it takes to continue, in the order of the rows: on another processor, cells can have another order."""
        return {name: self._in_rows(values) for name, values in super().state().items()}

    def _in_rows(self, values: Tensor) -> Tensor:
        """Values of positions, in the order of the rows."""
        return values if self.order is None else torch.empty_like(values).index_copy_(0, self.order, values)

    def _gathered(self, rows: Tensor) -> Tensor:
        return rows if self.alone else all_gather(rows)

    def resume(self, done: int, state: dict[str, Tensor]) -> None:
        super().resume(done, state)
        if self.order is not None:
            self.positions = self.positions[self.order]
            self.velocity, self.gains = self.velocity[self.order], self.gains[self.order]
        self.velocity, self.gains = self.velocity[self.own], self.gains[self.own]


def lay_out(
    descent: Movement,
    *,
    progress: Callable[[int], None] = lambda done: None,
    keep: Callable[[Movement], None] = lambda descent: None,
) -> tuple[Tensor, bool]:
    """Lay exemplars out by the forces of the loss, each on its own. A collective.

    Parameters
    ----------
    descent : Movement
        At its start, or where it was resumed.
    progress : callable
        Called after each step with the number of steps done.
    keep : callable
        Called after each step, to keep its state.

    Returns
    -------
    positions : Tensor of shape (n, h)
    complete : bool
        Whether all steps were taken: a KeyboardInterrupt in any process ends the descent where it is.
    """
    complete = True
    try:
        while descent.done < descent.n_iterations:
            descent.step()
            progress(descent.done)
            keep(descent)
            if not descent.alone and all_interrupted():
                complete = False
                break
    except KeyboardInterrupt:
        complete = False
    return descent.found(), complete


def _last_momentum(n: int, n_iterations: int) -> float:
    """The momentum with which the map of n positions grows to its width in its last steps.

    Its width grows with the root of n, and its way in a step with 1 / (1 - momentum).
    """
    braking = (1 - LAST_MOMENTUM) * n_iterations / USUAL_STEPS * (USUAL_ROWS / n) ** 0.5
    return 1 - min(1 - LAST_MOMENTUM, max(LEAST_BRAKING, braking))


def _schedule(share: float, exaggeration: float) -> tuple[float, bool]:
    """The exaggeration after a share of the steps, and whether it is the last one."""
    first, last = LOWERED
    lowered = min(1.0, max(0.0, (share - first) / (last - first)))
    return FIRST_EXAGGERATION * (exaggeration / FIRST_EXAGGERATION) ** lowered, lowered == 1
