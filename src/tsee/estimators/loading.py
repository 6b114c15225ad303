"""`load`: a saved model as a fitted estimator."""

from __future__ import annotations

from os import PathLike
from typing import Any

import torch
from torch import nn

from tsee.estimators import ESTIMATORS
from tsee.estimators.base import ParametricMap
from tsee.estimators.checks import check_parameters
from tsee.exceptions import ModelError
from tsee.fitted import FittedMap
from tsee.persistence import SavedModel, inconsistent, read_model
from tsee.training.plan import resolve_device

__all__ = ["configured", "load"]


def load(path: str | PathLike[str], *, network: nn.Module | None = None, device: str | torch.device = "auto") -> Any:
    """Read a model that ``save`` wrote; its ``transform`` gives the same positions to the bit.

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
    saved = read_model(path)
    estimator = configured(path, saved)
    device = resolve_device(device)
    try:
        fitted = FittedMap.from_tensors(saved.config, saved.tensors, network=network, device=device)
    except ModelError:
        raise
    except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise inconsistent(path, error) from error
    if network is not None:
        estimator.set_params(network=network)
    return estimator._adopt(fitted)


def configured(path: str | PathLike[str], saved: SavedModel) -> ParametricMap:
    """The estimator that a model was saved from, with its parameters, but not fitted."""
    parameters = {
        name: tuple(value) if isinstance(value, list) else value for name, value in saved.config["parameters"].items()
    }
    try:
        estimator: ParametricMap = ESTIMATORS[saved.config["method"]](**parameters)
        check_parameters(estimator)
    except (TypeError, ValueError) as error:
        raise inconsistent(path, error) from error
    return estimator
