"""What stands between the data and the network: centring, one global scale, and a PCA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsee.data import blocks, dense

__all__ = ["Preprocessing", "evenly", "fit_preprocessing"]

# Up to this many features the covariance matrix is formed; beyond it, the subspace is iterated.
MAX_COVARIANCE = 3000
SUBSPACE_PASSES = 5
OVERSAMPLING = 20
EVEN_ROWS = 32


@dataclass(frozen=True)
class Preprocessing:
    r"""The affine map :math:`u = B^T (x - \mu) / s` that rows pass before the network sees them.

    Attributes
    ----------
    mean : ndarray of shape (n_features,), float64
    scale : float
        The same for all features, so that distances keep their proportions.
    basis : ndarray of shape (n_features, n_inputs), float32, or None
        The leading principal axes; None leaves the features as they are.
    """

    mean: np.ndarray
    scale: float
    basis: np.ndarray | None

    @property
    def n_inputs(self) -> int:
        return len(self.mean) if self.basis is None else self.basis.shape[1]

    def __call__(self, block: np.ndarray) -> Tensor:
        """Rows of data as the network's inputs, float32."""
        # Centred in the precision of the data: a large offset costs no digits.
        centred = block - self.mean.astype(block.dtype)
        centred *= 1 / self.scale
        inputs = torch.from_numpy(centred.astype(np.float32, copy=False))
        return inputs if self.basis is None else inputs @ torch.from_numpy(self.basis)

    def apply(self, X: Any) -> Tensor:
        """All rows of ``X`` as inputs, read a block at a time."""
        inputs = torch.empty((X.shape[0], self.n_inputs))
        for rows in blocks(X.shape[0]):
            inputs[rows] = evenly(self, dense(X, rows))
        return inputs

    def inverse(self, inputs: Tensor) -> np.ndarray:
        """Inputs back in the units of the data, within the span of the principal axes."""
        centred = inputs.numpy() if self.basis is None else inputs.numpy() @ self.basis.T
        return (centred * self.scale + self.mean).astype(np.float32)


def evenly(function: Callable[[Any], Tensor], block: Any) -> Tensor:
    """``function`` of the rows of a block, filled up to a multiple of 32 rows for it.

    Matrix products of a few rows take other routines than those of many and round differently; with
    this a row's result does not depend on how many others came with it.
    """
    missing = -len(block) % EVEN_ROWS
    if not missing:
        return function(block)
    if isinstance(block, np.ndarray):
        filled: Any = np.concatenate([block, np.repeat(block[:1], missing, axis=0)])
    else:
        filled = torch.cat([block, block[:1].expand(missing, -1)])
    return function(filled)[: len(block)]


def fit_preprocessing(X: Any, n_inputs: int | None, generator: torch.Generator) -> Preprocessing:
    """Learn the mean, the scale and, where ``n_inputs`` is fewer than the features, the principal axes.

    The scale makes the mean variance of an input 1, so that pixels in 0..255 and in 0..1 are the same
    to everything that follows.
    """
    n_rows, n_features = X.shape
    total = np.zeros(n_features)
    largest = 0.0
    for rows in blocks(n_rows):
        block = dense(X, rows)
        total += block.sum(0, dtype=np.float64) / n_rows
        largest = max(largest, float(np.abs(block).max()))
    # Squares are summed in units of the largest value: they neither overflow nor vanish.
    unit = Preprocessing(total, largest or 1.0, None)
    if n_inputs is None or n_inputs >= n_features:
        variance = sum(float(unit(dense(X, rows)).double().square().sum()) for rows in blocks(n_rows)) / n_rows
        return Preprocessing(total, _scale(variance / n_features, unit.scale), None)
    kept = min(n_inputs, n_rows - 1)
    if n_features <= MAX_COVARIANCE:
        span = torch.eye(n_features)
        covariance = _product(X, unit, span)
    else:
        span = torch.randn(n_features, min(kept + OVERSAMPLING, n_features), generator=generator)
        for _ in range(SUBSPACE_PASSES):
            span = torch.linalg.qr(_product(X, unit, torch.linalg.qr(span).Q).float()).Q
        covariance = span.T.double() @ _product(X, unit, span)
    values, axes = torch.linalg.eigh(covariance)  # ascending
    leading = span.double() @ axes[:, -kept:].flip(1)  # (features, kept)
    # An axis points either way; the way of its largest weight makes it the same everywhere.
    signs = leading.gather(0, leading.abs().argmax(0, keepdim=True)).sign()
    basis = (leading * torch.where(signs == 0, 1.0, signs)).float().numpy()
    return Preprocessing(total, _scale(float(values[-kept:].sum()) / kept, unit.scale), basis)


def _product(X: Any, unit: Preprocessing, span: Tensor) -> Tensor:
    """The covariance of ``X`` times ``span``, summed in float64 over blocks."""
    total = torch.zeros(X.shape[1], span.shape[1], dtype=torch.float64)
    whole = span.shape[0] == span.shape[1]
    for rows in blocks(X.shape[0]):
        block = unit(dense(X, rows))  # (rows, features)
        total += block.T @ (block if whole else block @ span)
    return total / X.shape[0]


def _scale(variance: float, unit: float) -> float:
    """The scale for which a mean variance in the given unit becomes 1 (1 for data that do not vary)."""
    # Below this the "variance" of float32 rows is rounding.
    return unit * variance**0.5 if variance > 1e-14 else unit
