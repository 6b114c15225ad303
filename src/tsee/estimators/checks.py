"""Whether parameters are allowed, go together, and are the same on all processes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import torch

from tsee.estimators.parameters import NOT_LEARNED
from tsee.metric import PRECOMPUTED, compares_features
from tsee.scikit import BaseEstimator

__all__ = ["check_parameters", "shared_facts"]


def check_parameters(estimator: BaseEstimator, *only: str) -> None:
    """Raise ValueError for the first parameter, of all or only of the named ones, whose value is not allowed.

    Unless only some are named, parameters must also go together.
    """
    for name in only or estimator.get_params(deep=False):
        value = getattr(estimator, name)
        parameter = estimator._described.get(name)  # a subclass may have parameters of its own
        if parameter is not None and not parameter.accepts(value):
            raise ValueError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {parameter.must_be}. "
                f"Got {value!r} instead."
            )
    if not only:
        _check_metric(estimator)
        _check_supervised(estimator)


def _check_metric(estimator: BaseEstimator) -> None:
    """Refuse what the metric does not go with."""
    name, metric = type(estimator).__name__, estimator.metric
    if estimator.standardize and metric not in ("euclidean", "manhattan"):
        raise ValueError(
            f"The 'standardize' parameter of {name} must be False with metric={metric!r}, which has no units: leave it "
            "out, or scale the columns yourself before fit and transform."
        )
    if not compares_features(metric):
        return
    if metric == PRECOMPUTED:
        _check_precomputed(estimator)
    if estimator.n_inputs not in (None, "auto"):
        raise ValueError(
            f"The 'n_inputs' parameter of {name} must be None or \"auto\" with metric={metric!r}, which compares "
            f"the features themselves. Got {estimator.n_inputs!r} instead."
        )
    if getattr(estimator, "exemplars", "points") == "centers":
        raise ValueError(
            f"The 'exemplars' parameter of {name} must be \"points\" with metric={metric!r}, for which rows have no "
            "k-means centers. Got 'centers' instead."
        )


def _check_precomputed(estimator: BaseEstimator) -> None:
    """Refuse what needs a network that has learned from features."""
    name = type(estimator).__name__
    if not hasattr(estimator, "contrast"):
        raise ValueError(
            f"The 'metric' parameter of {name} must not be \"precomputed\": its network learns from features. Use "
            "DtSEE or HotSEE, which can lay rows out without a network."
        )
    for parameter, fits, must_be in (
        ("contrast", estimator.contrast == "sampled", '"sampled"'),
        ("refinement", estimator.refinement > 0, "at least 1"),
        ("placement", estimator.placement != "forward", '"refined" or None'),
    ):
        if not fits:
            raise ValueError(
                f'The {parameter!r} parameter of {name} must be {must_be} with metric="precomputed", which makes a map '
                f"without a network. Got {getattr(estimator, parameter)!r} instead."
            )


def _check_supervised(estimator: BaseEstimator) -> None:
    """Refuse labels where exemplars have none, or where all exemplars are neighbors."""
    if not getattr(estimator, "supervised", 0):
        return
    for name, value in (("exemplars", "centers"), ("contrast", "full")):
        if getattr(estimator, name) == value:
            raise ValueError(
                f"The 'supervised' parameter of {type(estimator).__name__} must be 0 with {name}={value!r}. "
                f"Got {estimator.supervised!r} instead."
            )


def shared_facts(estimator: BaseEstimator, n_features: int, names: Sequence[str] | None) -> dict[str, Any]:
    """What must be the same on all processes of a fit, by names that can stand in a sentence."""
    parameters = estimator.get_params(deep=False)
    network = parameters.get("network")
    shapes = None if network is None else {name: tuple(value.shape) for name, value in network.state_dict().items()}
    return {
        "the method": type(estimator).__name__,
        **{f"the {name!r} parameter": value for name, value in parameters.items() if name not in NOT_LEARNED},
        "the shapes of the network's weights": shapes,
        "whether a checkpoint is kept": parameters["checkpoint"] is not None,
        "the number of features of X": n_features,
        **{f"the name of column {column} of X": name for column, name in enumerate(names or ())},
        "the version of tsee": version("tsee"),
        "the version of torch": torch.__version__,
    }
