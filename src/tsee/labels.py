"""Labels of rows, some of them unknown: neighbors whose labels differ become less likely."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix, diags
from torch import Tensor

from tsee.affinities import Affinities
from tsee.data import blocks
from tsee.distributed import all_agree, all_gather, all_max
from tsee.exceptions import DataWarning, warn

__all__ = ["Labels", "read_labels"]

UNKNOWN = -1.0
# The width of the Gaussian in which two numbers agree, as a share of all rows that lie between them.
NUMBERS_WIDTH = 0.1
# Labels spread to unknown ones by this many steps among the nearest neighbors, chosen by the squares of their
# probabilities: among more of them, labels of other classes arrive, too. Each step passes on this share, so that far
# labels count less, and a row that no label reaches stays unknown.
SPREAD_STEPS, PASSED_ON, SPREAD_NEIGHBORS = 60, 0.9, 15
# Of more classes, unknown labels stay unknown: each row would need a number for each class.
MAX_SPREAD_CLASSES = 256
# Where it finds more of the known labels, a classifier of the inputs is used instead of spreading: the fewest known
# rows per class and the most rows that it learns from, and the most centers of its kernel; the shrinkages and
# sharpnesses that it chooses from. To judge the spreading, parts of the known labels are hidden in turn, until so many
# are judged; fewer parts, but two, if spreading takes long, as it does for many rows and classes.
LEAST_KNOWN, MOST_KNOWN, MOST_CENTERS = 10, 10_000, 1500
SHRINKAGES, SHARPNESSES = (1e-3, 1e-2, 1e-1, 1.0), tuple(2.0**power for power in range(-6, 6))
FOLDS, FEWEST_FOLDS, JUDGED, MOST_SPREAD = 10, 2, 2000, 2**24
# Rows that are classified at a time.
CLASSIFIED_ROWS = 2**13
# Numbers in the labels of the pairs that are compared at a time.
COMPARED = 2**24
# A row that has no neighbor of its own label keeps the neighbors that it has.
LEAST_TOTAL = 1e-6


@dataclass(frozen=True)
class Labels:
    r"""Labels of the rows of this process, and how much they count.

    The probability of a neighbor is multiplied by :math:`1 - w d_{ij}`, where :math:`d_{ij}` is 1 if both labels are
    known and differ, and 0 if they are equal or one is unknown; each row then sums to 1 again. Numbers differ by
    :math:`1 - \exp(-(q_i - q_j)^2 / 2 s^2)`, where q is the share of the known labels that are smaller.

    Attributes
    ----------
    values : Tensor of shape (n,), float32
        The number of the class, or the share of smaller numbers; -1 if it is unknown.
    n_classes : int
        0 if the labels are numbers.
    weight : float
        w, from 0 to 1.
    """

    values: Tensor
    n_classes: int
    weight: float

    def weigh(self, found: Affinities, own: Tensor, others: Tensor) -> Affinities:
        """The probabilities of neighbors, given the labels of rows and of the exemplars.

        Parameters
        ----------
        found : Affinities
            The neighbors of n rows.
        own : Tensor of shape (n,)
            The labels of the rows, as in ``values``.
        others : Tensor of shape (z,)
            The labels of the exemplars.
        """
        theirs = others[found.indices]  # (n, k)
        known = (own[:, None] >= 0) & (theirs >= 0)
        return _weighed(found, self._differences(own[:, None], theirs) * known, self.weight)

    def weigh_exemplars(self, found: Affinities, labels: Tensor, inputs: Tensor | None = None) -> Affinities:
        """The same for exemplars among themselves, with an estimate where a label is unknown.

        Labels spread along neighbors, or, if that finds more of the known ones, a classifier of the inputs tells them.

        Parameters
        ----------
        found : Affinities
        labels : Tensor of shape (z,)
        inputs : Tensor of shape (z, d), optional
            The exemplars, if their distances are Euclidean. Without them, labels only spread.
        """
        unknown = labels < 0
        if not bool(unknown.any()) or self.n_classes > MAX_SPREAD_CLASSES:
            return self.weigh(found, labels, labels)
        if self.n_classes:
            first = torch.nn.functional.one_hot(labels.clamp_min(0).long(), self.n_classes).float()
            first[unknown] = 0
        else:  # the known share, and the label times it
            first = torch.stack([torch.ones_like(labels), labels], 1)
            first[unknown] = 0
        links = _links(found)
        soft = spread(links, first, unknown)  # (z, classes)
        enough = self.n_classes and int((~unknown).sum()) >= LEAST_KNOWN * self.n_classes
        if inputs is not None and enough:
            told, misses = classified(inputs, first, unknown)
            if misses < spread_misses(links, first, unknown):
                soft[unknown] = told[unknown]
        differences = torch.empty_like(found.probabilities)
        for rows in blocks(len(labels), max(1, COMPARED // (found.indices.shape[1] * first.shape[1]))):
            mine, theirs = soft[rows, None], soft[found.indices[rows]]  # (rows, 1, classes), (rows, k, classes)
            if self.n_classes:
                differences[rows] = mine.sum(2) * theirs.sum(2) - (mine * theirs).sum(2)
            else:
                values = [part[..., 1] / part[..., 0].clamp_min(1e-12) for part in (mine, theirs)]
                differences[rows] = mine[..., 0] * theirs[..., 0] * self._differences(*values)
        return _weighed(found, differences, self.weight)

    def digest(self) -> str:
        """A digest that tells the labels of all processes from other labels. A collective."""
        return hashlib.sha256(all_gather(self.values).numpy().tobytes()).hexdigest()[:16]

    def _differences(self, own: Tensor, others: Tensor) -> Tensor:
        if self.n_classes:
            return (own != others).float()
        return 1 - torch.exp(-0.5 * ((own - others) / NUMBERS_WIDTH).square())


def spread(links: csr_matrix, labels: Tensor, unknown: Tensor) -> Tensor:
    r"""Labels as they spread along neighbors to rows whose label is unknown: random walks that end at known labels.

    Parameters
    ----------
    links : csr_matrix of shape (n, n)
        The chance of each step.
    labels : Tensor of shape (n, c)
        The known labels; 0 where they are unknown.
    unknown : Tensor of shape (n,), bool

    Returns
    -------
    Tensor of shape (n, c)
        Where labels are unknown, the chance that a walk from the row ends with each label. It may end with none.
    """
    steps = links[unknown.numpy()].astype(np.float32)
    soft: np.ndarray = labels.numpy().copy()
    for _ in range(SPREAD_STEPS):
        soft[unknown.numpy()] = steps @ soft
    return torch.from_numpy(soft)


def _links(found: Affinities) -> csr_matrix:
    """The chances of the steps of a walk along neighbors. Each row sums to less than 1: the walk may end."""
    indices = found.indices[:, :SPREAD_NEIGHBORS]
    n, k = indices.shape
    pairs = (found.probabilities[:, :SPREAD_NEIGHBORS].float().square().numpy().ravel(), indices.numpy().ravel())
    one_way = csr_matrix((*pairs, np.arange(0, n * k + 1, k)), shape=(n, n))
    both = (one_way + one_way.T).tocsr()
    return (diags(PASSED_ON / np.maximum(np.asarray(both.sum(1)).ravel(), 1e-12)) @ both).tocsr()


def spread_misses(links: csr_matrix, labels: Tensor, unknown: Tensor) -> float:
    """The share of known labels that spreading does not find when they are hidden, a part of them at a time."""
    known, misses = _drawn(torch.nonzero(~unknown)[:, 0]), torch.zeros(0)
    for fold in range(max(FEWEST_FOLDS, min(FOLDS, MOST_SPREAD // labels.numel()))):
        hidden = known[fold::FOLDS]
        rest, without = labels.clone(), unknown.clone()
        rest[hidden], without[hidden] = 0, True
        soft = spread(links, rest, without)[hidden]
        found = soft.gather(1, labels[hidden].argmax(1, keepdim=True))[:, 0]
        misses = torch.cat([misses, ((found < soft.amax(1)) | (found == 0)).float()])
        if len(misses) >= JUDGED:
            break
    return float(misses.mean())


def classified(inputs: Tensor, labels: Tensor, unknown: Tensor) -> tuple[Tensor, float]:
    r"""Classes of all rows by a kernel ridge regression of the known ones, and its share of misses.

    The scores of a row are :math:`f(x) = \sum_j a_j \exp(-|x - c_j|^2 / v)` for centers c among the known rows and the
    total variance v of these. The chances of its classes are the softmax of :math:`\log p + t f(x)`, with the share p
    of each class among the known rows. The shrinkage of a, and t, are those under which known labels are most likely
    when each is left out.

    Parameters
    ----------
    inputs : Tensor of shape (n, d)
    labels : Tensor of shape (n, c)
        1 for the known class of a row; 0 where it is unknown.
    unknown : Tensor of shape (n,), bool

    Returns
    -------
    chances : Tensor of shape (n, c)
    misses : float
        The share of the known labels that it does not find when they are left out; 1 if their rows are too near to
        each other for a regression.
    """
    known = _drawn(torch.nonzero(~unknown)[:, 0])[:MOST_KNOWN]
    middle = inputs[known].double().mean(0)  # distances by products are exact near 0
    centers = inputs[known[:MOST_CENTERS]].double() - middle
    width = inputs[known].double().var(0, unbiased=False).sum().clamp_min(1e-30)

    def kernel(rows: Tensor) -> Tensor:
        return torch.cdist(rows.double() - middle, centers).square_().div_(-width).exp_()  # (rows, centers)

    truth = labels[known].argmax(1)
    prior = labels[~unknown].double().mean(0)
    usual = prior.clamp_min(1e-9).log()
    target = labels[known].double() - prior  # (known, c)
    among = kernel(inputs[known[:MOST_CENTERS]])
    among.diagonal().add_(1e-6)  # centers may be equal
    root, failed = torch.linalg.cholesky_ex(among)
    if failed:
        return labels, 1.0
    features = torch.linalg.solve_triangular(root, kernel(inputs[known]).T, upper=False)  # (centers, known)
    variances, axes = torch.linalg.eigh(features @ features.T)
    features = axes.T @ features
    products = features @ target  # (centers, c)
    best, misses, scores = math.inf, 1.0, products
    for shrinkage in SHRINKAGES:
        shrunk = variances.clamp_min(0)[:, None] + shrinkage
        leverage = (features.square() / shrunk).sum(0)[:, None]
        left_out = target - (target - features.T @ (products / shrunk)) / (1 - leverage).clamp_min(1e-9)
        for sharpness in SHARPNESSES:
            chances = (usual + sharpness * left_out).log_softmax(1)  # (known, c)
            loss = -float(chances.gather(1, truth[:, None]).mean())
            if loss < best:
                best, misses = loss, float((chances.argmax(1) != truth).double().mean())
                scores = sharpness * torch.linalg.solve_triangular(root.T, axes @ (products / shrunk), upper=True)
    parts = blocks(len(inputs), CLASSIFIED_ROWS)
    return torch.cat([(usual + kernel(inputs[rows]) @ scores).softmax(1).float() for rows in parts]), misses


def _drawn(rows: Tensor) -> Tensor:
    """The rows in a random order, the same in every process: labels may come in turn."""
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(0))]


def _weighed(found: Affinities, differences: Tensor, weight: float) -> Affinities:
    weighed = found.probabilities * (1 - weight * differences.clamp(0, 1)).to(found.probabilities.dtype)
    total = weighed.sum(1, keepdim=True)
    kept = torch.where(total > LEAST_TOTAL, weighed / total.clamp_min(LEAST_TOTAL), found.probabilities)
    return Affinities(found.indices, kept)


def read_labels(y: Any, n_rows: int, weight: float) -> Labels:
    """Labels as ``fit`` takes them, checked. A collective.

    Whole numbers, text and booleans are classes, and other numbers are numbers. NaN, None and empty text are unknown,
    and so is -1 among classes.

    Parameters
    ----------
    y : array, list, tensor or Series of shape (n_rows,)
    n_rows : int
    weight : float

    Examples
    --------
    >>> read_labels(["b", "a", None, "b"], 4, 0.5).values
    tensor([ 1.,  0., -1.,  1.])
    >>> read_labels([2.5, float("nan"), 7.1, 3.0], 4, 0.5).values
    tensor([ 0.1667, -1.0000,  0.8333,  0.5000])
    """
    values = _as_array(y, n_rows)
    if values.dtype.kind in "biuf":
        missing = ~np.isfinite(values)
        numbers = bool(all_max(bool((values[~missing] % 1 != 0).any())))
        if not numbers:
            missing |= values == -1
    else:
        missing, numbers = np.array([_is_missing(value) for value in values.tolist()], bool), False
    all_agree({"whether labels are numbers": values.dtype.kind in "biuf"})
    if not all_max(bool((~missing).any())):
        raise ValueError("y holds no label that is known, but 'supervised' is above 0: pass labels, or set it to 0.")
    coded = np.full(n_rows, UNKNOWN, np.float32)
    known = values[~missing]
    if numbers:
        everyone = np.sort(all_gather(torch.from_numpy(known.astype(np.float64))).numpy())
        ends = [np.searchsorted(everyone, known.astype(np.float64), side=side) for side in ("left", "right")]
        coded[~missing] = (ends[0] + ends[1]) / (2 * len(everyone))  # equal numbers share their middle
        return Labels(torch.from_numpy(coded), 0, weight)
    # Numbered in the order of their keys, on which all processes agree without seeing each other's texts.
    distinct, places = np.unique(known if known.dtype.kind in "biuf" else known.astype(str), return_inverse=True)
    keys = torch.tensor([_key(value) for value in distinct.tolist()], dtype=torch.int64)
    classes = torch.unique(all_gather(keys))
    coded[~missing] = torch.searchsorted(classes, keys).numpy()[places]
    if len(classes) == 1:
        warn("All known labels of y are equal, so they do not change the map.", DataWarning)
    return Labels(torch.from_numpy(coded), len(classes), weight)


def _as_array(y: Any, n_rows: int) -> np.ndarray:
    """Labels as a vector of numbers, or of objects."""
    if y is None:
        raise ValueError(
            "The 'supervised' parameter is above 0, but fit was given no labels: pass them as fit(X, y), or set it to "
            "0."
        )
    if isinstance(y, Tensor):
        y = y.detach().cpu()
    try:
        values = np.asanyarray(y)
    except ValueError:
        raise ValueError(
            f"y must hold one label for each of the {n_rows} rows of X, a number or a text. Got a list whose parts "
            "have several lengths instead."
        ) from None
    if isinstance(y, list | tuple) and values.dtype.kind == "U":
        values = np.asarray(y, object)  # numpy has turned NaN among texts into a text
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.shape != (n_rows,):
        raise ValueError(f"y must hold one label for each of the {n_rows} rows of X. Got shape {values.shape} instead.")
    if isinstance(values, np.ma.MaskedArray):
        values = np.array(values.tolist(), object)  # None where it is masked
    if values.dtype.kind in "cmMV":
        raise ValueError(
            f"y must hold classes or numbers. Got {values.dtype} instead: pass numbers, such as days since the first."
        )
    if values.dtype.kind == "O":
        there = [value for value in values.tolist() if not _is_missing(value)]
        if there and all(isinstance(value, int | float | np.number) for value in there):
            return np.array([np.nan if _is_missing(value) else value for value in values.tolist()], np.float64)
    return values


def _is_missing(value: Any) -> bool:
    """Whether a label is None, NaN, pandas' NA or NaT, or empty text."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return bool(value == "" or value != value)


def _key(value: Any) -> int:
    """A whole number for a class."""
    if not isinstance(value, str) and abs(value) < 2**62:
        return int(value)
    return int.from_bytes(hashlib.blake2b(str(value).encode(), digest_size=8).digest(), "little", signed=True)
