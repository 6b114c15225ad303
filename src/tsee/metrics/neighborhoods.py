"""Whether neighbors stay neighbors: k-NN error, Quality Score, trustworthiness and continuity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsee.data import blocks
from tsee.metrics import spaces
from tsee.metrics.inputs import check_data_and_map, check_labels, check_sides, check_sizes, is_int
from tsee.metrics.spaces import Space
from tsee.metrics.sparse import SparseSpace, space_of

__all__ = ["continuity", "knn_error", "quality_score", "trustworthiness"]


def knn_error(
    Y_train: Any, y_train: Any, Y_test: Any = None, y_test: Any = None, k: int | Sequence[int] = (1, 5, 10)
) -> dict[int, float]:
    r"""Share of points whose label differs from the vote of their ``k`` nearest training points in the map.

    .. math:: \mathrm{err}(k) = \frac{1}{m} \sum_{i=1}^{m}
              \left[ y_i \neq \mathrm{vote}\{y_j : j \in N_k(i)\} \right]

    where :math:`N_k(i)` are the k training points nearest to the test point i in the map. Each has one vote.
    If classes tie, the one with the nearest member wins. So two neighbors always vote as one does, as in the paper's
    table.

    Parameters
    ----------
    Y_train : array-like of shape (n, c)
        The map of the training points.
    y_train : array-like of shape (n,)
        Their labels: numbers or strings.
    Y_test : array-like of shape (m, c), optional
        The map of held-out points. Without it, each training point is judged by the others
        (leave-one-out): the paper's training error.
    y_test : array-like of shape (m,), optional
        The labels of the held-out points.
    k : int or sequence of int, default (1, 5, 10)
        The numbers of neighbors.

    Returns
    -------
    errors : dict of int to float
        The error for each ``k``, a fraction between 0 and 1.

    Examples
    --------
    >>> from tsee.metrics import knn_error
    >>> Y_train = [[0.0, 0.0], [0.0, 1.0], [5.0, 5.0], [5.0, 6.0]]
    >>> knn_error(Y_train, ["a", "a", "b", "b"], [[0.0, 0.5], [5.0, 5.5]], ["a", "a"], k=1)
    {1: 0.5}
    >>> knn_error(Y_train, ["a", "a", "b", "b"], k=[1, 3])
    {1: 0.0, 3: 1.0}
    """
    if (Y_test is None) != (y_test is None):
        raise ValueError("Y_test and y_test must be given together, or neither for leave-one-out.")
    space = Space.of(check_sides(Y_train, Y_test, "Y_train", "Y_test"))
    classes: dict[Any, int] = {}
    train_codes = check_labels(y_train, "y_train", classes, "Y_train", len(space.train))
    test_codes = train_codes if space.own else check_labels(y_test, "y_test", classes, "Y_test", len(space.test))
    sizes = check_sizes(k, len(space.train) - space.own, "knn_error")
    votes = train_codes[space.nearest(max(sizes)).numpy()]  # (m, k)
    return {size: float(np.mean(_winners(votes[:, :size]) != test_codes)) for size in sizes}


def quality_score(
    X_train: Any,
    Y_train: Any,
    X_test: Any = None,
    Y_test: Any = None,
    k: int | Sequence[int] = (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
    metric: str = "euclidean",
) -> dict[int, float]:
    r"""Share of a point's ``k`` nearest training points in the data that are among its ``k`` in the map.

    .. math:: \mathrm{QS}(k) = \frac{1}{m k} \sum_{i=1}^{m} \left| N^X_k(i) \cap N^Y_k(i) \right|

    where :math:`N^X_k(i)` are the k training points nearest to the test point i in the data, and
    :math:`N^Y_k(i)` the k nearest in the map. A random map has a score of about k / n.

    Parameters
    ----------
    X_train : array-like or sparse matrix of shape (n, d)
        The training data.
    Y_train : array-like of shape (n, c)
        Its map.
    X_test : array-like or sparse matrix of shape (m, d), optional
        Held-out data. Without it, each training point is compared with the others.
    Y_test : array-like of shape (m, c), optional
        The map of the held-out data.
    k : int or sequence of int, default 1 and 10, 20, ..., 100
        The neighborhood sizes; the default is the paper's.
    metric : str, default "euclidean"
        How rows of the data are compared: "euclidean", "cosine", "correlation", "manhattan", "hamming" or "jaccard",
        as the ``metric`` of the estimators.

    Returns
    -------
    scores : dict of int to float
        The score for each ``k``, a fraction between 0 and 1; the higher the better.

    Examples
    --------
    >>> from tsee.metrics import quality_score
    >>> quality_score([[0], [1], [3], [7]], [[0], [1], [7], [3]], [[2.2]], [[2.2]], k=[1, 2])
    {1: 0.0, 2: 0.5}
    """
    X, Y = map(space_of, check_data_and_map(X_train, Y_train, X_test, Y_test, metric, "quality_score"))
    sizes = check_sizes(k, X.train.shape[0] - X.own, "quality_score")
    shared = shared_neighbors(X.nearest(max(sizes)), Y.nearest(max(sizes)))
    return {size: float(shared[size - 1] / (X.test.shape[0] * size)) for size in sizes}


def trustworthiness(
    X_train: Any, Y_train: Any, X_test: Any = None, Y_test: Any = None, k: int = 5, metric: str = "euclidean"
) -> float:
    r"""Whether points that are near in the map are near in the data: 1 if all are, about 1/2 by chance.

    .. math:: T(k) = 1 - \frac{2}{m k (2 N - 3 k + 1)} \sum_{i=1}^{m} \sum_{j \in N^Y_k(i)}
              \max(0, r^X(i, j) - k)

    where :math:`N^Y_k(i)` are the k training points nearest to the test point i in the map and
    :math:`r^X(i, j)` is the rank of training point j by its distance to i in the data: one more than the
    number of training points that are nearer. N is the number of training points that i is compared with.
    The factor gives the worst map a score of 0. Without test points, each training point is compared with the other
    N = n - 1, and T equals ``sklearn.manifold.trustworthiness``.

    Parameters
    ----------
    X_train : array-like or sparse matrix of shape (n, d)
        The training data.
    Y_train : array-like of shape (n, c)
        Its map.
    X_test : array-like or sparse matrix of shape (m, d), optional
        Held-out data. Without it, each training point is compared with the others.
    Y_test : array-like of shape (m, c), optional
        The map of the held-out data.
    k : int, default 5
        The number of neighbors, at most half of N.
    metric : str, default "euclidean"
        How rows of the data are compared: "euclidean", "cosine", "correlation", "manhattan", "hamming" or "jaccard",
        as the ``metric`` of the estimators.

    Returns
    -------
    float
        Between 0 and 1; the higher the better.

    See Also
    --------
    continuity : The same with data and map exchanged.

    Examples
    --------
    >>> from tsee.metrics import trustworthiness
    >>> X_train = [[0, 0], [1, 0], [3, 0], [7, 0]]
    >>> trustworthiness(X_train, [[0], [1], [3], [7]], [[2.2, 0]], [[2.2]], k=2)
    1.0
    >>> trustworthiness(X_train, [[3], [7], [0], [1]], [[2.2, 0]], [[2.2]], k=2)  # as bad as can be
    0.0
    """
    X, Y = map(space_of, check_data_and_map(X_train, Y_train, X_test, Y_test, metric, "trustworthiness"))
    return _rank_score(neighbors=Y, ranks=X, k=k, caller="trustworthiness")


def continuity(
    X_train: Any, Y_train: Any, X_test: Any = None, Y_test: Any = None, k: int = 5, metric: str = "euclidean"
) -> float:
    r"""Whether points that are near in the data are near in the map: 1 if all are, about 1/2 by chance.

    .. math:: C(k) = 1 - \frac{2}{m k (2 N - 3 k + 1)} \sum_{i=1}^{m} \sum_{j \in N^X_k(i)}
              \max(0, r^Y(i, j) - k)

    This is :func:`trustworthiness` with data and map exchanged: trustworthiness falls if the map brings
    strangers together, continuity if it tears neighbors apart.

    Parameters
    ----------
    X_train : array-like or sparse matrix of shape (n, d)
        The training data.
    Y_train : array-like of shape (n, c)
        Its map.
    X_test : array-like or sparse matrix of shape (m, d), optional
        Held-out data. Without it, each training point is compared with the others.
    Y_test : array-like of shape (m, c), optional
        The map of the held-out data.
    k : int, default 5
        The number of neighbors, at most half of N.
    metric : str, default "euclidean"
        How rows of the data are compared: "euclidean", "cosine", "correlation", "manhattan", "hamming" or "jaccard",
        as the ``metric`` of the estimators.

    Returns
    -------
    float
        Between 0 and 1; the higher the better.

    Examples
    --------
    >>> from tsee.metrics import continuity
    >>> X_train = [[0, 0], [1, 0], [3, 0], [7, 0]]
    >>> continuity(X_train, [[0], [1], [3], [7]], [[2.2, 0]], [[2.2]], k=2)
    1.0
    """
    X, Y = map(space_of, check_data_and_map(X_train, Y_train, X_test, Y_test, metric, "continuity"))
    return _rank_score(neighbors=X, ranks=Y, k=k, caller="continuity")


def _rank_score(neighbors: Space | SparseSpace, ranks: Space | SparseSpace, k: int, caller: str) -> float:
    n = ranks.train.shape[0] - ranks.own
    if not is_int(k) or not 1 <= k <= n / 2:
        raise ValueError(
            f"The 'k' parameter of {caller} must be an int from 1 to {n // 2}, half of the training points "
            f"that a point is compared with. Got {k!r} instead."
        )
    chosen = neighbors.nearest(int(k))
    excess = (ranks.ranks(chosen) - k).clamp_(min=0).sum().item()
    return 1 - 2 * excess / (len(chosen) * k * (2 * n - 3 * k + 1))


def _winners(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class with most votes in each row; if classes tie, the first one in the row."""
    winners = np.empty(len(votes), np.int64)
    for rows in blocks(len(votes), max(1, spaces.BLOCK_ENTRIES // votes.shape[1] ** 2)):
        block = votes[rows]
        counts = (block[:, :, None] == block[:, None, :]).sum(2)  # (rows, k): votes for each voter's class
        winners[rows] = block[np.arange(len(block)), counts.argmax(1)]
    return winners


def shared_neighbors(a: Tensor, b: Tensor) -> NDArray[np.int64]:
    """How many indices the first k columns of both share, summed over all rows, for each k."""
    k = a.shape[1]
    counts = np.zeros(k, np.int64)
    for rows in blocks(len(a), max(1, spaces.BLOCK_ENTRIES // k**2)):
        _, rank_a, rank_b = (a[rows, :, None] == b[rows, None, :]).nonzero(as_tuple=True)
        # A neighbor is shared by all sizes that include it on both sides.
        counts += torch.maximum(rank_a, rank_b).bincount(minlength=k).numpy()
    return counts.cumsum()
