"""Parameters that do not go together, each with one sentence."""

from __future__ import annotations

from sklearn.base import BaseEstimator

from tsee.metric import PRECOMPUTED, compares_features

__all__ = ["check_metric"]


def check_metric(estimator: BaseEstimator) -> None:
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
