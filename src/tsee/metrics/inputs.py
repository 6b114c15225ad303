"""What the measures take: data and map as checked matrices, labels as numbers, and sizes that are possible."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
import torch
from numpy.typing import NDArray
from torch import Tensor

from tsee.data import blocks
from tsee.data.numbers import as_plain
from tsee.exceptions import RowError
from tsee.files.sparse import checked_csr
from tsee.metric import METRICS, UNIT_LENGTH, Metric, compared_rows, euclidean, metric_of, of_unit_length

__all__ = ["Sides", "check_count", "check_data_and_map", "check_labels", "check_rows", "check_sides", "check_sizes",
           "dense", "draw", "is_int", "seeded", "taken"]  # fmt: skip

# Up to this many columns, distances are in double precision: in a map of tight clusters far apart, single precision
# cannot tell a point's neighbors from one another. In wide data it can, in half the time.
MAX_DOUBLE_COLUMNS = 64


@dataclass(frozen=True, eq=False)
class Sides:
    """Training and test points in one space, the data or the map: checked, and not copied.

    Attributes
    ----------
    train, test : tensor, array or CSR matrix
        The same object if the training points are compared with each other.
    own : bool
        Test point i is not compared with training point i, as it is the same point.
    metric : Metric
        How points are compared.
    """

    train: Any
    test: Any
    own: bool
    metric: Metric = euclidean

    @property
    def n_others(self) -> int:
        """How many training points a test point is compared with."""
        return int(self.train.shape[0]) - self.own

    @property
    def dtype(self) -> torch.dtype:
        """The precision that tells near training points apart."""
        wide = self.train.shape[1] > MAX_DOUBLE_COLUMNS and _is_small(self.train) and _is_small(self.test)
        return torch.float32 if wide else torch.float64

    @property
    def integer(self) -> bool:
        return _is_integer(self.train)


def check_sides(train: Any, test: Any, train_name: str, test_name: str) -> Sides:
    """Training and test points in one space; without test points, the training points are compared with each other."""
    train = check_rows(train, train_name)
    if test is None:
        return Sides(train, train, own=True)
    test = check_rows(test, test_name)
    if test.shape[1] != train.shape[1]:
        raise ValueError(
            f"{test_name} must have as many columns as {train_name}. Got {test.shape[1]} and {train.shape[1]} instead."
        )
    return Sides(train, test, own=False)


def check_data_and_map(
    X_train: Any, Y_train: Any, X_test: Any, Y_test: Any, metric: str, caller: str
) -> tuple[Sides, Sides]:
    """The data, which ``metric`` compares, and the map, which is Euclidean."""
    if not isinstance(metric, str) or metric not in METRICS:
        raise ValueError(f"The 'metric' parameter of {caller} must be one of {METRICS}. Got {metric!r} instead.")
    if (X_test is None) != (Y_test is None):
        raise ValueError("X_test and Y_test must be given together, or neither to use the training points.")
    X = check_sides(X_train, X_test, "X_train", "X_test")
    Y = check_sides(Y_train, Y_test, "Y_train", "Y_test")
    for name, x, y in (("train", X.train, Y.train), ("test", X.test, Y.test)):
        if x.shape[0] != y.shape[0]:
            raise ValueError(
                f"X_{name} and Y_{name} must have the same number of rows. Got {x.shape[0]} and {y.shape[0]} instead."
            )
    return _compared(X, metric), Y


class DirectedRows:
    """Checked rows that a metric compares at unit length, which they get when they are made dense."""

    def __init__(self, X: Any, metric: str) -> None:
        self.X, self.metric = X, metric
        self.shape, self.dtype = X.shape, np.dtype(np.float32 if _is_small(X) else np.float64)

    def __getitem__(self, rows: Any) -> DirectedRows:
        return DirectedRows(self.X[rows], self.metric)


def _compared(sides: Sides, metric: str) -> Sides:
    """The data as the metric compares them; a row that it cannot compare is refused."""
    if metric in ("euclidean", "manhattan", "hamming"):
        return replace(sides, metric=metric_of(metric))
    found = {"train": _compared_rows(sides.train, metric, "X_train")}
    if sides.test is sides.train:
        found["test"] = found["train"]
    else:
        found["test"] = _compared_rows(sides.test, metric, "X_test")
    return replace(sides, **found, metric=metric_of(metric))


def _compared_rows(X: Any, metric: str, name: str) -> Any:
    sparse = scipy.sparse.issparse(X)
    if sparse and metric == "jaccard" and bool(np.isin(X.data, (0, 1)).all()):
        return X
    start = 0
    try:
        if sparse and metric == "cosine":
            return of_unit_length(X)
        rows = DirectedRows(X, metric)
        for part in blocks(rows.shape[0]):
            start = part.start
            dense(rows[part], torch.float64)
    except RowError as error:
        raise ValueError(f"Row {start + error.row} of {name} {error.problem}") from None
    return rows if metric in UNIT_LENGTH else X


def check_rows(X: Any, name: str) -> Any:
    """``X`` as a matrix of finite numbers: a tensor, a CSR matrix or an array."""
    if isinstance(X, Tensor):
        X = X.detach()
        numeric = not X.is_complex()
    else:
        X = checked_csr(X, name) if scipy.sparse.issparse(X) else np.asarray(as_plain(X, name=name))
        numeric = X.dtype.kind in "biuf"
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(
            f"{name} must be a matrix with at least one row and one column; images become rows with "
            f"{name}.reshape(len({name}), -1). Got shape {tuple(X.shape)} instead."
        )
    if not numeric:
        raise ValueError(f"{name} must contain real numbers. Got dtype {X.dtype} instead.")
    # The sum is finite only if every value is, and needs no second matrix.
    values = X.data if hasattr(X, "tocsr") else X
    with np.errstate(invalid="ignore"):
        total = values.sum(dtype=torch.float64 if isinstance(X, Tensor) else np.float64)
    if not np.isfinite(float(total)):
        raise ValueError(f"{name} must not contain NaN or infinity.")
    return X


def dense(X: Any, dtype: torch.dtype) -> Tensor:
    """A copy of checked rows as a dense tensor, which the caller is free to change."""
    if isinstance(X, DirectedRows):
        return torch.from_numpy(compared_rows(dense(X.X, dtype).cpu().numpy(), X.metric))
    if isinstance(X, Tensor):
        return X.to(dtype, copy=True)
    kind = np.float32 if dtype == torch.float32 else np.float64
    return torch.from_numpy(X.astype(kind).toarray() if hasattr(X, "tocsr") else np.array(X, dtype=kind, order="C"))


def taken(X: Any, rows: NDArray[np.int64], dtype: torch.dtype = torch.float64) -> Tensor:
    """Some of the rows as a dense tensor on the CPU: the others are not copied."""
    if isinstance(X, Tensor):
        return X[torch.from_numpy(rows).to(X.device)].cpu().to(dtype)
    return dense(X[rows], dtype)


def _is_integer(X: Any) -> bool:
    return not (X.is_floating_point() if isinstance(X, Tensor) else X.dtype.kind == "f")


def _is_small(X: Any) -> bool:
    """Whether single precision holds every value. Otherwise distances are computed in double precision."""
    return bool(X.dtype.itemsize <= (2 if _is_integer(X) else 4))


def check_labels(labels: Any, name: str, classes: dict[Any, int], rows_name: str, n: int) -> NDArray[np.int64]:
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


def check_sizes(k: int | Sequence[int], largest: int, caller: str) -> list[int]:
    """The numbers of neighbors as a list."""
    sizes: list[Any] = list(k) if isinstance(k, Iterable) else [k]
    if not sizes:
        raise ValueError(f"The 'k' parameter of {caller} must hold at least one number of neighbors.")
    for size in sizes:
        if not is_int(size) or not 1 <= size <= largest:
            raise ValueError(
                f"The 'k' parameter of {caller} must be an int, or ints, from 1 to {largest}, "
                f"the number of training points that a point is compared with. Got {size!r} instead."
            )
    return [int(size) for size in sizes]


def check_count(value: Any, name: str, caller: str) -> int:
    """A number of rows or triplets to draw."""
    if not is_int(value) or value < 1:
        raise ValueError(f"The '{name}' parameter of {caller} must be an int, at least 1. Got {value!r} instead.")
    return int(value)


def is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def seeded(random_state: Any, caller: str) -> np.random.Generator:
    """A generator of random numbers; with the same seed, the same numbers."""
    if random_state is not None and (not is_int(random_state) or random_state < 0):
        raise ValueError(
            f"The 'random_state' parameter of {caller} must be an int, at least 0, or None for another sample "
            f"at each call. Got {random_state!r} instead."
        )
    return np.random.default_rng(random_state)


def draw(n_rows: int, size: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """The numbers of ``size`` random rows, in order; of all rows if there are not more."""
    if n_rows <= size:
        return np.arange(n_rows)
    return np.sort(generator.choice(n_rows, size, replace=False))
