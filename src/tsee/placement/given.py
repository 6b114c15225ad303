"""Positions among neighbors that are given."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tsee.data import pad_rows
from tsee.exemplars import Exemplars
from tsee.neighbors import GivenNeighbors
from tsee.placement.refined import NEIGHBORS, SETTLED_ROWS, among_neighbors

__all__ = ["given_positions"]


@torch.inference_mode()
def given_positions(exemplars: Exemplars, neighbors: Any, n_rows: int, n_fitted: int) -> Tensor:
    """Positions of rows among the nearest 20 of their given neighbors; each is independent of the other rows.

    Parameters
    ----------
    exemplars : Exemplars
        All rows of ``fit``, with their positions.
    neighbors : sparse matrix of shape (n_rows, z), or pair of arrays of shape (n_rows, k)
        The distances of the rows from exemplars, or the numbers of these and the distances.
    n_rows : int
    n_fitted : int
        The rows of ``fit`` and of updates: all must be exemplars.

    Returns
    -------
    Tensor of shape (n_rows, h)
    """
    if exemplars.indices is None or n_fitted != len(exemplars):
        raise ValueError(
            "The 'neighbors' parameter of transform needs a map on which every row is an exemplar, and this one has "
            f'{len(exemplars):,} exemplars of {n_fitted:,} rows: fit with neighbors, or with exemplars="points" and '
            "n_exemplars=None."
        )
    assert exemplars.positions is not None
    given = GivenNeighbors.checked(neighbors, n_rows, len(exemplars))
    found = torch.empty((n_rows, exemplars.positions.shape[1]))
    counts = given.counts.clamp_max(NEIGHBORS)
    for count in counts.unique().tolist():
        for rows in torch.nonzero(counts == count).squeeze(1).split(SETTLED_ROWS):
            # Padded: sums over few rows can be taken in another order than sums over many.
            indices, distances = (pad_rows(part) for part in given.nearest(rows, count))
            found[rows] = among_neighbors(indices, distances, exemplars.positions)[: len(rows)]
    return found
