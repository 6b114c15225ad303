"""How good a map is: whether neighbors stay neighbors, and whether the map keeps the large shape of the data.

Each measure compares held-out points with the training points, as the paper does, or, without held-out points,
every training point with the others. A measure is exact, or uses a random sample that is the same at every call; none
holds more than a block of distances.

- Neighbors: `knn_error`, `quality_score`, `trustworthiness` and `continuity`.
- The large shape: `triplet_accuracy`, `distance_correlation` and, among classes, `centroid_scores`.
- Density: `density_correlation`.
- Two maps of the same rows: `map_disparity`.
"""

from tsee.metrics.alignment import map_disparity
from tsee.metrics.centroids import CentroidScores, centroid_scores
from tsee.metrics.correlations import density_correlation, distance_correlation
from tsee.metrics.neighborhoods import continuity, knn_error, quality_score, trustworthiness
from tsee.metrics.triplets import triplet_accuracy

__all__ = [
    "CentroidScores",
    "centroid_scores",
    "continuity",
    "density_correlation",
    "distance_correlation",
    "knn_error",
    "map_disparity",
    "quality_score",
    "triplet_accuracy",
    "trustworthiness",
]
