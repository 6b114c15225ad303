"""The stage of an update in which new exemplars find their positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from tsee.affinities import Affinities
from tsee.distributed import rank
from tsee.fitted import FittedMap
from tsee.layout import grow
from tsee.progress import progress_bar
from tsee.training.found import laid_out
from tsee.training.stages import Session

__all__ = ["Grow"]


@dataclass(frozen=True)
class Grow:
    """Lay new exemplars out among old ones, which come first, by exact forces.

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
        inputs, n_old = fitted.exemplars.inputs, len(self.old)
        positions, complete = inputs.new_zeros(len(inputs), fitted.n_components), True
        if rank() == 0:
            with progress_bar(self.n_iterations, "layout", "step", verbose=session.plan.verbose) as bar:
                positions, complete = grow(
                    self.old,
                    self.start(),
                    self.neighbors,
                    hold=self.hold,
                    n_iterations=self.n_iterations,
                    exaggeration=self.exaggeration,
                    progress=lambda done: bar.update(),
                )
        return laid_out(fitted, positions, complete=complete, n_held=n_old if self.hold == 1 else 0)
