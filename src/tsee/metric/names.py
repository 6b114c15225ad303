"""The metrics by the names that users give them."""

from __future__ import annotations

from tsee.metric.euclidean import euclidean
from tsee.metric.features import Hamming, Jaccard, Manhattan
from tsee.metric.precomputed import Precomputed
from tsee.metric.protocol import Metric
from tsee.words import METRICS, PRECOMPUTED, UNIT_LENGTH

__all__ = ["METRICS", "OF_FEATURES", "PRECOMPUTED", "UNIT_LENGTH", "compares_features", "metric_of"]

# Distances between the features themselves, which principal components would not keep.
OF_FEATURES: dict[str, Metric] = {"manhattan": Manhattan(), "hamming": Hamming(), "jaccard": Jaccard()}


def metric_of(name: str) -> Metric:
    """The metric that compares rows after `compared_rows` has made them comparable."""
    return Precomputed() if name == PRECOMPUTED else OF_FEATURES.get(name, euclidean)


def compares_features(name: str) -> bool:
    """Whether a metric takes the features themselves, and no principal components."""
    return name in OF_FEATURES or name == PRECOMPUTED
