"""Whether the map tells which of two points is nearer to a third as the data does."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsee.data import blocks
from tsee.exceptions import UndefinedMeasureError
from tsee.metrics import spaces
from tsee.metrics.inputs import Sides, check_count, check_data_and_map, seeded, taken

__all__ = ["N_TRIPLETS", "share_of_triplets", "triplet_accuracy"]

# Enough for two digits: the standard error is at most 0.0016.
N_TRIPLETS = 100_000


def triplet_accuracy(
    X_train: Any,
    Y_train: Any,
    X_test: Any = None,
    Y_test: Any = None,
    n_triplets: int = N_TRIPLETS,
    random_state: int | None = 0,
    metric: str = "euclidean",
) -> float:
    r"""Share of triplets whose distances have the same order on the map as in the data: 1/2 by chance.

    .. math:: A = \frac{1}{|T|} \sum_{(i, j, l) \in T}
              \frac{1 + \mathrm{sgn}(d^X_{ij} - d^X_{il}) \, \mathrm{sgn}(d^Y_{ij} - d^Y_{il})}{2}

    where T are triplets of a test point i and two training points j and l, drawn at random, and :math:`d^X` and
    :math:`d^Y` are distances in the data and on the map. Most pairs of points are far apart, so this measures the
    large shape of a map, as in the evaluation of PaCMAP. A triplet that ties on the map counts one half: a map that
    puts all points in one place is at chance. A triplet that ties in the data has no order and is left out.

    Triplets are drawn independently, so the standard error is :math:`\sqrt{A (1 - A) / |T|}`: at most 0.0016 with the
    default. If there are not more than ``n_triplets`` triplets, counting both orders of j and l, all are used, and the
    result is exact.

    Parameters
    ----------
    X_train : array-like or sparse matrix of shape (n, d)
        The training data.
    Y_train : array-like of shape (n, c)
        Its map.
    X_test : array-like or sparse matrix of shape (m, d), optional
        Held-out data. Without it, i is a training point, too.
    Y_test : array-like of shape (m, c), optional
        The map of the held-out data.
    n_triplets : int, default 100000
        How many triplets to draw.
    random_state : int or None, default 0
        The seed of the sample; None draws another one at each call.
    metric : str, default "euclidean"
        How rows of the data are compared: "euclidean", "cosine", "correlation", "manhattan", "hamming" or "jaccard",
        as the ``metric`` of the estimators.

    Returns
    -------
    float
        Between 0 and 1; the higher the better.

    See Also
    --------
    distance_correlation : Whether distances have the same order, over all pairs of points.
    centroid_scores : The same for the centroids of classes.

    Examples
    --------
    >>> from tsee.metrics import triplet_accuracy
    >>> X_train = [[0, 0], [1, 0], [3, 0], [7, 0]]
    >>> triplet_accuracy(X_train, [[0], [2], [6], [14]])
    1.0
    >>> triplet_accuracy(X_train, [[0], [1], [3], [7]], [[2.2, 0]], [[7]])  # far from its place
    0.5
    """
    X, Y = check_data_and_map(X_train, Y_train, X_test, Y_test, metric, "triplet_accuracy")
    n_triplets = check_count(n_triplets, "n_triplets", "triplet_accuracy")
    return share_of_triplets(X, Y, n_triplets, seeded(random_state, "triplet_accuracy"), "triplet_accuracy")


def share_of_triplets(X: Sides, Y: Sides, n_triplets: int, generator: np.random.Generator, caller: str) -> float:
    """What `triplet_accuracy` returns, for checked input."""
    if X.n_others < 2:
        raise UndefinedMeasureError(
            f"{caller} compares a point with two others, but there is only {X.n_others} training point to compare it "
            "with: add rows."
        )
    triplets = _triplets(X.test.shape[0], X.n_others, X.own, n_triplets, generator)
    n_ordered, n_alike = 0, 0.0
    for part in blocks(len(triplets), max(1, spaces.BLOCK_ENTRIES // (8 * X.train.shape[1]))):
        in_data, on_map = _orders(X, triplets[part]), _orders(Y, triplets[part])
        n_ordered += int(in_data.abs().sum())
        n_alike += float((in_data.abs() + in_data * on_map).sum()) / 2
    if not n_ordered:
        raise UndefinedMeasureError(
            f"{caller} is undefined if all distances in the data are equal: give rows that differ."
        )
    return n_alike / n_ordered


def _triplets(m: int, n: int, own: bool, size: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Numbers of a test point and two of the n training points that it is compared with: (size, 3).

    They are random, or all of them if there are not more than ``size``.
    """
    n_pairs = n * (n - 1)
    if m * n_pairs <= size:
        points, pairs = np.divmod(np.arange(m * n_pairs), n_pairs)
    else:
        points, pairs = generator.integers(m, size=size), generator.integers(n_pairs, size=size)
    first, second = np.divmod(pairs, n - 1)
    second += second >= first  # any point but the first
    if own:
        first += first >= points  # any point but the test point itself
        second += second >= points
    return np.stack([points, first, second], 1)


def _orders(sides: Sides, triplets: NDArray[np.int64]) -> Tensor:
    """1 if the second of the two training points is nearer, -1 if the first is, 0 if they tie: (triplets,)."""
    point = taken(sides.test, triplets[:, 0])
    first, second = (sides.metric.exact(point, taken(sides.train, triplets[:, i])) for i in (1, 2))
    return torch.sign(first - second)
