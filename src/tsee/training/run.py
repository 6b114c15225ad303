"""Where the training of a network stands: what it takes to continue, and to go back to the last good weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from tsee.exceptions import TrainingWarning, warn
from tsee.training.optimizers import Adam, ConjugateGradient, check_like
from tsee.values import need

__all__ = ["Run", "RunState"]

# A loss is a divergence of a few nats: an epoch this far above the best one is not noise.
DIVERGENCE = 10.0


@dataclass
class RunState:
    """A `Run` in plain numbers and tensors.

    Attributes
    ----------
    epoch, step : int
        Epochs that are done, and steps done of the current one.
    loss_sum : float
        The sum of the losses of these steps, each times its rows.
    loss, learning_rate : list of float
        One value for each epoch that is done.
    tensors : dict of str to Tensor
        The weights (``network.``), the weights at the end of the last epoch (``ended.``), and the optimizer's state.
    """

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin with a prefix, by the rest of their names."""
        return {name[len(prefix) :]: value for name, value in self.tensors.items() if name.startswith(prefix)}


class Run:
    """The training of one network: counts its steps, and remembers its last good weights.

    Parameters
    ----------
    network : torch.nn.Module
        Trained in place.
    optimizer : Adam or ConjugateGradient
    n_steps, n_epochs : int
        Steps per epoch, and epochs.
    n_rows : int
        Rows of an epoch, over all processes.
    state : RunState, optional
        Where to continue.
    """

    def __init__(
        self,
        network: nn.Module,
        optimizer: Adam | ConjugateGradient,
        *,
        n_steps: int,
        n_epochs: int,
        n_rows: int,
        state: RunState | None = None,
    ) -> None:
        self.network, self.optimizer = network, optimizer
        self.n_steps, self.n_epochs, self.n_rows = n_steps, n_epochs, n_rows
        state = state or RunState()
        self.epoch, self.step, self.loss_sum = state.epoch, state.step, state.loss_sum
        self.loss, self.learning_rate = list(state.loss), list(state.learning_rate)
        self.rate = math.nan
        self.interrupted = False
        if state.tensors:
            self._check(state)
            network.load_state_dict(state.part("network."))
            optimizer.restore(state.part("optimizer."))
        # The weights that an epoch ended with are good once a sound loss has been computed from them.
        self._ended = (self.epoch, state.part("ended.") or self._weights())
        self._good = self._ended

    @property
    def steps_done(self) -> int:
        return self.epoch * self.n_steps + self.step

    @property
    def progress(self) -> float:
        """The share of all steps that have been taken."""
        return self.steps_done / (self.n_steps * self.n_epochs)

    def state(self) -> RunState:
        """Where it stands now."""
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        tensors |= {f"ended.{name}": value for name, value in self._ended[1].items()}
        tensors |= {f"optimizer.{name}": value for name, value in self.optimizer.state().items()}
        return RunState(self.epoch, self.step, self.loss_sum, self.loss, self.learning_rate, tensors)

    def is_sound(self, loss: float) -> bool:
        """Whether a loss is finite and not far above the best epoch."""
        return math.isfinite(loss) and loss < min(self.loss, default=math.inf) + DIVERGENCE

    def count_step(self, loss: float, n_rows: int) -> None:
        """A sound step was taken on a batch of ``n_rows``."""
        if self.step == 0:
            self._good = self._ended
        self.step += 1
        self.loss_sum += loss * n_rows

    def end_epoch(self) -> None:
        """All steps of an epoch were taken."""
        self.loss.append(self.loss_sum / self.n_rows)
        self.learning_rate.append(self.rate if self.optimizer.has_rate else math.nan)
        self.epoch, self.step, self.loss_sum = self.epoch + 1, 0, 0.0
        self._ended = (self.epoch, self._weights())

    def roll_back(self, loss: float) -> None:
        """Return to the last good weights, because ``loss`` is not sound."""
        epoch, weights = self._good
        self.network.load_state_dict(weights)
        kept = f"from epoch {epoch}" if epoch else "from the start"
        warn(
            f"Training diverged in epoch {min(self.epoch + 1, self.n_epochs)} (loss {loss:.4g}): the last good "
            f"weights, {kept}, are kept; {self.optimizer.advice}.",
            TrainingWarning,
        )

    def interrupt(self) -> None:
        """Training ends here: keep the weights, unless a bad step has just been taken."""
        self.interrupted = True
        if not all(bool(torch.isfinite(p).all()) for p in self.network.parameters()):
            self.network.load_state_dict(self._good[1])

    def _check(self, state: RunState) -> None:
        """Raise ValueError if a state is not of such a run."""
        need(state.epoch <= self.n_epochs and state.step < self.n_steps, "it has more epochs or steps than the fit")
        for part in ("network.", "ended."):
            check_like(state.part(part), dict(self.network.state_dict()))

    def _weights(self) -> dict[str, Tensor]:
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}
