"""The state of a training that goes on: one file of plain tensors, written whole or not at all."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import safetensors
import safetensors.torch
from torch import Tensor

from tsee.distributed import rank
from tsee.exceptions import CheckpointError
from tsee.files.replacing import beside, put_in_place

__all__ = ["NAME", "Checkpoint", "State", "kept_seed"]

FORMAT = "tsee-checkpoint-1"
NAME = "checkpoint.safetensors"
# Seconds between two checkpoints.
INTERVAL = 20.0


@dataclass
class State:
    """Where a training stands.

    Attributes
    ----------
    stage : int
        0 before the refinement, 1 after it.
    epoch, step : int
        Epochs of this stage that are done, and steps done of the one that is not.
    total : float
        The sum of the losses of these steps, each times its rows.
    loss, learning_rate : list of float
        Of each epoch done, of both stages.
    tensors : dict
        The weights, the optimizer's state, and places found by the refinement.
    """

    stage: int = 0
    epoch: int = 0
    step: int = 0
    total: float = 0.0
    loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)

    def part(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names begin so, by the rest of their names."""
        return {name[len(prefix) :]: value for name, value in self.tensors.items() if name.startswith(prefix)}


def kept_seed(folder: Path) -> int | None:
    """The seed of the fit whose state is in a folder, if one is: what was drawn by chance is drawn once."""
    try:
        with safetensors.safe_open(Path(folder) / NAME, framework="pt") as file:
            return int(json.loads(file.metadata()["state"])["identity"]["seed"])
    except (OSError, ValueError, KeyError, TypeError, safetensors.SafetensorError):
        return None  # `Checkpoint.read` says what is wrong with it


class Checkpoint:
    """A folder that holds the state of one fit.

    Of several processes the first writes, since the state is the same on all of them; all read it, so that the folder
    must be one that all can see.

    Parameters
    ----------
    folder : path
    identity : dict
        What the fit is of, in plain values: a state of anything else is refused.
    """

    def __init__(self, folder: Path, identity: dict[str, Any]) -> None:
        self.path = Path(folder) / NAME
        self.identity = identity
        self.stopping = False
        self._written = time.monotonic()
        self._handler: Any = None

    def read(self) -> State | None:
        """The state that was left here, if one was; and whether one can be left, before there is any."""
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            return None
        where = f"The checkpoint in {str(self.path.parent)!r}"
        try:
            with safetensors.safe_open(self.path, framework="pt") as file:
                said = json.loads((file.metadata() or {})["state"])
                tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            known = said.pop("format") == FORMAT
            identity = said.pop("identity")
            state = State(**said, tensors=tensors)
        except (OSError, ValueError, KeyError, TypeError, AttributeError, safetensors.SafetensorError) as error:
            reason = (str(error).splitlines() or [""])[0]
            raise CheckpointError(f"{where} is damaged ({reason}): remove it to begin anew.") from error
        if not known:
            raise CheckpointError(f"{where} was written by another version of tsee: remove it to begin anew.")
        for name, value in self.identity.items():
            if identity.get(name) != value:
                raise CheckpointError(
                    f"{where} is that of another fit (its {name} is {identity.get(name)!r}, not {value!r}): choose "
                    "another folder, or remove it to begin anew."
                )
        return state

    def due(self) -> bool:
        """Whether it is time to write."""
        return self.stopping or time.monotonic() - self._written > INTERVAL

    def write(self, state: State) -> None:
        """Keep a state in place of the one before. The process ends here if it was told to end."""
        if rank() == 0:
            said = {name: value for name, value in vars(state).items() if name != "tensors"}
            content = json.dumps({"format": FORMAT, "identity": self.identity, **said})
            tensors = {name: value.detach().cpu().contiguous() for name, value in state.tensors.items()}
            temporary = beside(self.path)
            try:
                with self._writing():
                    safetensors.torch.save_file(tensors, temporary, {"state": content})
                    put_in_place(temporary, self.path)
            finally:
                temporary.unlink(missing_ok=True)
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
                "you may write to, with room on its disk."
            ) from error

    def remove(self) -> None:
        """The fit is done."""
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
