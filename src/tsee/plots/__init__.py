"""Figures of maps and of their quality. matplotlib is imported only when a figure is drawn."""

from tsee.plots.canvas import COLORS, UNLABELED
from tsee.plots.coloring import MOST_CLASSES
from tsee.plots.curves import knn_curve, quality_curve, training_curve
from tsee.plots.maps import compare, scatter

__all__ = [
    "COLORS",
    "MOST_CLASSES",
    "UNLABELED",
    "compare",
    "knn_curve",
    "quality_curve",
    "scatter",
    "training_curve",
]
