"""All distances: their names, rows as each compares them, and classes that compare rows.

Cosine and correlation distances are Euclidean distances between rows of unit length (`compared_rows`), so everything
after the preprocessing is Euclidean. The other metrics compare the features themselves, each by a class of its own.
"""

from tsee.metric.euclidean import Euclidean, Prepared, euclidean, shifted
from tsee.metric.features import Hamming, Jaccard, Manhattan
from tsee.metric.names import METRICS, OF_FEATURES, PRECOMPUTED, UNIT_LENGTH, compares_features, metric_of
from tsee.metric.precomputed import check_distances, check_square
from tsee.metric.protocol import Metric, ProductMetric, exclude_from
from tsee.metric.rows import ComparedRows, compared_rows, of_unit_length

__all__ = [
    "METRICS",
    "OF_FEATURES",
    "PRECOMPUTED",
    "UNIT_LENGTH",
    "ComparedRows",
    "Euclidean",
    "Hamming",
    "Jaccard",
    "Manhattan",
    "Metric",
    "Prepared",
    "ProductMetric",
    "check_distances",
    "check_square",
    "compared_rows",
    "compares_features",
    "euclidean",
    "exclude_from",
    "metric_of",
    "of_unit_length",
    "shifted",
]
