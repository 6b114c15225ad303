"""A fitted model as a folder: ``config.json`` says what it is, ``model.safetensors`` holds the numbers.

No file is unpickled. A save is staged beside its target and moved into place, so that the target is the
old model or the new one at any moment, never a mixture.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
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
from torch import Tensor, nn

from tsee.estimators import DtSEE, HotSEE, HotSNE, PtSNE
from tsee.estimators.base import ParametricMap
from tsee.estimators.fitting import resolve_device
from tsee.exceptions import ModelError
from tsee.files.errors import obstacle
from tsee.networks import DeepNetwork, HighOrderNetwork
from tsee.novelty import DistanceReference
from tsee.preprocessing import Preprocessing

__all__ = ["check_target", "describe", "load", "plain", "save"]

FORMAT = "tsee-model"
FORMAT_VERSION = 2
CONFIG, TENSORS = "config.json", "model.safetensors"
ESTIMATORS: dict[str, Any] = {cls.__name__: cls for cls in (DtSEE, HotSEE, HotSNE, PtSNE)}
NETWORKS: dict[str, Any] = {cls.__name__: cls for cls in (DeepNetwork, HighOrderNetwork)}


def save(estimator: ParametricMap, path: str | PathLike[str]) -> None:
    """Write a fitted estimator to the folder ``path``, replacing a model that is there."""
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(estimator)
    if type(estimator) is not ESTIMATORS.get(type(estimator).__name__):
        raise ModelError(
            f"A {type(estimator).__name__} cannot be saved, since load() would not know it: only "
            f"{', '.join(ESTIMATORS)} themselves can be."
        )
    target = Path(path).resolve()
    staging, replaced = _beside(target, "saving"), _beside(target, "replaced")
    tensors = safetensors.torch.save(_tensors(estimator))
    config = _describe(estimator, checksum=hashlib.sha256(tensors).hexdigest())
    config["config_checksum"] = _config_checksum(config)
    description = json.dumps(config, indent=2, allow_nan=False).encode()
    try:
        _recover(target)
        _check_replaceable(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(staging, ignore_errors=True)
        staging.mkdir()
        _write(staging / TENSORS, tensors)
        _write(staging / CONFIG, description)
        if target.exists():
            os.rename(target, replaced)
        os.rename(staging, target)
        shutil.rmtree(replaced, ignore_errors=True)
    except OSError as error:
        _recover(target)
        raise _unwritable(path, error.strerror or str(error)) from error
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def check_target(path: str | PathLike[str]) -> None:
    """Say that ``save`` could not write to the folder ``path``, before an hour is spent on the model."""
    target = Path(path).resolve()
    _check_replaceable(target)
    reason = obstacle(target)
    if reason is not None:
        raise _unwritable(path, reason)


def describe(path: str | PathLike[str]) -> dict[str, Any]:
    """What a model folder says of itself, without loading it; a network of the user's own is not needed.

    Parameters
    ----------
    path : str or path
        The folder.

    Returns
    -------
    dict
        The content of ``config.json`` and, as ``shapes``, that of ``model.safetensors``: a shape for each tensor.
    """
    folder, config = _open(path)
    with safetensors.safe_open(folder / TENSORS, framework="numpy") as tensors:
        shapes = {name: tuple(tensors.get_slice(name).get_shape()) for name in tensors.keys()}  # noqa: SIM118
    return {**config, "shapes": shapes}


def load(path: str | PathLike[str], *, network: nn.Module | None = None, device: str | torch.device = "auto") -> Any:
    """Read a model that ``save`` wrote; its ``transform`` gives the same places to the bit.

    Parameters
    ----------
    path : str or path
        The folder.
    network : torch.nn.Module, optional
        Needed for a model that was fitted with a network of your own: a module of the same shape, whose
        weights are replaced.
    device : str or torch.device
        Where to put the network.

    Returns
    -------
    DtSEE, HotSEE, PtSNE or HotSNE
        The fitted estimator.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> import tsee
    >>> X = load_digits().data
    >>> see = tsee.DtSEE(max_epochs=1, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     see.save(f"{folder}/model")
    ...     again = tsee.load(f"{folder}/model")
    >>> bool((again.transform(X) == see.transform(X)).all())
    True
    """
    folder, config = _open(path)
    try:
        tensors = safetensors.torch.load_file(folder / TENSORS)
        estimator = _restore(config, tensors, network, resolve_device(device))
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError, safetensors.SafetensorError) as error:
        raise ModelError(
            f"The model in {str(path)!r} does not hold together ({str(error).splitlines()[0]}): save it again."
        ) from error
    return estimator


def _tensors(estimator: ParametricMap) -> dict[str, Tensor]:
    tensors = {f"network.{name}": value for name, value in estimator.network_.state_dict().items()}
    tensors["preprocessing.mean"] = torch.from_numpy(estimator.preprocessing_.mean)
    if estimator.preprocessing_.basis is not None:
        tensors["preprocessing.basis"] = torch.from_numpy(estimator.preprocessing_.basis)
    if hasattr(estimator, "embedding_"):
        tensors["embedding"] = torch.from_numpy(estimator.embedding_)
    if hasattr(estimator, "_exemplar_inputs"):
        tensors["exemplars.inputs"] = estimator._exemplar_inputs
        tensors["exemplars.embedding"] = torch.from_numpy(estimator.exemplar_embedding_)
        tensors["exemplars.places"] = estimator._exemplar_places
        tensors["novelty.distances"] = estimator._reach.distances
        tensors["novelty.distances_of_few"] = estimator._reach_of_few.distances
        if estimator.exemplar_indices_ is not None:
            tensors["exemplars.indices"] = torch.from_numpy(estimator.exemplar_indices_)
    # Copies: safetensors refuses tensors that share memory, as the exemplars may with the data.
    return {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}


def _describe(estimator: ParametricMap, checksum: str) -> dict[str, Any]:
    network = estimator.network_
    names = getattr(estimator, "feature_names_in_", None)
    history = estimator.history_
    rates = [None if math.isnan(rate) else rate for rate in history["learning_rate"]]
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "tsee_version": version("tsee"),
        "estimator": type(estimator).__name__,
        "parameters": {
            name: plain(value) for name, value in estimator.get_params(deep=False).items() if name != "checkpoint"
        },
        "network": {"kind": type(network).__name__, "config": getattr(network, "config", None)},
        "scale": estimator.preprocessing_.scale,
        "n_features_in": estimator.n_features_in_,
        "n_components": estimator._n_features_out,
        "feature_names_in": None if names is None else [str(name) for name in names],
        "perplexity": estimator.perplexity_,
        "placement": getattr(estimator, "placement_", None),
        "history": {**history, "learning_rate": rates},
        "checksum": checksum,
    }


def plain(value: Any) -> Any:
    """A parameter as JSON can hold it; what it cannot (a network, a generator's state) is left out."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, torch.device):
        return str(value)
    return value if isinstance(value, bool | int | float | str) else None


def _restore(
    config: dict[str, Any], tensors: dict[str, Tensor], network: nn.Module | None, device: torch.device
) -> ParametricMap:
    parameters = {
        name: tuple(value) if isinstance(value, list) else value for name, value in config["parameters"].items()
    }
    kind = config["network"]["kind"]
    if network is not None:
        parameters["network"] = network
        loaded = copy.deepcopy(network)
    elif kind in NETWORKS:
        loaded = NETWORKS[kind](**config["network"]["config"])
    else:
        raise ModelError(
            f"The model was fitted with a network of your own ({kind}): give such a module as "
            "tsee.load(path, network=...), and its weights will be filled in."
        )
    prefix = "network."
    weights = {name[len(prefix) :]: value for name, value in tensors.items() if name.startswith(prefix)}
    loaded.load_state_dict(weights)
    estimator: ParametricMap = ESTIMATORS[config["estimator"]](**parameters)
    estimator.network_ = loaded.to(device).eval()
    basis = tensors.get("preprocessing.basis")
    estimator.preprocessing_ = Preprocessing(
        tensors["preprocessing.mean"].numpy(), float(config["scale"]), None if basis is None else basis.numpy()
    )
    history = config["history"]
    rates = [math.nan if rate is None else rate for rate in history["learning_rate"]]
    estimator.history_ = {"loss": history["loss"], "learning_rate": rates, "refined": history["refined"]}
    estimator.n_iter_ = len(history["loss"])
    estimator.n_features_in_ = int(config["n_features_in"])
    if config["feature_names_in"] is not None:
        estimator.feature_names_in_ = np.array(config["feature_names_in"], dtype=object)
    estimator.perplexity_ = float(config["perplexity"])
    estimator._n_features_out = int(config["n_components"])
    if "embedding" in tensors:
        estimator.embedding_ = tensors["embedding"].numpy()
    if "exemplars.inputs" in tensors:
        estimator._exemplar_inputs = tensors["exemplars.inputs"]
        estimator._exemplar_places = tensors["exemplars.places"]
        estimator.placement_ = config["placement"]
        estimator._reach = DistanceReference(tensors["novelty.distances"])
        estimator._reach_of_few = DistanceReference(tensors["novelty.distances_of_few"])
        estimator.exemplar_embedding_ = tensors["exemplars.embedding"].numpy()
        estimator.n_exemplars_ = len(estimator._exemplar_inputs)
        indices = tensors.get("exemplars.indices")
        estimator.exemplar_indices_ = None if indices is None else indices.numpy()
    return estimator


def _open(path: str | PathLike[str]) -> tuple[Path, dict[str, Any]]:
    """The folder that holds the model, and its configuration, once both files are known to be what was saved."""
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
    if config.get("estimator") not in ESTIMATORS:
        raise ModelError(
            f"The model in {str(folder)!r} is of the kind {config.get('estimator')!r}, which this tsee does not know."
        )
    return config


def _check_replaceable(target: Path) -> None:
    """Never remove a folder that is not a model: it may be somebody's work."""
    if not target.exists():
        return
    if not target.is_dir() or not {entry.name for entry in target.iterdir()} <= {CONFIG, TENSORS}:
        raise ModelError(f"{str(target)!r} exists and is not a tsee model: choose another path, or remove it first.")


def _unwritable(path: str | PathLike[str], reason: str) -> ModelError:
    return ModelError(
        f"The model cannot be written to {str(path)!r} ({reason}): choose a folder that you may write to, with room on "
        "its disk."
    )


def _beside(target: Path, what: str) -> Path:
    return target.with_name(f".{target.name}.{what}")


def _recover(target: Path) -> None:
    """Put back the model that a save, cut off between its two renames, had moved aside."""
    replaced = _beside(target, "replaced")
    if replaced.exists() and not target.exists():
        os.rename(replaced, target)
    else:
        shutil.rmtree(replaced, ignore_errors=True)


def _write(path: Path, content: bytes) -> None:
    """Write a file and see it to the disk, so that a rename cannot overtake its content."""
    with open(path, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _config_checksum(config: dict[str, Any]) -> str:
    """Of all that the configuration says but this."""
    said = {name: value for name, value in config.items() if name != "config_checksum"}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _checksum(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
