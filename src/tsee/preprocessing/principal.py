"""Principal axes of the data, and how many of them its neighbors need."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from tsee.data import blocks, dense, spaced_slices
from tsee.distributed import all_gather, all_sum, broadcast
from tsee.preprocessing.sparse import SPARSE_ROWS, divided, square_sums, stays_sparse

__all__ = ["automatic_axes", "kept_neighbors", "leading_axes", "leveled"]

# Up to this many features the covariance matrix is formed; for more features, the subspace is iterated.
MAX_COVARIANCE = 3000
SUBSPACE_PASSES = 5
OVERSAMPLING = 20

# How many axes are tried, one number after the other, until rows keep this share of their nearest neighbors. On images
# 50 axes keep 65 to 85 % of the neighbors that all features give, on vectors of text less than half.
TRIED_AXES = (50, 150, 300)
ENOUGH_KEPT = 0.6
# Neighbors are compared among this many rows at most, in slices evenly spaced over the data, for this many of them.
# Together they have at most this many values.
SLICES, SLICE_ROWS = 256, 32
JUDGED_ROWS, JUDGED_NEIGHBORS = 256, 10
SAMPLE_VALUES = 2**25
# With more axes than the first number, the variance along an axis, relative to the largest, to this power is the
# weight of the axis. The last axes of a flat spectrum hold much noise: at full weight, classes blur.
TAPER = 1 / 8
# If not even the last number of axes keeps enough neighbors, and rows that are brought to one length keep this many
# times as many, then they are. Such axes leave most of a row out, and more of some rows than of others: rows of which
# little is left lie near the mean, and so near all others. In sparse rows of text, these were most of the neighbors.
KEPT_BY_LENGTH = 1.25
# Variances below this share of the largest are rounding.
NO_VARIANCE = 1e-9
# Shorter rows of inputs are not brought to full length.
NO_LENGTH = 1e-12


class Unit(Protocol):
    """Centers a block of rows and divides it."""

    @property
    def mean(self) -> np.ndarray:
        """The mean of each feature."""

    @property
    def divisor(self) -> Any:
        """One number for all features, or one for each."""

    def __call__(self, block: np.ndarray) -> Tensor:
        """The rows, centered and divided, float32."""


def leading_axes(
    X: Any, unit: Unit, n_axes: int, generator: torch.Generator, squares: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The principal axes with the largest variances. A collective.

    Parameters
    ----------
    X : array, CSR matrix or Rows
    unit : Unit
    n_axes : int
    generator : torch.Generator
        Draws the start of the iteration if there are many features.
    squares : Tensor of shape (n_features,) or None
        The sums of the squares of each feature, over the rows of this process, are added to it.

    Returns
    -------
    axes : Tensor of shape (n_features, n_axes), float64
        The largest weight of each is positive.
    variances : Tensor of shape (n_axes,), float64
        In descending order.
    """
    n_features = X.shape[1]
    if n_features <= MAX_COVARIANCE:
        span = None
        covariance = _product(X, unit, None, squares)
    else:
        span = torch.randn(n_features, min(n_axes + OVERSAMPLING, n_features), generator=generator)
        for i in range(SUBSPACE_PASSES):
            span = _product(X, unit, torch.linalg.qr(span).Q, squares if i == 0 else None).float()
        span = torch.linalg.qr(span).Q
        covariance = span.T.double() @ _product(X, unit, span.double() if stays_sparse(X) else span)
    variances, axes = torch.linalg.eigh(covariance)  # ascending
    leading = axes[:, -n_axes:].flip(1)
    leading = leading if span is None else span.double() @ leading  # (features, axes)
    # The sign of an axis is arbitrary; a positive largest weight makes it the same everywhere.
    signs = leading.gather(0, leading.abs().argmax(0, keepdim=True)).sign()
    return leading * torch.where(signs == 0, 1.0, signs), variances[-n_axes:].flip(0)


def automatic_axes(
    X: Any, unit: Unit, most: int, generator: torch.Generator, squares: Tensor
) -> tuple[Tensor, Tensor, bool]:
    """As many principal axes as the neighbors of the rows need, the last ones with less weight. A collective.

    There are 50 axes if these keep at least 60 % of the nearest neighbors that all features give to a sample of the
    rows, else 150 or 300. More than 50 axes are weighted by the eighth root of the variance along them. If 300 keep
    less than 60 %, rows may have to be brought to one length.

    Parameters
    ----------
    X, unit, generator, squares
        As in `leading_axes`.
    most : int
        The largest number of axes that the data have.

    Returns
    -------
    axes : Tensor of shape (n_features, n_axes), float64
        Their lengths are their weights; the first has a length of 1.
    variances : Tensor of shape (n_axes,), float64
        Along the axes, times the squares of the weights.
    level : bool
        Whether the rows keep more of their neighbors if they are brought to one length (`leveled`).
    """
    sample = _sample(X, unit)
    axes, variances = torch.empty(X.shape[1], 0), torch.empty(0)
    for n_axes in TRIED_AXES:
        n_axes = min(n_axes, most)
        if axes.shape[1] < n_axes:  # an iteration takes longer with more axes; a covariance matrix has all of them
            found = min(most, TRIED_AXES[-1]) if X.shape[1] <= MAX_COVARIANCE else n_axes
            wanted = squares if axes.shape[1] == 0 else None
            axes, variances = leading_axes(X, unit, found, generator, wanted)
            rank = max(1, int((variances > NO_VARIANCE * variances[0]).sum()))  # the data may not have more axes
            axes, variances, most = axes[:, :rank], variances[:rank], min(most, rank) if rank < found else most
            n_axes = min(n_axes, most)
        taper = (variances[:n_axes].clamp_min(0) / variances[0].clamp_min(1e-300)) ** TAPER
        weights = taper if n_axes > TRIED_AXES[0] else torch.ones_like(taper)
        weighted = axes[:, :n_axes] * weights
        # Processors may round differently: one process decides for all.
        projected = sample @ weighted.float()
        kept = float(broadcast(torch.tensor(kept_neighbors(sample, projected))))
        if n_axes == most or kept >= ENOUGH_KEPT:
            break
    level = False
    if kept < ENOUGH_KEPT:
        at_one_length = float(broadcast(torch.tensor(kept_neighbors(sample, leveled(projected, 1.0)))))
        level = at_one_length > KEPT_BY_LENGTH * kept
    return weighted, variances[:n_axes] * weights.square(), level


def leveled(inputs: Tensor, length: float | None) -> Tensor:
    """Rows of inputs, brought to one length; rows of zeros stay zeros, and None leaves all rows as they are.

    Examples
    --------
    >>> leveled(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), 10.0)
    tensor([[6., 8.],
            [0., 0.]])
    """
    if length is None:
        return inputs
    lengths = inputs.square().sum(1, keepdim=True).sqrt()
    return inputs * (length / lengths.clamp_min(NO_LENGTH))


def kept_neighbors(rows: Tensor, projected: Tensor) -> float:
    """The share of the 10 nearest neighbors of some rows that are also their nearest where they are projected.

    Parameters
    ----------
    rows : Tensor of shape (n, d)
    projected : Tensor of shape (n, k)
        The same rows.

    Examples
    --------
    >>> import torch
    >>> rows = torch.randn(500, 8, generator=torch.Generator().manual_seed(0))
    >>> kept_neighbors(rows, rows), round(kept_neighbors(rows, rows[:, :4]), 1)
    (1.0, 0.2)
    """
    n = len(rows)
    k = min(JUDGED_NEIGHBORS, n - 1)
    if k < 1:
        return 1.0
    count = min(n, JUDGED_ROWS)
    judged = torch.arange(count) * n // count
    found = []
    for compared in (rows, projected):
        scores = torch.addmm(compared.square().sum(1), compared[judged], compared.T, alpha=-2)
        scores[torch.arange(count), judged] = torch.inf
        found.append(scores.topk(k, largest=False).indices)
    kept = (found[0][:, :, None] == found[1][:, None]).any(2)
    return float(kept.double().mean())


def _sample(X: Any, unit: Unit) -> Tensor:
    """Rows of all processes, evenly spaced and in all features."""
    share = X.shape[0] / all_sum(X.shape[0])
    rows = max(1, round(share * min(SLICES * SLICE_ROWS, SAMPLE_VALUES // X.shape[1])))
    parts = spaced_slices(X.shape[0], -(-rows // SLICE_ROWS), SLICE_ROWS)
    return all_gather(torch.cat([unit(dense(X, part)) for part in parts]))


def _product(X: Any, unit: Unit, span: Tensor | None, squares: Tensor | None = None) -> Tensor:
    """The covariance of ``X``, or its product with ``span``, summed in float64 over blocks.

    The sum of the squares of each feature, over the rows of this process, is added to ``squares``.
    """
    products: Tensor | float = 0.0
    if span is not None and stays_sparse(X):
        if squares is not None:
            squares += torch.from_numpy(square_sums(X, unit.mean, unit.divisor))
        for rows in blocks(X.shape[0], SPARSE_ROWS):
            products = products + _sparse_product(X[rows], unit, span.numpy()).double()
        return all_sum(torch.as_tensor(products)) / all_sum(X.shape[0])
    for rows in blocks(X.shape[0]):
        block = unit(dense(X, rows))  # (rows, features)
        products = products + (block.T @ (block if span is None else block @ span)).double()
        if squares is not None:
            squares += block.double().square().sum(0)
    assert isinstance(products, Tensor)
    return all_sum(products) / all_sum(X.shape[0])


def _sparse_product(block: Any, unit: Unit, span: np.ndarray) -> Tensor:
    r"""The same of sparse rows :math:`S`, whose zeros are never written out.

    .. math:: B^T B V, \qquad B = S D^{-1} - 1 (D^{-1} \mu)^T

    Quotients are near 1 whatever the scale of the data, and within the range of float32. Divided axes would not be.
    """
    rows = divided(block, unit.divisor, np.result_type(block.dtype, span.dtype))
    middle = (unit.mean / unit.divisor).astype(rows.dtype)
    along = rows @ span - middle @ span  # (rows, axes)
    return torch.from_numpy(rows.T @ along - middle[:, None] * along.sum(0))
