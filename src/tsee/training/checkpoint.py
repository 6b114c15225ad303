"""A fit that can be resumed: its stage, its map so far and its run, in one file of plain tensors."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from tsee.distributed import rank
from tsee.exceptions import CheckpointError, TrainingWarning, warn
from tsee.files.atomic import replacing
from tsee.fitted import History
from tsee.training.run import RunState

__all__ = ["FILE_NAME", "Checkpoint", "State", "saved_seed"]

FORMAT = "tsee-checkpoint-2"
FILE_NAME = "checkpoint.safetensors"
# Seconds between two checkpoints.
INTERVAL = 20.0


@dataclass
class State:
    """Where a fit stands.

    Attributes
    ----------
    stage : int
        The stage that is under way.
    run : RunState
        Where its training stands.
    history : History
        The epochs of the stages before.
    placement : str
        How the map places rows so far.
    positions : Tensor or None
        The positions of the exemplars, if they have been freed.
    """

    stage: int
    run: RunState
    history: History = field(default_factory=History)
    placement: str = "forward"
    positions: Tensor | None = None


def saved_seed(folder: Path) -> int | None:
    """The seed of the fit whose state is in a folder, if there is one: a random seed is drawn only once."""
    try:
        with safetensors.safe_open(Path(folder) / FILE_NAME, framework="pt") as file:
            return int(json.loads(file.metadata()["state"])["identity"]["seed"])
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError):
        return None  # `Checkpoint.read` says what is wrong with it


class Checkpoint:
    """A folder that holds the state of one fit.

    Over several processes the first one writes, since the state is the same on all of them. All read it, so all must
    see the folder.

    Parameters
    ----------
    folder : path
    identity : dict
        What the fit is, in values that JSON can hold: the state of any other fit is refused.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.path = Path(folder) / FILE_NAME
        # As JSON gives it back: tuples become lists, and numpy's numbers plain ones.
        self.identity: dict[str, Any] = json.loads(json.dumps(identity, default=float))
        self.stopping = False
        self._written = time.monotonic()
        self._handler: Any = None

    def read(self) -> State | None:
        """The state that was left here, if any. Also checks that one can be written."""
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            return None
        where = f"The checkpoint in {str(self.path.parent)!r}"
        try:
            with safetensors.safe_open(self.path, framework="pt") as file:
                content = json.loads((file.metadata() or {})["state"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            known = content["format"] == FORMAT
            identity, n_threads = content["identity"], content.get("n_threads")
            state = _state(content, tensors) if known else None
        except (OSError, ValueError, KeyError, TypeError, AttributeError, safetensors.SafetensorError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise CheckpointError(f"{where} is damaged ({reason}): remove it to start over.") from error
        if state is None:
            raise CheckpointError(f"{where} was written by another version of tsee: remove it to start over.")
        for name, value in self.identity.items():
            if identity.get(name) != value:
                raise CheckpointError(
                    f"{where} belongs to another fit (its {name} is {identity.get(name)!r}, not {value!r}): choose "
                    "another folder, or remove it to start over."
                )
        if n_threads != torch.get_num_threads():
            warn(
                f"{where} was written by a process with {n_threads} threads, and this one has "
                f"{torch.get_num_threads()}: sums are rounded differently, so the map will not equal the map of an "
                "uninterrupted fit to the bit.",
                TrainingWarning,
            )
        return state

    def is_due(self) -> bool:
        """Whether it is time to write."""
        return self.stopping or time.monotonic() - self._written > INTERVAL

    def write(self, state: State) -> None:
        """Replace the state. The process ends here if it was told to end."""
        if rank() == 0:
            content, tensors = _content(state)
            content |= {"format": FORMAT, "identity": self.identity, "n_threads": torch.get_num_threads()}
            with self._writing(), replacing(self.path) as temporary:
                safetensors.torch.save_file(tensors, temporary, {"state": json.dumps(content)})
        self._written = time.monotonic()
        if self.stopping:
            raise SystemExit(128 + signal.SIGTERM)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, safetensors.SafetensorError) as error:
            raise CheckpointError(
                f"The checkpoint cannot be written to {str(self.path.parent)!r} ({error}): choose a folder that "
                "you can write to, with room on its disk."
            ) from error

    def remove(self) -> None:
        """Remove the state: the fit is done."""
        if rank() == 0:
            self.path.unlink(missing_ok=True)

    def __enter__(self) -> Checkpoint:
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGTERM, self._stop)
        return self

    def __exit__(self, *error: object) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGTERM, self._handler)
            self._handler = None

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True  # the step that is under way is finished first


def _content(state: State) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """A state as JSON can hold it, and its tensors."""
    run = {name: value for name, value in vars(state.run).items() if name != "tensors"}
    tensors = dict(state.run.tensors)
    if state.positions is not None:
        tensors["positions"] = state.positions
    content = {"stage": state.stage, "placement": state.placement, "run": run, "history": asdict(state.history)}
    return content, {name: value.detach().cpu().contiguous() for name, value in tensors.items()}


def _state(content: dict[str, Any], tensors: dict[str, Tensor]) -> State:
    history = content["history"]
    loss, rates, refined = (tuple(history[name]) for name in ("loss", "learning_rate", "refined"))
    positions = tensors.pop("positions", None)
    run = RunState(**content["run"], tensors=tensors)
    return State(content["stage"], run, History(loss, rates, refined), content["placement"], positions)
