"""How much two maps of the same rows differ once they are laid on one another."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from tsee.metrics.inputs import check_rows, dense

__all__ = ["map_disparity"]


def map_disparity(Y1: Any, Y2: Any) -> float:
    r"""What remains of the difference of two maps after the best shift, scale, rotation and reflection.

    .. math:: \min_{s, R} \; \left\| \tilde{Y}_1 - s \tilde{Y}_2 R \right\|^2
              = 1 - \left( \sum_i \sigma_i(\tilde{Y}_1^\top \tilde{Y}_2) \right)^2

    where :math:`\tilde{Y}` is a map minus its mean, divided by its norm, R is orthogonal, and :math:`\sigma_i` are
    singular values. It is 0 for maps of the same shape and close to 1 for unrelated maps of many rows. It does not
    depend on which map comes first, and equals the disparity of ``scipy.spatial.procrustes``. Two fits of the same
    data with different seeds show by it how far the large shape of a map can be relied on.

    Parameters
    ----------
    Y1 : array-like of shape (n, c)
        A map.
    Y2 : array-like of shape (n, b)
        Another map of the same rows in the same order. If it has another number of columns, the narrower map is taken
        as flat in the missing ones.

    Returns
    -------
    float
        Between 0 and 1; the lower, the more alike the maps are.

    Examples
    --------
    >>> from tsee.metrics import map_disparity
    >>> Y1 = [[0, 0], [4, 0], [4, 2]]
    >>> map_disparity(Y1, [[5, 5], [5, 13], [1, 13]])  # turned, shifted, and twice as large
    0.0
    >>> map_disparity(Y1, [[4, 2], [0, 0], [4, 0]])
    0.39
    """
    first, second = (_standardized(Y, name) for Y, name in ((Y1, "Y1"), (Y2, "Y2")))
    if len(first) != len(second):
        raise ValueError(f"Y1 and Y2 must be maps of the same rows. Got {len(first)} and {len(second)} rows instead.")
    singular_values = np.linalg.svd(first.T @ second, compute_uv=False)
    return float(np.clip(1 - singular_values.sum() ** 2, 0, 1))


def _standardized(Y: Any, name: str) -> NDArray[np.float64]:
    """A map with mean 0 and norm 1."""
    rows: NDArray[np.float64] = dense(check_rows(Y, name), torch.float64).cpu().numpy()
    rows -= rows[0].copy()  # before anything is rounded: a small map may be far from the origin
    if not rows.any():
        raise ValueError(
            f"{name} must have at least two different points, as it is scaled to the size of the other map. "
            f"Got {len(rows)} equal ones instead."
        )
    rows /= np.abs(rows).max()  # so that no square is too large or too small
    rows -= rows.mean(0)
    return rows / np.linalg.norm(rows)
