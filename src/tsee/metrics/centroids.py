"""Whether the classes are arranged on the map as in the data."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray

from tsee.data import blocks
from tsee.exceptions import UndefinedMeasureError
from tsee.metrics import spaces
from tsee.metrics.correlations import N_DISTANCE_ROWS, correlation_of_distances
from tsee.metrics.inputs import Sides, check_data_and_map, check_labels, check_sizes, dense, seeded
from tsee.metrics.neighborhoods import shared_neighbors
from tsee.metrics.spaces import Space
from tsee.metrics.triplets import N_TRIPLETS, share_of_triplets

__all__ = ["CentroidScores", "centroid_scores"]

MAX_NEIGHBORS = 10


class CentroidScores(NamedTuple):
    """What `centroid_scores` returns.

    Attributes
    ----------
    neighbors : float
        Share of a class's k nearest classes in the data that are among its k nearest on the map.
    triplets : float
        Share of triplets of classes whose distances have the same order on the map as in the data: 1/2 by chance.
    correlation : float
        Spearman's correlation of the distances between classes in the data and on the map: 0 by chance.

    Examples
    --------
    >>> scores = CentroidScores(neighbors=0.5, triplets=0.75, correlation=0.6)
    >>> scores.triplets
    0.75
    """

    neighbors: float
    triplets: float
    correlation: float


def centroid_scores(
    X_train: Any,
    Y_train: Any,
    y_train: Any,
    X_test: Any = None,
    Y_test: Any = None,
    y_test: Any = None,
    k: int | None = None,
    metric: str = "euclidean",
) -> CentroidScores:
    r"""Whether the centroids of the classes are arranged on the map as in the data.

    .. math:: \bar{x}_a = \frac{1}{|a|} \sum_{i \in a} x_i, \qquad \bar{y}_a = \frac{1}{|a|} \sum_{i \in a} y_i

    where a is a class. The scores are `quality_score`, `triplet_accuracy` and `distance_correlation` of the centroids,
    with :math:`\bar{x}` as the data and :math:`\bar{y}` as their map. Up to 47 classes, the triplets are all that there
    are; beyond, 100,000 random ones, and the standard error is at most 0.0016.

    With held-out points, the centroid of the held-out points of a class is compared with the centroids of the training
    points of all other classes. A class without training points is left out.

    Parameters
    ----------
    X_train : array-like or sparse matrix of shape (n, d)
        The training data.
    Y_train : array-like of shape (n, c)
        Its map.
    y_train : array-like of shape (n,)
        The labels: numbers or strings, of at least three classes.
    X_test : array-like or sparse matrix of shape (m, d), optional
        Held-out data.
    Y_test : array-like of shape (m, c), optional
        The map of the held-out data.
    y_test : array-like of shape (m,), optional
        The labels of the held-out data.
    k : int, optional
        The number of nearest classes. By default half of the other classes, at most 10.
    metric : str, default "euclidean"
        How rows of the data are compared: "euclidean", "cosine", "correlation" or "manhattan", as the ``metric`` of the
        estimators. For the cosine and the correlation, a centroid is the mean of rows of unit length.

    Returns
    -------
    CentroidScores
        ``neighbors``, ``triplets`` and ``correlation``; the higher the better.

    Examples
    --------
    >>> from tsee.metrics import centroid_scores
    >>> X_train = [[0, 0], [0, 2], [4, 0], [4, 2], [9, 0], [9, 2]]
    >>> Y_train = [[0], [1], [3], [4], [9], [8]]
    >>> centroid_scores(X_train, Y_train, ["a", "a", "b", "b", "c", "c"])
    CentroidScores(neighbors=1.0, triplets=1.0, correlation=1.0)
    >>> Y_train = [[3], [4], [0], [1], [9], [8]]  # a and b exchanged
    >>> centroid_scores(X_train, Y_train, ["a", "a", "b", "b", "c", "c"]).neighbors
    0.666...
    """
    X, Y = check_data_and_map(X_train, Y_train, X_test, Y_test, metric, "centroid_scores")
    if metric in ("hamming", "jaccard"):
        raise UndefinedMeasureError(f"Rows have no centroids with metric={metric!r}: choose another metric.")
    if (X_test is None) != (y_test is None):
        raise ValueError("X_test, Y_test and y_test must be given together, or none of them.")
    classes: dict[Any, int] = {}
    train_labels = check_labels(y_train, "y_train", classes, "X_train", X.train.shape[0])
    n_classes = len(classes)
    if n_classes < 3:
        raise UndefinedMeasureError(
            f"y_train must have at least three classes, as centroid_scores compares the distances between them. "
            f"Got {n_classes} instead."
        )
    if X_test is None:
        X, Y = (_own_centroids(sides, train_labels, n_classes) for sides in (X, Y))
    else:
        test_labels = check_labels(y_test, "y_test", classes, "X_test", X.test.shape[0])
        X, Y = (_held_out_centroids(sides, train_labels, test_labels, n_classes) for sides in (X, Y))
    if k is None:
        k = min(MAX_NEIGHBORS, X.n_others // 2)
    (k,) = check_sizes([k], X.n_others, "centroid_scores")
    shared = shared_neighbors(Space.of(X).nearest(k), Space.of(Y).nearest(k))
    return CentroidScores(
        neighbors=float(shared[-1] / (len(X.test) * k)),
        triplets=share_of_triplets(X, Y, N_TRIPLETS, seeded(0, "centroid_scores"), "centroid_scores"),
        correlation=correlation_of_distances(X, Y, N_DISTANCE_ROWS, seeded(0, "centroid_scores"), "centroid_scores"),
    )


def _own_centroids(sides: Sides, labels: NDArray[np.int64], n_classes: int) -> Sides:
    centroids = _centroids(sides.train, labels, n_classes)
    return Sides(centroids, centroids, own=True, metric=sides.metric)


def _held_out_centroids(
    sides: Sides, train_labels: NDArray[np.int64], test_labels: NDArray[np.int64], n_classes: int
) -> Sides:
    """Centroid i of the test points and centroid i of the training points are of the same class."""
    present = np.unique(test_labels[test_labels < n_classes])  # classes of test points that have training points
    if not len(present):
        raise UndefinedMeasureError(
            "No class of y_test is in y_train: give held-out rows of the classes of the training rows."
        )
    order = np.concatenate([present, np.setdiff1d(np.arange(n_classes), present)])
    known = np.flatnonzero(test_labels < n_classes)
    train = _centroids(sides.train, train_labels, n_classes)[order]
    test = _centroids(sides.test[known] if len(known) < len(test_labels) else sides.test, test_labels[known], n_classes)
    return Sides(train, test[present], own=True, metric=sides.metric)


def _centroids(X: Any, labels: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
    """The mean of the rows of each class, (classes, columns); of a class without rows, zero."""
    sums = np.zeros((n_classes, X.shape[1]))
    for rows in blocks(len(labels), max(1, spaces.BLOCK_ENTRIES // X.shape[1])):
        mine = labels[rows]
        members = scipy.sparse.csr_matrix((np.ones(len(mine)), (mine, np.arange(len(mine)))), (n_classes, len(mine)))
        if scipy.sparse.issparse(X):
            sums += (members @ X[rows]).toarray()
        else:
            sums += members @ dense(X[rows], torch.float64).cpu().numpy()
    return sums / np.maximum(np.bincount(labels, minlength=n_classes), 1)[:, None]
