"""Rows of data as inputs of the network: unit length, centering, scale and a PCA."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from tsee.data import BLOCK_ROWS, apply_padded, blocks, dense
from tsee.distributed import all_max, all_sum, broadcast
from tsee.exceptions import DataWarning, rows_from, warn
from tsee.metric import PRECOMPUTED, UNIT_LENGTH, ComparedRows, compared_rows, compares_features, of_unit_length
from tsee.preprocessing.largest import Largest, check_range, largest_deviations
from tsee.preprocessing.principal import automatic_axes, leading_axes, leveled
from tsee.preprocessing.sparse import SPARSE_ROWS, mean_parts, projected, square_sums, stays_sparse

__all__ = ["Inputs", "Preprocessing", "fit_preprocessing"]

# Up to this many features are inputs themselves if the number of inputs is automatic.
FEW_FEATURES = 128

# Rows of float32 are centered and divided in float32 if all numbers are within this factor of 1.
FLOAT32_RANGE = 2.0**100
# Inputs below this are zero. They vary by about 1, so nothing is lost; squares of smaller differences would vanish in
# float32, and rows that differ would look equal.
NEGLIGIBLE = 2.0**-38

# The metrics for which values stay as they are, but for a power of two: to the first two, values are equal or not, and
# nothing between.
UNCHANGED = ("hamming", "jaccard", PRECOMPUTED)

# Data with fewer rows are not judged.
MIN_JUDGED_ROWS = 20
# A value outweighs all others if it holds this share of the variance, and its deviation is this many times the root
# mean square deviation of the others. The largest of 10,000 log-normal values can hold 97 %; up to a factor of about
# 1e8 the map remains good.
OUTWEIGHING_SHARE = 0.99
OUTWEIGHING_FACTOR = 1e4
# Columns are in different units if at least this many vary, and a few hold this share of the variance, each with this
# many times the standard deviation that the others have in the median.
MIN_JUDGED_FEATURES = 4
MAX_DOMINANT_FEATURES = 5
DOMINANT_SHARE = 0.9
DOMINANT_FACTOR = 10
# Columns are principal components if the variance falls at this share of the steps from one column to the next.
FALLING_SHARE = 0.9


@dataclass(frozen=True)
class Preprocessing:
    r"""The map :math:`u = B^T \frac{x - \mu}{s \sigma}` from a row to the network's inputs.

    where x is the row, at unit length for the cosine and the correlation (`compared_rows`).

    Attributes
    ----------
    mean : ndarray of shape (n_features,), float64
    scale : float
        The same for all features, so that distances keep their proportions.
    basis : ndarray of shape (n_features, n_inputs), float32, or None
        The leading principal axes, times their weights; None leaves the features as they are.
    spread : ndarray of shape (n_features,), float64, or None
        The standard deviation of each feature, 1 for a constant feature; None if features are not standardized.
    metric : str
        How rows are compared, one of `METRICS`, or "precomputed".
    length : float or None
        The length to which all inputs are brought if there is a basis, see `leveled`; None leaves them as they are.
    margin : ndarray of shape (n_inputs,), float32, or None
        Inputs that are not larger than this count as zero; 0 for all unless axes were added, see `tsee.growing.axes`.
    """

    mean: np.ndarray
    scale: float
    basis: np.ndarray | None
    spread: np.ndarray | None = None
    metric: str = "euclidean"
    length: float | None = None
    margin: np.ndarray | None = None

    @property
    def n_inputs(self) -> int:
        return len(self.mean) if self.basis is None else self.basis.shape[1]

    def describe(self) -> str:
        """The inputs in words: "50 principal components of 784 features", or "64 features"."""
        features = f"{len(self.mean):,} features"
        return features if self.basis is None else f"{self.n_inputs:,} principal components of {features}"

    @property
    def divisor(self) -> Any:
        """What centered features are divided by: one float for all, or a float64 array with one value per feature."""
        return self.scale if self.spread is None else self.scale * self.spread

    def __call__(self, block: np.ndarray) -> Tensor:
        """Rows of data as the network's inputs, float32."""
        inputs = self._scaled(block).float()
        if self.basis is not None:
            basis = torch.from_numpy(self.basis)
            inputs = apply_padded(lambda rows: leveled(rows @ basis, self.length), inputs)
        # Small categories are not zero.
        return inputs if self.metric in UNCHANGED else self._cleared(inputs)

    def of_sparse(self, block: Any) -> Tensor:
        """The same of a block of CSR rows; their zeros are not written out if there are principal axes."""
        if self.basis is None or self.metric == "correlation":
            return self(dense(block, slice(None)))
        rows = of_unit_length(block) if self.metric == "cosine" else block
        inputs = projected(rows, self.mean, self.divisor, self.basis)
        if self.length is not None:
            inputs = apply_padded(lambda rows: leveled(rows, self.length), inputs)
        return self._cleared(inputs)

    def outside(self, block: np.ndarray, inputs: Tensor) -> Tensor:
        """The squared length of the part of each row that the inputs leave out, in the units of the inputs."""
        if self.basis is None:
            return torch.zeros(len(inputs))
        centered = self._scaled(block).numpy()
        whole = torch.from_numpy(np.einsum("ij,ij->i", centered, centered, dtype=np.float64))
        if self.length is not None:
            inputs = replace(self, length=None)(block)
        return (whole - inputs.double().square().sum(1)).clamp_min_(0).float()

    def inside_and_outside(self, X: Any, parts: Iterable[slice]) -> tuple[Tensor, Tensor]:
        """The inputs of some rows of ``X``, and the squared length of the part of each that they leave out."""
        inside, outside = [], []
        for rows in parts:
            block = dense(X, rows)
            with rows_from(rows.start):
                inside.append(self(block))
            outside.append(self.outside(block, inside[-1]))
        return torch.cat(inside), torch.cat(outside)

    def _cleared(self, inputs: Tensor) -> Tensor:
        """Inputs without those that count as zero."""
        inputs = nn.functional.hardshrink(inputs, NEGLIGIBLE)
        return inputs if self.margin is None else inputs.masked_fill(inputs.abs() <= torch.from_numpy(self.margin), 0)

    def _scaled(self, block: np.ndarray) -> Tensor:
        """Rows of data, centered and divided, in their own precision, or in float64 if float32 lacks the range."""
        block = compared_rows(block, self.metric)
        # By torch, which uses all cores. It does not take rows that are stored backwards, and numpy calls a single such
        # row contiguous.
        rows = block.copy() if min(block.strides) < 0 else np.require(block, requirements=["C", "W"])
        if rows.dtype == np.float32 and not self._in_float32:
            rows = rows.astype(np.float64)
        # Centered in the precision of the data, so that a large offset costs no digits.
        centered = torch.from_numpy(rows) - torch.from_numpy(self.mean.astype(rows.dtype))
        if self.spread is None:
            return centered.mul_(1 / self.scale)
        return centered.div_(torch.from_numpy(self.divisor.astype(rows.dtype)))

    @cached_property
    def _in_float32(self) -> bool:
        """Whether float32 has the range for centering and dividing."""
        divisor = np.asarray(self.divisor)
        small, large = float(divisor.min()), max(float(divisor.max()), float(np.abs(self.mean).max()))
        return small > 1 / FLOAT32_RANGE and large < FLOAT32_RANGE

    def inverse(self, inputs: Tensor) -> np.ndarray:
        """Inputs back in the units of the data, within the span of the principal axes; rows stay at unit length.

        Of rows whose inputs were brought to one length, only the direction from the mean is known.
        """
        centered = inputs.numpy()
        if self.basis is not None:
            centered = centered / np.square(self.basis).sum(0) @ self.basis.T  # over the squares of the weights
        return (centered * self.divisor + self.mean).astype(np.float32)


class Inputs:
    """Data as the network's inputs: ``inputs[a:b]`` preprocesses those rows each time it is called.

    Parameters
    ----------
    X : array, CSR matrix or Rows
        The data, as `check_rows` returns them.
    preprocessing : Preprocessing
    """

    def __init__(self, X: Any, preprocessing: Preprocessing) -> None:
        self._X, self.preprocessing = X, preprocessing
        self.shape = (int(X.shape[0]), preprocessing.n_inputs)

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def cheap_to_recompute(self) -> bool:
        """Whether inputs need not be kept: the rows are in memory, and are only shifted and divided."""
        return self.preprocessing.basis is None and isinstance(self._X, np.ndarray)

    def take(self, rows: Tensor) -> Tensor:
        """The inputs of the rows of these numbers. Only if `cheap_to_recompute`."""
        return self.preprocessing(dense(self._X[rows.numpy()], slice(0, len(rows))))

    def __getitem__(self, rows: slice) -> Tensor:
        start, stop, _ = rows.indices(len(self))
        inputs = torch.empty((stop - start, self.shape[1]))
        # Blocks of sparse rows need not be small, and the axes are divided for each of them.
        size = SPARSE_ROWS if stays_sparse(self._X) and self.preprocessing.basis is not None else BLOCK_ROWS
        for part in blocks(stop - start, size):
            block = self._X[start + part.start : start + part.stop]
            with rows_from(start + part.start):
                if stays_sparse(block):
                    inputs[part] = self.preprocessing.of_sparse(block)
                else:
                    inputs[part] = self.preprocessing(dense(block, slice(None)))
        return inputs


def fit_preprocessing(
    X: Any,
    n_inputs: int | Literal["auto"] | None,
    generator: torch.Generator,
    *,
    standardize: bool = False,
    names: Sequence[Any] | None = None,
    metric: str = "euclidean",
    balanced: bool = False,
) -> Preprocessing:
    """Learn the mean, the scale and, if ``n_inputs`` is less than the number of features, the principal axes.

    "auto" takes up to 128 features themselves, and of more features as many axes as `automatic_axes` chooses.
    The scale makes the mean variance of an input 1, so that pixels in 0..255 and in 0..1 give the same inputs. With
    ``standardize`` each feature is first divided by its standard deviation. Without it, a `DataWarning` reports a value
    that outweighs all others, or a few columns that hold most of the variance, unless their units are ``balanced``.
    ``names`` are the names of the columns.

    Rows are first made comparable by ``metric``. Where the values themselves count (Hamming, Jaccard, distances), they
    are only divided by a power of two, which keeps equal values equal and zero at zero.
    """
    names = getattr(X, "names", None) if names is None else names
    if metric in UNIT_LENGTH:
        sparse = metric == "cosine" and stays_sparse(X)
        rows = of_unit_length(X) if sparse else ComparedRows(X, metric)
        found = fit_preprocessing(rows, n_inputs, generator, names=names, balanced=True)
        return replace(found, metric=metric)
    if metric in UNCHANGED:
        return Preprocessing(np.zeros(X.shape[1]), ComparedRows(X, metric).power_of_two(), None, None, metric)
    n_inputs = None if compares_features(metric) else n_inputs
    n_features = X.shape[1]
    n_rows = all_sum(X.shape[0])
    # Counted from the first row: the mean of a constant feature is then exact, however large it is.
    first = broadcast(torch.from_numpy(dense(X, slice(0, 1))[0].astype(np.float64))).numpy()
    if stays_sparse(X):
        excess = mean_parts(X, first, n_rows)
    else:
        excess = np.zeros(n_features)
        for rows in blocks(X.shape[0]):
            excess += (dense(X, rows).astype(np.float64) / n_rows - first / n_rows).sum(0)
    mean = first + all_sum(torch.from_numpy(excess)).numpy()
    largest = largest_deviations(X, mean)
    # A deviation within the rounding errors of the data's own precision counts as zero.
    rounding = np.abs(mean) * (8 * all_max(float(np.finfo(np.result_type(X.dtype, np.float32)).eps)))
    varying = largest.by_feature > rounding
    check_range(largest, varying, names, standardize=standardize)
    varies = bool(varying.any())
    if standardize:
        spread = np.where(varying, _standard_deviations(X, mean, largest.by_feature, n_rows), np.maximum(1, rounding))
        unit = Preprocessing(mean, 1.0, None, spread)
    else:
        # Squares are summed in units of the largest deviation, so that they neither overflow nor vanish.
        # If all deviations count as zero, they remain as small as they are.
        unit = Preprocessing(mean, largest.value if varies else 1.0, None)
    squares = torch.zeros(n_features, dtype=torch.float64)  # sums for each feature, in the unit
    if n_inputs == "auto" and n_features <= FEW_FEATURES:
        n_inputs = None
    basis = length = None
    if n_inputs is None or (n_inputs != "auto" and n_inputs >= n_features):
        if standardize:
            variance = int(varying.sum()) / n_features
        else:
            variance = _sum_squares(X, unit, squares) / n_rows / n_features
    else:
        if n_inputs == "auto":
            axes, variances, level = automatic_axes(X, unit, min(n_features, n_rows - 1), generator, squares)
            length = len(variances) ** 0.5 if level else None  # as long as they are in the root mean square
        else:
            axes, variances = leading_axes(X, unit, min(n_inputs, n_rows - 1), generator, squares)
        basis, variance = axes.float().contiguous().numpy(), float(variances.sum()) / len(variances)
    if varies and not standardize and not balanced:
        by_feature = all_sum(squares).numpy()
        _warn_of_dominance(by_feature, varying, largest, n_rows, names)
    return Preprocessing(mean, unit.scale * variance**0.5 if varies else 1.0, basis, unit.spread, metric, length)


def _sum_squares(X: Any, unit: Preprocessing, squares: Tensor) -> float:
    """The sum of all squares; the sums for each feature, over the rows of this process, are added to ``squares``."""
    if stays_sparse(X):
        squares += torch.from_numpy(square_sums(X, unit.mean, unit.divisor))
        return float(all_sum(squares.sum()))
    total = torch.zeros((), dtype=torch.float64)
    for rows in blocks(X.shape[0]):
        block = unit(dense(X, rows)).double().square()
        total = total + block.sum()
        squares += block.sum(0)
    return float(all_sum(total))


def _standard_deviations(X: Any, mean: np.ndarray, largest: np.ndarray, n_rows: int) -> np.ndarray:
    """The standard deviation of each feature, by squares in units of its own largest deviation."""
    units = np.where(largest > 0, largest, 1)
    squares = np.zeros(len(mean))
    for rows in blocks(X.shape[0]):
        squares += np.square((dense(X, rows) - mean) / units).sum(0)
    deviations: np.ndarray = units * np.sqrt(all_sum(torch.from_numpy(squares)).numpy() / n_rows)
    return deviations


def _warn_of_dominance(
    squares: np.ndarray, varying: np.ndarray, largest: Largest, n_rows: int, names: Sequence[Any] | None
) -> None:
    """Warn of a single value that outweighs all others, or else of a few columns that outweigh all others.

    ``squares`` are the sums of squares of each feature, in units of the largest deviation, whose own square is 1. That
    value also shifts the mean of its column: in all, it adds n / (n - 1) to the sum of its column.
    """
    if n_rows < MIN_JUDGED_ROWS:
        return
    single = n_rows / (n_rows - 1)
    squares = squares.copy()
    total = float(squares.sum())
    squares[largest.column] = max(0.0, squares[largest.column] - single)
    others = float(squares.sum())
    if others < (1 - OUTWEIGHING_SHARE) * total and others < n_rows * len(squares) / OUTWEIGHING_FACTOR**2:
        warn(
            f"The value in {largest.where(names)} is {largest.value:.3g} away from the mean of its column, more than "
            f"{OUTWEIGHING_FACTOR:,.0f} times as far as usual: compared with it, all other rows look alike. Correct "
            "it, or leave that row out.",
            DataWarning,
        )
        return
    columns = _dominant(np.where(varying, squares, 0))
    if columns is None:
        return
    share = math.floor(1000 * squares[columns].sum() / others) / 10
    which = [str(column) if names is None else repr(str(names[column])) for column in columns.tolist()]
    several = len(which) > 1
    listed = ", ".join(which[:-1]) + " and " + which[-1] if several else which[0]
    warn(
        f"Column{'s' if several else ''} {listed}{' (counted from 0)' if names is None else ''} of X "
        f"hold{'' if several else 's'} {share:g} % of the variance of all {len(squares)} columns, so the map shows "
        "little else. If the columns are in different units, fit with standardize=True (on the command line: "
        "--standardize).",
        DataWarning,
    )


def _dominant(variances: np.ndarray) -> np.ndarray | None:
    """The few features that hold almost all of the variance, in the order of the columns; None if there are none."""
    varying = np.flatnonzero(variances > 0)
    if len(varying) < MIN_JUDGED_FEATURES or np.mean(np.diff(variances[varying]) <= 0) >= FALLING_SHARE:
        return None
    descending = varying[np.argsort(-variances[varying], kind="stable")]
    shares = np.cumsum(variances[descending]) / variances.sum()
    n = int(np.searchsorted(shares, DOMINANT_SHARE, side="right")) + 1
    if n > max(2, min(MAX_DOMINANT_FEATURES, len(varying) // 10)):
        return None
    if variances[descending[n - 1]] < DOMINANT_FACTOR**2 * np.median(variances[descending[n:]]):
        return None
    return np.sort(descending[:n])
