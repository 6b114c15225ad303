"""A fitted map as a folder: ``config.json`` says what it is, ``model.safetensors`` holds the numbers.

No file is unpickled. A save is staged beside its target and moved into place, so that the target is the old model or
the new one at any moment, never a mixture.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

from tsee.exceptions import ModelError

if TYPE_CHECKING:  # what reads the numbers is imported with torch, when they are read
    from torch import Tensor

    from tsee.fitted import FittedMap

__all__ = [
    "CONFIG",
    "TENSORS",
    "ModelFiles",
    "SavedModel",
    "check_target",
    "inconsistent",
    "read_files",
    "read_model",
    "save_model",
]

FORMAT = "tsee-model"
FORMAT_VERSION = 3
CONFIG, TENSORS = "config.json", "model.safetensors"
# The names of a million features take a tenth of it.
MAX_CONFIG_BYTES = 2**28
# A forged value can be as long as its file; a sentence should not.
MAX_REASON = 300
# How long a save waits for another one in the same folder.
LOCKED_SECONDS = 60.0
# How often a model is read again if it was replaced in the meantime.
READINGS = 5


@dataclass(frozen=True)
class ModelFiles:
    """The files of a model as they were saved, by their checksums; what they say is not checked yet.

    Attributes
    ----------
    config : dict
        The content of ``config.json``.
    data : bytes
        The bytes of ``model.safetensors``.
    n_bytes : int
        The size of both files.
    saved : float
        When they were written, in seconds since 1970.
    """

    config: dict[str, Any]
    data: bytes
    n_bytes: int
    saved: float

    def shapes(self) -> dict[str, list[int]]:
        """The shape of each tensor, from the heading of ``model.safetensors``: its length, and JSON."""
        length = int.from_bytes(self.data[:8], "little")
        heading = json.loads(self.data[8 : 8 + length])
        return {name: entry["shape"] for name, entry in heading.items() if name != "__metadata__"}


@dataclass(frozen=True)
class SavedModel:
    """A saved model, checked and in memory: what happens to its files afterwards does not change it.

    Attributes
    ----------
    config : dict
        The content of ``config.json``.
    tensors : dict of str to Tensor
        The content of ``model.safetensors``.
    n_bytes : int
        The size of both files.
    saved : float
        When they were written, in seconds since 1970.
    """

    config: dict[str, Any]
    tensors: dict[str, Tensor]
    n_bytes: int
    saved: float


def save_model(fitted: FittedMap, parameters: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write a fitted map, and the parameters of its estimator, to the folder ``path``; a model there is replaced."""
    import safetensors.torch

    from tsee.persistence.checks import check_model
    from tsee.values import plain

    target = Path(os.path.realpath(path))
    staging, replaced = _beside(target, "saving"), _beside(target, "replaced")
    description, named_tensors = fitted.to_tensors()
    tensors = safetensors.torch.save(named_tensors)
    config = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tsee_version": version("tsee"),
        "parameters": {name: plain(value) for name, value in parameters.items()},
        **description,
        "checksum": hashlib.sha256(tensors).hexdigest(),
    }
    config["config_checksum"] = _config_checksum(config)
    content = json.dumps(config, indent=2).encode()
    try:
        check_model(json.loads(content), named_tensors)  # nothing is written that could not be read back
    except ValueError as error:
        raise ModelError(f"The model cannot be saved, since it is not usable ({error}): fit it again.") from error
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _alone(target.parent):
            try:
                _recover(target)
                _check_replaceable(target)
                shutil.rmtree(staging, ignore_errors=True)  # of a save that was killed
                staging.mkdir()
                _write(staging / TENSORS, tensors)
                _write(staging / CONFIG, content)
                if target.exists():
                    os.rename(target, replaced)
                os.rename(staging, target)
                shutil.rmtree(replaced, ignore_errors=True)
            except OSError:
                _recover(target)
                raise
            finally:
                shutil.rmtree(staging, ignore_errors=True)
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from error


def read_model(path: str | PathLike[str]) -> SavedModel:
    """Read a model folder into memory, and check that it is as it was saved and that its parts fit together."""
    import safetensors.torch

    from tsee.persistence.checks import check_model

    files = read_files(path)
    try:
        tensors = safetensors.torch.load(files.data)
        check_model(files.config, tensors)
    except Exception as error:  # safetensors and torch raise any kind of error on a forged header
        raise inconsistent(path, error) from error
    return SavedModel(files.config, tensors, files.n_bytes, files.saved)


def read_files(path: str | PathLike[str]) -> ModelFiles:
    """Read the files of a model into memory, and check that they are as they were saved."""
    for reading in range(1, READINGS + 1):
        folder = _folder_of(path)
        before = _version(folder)
        try:
            content, data, saved = _read_files(folder)
            config = _parse_config(folder, content)
            if hashlib.sha256(data).hexdigest() != config.get("checksum"):
                raise ModelError(f"{TENSORS} in {str(path)!r} is damaged: it is not the file that was saved there.")
            break
        except ModelError:
            if reading == READINGS or before == _version(_folder_of(path)):
                raise  # otherwise a save has just replaced the folder
    return ModelFiles(config, data, len(content) + len(data), saved)


def inconsistent(path: str | PathLike[str], error: Exception) -> ModelError:
    """The error to raise if the parts of a model do not fit together."""
    return ModelError(f"The model in {str(path)!r} is inconsistent ({_first_line(error)}): save it again.")


def check_target(path: str | PathLike[str]) -> None:
    """Raise if a model could not be saved to the folder ``path``, before an hour is spent on it."""
    from tsee.files.errors import obstacle

    target = Path(os.path.realpath(path))
    _check_replaceable(target)
    reason = obstacle(target)
    if reason is not None:
        raise _unwritable(path, reason)


def _folder_of(path: str | PathLike[str]) -> Path:
    """The folder that holds the model: its own, or the one beside it if a save was cut off between its two renames."""
    folder = Path(os.path.realpath(path))
    return _beside(folder, "replaced") if not folder.exists() and _beside(folder, "replaced").exists() else folder


def _version(folder: Path) -> tuple[int, int] | None:
    """Tells a folder from one that has replaced it."""
    try:
        return folder.stat().st_ino, folder.stat().st_mtime_ns
    except OSError:
        return None


def _read_files(folder: Path) -> tuple[bytes, bytes, float]:
    """The bytes of both files, and when they were written."""
    paths = [folder / CONFIG, folder / TENSORS]
    if not all(path.is_file() for path in paths):
        raise ModelError(
            f"{str(folder)!r} is not a tsee model: a folder with {CONFIG} and {TENSORS}, as save() writes it, "
            "was expected."
        )
    try:
        facts = [path.stat() for path in paths]
        if facts[0].st_size > MAX_CONFIG_BYTES:
            raise ModelError(f"{CONFIG} in {str(folder)!r} is damaged: it has {facts[0].st_size:,} bytes.")
        config, tensors = (path.read_bytes() for path in paths)
    except OSError as error:
        raise ModelError(f"The model in {str(folder)!r} cannot be read ({error.strerror or error}).") from error
    return config, tensors, max(fact.st_mtime for fact in facts)


def _parse_config(folder: Path, content: bytes) -> dict[str, Any]:
    try:
        config = json.loads(content.decode("utf-8"))
        checksum = _config_checksum(config) if isinstance(config, dict) else None
    except (ValueError, RecursionError) as error:  # also text that is not UTF-8, endless numbers, nested brackets
        raise ModelError(f"{CONFIG} in {str(folder)!r} is damaged: {_first_line(error)}.") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError(f"{str(folder)!r} is not a tsee model: its {CONFIG} does not say that it is one.")
    if config.get("format_version") != FORMAT_VERSION:
        raise ModelError(
            f"The model in {str(folder)!r} has format {config.get('format_version')!r:.40}, and this tsee reads format "
            f"{FORMAT_VERSION}: install the tsee that wrote it ({config.get('tsee_version')!s:.40}) or a newer one."
        )
    if config.get("config_checksum") != checksum:
        raise ModelError(f"{CONFIG} in {str(folder)!r} is damaged: it is not the file that was saved there.")
    return config


def _check_replaceable(target: Path) -> None:
    """Never replace a folder that is not a model: it may be somebody's work."""
    if not target.exists():
        return
    if not target.is_dir() or not {entry.name for entry in target.iterdir()} <= {CONFIG, TENSORS}:
        raise ModelError(f"{str(target)!r} exists and is not a tsee model: choose another path, or remove it first.")


def _unwritable(path: str | PathLike[str], reason: str) -> ModelError:
    return ModelError(
        f"The model cannot be written to {str(path)!r} ({reason}): choose a folder that you can write to, with room on "
        "its disk."
    )


def _beside(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name}.{what}")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder: two processes that save the same model do so one after the other."""
    if fcntl is None:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        until = time.monotonic() + LOCKED_SECONDS
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
            except OSError:
                break  # a file system without locks
        yield
    finally:
        os.close(handle)


def _recover(target: Path) -> None:
    """Put back the model that a save had moved aside when it was cut off between its two renames."""
    replaced = _beside(target, "replaced")
    if replaced.exists() and not target.exists():
        os.rename(replaced, target)
    else:
        shutil.rmtree(replaced, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file and sync it to the disk, so that a rename cannot overtake its content."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _config_checksum(config: dict[str, Any]) -> str:
    """The checksum of everything else in the configuration."""
    said = {name: value for name, value in config.items() if name != "config_checksum"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _first_line(error: Exception) -> str:
    line = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".: ")
    return line if len(line) <= MAX_REASON else f"{line[:MAX_REASON]}..."
