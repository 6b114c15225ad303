"""A fit that can be resumed: its stage, its map so far and its run, in one file of plain tensors.

Neighbors that were found before the first stage are kept in files of their own (`tsee.training.kept`).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from tsee.data import blocks, dense
from tsee.distributed import all_gather, rank
from tsee.exceptions import CheckpointError, TrainingWarning, warn
from tsee.files.atomic import replacing
from tsee.fitted import PLACEMENTS, History
from tsee.training.run import RunState
from tsee.values import is_count, is_list_of, is_number, need

__all__ = ["FILE_NAME", "Checkpoint", "State", "data_digest", "digest_of_all", "holds_state", "saved_seed"]

FORMAT = "tsee-checkpoint-3"
FILE_NAME = "checkpoint.safetensors"
# What was found before there is a state: the number of the process, and the number of the file.
PART_NAME, PART = "neighbors-{:05d}-{:05d}.safetensors", re.compile(r"neighbors-\d{5}-\d{5}\.safetensors")
# Seconds between two checkpoints.
INTERVAL = 20.0
# The rows that tell data from other data: this many slices of this many rows, evenly spaced.
DIGEST_SLICES, DIGEST_ROWS = 16, 8


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
        return int(_described(_files(folder)[0])["identity"]["seed"])
    except Exception:  # `Checkpoint.read` says what is wrong with it
        return None


def holds_state(folder: Path) -> bool:
    """Whether a fit has left something in a folder from which it can be resumed."""
    return bool(_files(folder))


def _files(folder: Path) -> list[Path]:
    """The files of a fit in a folder: its state, if there is one, and what it has found before."""
    state = Path(folder) / FILE_NAME
    return [state] * state.exists() + _parts(folder)


def _parts(folder: Path) -> list[Path]:
    return sorted(path for path in Path(folder).glob("neighbors-*") if PART.fullmatch(path.name))


def _described(path: Path) -> dict[str, Any]:
    """What a file says of its fit, without its tensors and unchecked."""
    need(path.is_file(), "it is not a file")
    with safetensors.safe_open(path, framework="pt") as file:
        content: dict[str, Any] = json.loads(file.metadata()["state"])
    return content


def data_digest(X: Any, mean: np.ndarray) -> str:
    """A digest that tells the data of all processes from other data. A collective.

    Every value counts through the mean, and the order through rows from all over the data. If rows are not centered,
    the mean is zero, and the sums of the columns take its place.
    """
    if not mean.any():
        mean = sum((dense(X, rows).sum(0, dtype=np.float64) for rows in blocks(X.shape[0])), mean)
    digest = hashlib.sha256(mean.tobytes())
    n = X.shape[0]
    for start in sorted({i * max(0, n - DIGEST_ROWS) // (DIGEST_SLICES - 1) for i in range(DIGEST_SLICES)}):
        digest.update(np.ascontiguousarray(dense(X, slice(start, min(n, start + DIGEST_ROWS)))).tobytes())
    return digest_of_all(digest.hexdigest())


def digest_of_all(own: str) -> str:
    """A digest of the digests of all processes. A collective."""
    everyone = all_gather(torch.tensor([list(bytes.fromhex(own))], dtype=torch.int64))
    return hashlib.sha256(bytes(everyone.flatten().tolist())).hexdigest()[:16]


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
        self._state: State | None = None  # what is on the disk
        self._own_parts: list[Path] = []
        self._next_part = 0

    def read(self) -> State | None:
        """The state that was left here, if any. Also checks that one can be written, and whose parts are here."""
        with self._writing():
            self.path.parent.mkdir(parents=True, exist_ok=True)
        content, state = None, None
        if exists := self.path.exists():
            with self._reading(self.path):
                content, tensors = _read(self.path)
                content = content if self._is_ours(content) else None
                state = None if content is None else _state(content, tensors)
        ended = exists and content is None  # of another fit, which has ended
        for path in _parts(self.path.parent):
            with self._reading(path), contextlib.suppress(FileNotFoundError):  # another process has removed it
                facts = _described(path)
                number = int(path.stem.rpartition("-")[2])
                if not self._is_ours(facts | {"done": ended}):
                    self._unlink(path)
                elif facts["process"] == rank():
                    content = content or facts
                    self._own_parts.append(path)
                    self._next_part = number + 1
        if content is not None and content["n_threads"] != torch.get_num_threads():
            warn(
                f"{self._where} was written by a process with {content['n_threads']} threads, and this one has "
                f"{torch.get_num_threads()}: sums are rounded differently, so the map will not equal the map of an "
                "uninterrupted fit to the bit.",
                TrainingWarning,
            )
        self._state = state
        return state

    def read_parts(self) -> Iterator[dict[str, Tensor]]:
        """What this process has found before, file by file."""
        for path in self._own_parts:
            with self._reading(path):
                content, tensors = _read(path)
                need(content["process"] == rank(), "it is of another process")
            yield tensors

    def _is_ours(self, content: dict[str, Any]) -> bool:
        """Whether a file is of this fit, or else of one that has ended. Any other is refused."""
        if content["format"] != FORMAT:
            raise CheckpointError(f"{self._where} was written by another version of tsee: remove it to start over.")
        identity, done = content["identity"], content["done"]
        need(isinstance(identity, dict) and is_count(content["n_threads"]), "it lacks an identity")
        need(isinstance(done, bool), "it does not say whether its fit has ended")
        different = [name for name, value in self.identity.items() if identity.get(name) != value]
        if different and not done:
            difference = self._difference(different[0], identity)
            raise CheckpointError(f"{self._where} {difference}, or remove it to start over.")
        return not different

    @contextmanager
    def _reading(self, path: Path) -> Iterator[None]:
        """Report a file that cannot be what was written."""
        try:
            yield
        except CheckpointError:
            raise
        except Exception as error:  # on a damaged file, libraries raise any kind of error
            raise self.damaged(error, path) from error

    @property
    def _where(self) -> str:
        return f"The checkpoint in {str(self.path.parent)!r}"

    def damaged(self, error: Exception, path: Path | None = None) -> CheckpointError:
        """The error to raise if the state, or the file of a part, cannot be what was written."""
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".: ")
        if path is None or path == self.path:
            return CheckpointError(f"{self._where} is damaged ({reason}): remove it to start over.")
        return CheckpointError(
            f"{self._where} is damaged ({path.name}: {reason}): remove this file to go on without it."
        )

    def _difference(self, name: str, identity: dict[str, Any]) -> str:
        theirs, ours = identity.get(name), self.identity[name]
        if name == "n_processes":
            return f"was written by a fit of {theirs} process(es), and this one has {ours}: start as many processes"
        if name == "data":
            return "belongs to a fit of other data: choose another folder"
        return f"belongs to another fit (its {name} is {theirs!r:.80}, not {ours!r:.80}): choose another folder"

    def is_due(self) -> bool:
        """Whether it is time to write."""
        return self.stopping or time.monotonic() - self._written > INTERVAL

    def write(self, state: State) -> None:
        """Replace the state. The process ends here if it was told to end."""
        self._write(state, done=False)
        self._state, self._written = state, time.monotonic()
        self.end_if_told()

    def write_part(self, tensors: dict[str, Tensor]) -> None:
        """Keep what this process has found, as one more file."""
        path = self.path.with_name(PART_NAME.format(rank(), self._next_part))
        self._save(path, {"process": rank()}, tensors, done=False)
        self._next_part += 1
        self._written = time.monotonic()

    def end_if_told(self) -> None:
        """End the process if it was told to end."""
        if self.stopping:
            raise SystemExit(128 + signal.SIGTERM)

    def finish(self, *, complete: bool) -> None:
        """Training is over. If it is complete, the state on the disk, if there is one, is marked as such.

        It stays until the model is saved: a fit whose model was lost can be resumed. A fit of something else replaces
        it. What was found before the first state stays with a state only.
        """
        if self._state is not None and complete:
            with contextlib.suppress(CheckpointError):  # on a full disk the state stays as it was
                self._write(self._state, done=True)
        elif complete:
            self._remove_parts()
        self._state = None

    def remove(self) -> None:
        """Remove the state, unless it is not of this fit or the fit has not ended."""
        with contextlib.suppress(Exception):  # not a state of this fit
            content, _ = _read(self.path)
            if content["done"] and content["identity"] == self.identity:
                self._remove_parts()
                self.path.unlink(missing_ok=True)

    def _remove_parts(self) -> None:
        """Remove what was found by this fit."""
        for path in _parts(self.path.parent):
            with contextlib.suppress(Exception):  # not a file of this fit
                if _described(path)["identity"] == self.identity:
                    self._unlink(path)

    def _unlink(self, path: Path) -> None:
        if rank() == 0:
            with contextlib.suppress(OSError):
                path.unlink()

    def _write(self, state: State, *, done: bool) -> None:
        if rank() == 0:
            self._save(self.path, *_content(state), done=done)

    def _save(self, path: Path, content: dict[str, Any], tensors: dict[str, Tensor], *, done: bool) -> None:
        facts = {"format": FORMAT, "identity": self.identity, "n_threads": torch.get_num_threads(), "done": done}
        text = json.dumps(content | facts)
        with self._writing(), replacing(path) as temporary:
            metadata = {"state": text, "checksum": _checksum(text, tensors)}
            # Not by `save_file`, which writes a temporary file of its own.
            temporary.write_bytes(safetensors.torch.save(tensors, metadata))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except (OSError, safetensors.SafetensorError) as error:
            raise CheckpointError(
                f"The checkpoint cannot be written to {str(self.path.parent)!r} ({error}): choose a folder that "
                "you can write to, with room on its disk."
            ) from error

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
    """The opposite of `_content`, for what may be damaged: raises if a value cannot be."""
    need(is_count(content["stage"], 0) and content["placement"] in PLACEMENTS, "an unknown stage or placement")
    run, history = content["run"], content["history"]
    losses = [run["loss"], history["loss"]]
    rates = [run["learning_rate"], history["learning_rate"]]
    need(all(is_list_of(values, float) for values in losses + rates), "its losses and rates must be numbers")
    need(all(map(is_number, losses[0] + losses[1])) and is_number(run["loss_sum"]), "its losses must be finite")
    need(all(is_number(rate) or rate != rate for rate in rates[0] + rates[1]), "its rates must be finite")
    need(is_list_of(history["refined"], bool), "its history is not one")
    lengths = {len(history[name]) for name in ("loss", "learning_rate", "refined")}
    need(len(lengths) == 1 and len(losses[0]) == len(rates[0]) == run["epoch"], "its lists differ in length")
    need(is_count(run["epoch"], 0) and is_count(run["step"], 0), "its epoch and step must be counts")
    past = History(tuple(losses[1]), tuple(rates[1]), tuple(history["refined"]))
    positions = tensors.pop("positions", None)
    return State(content["stage"], RunState(**run, tensors=tensors), past, content["placement"], positions)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The content of a file that `Checkpoint` wrote, after a check that it is as it was written."""
    need(path.is_file(), "it is not a file")
    data = path.read_bytes()
    tensors = safetensors.torch.load(data)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    metadata = header["__metadata__"]
    content: dict[str, Any] = json.loads(metadata["state"])
    if content["format"] == FORMAT:
        need(metadata["checksum"] == _checksum(metadata["state"], tensors), "it is not the file that was written")
    return content, tensors


def _checksum(text: str, tensors: dict[str, Tensor]) -> str:
    """The checksum of a state and its tensors, by their names, types and shapes."""
    digest = hashlib.sha256(text.encode())
    for name, value in sorted(tensors.items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        digest.update(value.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
