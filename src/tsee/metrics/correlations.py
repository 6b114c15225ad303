"""How distances and densities on the map correlate with those in the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from tsee.exceptions import UndefinedMeasureError
from tsee.metric import Metric, ProductMetric
from tsee.metrics.inputs import Sides, check_count, check_data_and_map, check_sizes, draw, seeded, taken
from tsee.metrics.spaces import nearest_distances

__all__ = ["N_DISTANCE_ROWS", "correlation_of_distances", "density_correlation", "distance_correlation"]

# Two million pairs. On maps of digits and genomes, the result has a standard deviation of 0.01 from sample to sample,
# and of 0.02 with half as many rows.
N_DISTANCE_ROWS = 2000


def distance_correlation(
    X_train: Any,
    Y_train: Any,
    X_test: Any = None,
    Y_test: Any = None,
    n_sample: int = N_DISTANCE_ROWS,
    random_state: int | None = 0,
    metric: str = "euclidean",
) -> float:
    r"""Spearman's correlation of the distances in the data and on the map: 0 by chance.

    .. math:: \rho = \mathrm{corr}\left( \mathrm{rank}\, d^X_{ij}, \; \mathrm{rank}\, d^Y_{ij} \right)_{(i, j)}

    where :math:`d^X` and :math:`d^Y` are distances in the data and on the map, over all pairs of a random sample of
    points. Equal distances share their mean rank. Most pairs are far apart, so this measures the large shape of a map.
    Samples of the default size differ by about 0.01.

    Parameters
    ----------
    X_train : array-like or sparse matrix of shape (n, d)
        The training data.
    Y_train : array-like of shape (n, c)
        Its map.
    X_test : array-like or sparse matrix of shape (m, d), optional
        Held-out data. Without it, pairs are pairs of training points; with it, of a held-out and a training point.
    Y_test : array-like of shape (m, c), optional
        The map of the held-out data.
    n_sample : int, default 2000
        How many training points, and how many held-out points, to draw at most. With as many as there are, the result
        is exact. Memory grows with its square.
    random_state : int or None, default 0
        The seed of the sample; None draws another one at each call.
    metric : str, default "euclidean"
        How rows of the data are compared: "euclidean", "cosine", "correlation", "manhattan", "hamming" or "jaccard",
        as the ``metric`` of the estimators.

    Returns
    -------
    float
        Between -1 and 1; the higher the better.

    See Also
    --------
    triplet_accuracy : Only compares distances from the same point.

    Examples
    --------
    >>> from tsee.metrics import distance_correlation
    >>> X_train = [[0, 0], [1, 0], [3, 0], [7, 0]]
    >>> distance_correlation(X_train, [[0], [2], [6], [14]])
    1.0
    >>> distance_correlation(X_train, [[0], [1], [3], [7]], [[2.2, 0]], [[7]])  # far from its place
    -0.2
    """
    X, Y = check_data_and_map(X_train, Y_train, X_test, Y_test, metric, "distance_correlation")
    n_sample = check_count(n_sample, "n_sample", "distance_correlation")
    generator = seeded(random_state, "distance_correlation")
    return correlation_of_distances(X, Y, n_sample, generator, "distance_correlation")


def density_correlation(
    X_train: Any,
    Y_train: Any,
    X_test: Any = None,
    Y_test: Any = None,
    k: int = 15,
    n_sample: int = 5000,
    random_state: int | None = 0,
    metric: str = "euclidean",
) -> float:
    r"""Pearson's correlation of the local radius in the data and on the map, both logarithmic: 0 by chance.

    .. math:: \mathrm{corr}\left( \log r^X_i, \; \log r^Y_i \right)_i, \qquad
              r_i^2 = \frac{1}{k} \sum_{j \in N_k(i)} d_{ij}^2

    where :math:`N_k(i)` are the k training points nearest to i, in the data for :math:`r^X` and on the map for
    :math:`r^Y`, as in the paper of densMAP. The radius is small where points are dense. So a high correlation says
    that dense regions of the map are dense in the data; a low one, that a tight cluster on the map may be a loose one.
    A point with k copies of itself has no radius, and is left out.

    Parameters
    ----------
    X_train : array-like or sparse matrix of shape (n, d)
        The training data.
    Y_train : array-like of shape (n, c)
        Its map.
    X_test : array-like or sparse matrix of shape (m, d), optional
        Held-out data. Without it, i is a training point, and j another one.
    Y_test : array-like of shape (m, c), optional
        The map of the held-out data.
    k : int, default 15
        The number of neighbors.
    n_sample : int, default 5000
        For how many points, drawn at random, a radius is computed at most. Neighbors are searched among all training
        points. The standard error is about :math:`1 / \sqrt{5000} = 0.014` with the default.
    random_state : int or None, default 0
        The seed of the sample; None draws another one at each call.
    metric : str, default "euclidean"
        How rows of the data are compared: "euclidean", "cosine", "correlation", "manhattan", "hamming" or "jaccard",
        as the ``metric`` of the estimators.

    Returns
    -------
    float
        Between -1 and 1; the higher the better.

    Examples
    --------
    >>> from tsee.metrics import density_correlation
    >>> X_train = [[0, 0], [1, 0], [3, 0], [7, 0]]
    >>> density_correlation(X_train, [[0], [2], [6], [14]], k=1)
    1.0
    >>> density_correlation(X_train, [[0], [4], [6], [7]], k=1)  # dense where the data are sparse
    -0.818...
    """
    X, Y = check_data_and_map(X_train, Y_train, X_test, Y_test, metric, "density_correlation")
    (k,) = check_sizes([k], X.n_others, "density_correlation")
    n_sample = check_count(n_sample, "n_sample", "density_correlation")
    rows = draw(X.test.shape[0], n_sample, seeded(random_state, "density_correlation"))
    radii = [nearest_distances(sides, rows, k).double().mean(1).numpy() for sides in (X, Y)]
    positive = (radii[0] > 0) & (radii[1] > 0)
    in_data, on_map = (np.log(radius[positive]) for radius in radii)
    return _correlation(in_data, on_map, "density_correlation is undefined if all points have the same local radius")


def correlation_of_distances(X: Sides, Y: Sides, n_sample: int, generator: np.random.Generator, caller: str) -> float:
    """What `distance_correlation` returns, for checked input."""
    from scipy.stats import rankdata  # here: it takes a third of the time of importing torch

    rows = draw(X.train.shape[0], n_sample, generator)
    test_rows = rows if X.test is X.train else draw(X.test.shape[0], n_sample, generator)
    in_data, on_map = (rankdata(_distances(sides, rows, test_rows)) for sides in (X, Y))
    return _correlation(in_data, on_map, f"{caller} is undefined if all distances are equal")


def _distances(sides: Sides, rows: NDArray[np.int64], test_rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """The squared distances of all pairs of these points, one after the other."""
    train = taken(sides.train, rows)
    each_once = sides.test is sides.train
    test = train if each_once else taken(sides.test, test_rows)
    # Written into one array: small results that are kept between large ones that are not would tear the memory apart,
    # and gigabytes of it could not be used again.
    found, end = np.empty(len(test) * len(train)), 0
    for i, point in enumerate(test):
        others = train[i + 1 :] if each_once else train
        part = _apart(sides.metric, point, others).numpy()
        part = part[rows != test_rows[i]] if sides.own and not each_once else part
        found[end : end + len(part)] = part
        end += len(part)
    return found[:end]


def _apart(metric: Metric, point: Tensor, others: Tensor) -> Tensor:
    """The squared distances of others from a point; the metrics of features are faster by blocks, and as exact."""
    if isinstance(metric, ProductMetric):
        return metric.exact(point, others)
    return metric.lengths(point[None], others)[0].square_()


def _correlation(a: NDArray[np.float64], b: NDArray[np.float64], undefined: str) -> float:
    """Pearson's correlation."""
    if len(a) < 2 or not np.ptp(a) or not np.ptp(b):
        raise UndefinedMeasureError(f"{undefined}, in the data or on the map: give rows and positions that differ.")
    a, b = a - a.mean(), b - b.mean()
    return float(np.clip(a @ b / np.sqrt((a @ a) * (b @ b)), -1, 1))
