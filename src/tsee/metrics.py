"""How good a map is: k-NN error, Quality Score, trustworthiness and continuity.

Each compares held-out points with the training points, as the paper does, or, without held-out points,
every training point with the others. All are exact, and none holds more than a block of distances.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.neighbors import KDTree
from torch import Tensor

from tsee.data import blocks
from tsee.metric import euclidean
from tsee.neighbors import ExactIndex

__all__ = ["continuity", "knn_error", "quality_score", "trustworthiness"]

# How many distances, or comparisons of neighbors, are held at once.
BLOCK_ENTRIES = 2**24
# Up to this many columns, distances are in double precision: in a map of tight clusters far apart, single precision
# cannot tell a point's neighbors from one another. In wide data it can, in half the time.
MAX_DOUBLE_COLUMNS = 64
# Up to this many columns, a k-d tree finds the neighbors a hundred times faster than products of matrices.
MAX_TREE_COLUMNS = 4


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
    space = _Space.of(Y_train, Y_test, "Y_train", "Y_test")
    classes: dict[Any, int] = {}
    train_codes = _encode(y_train, "y_train", classes, "Y_train", len(space.train))
    test_codes = train_codes if space.own else _encode(y_test, "y_test", classes, "Y_test", len(space.test))
    sizes = _check_sizes(k, len(space.train) - space.own, "knn_error")
    votes = train_codes[space.nearest(max(sizes)).numpy()]  # (m, k)
    return {size: float(np.mean(_winners(votes[:, :size]) != test_codes)) for size in sizes}


def quality_score(
    X_train: Any,
    Y_train: Any,
    X_test: Any = None,
    Y_test: Any = None,
    k: int | Sequence[int] = (1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
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
    X, Y = _data_and_map(X_train, Y_train, X_test, Y_test)
    sizes = _check_sizes(k, len(X.train) - X.own, "quality_score")
    shared = _shared_neighbors(X.nearest(max(sizes)), Y.nearest(max(sizes)))
    return {size: float(shared[size - 1] / (len(X.test) * size)) for size in sizes}


def trustworthiness(X_train: Any, Y_train: Any, X_test: Any = None, Y_test: Any = None, k: int = 5) -> float:
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
    X, Y = _data_and_map(X_train, Y_train, X_test, Y_test)
    return _rank_score(neighbors=Y, ranks=X, k=k, caller="trustworthiness")


def continuity(X_train: Any, Y_train: Any, X_test: Any = None, Y_test: Any = None, k: int = 5) -> float:
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
    X, Y = _data_and_map(X_train, Y_train, X_test, Y_test)
    return _rank_score(neighbors=X, ranks=Y, k=k, caller="continuity")


class _Space:
    """Training and test points in one space: the data or the map.

    ``own`` is true if the test points are the training points themselves. No point is its own neighbor.
    """

    def __init__(self, train: Tensor, test: Tensor, own: bool) -> None:
        self.train, self.test, self.own = train, test, own

    @classmethod
    def of(cls, train: Any, test: Any, train_name: str, test_name: str) -> _Space:
        train = _check_rows(train, train_name)
        if test is not None:
            test = _check_rows(test, test_name)
            if test.shape[1] != train.shape[1]:
                raise ValueError(
                    f"{test_name} must have as many columns as {train_name}. "
                    f"Got {test.shape[1]} and {train.shape[1]} instead."
                )
        wide = train.shape[1] > MAX_DOUBLE_COLUMNS and all(_is_small(X) for X in (train, test) if X is not None)
        dtype = torch.float32 if wide else torch.float64
        train_rows = _dense(train, dtype, train_name)
        # Integers stay integers, so that equal distances between images stay equal.
        center = euclidean.origin(train_rows)
        center = center.round() if _is_integer(train) else center
        train_rows -= center
        if test is None:
            return cls(train_rows, train_rows, own=True)
        test_rows = _dense(test, dtype, test_name).to(train_rows.device)
        return cls(train_rows, test_rows.sub_(center), own=False)

    def nearest(self, k: int) -> Tensor:
        """Indices of the ``k`` training points nearest to each test point, the nearest first: (m, k)."""
        own = torch.arange(len(self.train)) if self.own else None
        if self.train.shape[1] > MAX_TREE_COLUMNS:
            return ExactIndex(self.train).query(self.test, k, exclude=own)[0]
        tree = KDTree(self.train.cpu().numpy())
        found = tree.query(self.test.cpu().numpy(), k + self.own, return_distance=False)
        return torch.from_numpy(found if own is None else _drop(found, own.numpy()))

    def ranks(self, chosen: Tensor) -> Tensor:
        """For each test point, one more than the training points nearer than each chosen one: (m, k)."""
        ranks = torch.empty_like(chosen)
        train = euclidean.prepare(self.train)
        for rows in blocks(len(self.test), max(1, BLOCK_ENTRIES // len(self.train))):
            block = self.test[rows]
            if self.train.shape[1] > MAX_TREE_COLUMNS:
                tile = euclidean.scores(euclidean.prepare(block), train)  # (rows, n)
            else:  # in few columns differences are as fast, and lose no digits
                tile = torch.cdist(block, self.train, compute_mode="donot_use_mm_for_euclid_dist")
            if self.own:
                tile[:, rows].fill_diagonal_(torch.inf)
            limits = tile.gather(1, chosen[rows].to(tile.device))  # (rows, k)
            # A sum of floating-point ones is many times faster than one of booleans, and as exact.
            nearer = torch.empty_like(tile)
            for j in range(chosen.shape[1]):
                torch.lt(tile, limits[:, j : j + 1], out=nearer)
                ranks[rows, j] = 1 + nearer.sum(1).long().cpu()
        return ranks


def _drop(found: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Each row without its own index, or without the last index if copies of the point have displaced it."""
    unwanted = found == own[:, None]
    unwanted[~unwanted.any(1), -1] = True
    kept: NDArray[np.int64] = found[~unwanted].reshape(len(found), -1)
    return kept


def _data_and_map(X_train: Any, Y_train: Any, X_test: Any, Y_test: Any) -> tuple[_Space, _Space]:
    if (X_test is None) != (Y_test is None):
        raise ValueError("X_test and Y_test must be given together, or neither to use the training points.")
    X = _Space.of(X_train, X_test, "X_train", "X_test")
    Y = _Space.of(Y_train, Y_test, "Y_train", "Y_test")
    for name, x, y in (("train", X.train, Y.train), ("test", X.test, Y.test)):
        if len(x) != len(y):
            raise ValueError(
                f"X_{name} and Y_{name} must have the same number of rows. Got {len(x)} and {len(y)} instead."
            )
    return X, Y


def _rank_score(neighbors: _Space, ranks: _Space, k: int, caller: str) -> float:
    n = len(ranks.train) - ranks.own
    if not _is_int(k) or not 1 <= k <= n / 2:
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
    for rows in blocks(len(votes), max(1, BLOCK_ENTRIES // votes.shape[1] ** 2)):
        block = votes[rows]
        counts = (block[:, :, None] == block[:, None, :]).sum(2)  # (rows, k): votes for each voter's class
        winners[rows] = block[np.arange(len(block)), counts.argmax(1)]
    return winners


def _shared_neighbors(a: Tensor, b: Tensor) -> NDArray[np.int64]:
    """How many indices the first k columns of both share, summed over all rows, for each k."""
    k = a.shape[1]
    counts = np.zeros(k, np.int64)
    for rows in blocks(len(a), max(1, BLOCK_ENTRIES // k**2)):
        _, rank_a, rank_b = (a[rows, :, None] == b[rows, None, :]).nonzero(as_tuple=True)
        # A neighbor is shared by all sizes that include it on both sides.
        counts += torch.maximum(rank_a, rank_b).bincount(minlength=k).numpy()
    return counts.cumsum()


def _check_sizes(k: int | Sequence[int], largest: int, caller: str) -> list[int]:
    sizes: list[Any] = list(k) if isinstance(k, Iterable) else [k]
    if not sizes:
        raise ValueError(f"The 'k' parameter of {caller} must hold at least one number of neighbors.")
    for size in sizes:
        if not _is_int(size) or not 1 <= size <= largest:
            raise ValueError(
                f"The 'k' parameter of {caller} must be an int, or ints, from 1 to {largest}, "
                f"the number of training points that a point is compared with. Got {size!r} instead."
            )
    return [int(size) for size in sizes]


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _encode(labels: Any, name: str, classes: dict[Any, int], rows_name: str, n: int) -> NDArray[np.int64]:
    """Labels as numbers, the same number for equal labels. ``classes`` collects the labels seen."""
    if isinstance(labels, Tensor):
        labels = labels.detach().cpu()
    labels = np.asarray(labels)
    if labels.shape != (n,):
        raise ValueError(
            f"{name} must hold one label for each of the {n} rows of {rows_name}. Got shape {labels.shape} instead."
        )
    values = labels.tolist()
    if any(value is None or value != value for value in values):
        raise ValueError(f"{name} must not contain missing labels (None or NaN).")
    return np.array([classes.setdefault(value, len(classes)) for value in values], np.int64)


def _check_rows(X: Any, name: str) -> Any:
    """``X`` as a numeric matrix: a tensor, a CSR matrix or an array."""
    if isinstance(X, Tensor):
        X = X.detach()
        numeric = not X.is_complex()
    else:
        X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X)
        numeric = X.dtype.kind in "biuf"
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"{name} must be a matrix with at least one row and one column; images become rows with "
            f"{name}.reshape(len({name}), -1). Got shape {tuple(X.shape)} instead."
        )
    if not numeric:
        raise ValueError(f"{name} must contain real numbers. Got dtype {X.dtype} instead.")
    return X


def _is_integer(X: Any) -> bool:
    return not (X.is_floating_point() if isinstance(X, Tensor) else X.dtype.kind == "f")


def _is_small(X: Any) -> bool:
    """Whether single precision holds every value. Otherwise distances are computed in double precision."""
    return bool(X.dtype.itemsize <= (2 if _is_integer(X) else 4))


def _dense(X: Any, dtype: torch.dtype, name: str) -> Tensor:
    """A copy of ``X`` as a dense tensor, which the caller is free to change."""
    if isinstance(X, Tensor):
        rows = X.to(dtype, copy=True)
    else:
        kind = np.float32 if dtype == torch.float32 else np.float64
        copy = X.astype(kind).toarray() if hasattr(X, "tocsr") else np.array(X, dtype=kind, order="C")
        rows = torch.from_numpy(copy)
    # The sum is finite only if every value is, and needs no second matrix.
    if not torch.isfinite(rows.sum(dtype=torch.float64)):
        raise ValueError(f"{name} must not contain NaN or infinity.")
    return rows
