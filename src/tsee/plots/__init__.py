"""Still pictures of maps and of how good they are. matplotlib is imported only when one is drawn."""

from tsee.plots.canvas import COLOURS, UNLABELLED
from tsee.plots.colouring import MOST_CLASSES
from tsee.plots.curves import knn_curve, quality_curve, training_curve
from tsee.plots.maps import compare, scatter

__all__ = [
    "COLOURS",
    "MOST_CLASSES",
    "UNLABELLED",
    "compare",
    "knn_curve",
    "quality_curve",
    "scatter",
    "training_curve",
]
