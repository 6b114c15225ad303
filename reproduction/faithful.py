"""The paper's own method: its settings, and how long it trains.

The paper does not say how long it trains. A run here trains as long as its loss still falls, within a time limit: it
ends when the mean loss of the last epochs is hardly below the mean loss of as many epochs before them. A run that the
limit has ended goes on from there when it is given more time.

Where the processor is faster with it, the hidden layers are multiplied in bfloat16 (8 significant bits), and all else
is in float32. A batch then takes a third of the time, with as many evaluations of the loss: after 4 epochs on 12,000
rows of MNIST, batches and exemplars of 1,000, dt-SEE's loss is 1.829 instead of 1.818, hot-SEE's 2.071, not 2.073.
"""

from __future__ import annotations

import json
import math
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch

from tsee.estimators import METHODS
from tsee.estimators.paper import PAPER
from tsee.fitted import FittedMap
from tsee.networks import Network
from tsee.training.checkpoint import State
from tsee.training.plan import Plan
from tsee.training.precision import has_bfloat16
from tsee.training.run import Run as Training
from tsee.training.stages import Session, Stage

__all__ = ["ARM", "Rule", "faithful_estimator", "faithful_settings", "last_fall"]

# The value of the setting "arm" of such a run.
ARM = "paper"
# More epochs than any run takes: the rule ends it.
EPOCHS = 10_000
# Seconds between two notes of the time that a run has taken and of its loss, so that it can be resumed.
INTERVAL = 10.0


def faithful_settings(chosen: dict[str, Any]) -> dict[str, Any]:
    """The settings of a run of the paper's method: all of the paper's, and what a grid chose."""
    given = {name: value for name, value in chosen.items() if name not in ("data", "method", "seed")}
    estimator = METHODS[chosen["method"]].paper(**given)
    parameters = {name: value for name, value in estimator.get_params().items() if name in PAPER or name in given}
    del parameters["max_epochs"]  # the rule decides
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
    named = {name: "none" if value is None else value for name, value in plain.items()}
    return {"arm": ARM, "seed": 0, **chosen, **named}


@dataclass
class Rule:
    """When training ends: the loss no longer falls, or the time is up.

    Parameters
    ----------
    minutes : float
        The time limit, in minutes of the processor for each thread: on a busy machine, every run gets the same.
    epochs, batches : int
        The losses of this many epochs, or of the epochs of this many batches if those are more, are compared with the
        losses of as many before them.
    fall : float
        The share by which they must be lower for training to go on.
    note : path, optional
        A file that keeps the time that was taken and the course of the loss, for a run that is resumed.

    Attributes
    ----------
    reason : {"loss", "time", "divergence"} or None
        What ended training.
    steps : int
        The batches that were trained on.
    quick : bool
        Whether the hidden layers were multiplied in bfloat16.
    course : list of (float, float)
        The course of the loss: the minutes taken, and the mean loss of the batches since the entry before.
    """

    minutes: float
    epochs: int = 5
    batches: int = 100
    fall: float = 0.002
    note: Path | None = None
    reason: str | None = None
    steps: int = 0
    quick: bool = False
    course: list[tuple[float, float]] = field(default_factory=list)
    _before: float = field(default=0.0, init=False)
    _start: float = field(default=math.nan, init=False)
    _noted: tuple[float, int, float] = field(default=(0.0, -1, 0.0), init=False)  # seconds, steps, sum of losses

    def start(self) -> None:
        """Training begins, or goes on."""
        if self.note is not None and self.note.exists():
            noted = json.loads(self.note.read_text())
            self._before = noted["seconds"]
            self.course = [(minutes, loss) for minutes, loss in noted["course"]]
        self._start = time.process_time()

    @property
    def seconds(self) -> float:
        """The processor's time that training has taken, for each thread, with the time before it was resumed."""
        return self._before + (time.process_time() - self._start) / torch.get_num_threads()

    def watch(self, training: Training) -> None:
        """Called after each step; ends training by a KeyboardInterrupt, which keeps what was learned."""
        self.steps = training.steps_done
        # The losses of the batches, each of about the same number of rows.
        losses = (math.fsum(training.loss) + training.loss_sum / training.n_rows) * training.n_steps
        if self._noted[1] < 0:
            self._noted = (self._before, self.steps, losses)
        if training.step == 0 and not self.falls(training.loss, training.n_steps):
            self.reason = "loss"
        elif self.seconds > 60 * self.minutes:
            self.reason = "time"
        seconds, steps, sum_before = self._noted
        if self.reason is not None or self.seconds - seconds > INTERVAL:
            if self.steps > steps:
                mean = (losses - sum_before) / (self.steps - steps)
                self.course.append((round(self.seconds / 60, 2), round(mean, 4)))
            self._noted = (self.seconds, self.steps, losses)
            if self.note is not None:
                self.note.parent.mkdir(parents=True, exist_ok=True)
                self.note.write_text(json.dumps({"seconds": round(self.seconds, 1), "course": self.course}))
        if self.reason is not None:
            raise KeyboardInterrupt

    def ended(self, losses: Sequence[float], caught: Sequence[warnings.WarningMessage]) -> dict[str, Any]:
        """What ended training and when, for the result. Raises KeyboardInterrupt if neither rule nor loss ended it."""
        if self.reason is None and any("diverged" in str(warning.message) for warning in caught):
            self.reason = "divergence"
        if self.reason is None:
            raise KeyboardInterrupt
        return {
            "ended by": self.reason,
            "minutes": round(self.seconds / 60, 1),
            "limit": self.minutes,
            "steps": self.steps,
            "products": "bfloat16" if self.quick else "float32",
            "losses": [round(loss, 4) for loss in losses],
            "course": [list(entry) for entry in self.course],
        }

    def falls(self, losses: Sequence[float], n_steps: int) -> bool:
        """Whether the losses of the epochs so far, of ``n_steps`` batches each, still fall; yes if they are few."""
        window = max(self.epochs, math.ceil(self.batches / n_steps))
        if len(losses) < 2 * window:
            return True
        before, last = statistics.fmean(losses[-2 * window : -window]), statistics.fmean(losses[-window:])
        return before - last > self.fall * abs(before)


def last_fall(training: dict[str, Any]) -> float | None:
    """The share by which the loss of the last quarter of a run's time is below the loss of the quarter before it.

    None if the run has no loss for one of them.
    """
    course: list[tuple[float, float]] = training.get("course", [])
    end = course[-1][0] if course else 0.0
    before = [loss for minutes, loss in course if end / 2 < minutes <= 0.75 * end]
    last = [loss for minutes, loss in course if minutes > 0.75 * end]
    if not before or not last:
        return None
    return 1 - statistics.fmean(last) / statistics.fmean(before)


@dataclass(frozen=True)
class _Watched:
    """A stage of training that a rule may end."""

    stage: Stage
    rule: Rule

    def run(self, fitted: FittedMap, number: int, session: Session) -> FittedMap:
        def watch(training: Training) -> None:
            try:
                self.rule.watch(training)
            except KeyboardInterrupt:
                if session.checkpoint is not None:  # more time may be given to it later
                    session.checkpoint.write(State(number, training.state(), fitted.history))
                raise

        for part in fitted.network.modules():
            if isinstance(part, Network):
                part.quick = self.rule.quick = has_bfloat16(session.plan.device)
        self.rule.start()
        return self.stage.run(fitted, number, replace(session, watch=watch))


def faithful_estimator(method: str, parameters: dict[str, Any], rule: Rule) -> Any:
    """The estimator of a method with the paper's settings, whose training ends by a rule."""
    cls = METHODS[method]

    def stages(self: Any, objective: Any, plan: Plan, guide: Any) -> list[Stage]:
        (stage,) = cls._stages(self, objective, plan, guide)
        return [_Watched(stage, rule)]

    watched: Any = type(cls.__name__, (cls,), {"_stages": stages})
    return watched.paper(**{"max_epochs": EPOCHS, **parameters})
