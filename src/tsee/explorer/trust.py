"""How far to trust the position of a point: its neighbors in the data, and where the network alone would place it."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.spatial import KDTree
from torch import Tensor

from tsee.data.matrix import check_matrix
from tsee.explorer.packing import Arrays
from tsee.fitted import FittedMap
from tsee.metric.names import PRECOMPUTED, metric_of
from tsee.neighbors import build_index
from tsee.networks import NoNetwork
from tsee.placement.forward import forward_positions
from tsee.preprocessing import Inputs

__all__ = ["describe_trust"]

# How many neighbors of a row are compared and listed.
NEIGHBORS = 10
# Pages of more rows know no neighbors: finding them takes long, and 20 bytes per row are a lot.
MAX_ROWS = 65_536


def describe_trust(fitted: FittedMap, positions: np.ndarray, X: Any) -> tuple[dict[str, Any] | None, Arrays]:
    """The nearest rows of each row in the data, how many of them are nearest on the map, and the network's position.

    Parameters
    ----------
    fitted : FittedMap
    positions : ndarray of shape (n, 2)
    X : array, CSR matrix, Rows or None
        The rows. Without them, they are known if all rows of ``fit`` are exemplars and the map shows them.

    Returns
    -------
    description : dict or None
        None if the rows are not known, or are too few or too many.
    arrays : dict
        ``dataNeighbors`` (n, k), ``kept`` (n,), and for maps that refine positions ``strayed`` (n,): the distance to
        the network's own position, in 65,535ths of the longer side of the map.
    """
    n_rows = len(positions)
    n_neighbors = min(NEIGHBORS, n_rows - 1)
    given = fitted.preprocessing.metric == PRECOMPUTED  # distances from exemplars say nothing of those between rows
    if n_neighbors < 1 or n_rows > MAX_ROWS or given:
        return None, {}
    inputs = _inputs(fitted, positions, X)
    if inputs is None:
        return None, {}
    index = build_index(inputs, NEIGHBORS, metric_of(fitted.preprocessing.metric))
    found = index.query(inputs, n_neighbors, torch.arange(n_rows))[0].numpy()  # (n, k)
    arrays: Arrays = {
        "dataNeighbors": found.astype(np.uint16),
        "kept": kept_neighbors(found, positions).astype(np.uint8),
    }
    if fitted.placement == "refined" and not isinstance(fitted.network, NoNetwork):
        extent = float(np.ptp(positions, axis=0).max()) or 1.0
        forward = forward_positions(fitted.network, inputs).cpu().numpy()
        strayed = np.linalg.norm(forward - positions, axis=1) / extent
        arrays["strayed"] = np.round(strayed.clip(0, 1) * 65535).astype(np.uint16)
    return {"neighbors": n_neighbors}, arrays


def kept_neighbors(neighbors: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """How many of the ``k`` nearest rows in the data (n, k) are among the ``k`` nearest on the map: (n,)."""
    n_rows, k = neighbors.shape
    near = KDTree(positions).query(positions, k + 1)[1]  # (n, k + 1)
    # Rows at the same position can push a row out of its own neighbors: then the farthest is dropped instead.
    itself = near == np.arange(n_rows)[:, None]
    itself[~itself.any(1), -1] = True
    near = near[~itself].reshape(n_rows, k)
    return (neighbors[:, :, None] == near[:, None, :]).any(2).sum(1)


def _inputs(fitted: FittedMap, positions: np.ndarray, X: Any) -> Tensor | None:
    """The rows as the network sees them, if they are known."""
    if X is not None:
        X = check_matrix(X, fitted.n_features, fitted.feature_names)
        if X.shape[0] != len(positions):
            raise ValueError(
                f"The 'X' parameter of a page must have the {len(positions)} rows of the map. Got {X.shape[0]} instead."
            )
        return Inputs(X, fitted.preprocessing)[0 : len(positions)]
    exemplars = fitted.exemplars
    if exemplars is None or exemplars.indices is None or len(exemplars) != len(positions):
        return None
    own = fitted.exemplar_positions().cpu().numpy()
    return exemplars.inputs.cpu().float() if np.allclose(own, positions, atol=1e-5 * np.ptp(own)) else None
