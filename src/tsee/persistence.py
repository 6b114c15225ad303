"""A fitted map as a folder: ``config.json`` says what it is, ``model.safetensors`` holds the numbers.

No file is unpickled. A save is staged beside its target and moved into place, so that the target is the old model or
the new one at any moment, never a mixture.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.torch
import torch
from torch import Tensor

from tsee.exceptions import ModelError
from tsee.files.errors import obstacle
from tsee.fitted import FittedMap

__all__ = ["CONFIG", "TENSORS", "check_target", "describe", "inconsistent", "plain", "read_model", "save_model"]

FORMAT = "tsee-model"
FORMAT_VERSION = 3
CONFIG, TENSORS = "config.json", "model.safetensors"


def save_model(fitted: FittedMap, parameters: dict[str, Any], path: str | PathLike[str]) -> None:
    """Write a fitted map, and the parameters of its estimator, to the folder ``path``; a model there is replaced."""
    target = Path(path).resolve()
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
    content = json.dumps(config, indent=2, allow_nan=False).encode()
    try:
        _recover(target)
        _check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        _write(staging / TENSORS, tensors)
        _write(staging / CONFIG, content)
        if target.exists():
            os.rename(target, replaced)
        os.rename(staging, target)
        shutil.rmtree(replaced, ignore_errors=True)
    except OSError as error:
        _recover(target)
        raise _unwritable(path, error.strerror or str(error)) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def read_model(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """The configuration and the tensors of a model folder, after a check that they are as they were saved."""
    folder, config = _open(path)
    try:
        return config, safetensors.torch.load_file(folder / TENSORS)
    except safetensors.SafetensorError as error:
        raise inconsistent(path, error) from error


def inconsistent(path: str | PathLike[str], error: Exception) -> ModelError:
    """The error to raise if the parts of a model do not fit together."""
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return ModelError(f"The model in {str(path)!r} is inconsistent ({reason}): save it again.")


def check_target(path: str | PathLike[str]) -> None:
    """Raise if a model could not be saved to the folder ``path``, before an hour is spent on it."""
    target = Path(path).resolve()
    _check_replaceable(target)
    reason = obstacle(target)
    if reason is not None:
        raise _unwritable(path, reason)


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """The description of a saved model, without loading it; a network of the user's own is not needed.

    Parameters
    ----------
    path : str or path
        The folder.

    Returns
    -------
    dict
        The content of ``config.json``; as ``shapes``, the shape of each tensor in ``model.safetensors``; as ``bytes``,
        the size of both files; and as ``saved``, when they were written, in seconds since 1970.
    """
    folder, config = _open(path)
    with safetensors.safe_open(folder / TENSORS, framework="numpy") as tensors:
        shapes = {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118
    files = [(folder / name).stat() for name in (CONFIG, TENSORS)]
    return {
        **config,
        "shapes": shapes,
        "bytes": sum(file.st_size for file in files),
        "saved": max(file.st_mtime for file in files),
    }


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it; None for anything else (a network, a generator)."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, torch.device):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None


def _open(path: str | PathLike[str]) -> tuple[Path, dict[str, Any]]:
    """The folder that holds the model, and its configuration, after a check that both files are as they were saved."""
    folder = Path(path).resolve()
    if not folder.exists() and _beside(folder, "replaced").exists():
        folder = _beside(folder, "replaced")  # a save was cut off between its two renames
    config = _read_config(folder)
    if _checksum(folder / TENSORS) != config.get("checksum"):
        raise ModelError(f"{TENSORS} in {str(path)!r} is damaged: it is not the file that was saved there.")
    return folder, config


def _read_config(folder: Path) -> dict[str, Any]:
    if not (folder / CONFIG).is_file() or not (folder / TENSORS).is_file():
        raise ModelError(
            f"{str(folder)!r} is not a tsee model: a folder with {CONFIG} and {TENSORS}, as save() writes it, "
            "was expected."
        )
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ModelError(f"{CONFIG} in {str(folder)!r} is damaged: {error}.") from error
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise ModelError(f"{str(folder)!r} is not a tsee model: its {CONFIG} does not say that it is one.")
    if config.get("format_version") != FORMAT_VERSION:
        raise ModelError(
            f"The model in {str(folder)!r} has format {config.get('format_version')!r}, and this tsee reads "
            f"format {FORMAT_VERSION}: install the tsee that wrote it ({config.get('tsee_version')}) or a newer one."
        )
    if config.get("config_checksum") != _config_checksum(config):
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


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
