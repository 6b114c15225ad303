"""How good the map of a model is for the rows of a table: the measures of `tsee.metrics`, read block by block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from tsee.exceptions import DataFileError, UndefinedMeasureError
from tsee.files import Table
from tsee.fitted import fitted_map
from tsee.metrics import (
    CentroidScores,
    centroid_scores,
    continuity,
    density_correlation,
    distance_correlation,
    knn_error,
    quality_score,
    triplet_accuracy,
    trustworthiness,
)
from tsee.serving.placing import place_blocks

__all__ = ["Evaluation", "evaluate_map"]

# The numbers of neighbors that maps are judged by, and how many of them make a local radius.
NEIGHBORS = (1, 5, 10)
RADIUS_NEIGHBORS = 15
# The measures that compare the map with the data use a sample: at most this many rows, and this many numbers.
SAMPLE_ROWS, SAMPLE_ENTRIES = 5000, 2**26


@dataclass(frozen=True)
class Evaluation:
    """Measures of a map.

    Attributes
    ----------
    n_rows, n_sample : int
        The rows that were judged, and how many of them were compared with the data.
    n_train_rows, n_train_sample : int or None
        The same for the rows that they were compared with; None if they were compared with each other.
    n_unlabeled : int
        Rows without a label, which are left out of the measures that need one.
    knn_error : dict of int to float or None
        By the number of neighbors. None without labels.
    quality_score, trustworthiness, continuity : dict of int to float
        By the number of neighbors.
    triplet_accuracy, distance_correlation, density_correlation : float or None
        None if it is undefined for these rows, for example because all of them are equal.
    centroids : CentroidScores or None
        None without labels, or with fewer than three classes.
    """

    n_rows: int
    n_sample: int
    n_train_rows: int | None
    n_train_sample: int | None
    n_unlabeled: int
    knn_error: dict[int, float] | None
    quality_score: dict[int, float]
    trustworthiness: dict[int, float]
    continuity: dict[int, float]
    triplet_accuracy: float | None
    distance_correlation: float | None
    density_correlation: float | None
    centroids: CentroidScores | None


class _Placed(NamedTuple):
    """A table on the map: all positions and labels, and a sample of the rows with their numbers."""

    source: Any
    positions: np.ndarray
    labels: np.ndarray | None
    sample: Any
    chosen: np.ndarray

    @property
    def sample_positions(self) -> np.ndarray:
        found: np.ndarray = self.positions[self.chosen]
        return found


def evaluate_map(model: Any, table: Table, train: Table | None = None, *, verbose: bool = False) -> Evaluation:
    """Measure how good the map of a model is for the rows of a table.

    The k-NN error is measured on all rows that have a label. The other measures compare the map with the data, on a
    random sample of at most 5,000 rows, which is always the same. Of these, the distance correlation uses 2,000. Rows
    are compared by the metric of the model.

    Parameters
    ----------
    model : FittedMap or fitted estimator
    table : Table
        The rows to judge, as `open_matching` opens them; its ``label`` is used if it has one.
    train : Table, optional
        Rows to compare with, usually the rows of ``fit``. By default each row is compared with the others of ``table``.
    verbose : bool
        Show a progress bar.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tsee
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> see = tsee.DtSEE(max_epochs=1, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/rows.npy", X)
    ...     with tsee.serving.open_matching(see, f"{folder}/rows.npy") as table:
    ...         found = evaluate_map(see, table)
    >>> found.n_rows, found.knn_error, sorted(found.quality_score)
    (60, None, [1, 5, 10])
    """
    judged = _place(model, table, verbose=verbose)
    others = judged if train is None else _place(model, train, verbose=verbose)
    itself = 1 if train is None else 0  # a row is not its own neighbor
    errors, n_unlabeled = None, 0
    if judged.labels is not None:
        positions, labels = _labeled(others)
        pairs: dict[str, Any] = dict(Y_train=positions, y_train=labels)
        n_unlabeled = len(others.positions) - len(positions)
        if train is not None:
            pairs["Y_test"], pairs["y_test"] = _labeled(judged)
            n_unlabeled += len(judged.positions) - len(pairs["Y_test"])
        errors = knn_error(**pairs, k=_possible(len(positions) - itself))
    metric = fitted_map(model).preprocessing.metric
    samples: dict[str, Any] = dict(X_train=others.sample, Y_train=others.sample_positions, metric=metric)
    if train is not None:
        samples |= dict(X_test=judged.sample, Y_test=judged.sample_positions)
    n_others = others.sample.shape[0] - itself
    ranked = [k for k in NEIGHBORS if 2 * k <= n_others]
    return Evaluation(
        n_rows=len(judged.positions),
        n_sample=len(judged.sample_positions),
        n_train_rows=None if train is None else len(others.positions),
        n_train_sample=None if train is None else len(others.sample_positions),
        n_unlabeled=n_unlabeled,
        knn_error=errors,
        quality_score=quality_score(**samples, k=_possible(n_others)),
        trustworthiness={k: trustworthiness(**samples, k=k) for k in ranked},
        continuity={k: continuity(**samples, k=k) for k in ranked},
        triplet_accuracy=_if_defined(triplet_accuracy, **samples),
        distance_correlation=_if_defined(distance_correlation, **samples),
        density_correlation=_if_defined(density_correlation, **samples, k=min(RADIUS_NEIGHBORS, n_others)),
        centroids=_centroids(judged, None if train is None else others, metric),
    )


def _place(model: Any, table: Table, *, verbose: bool) -> _Placed:
    """The positions of all rows, and a sample of the rows themselves, in one pass over the table."""
    n_rows, n_columns = table.rows.shape
    size = min(n_rows, SAMPLE_ROWS, max(100, SAMPLE_ENTRIES // n_columns))
    chosen = np.sort(np.random.default_rng(0).choice(n_rows, size, replace=False))
    parts, sample = [], []
    for rows, values, found in place_blocks(model, table, verbose=verbose):
        parts.append(found)
        first, last = np.searchsorted(chosen, (rows.start, rows.stop))
        sample.append(values[chosen[first:last] - rows.start])
    joined = scipy.sparse.vstack(sample, "csr") if table.rows.sparse else np.concatenate(sample)
    return _Placed(table.source, np.concatenate(parts), table.label, joined, chosen)


def _if_defined(measure: Callable[..., Any], **given: Any) -> Any:
    try:
        return measure(**given)
    except UndefinedMeasureError:
        return None


def _centroids(judged: _Placed, train: _Placed | None, metric: str) -> CentroidScores | None:
    """The scores of the centroids of the samples, without the rows that have no label."""
    given: dict[str, Any] = {"metric": metric}
    for name, placed in [("train", judged)] if train is None else [("train", train), ("test", judged)]:
        if placed.labels is None:
            return None
        labels = placed.labels[placed.chosen]
        known = _known(labels)
        if not known.any():
            return None
        given[f"X_{name}"] = placed.sample[known]
        given[f"Y_{name}"], given[f"y_{name}"] = placed.sample_positions[known], labels[known]
    scores: CentroidScores | None = _if_defined(centroid_scores, **given)
    return scores


def _known(labels: np.ndarray) -> np.ndarray:
    """Which labels are not missing."""
    return np.array([value is not None and value == value and value != "" for value in labels.tolist()], bool)


def _labeled(placed: _Placed) -> tuple[np.ndarray, np.ndarray]:
    """Positions and labels of the rows that have a label."""
    labels = np.array([]) if placed.labels is None else placed.labels
    known = _known(labels)
    if not known.any():
        raise DataFileError(
            f"No row of {str(placed.source)!r} has a label: name another column by the 'label' parameter."
        )
    return placed.positions[known], labels[known]


def _possible(n_others: int) -> list[int]:
    """The numbers of neighbors that a row can have if there are ``n_others`` other rows."""
    possible = [k for k in NEIGHBORS if k <= n_others]
    if not possible:
        raise ValueError("There is only one row, but judging a map takes at least two: add rows.")
    return possible
