"""The stage of an update in which new exemplars find their positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from tsee.affinities import Affinities
from tsee.distributed import rank
from tsee.fitted import FittedMap
from tsee.layout import Growth
from tsee.training.found import laid_out
from tsee.training.stages import Laying, Session

__all__ = ["Grow"]


@dataclass(frozen=True)
class Grow(Laying):
    """Lay new exemplars out among old ones, which come first, by the forces of the loss.

    Attributes
    ----------
    old : Tensor of shape (z, h)
        The positions of the old ones.
    start : callable
        Returns where the new ones start.
    neighbors : Affinities
        The neighbors of the new ones, or of all if ``hold`` is not 1.
    hold : float
        How much the old ones are held.
    n_iterations : int
    exaggeration : float
        The factor on the attraction.
    """

    old: Tensor
    start: Callable[[], Tensor]
    neighbors: Affinities
    hold: float
    n_iterations: int
    exaggeration: float = 1.0

    def run(self, fitted: FittedMap, number: int, session: Session) -> FittedMap:
        assert fitted.exemplars is not None
        n_old = len(self.old)
        moving = rank() == 0 and not session.resumes(number)
        start = self.start() if moving else self.old.new_zeros(len(fitted.exemplars) - n_old, fitted.n_components)
        growth = Growth(
            self.old,
            start,
            self.neighbors,
            hold=self.hold,
            n_iterations=self.n_iterations,
            exaggeration=self.exaggeration,
        )
        positions, complete = session.lay_out(growth, number)
        return laid_out(fitted, positions, complete=complete, n_held=n_old if self.hold == 1 else 0)
