"""What stands between the data and the network: centering, one global scale, and a PCA."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsee.data import apply_padded, blocks, dense
from tsee.distributed import all_max, all_sum

__all__ = ["Inputs", "Preprocessing", "fit_preprocessing"]

# Up to this many features the covariance matrix is formed; beyond it, the subspace is iterated.
MAX_COVARIANCE = 3000
SUBSPACE_PASSES = 5
OVERSAMPLING = 20


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
    spread: np.ndarray | None = None

    @property
    def n_inputs(self) -> int:
        return len(self.mean) if self.basis is None else self.basis.shape[1]

    def __call__(self, block: np.ndarray) -> Tensor:
        """Rows of data as the network's inputs, float32."""
        # Centered in the precision of the data: a large offset costs no digits. torch has all cores do it.
        # It takes no rows that are stored backwards, of which numpy calls a single one contiguous.
        rows = block.copy() if min(block.strides) < 0 else np.require(block, requirements=["C", "W"])
        inputs = torch.from_numpy(rows) - torch.from_numpy(self.mean.astype(rows.dtype))
        inputs = inputs.mul_(1 / self.scale).float()
        if self.basis is None:
            return inputs
        basis = torch.from_numpy(self.basis)
        return apply_padded(lambda rows: rows @ basis, inputs)

    def outside(self, block: np.ndarray, inputs: Tensor) -> Tensor:
        """The squared length of what the inputs leave out of each row, in the units of inputs."""
        if self.basis is None:
            return torch.zeros(len(inputs))
        centered = (block - self.mean.astype(block.dtype)) / self.scale
        whole = torch.from_numpy(np.einsum("ij,ij->i", centered, centered, dtype=np.float64))
        return (whole - inputs.double().square().sum(1)).clamp_min_(0).float()

    def inverse(self, inputs: Tensor) -> np.ndarray:
        """Inputs back in the units of the data, within the span of the principal axes."""
        centered = inputs.numpy() if self.basis is None else inputs.numpy() @ self.basis.T
        return (centered * self.scale + self.mean).astype(np.float32)


class Inputs:
    """Data as the network's inputs: ``inputs[a:b]`` is what the preprocessing makes of those rows, made when asked.

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
    def at_hand(self) -> bool:
        """Whether inputs need not be kept: they are rows in memory, but for a shift and a scale."""
        return self.preprocessing.basis is None and isinstance(self._X, np.ndarray)

    def take(self, rows: Tensor) -> Tensor:
        """The inputs of rows `at_hand`, by their numbers."""
        return self.preprocessing(dense(self._X[rows.numpy()], slice(0, len(rows))))

    def __getitem__(self, rows: slice) -> Tensor:
        start, stop, _ = rows.indices(len(self))
        made = torch.empty((stop - start, self.shape[1]))
        for part in blocks(stop - start):
            made[part] = self.preprocessing(dense(self._X, slice(start + part.start, start + part.stop)))
        return made


def fit_preprocessing(
    X: Any, n_inputs: int | None, generator: torch.Generator, *, standardize: bool = False, names: Any = None
) -> Preprocessing:
    """Learn the mean, the scale and, where ``n_inputs`` is fewer than the features, the principal axes.

    The scale makes the mean variance of an input 1, so that pixels in 0..255 and in 0..1 are the same
    to everything that follows.
    """
    n_features = X.shape[1]
    n_rows = all_sum(X.shape[0])
    mean = np.zeros(n_features)
    for rows in blocks(X.shape[0]):
        mean += (dense(X, rows).astype(np.float64) / n_rows).sum(0)
    mean = all_sum(torch.from_numpy(mean)).numpy()
    # Squares are summed in units of the largest deviation: they neither overflow nor vanish.
    deviation = all_max(max(float(np.abs(dense(X, rows) - mean).max()) for rows in blocks(X.shape[0])))
    # Deviations of no more than the data's own precision are none; in units of 1 they stay as small as they are.
    precision = float(np.abs(mean).max()) * 8 * float(np.finfo(np.result_type(X.dtype, np.float32)).eps)
    varies = deviation > precision
    unit = Preprocessing(mean, deviation if varies else 1.0, None)
    if n_inputs is None or n_inputs >= n_features:
        squares = sum(unit(dense(X, rows)).double().square().sum() for rows in blocks(X.shape[0]))
        assert isinstance(squares, Tensor)
        variance = float(all_sum(squares)) / n_rows
        return Preprocessing(mean, unit.scale * (variance / n_features) ** 0.5 if varies else 1.0, None)
    kept = min(n_inputs, n_rows - 1)
    if n_features <= MAX_COVARIANCE:
        span = None
        covariance = _product(X, unit, None)
    else:
        span = torch.randn(n_features, min(kept + OVERSAMPLING, n_features), generator=generator)
        for _ in range(SUBSPACE_PASSES):
            span = torch.linalg.qr(_product(X, unit, torch.linalg.qr(span).Q).float()).Q
        covariance = span.T.double() @ _product(X, unit, span)
    values, axes = torch.linalg.eigh(covariance)  # ascending
    leading = axes[:, -kept:].flip(1)
    leading = leading if span is None else span.double() @ leading  # (features, kept)
    # An axis points either way; the way of its largest weight makes it the same everywhere.
    signs = leading.gather(0, leading.abs().argmax(0, keepdim=True)).sign()
    basis = (leading * torch.where(signs == 0, 1.0, signs)).float().numpy()
    variance = float(values[-kept:].sum()) / kept
    return Preprocessing(mean, unit.scale * variance**0.5 if varies else 1.0, basis)


def _product(X: Any, unit: Preprocessing, span: Tensor | None) -> Tensor:
    """The covariance of ``X``, or its product with ``span``, summed in float64 over blocks."""
    products: Tensor | float = 0.0
    for rows in blocks(X.shape[0]):
        block = unit(dense(X, rows))  # (rows, features)
        products = products + (block.T @ (block if span is None else block @ span)).double()
    assert isinstance(products, Tensor)
    return all_sum(products) / all_sum(X.shape[0])
