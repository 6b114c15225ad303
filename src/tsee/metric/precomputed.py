"""Distances that are given instead of rows."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from tsee.metric.protocol import Prepared

__all__ = ["Precomputed", "check_distances", "check_square"]

# Distances of two rows from each other are the same if they differ by no more than this share of the largest distance:
# programs round them differently.
TOLERANCE = 1e-4


@dataclass(frozen=True)
class Precomputed:
    """Given distances: a row consists of its distances from all candidates, in their order.

    Examples
    --------
    >>> import torch
    >>> D = torch.tensor([[0.0, 3.0, 4.0], [3.0, 0.0, 5.0], [4.0, 5.0, 0.0]])
    >>> Precomputed().among(D, slice(0, 2), torch.tensor([2]))
    tensor([[4.],
            [5.]])
    """

    def origin(self, rows: Tensor) -> None:
        return None

    def prepare(self, rows: Tensor, origin: Tensor | None = None) -> Prepared:
        return Prepared(rows, rows.new_zeros(len(rows)))

    def distances(self, queries: Prepared, candidates: Prepared) -> Tensor:
        return queries.rows.square()

    def scores(self, queries: Prepared, candidates: Prepared) -> Tensor:
        return self.distances(queries, candidates)

    def lengths(self, rows: Tensor, others: Tensor) -> Tensor:
        return rows

    def among(self, inputs: Tensor, rows: slice | Tensor, others: Tensor) -> Tensor:
        return inputs[rows][:, others]

    def exact(self, rows: Tensor, others: Tensor) -> Tensor:
        raise NotImplementedError("Given distances cannot be computed again.")


def check_square(shape: tuple[int, ...], *, sparse: bool) -> None:
    """Refuse data of ``fit`` that cannot be all distances of all rows."""
    if sparse:
        raise ValueError(
            "X is sparse, but metric='precomputed' takes all distances, also between far rows: pass a dense matrix, or "
            "the rows themselves as X and the sparse distances as fit(X, neighbors=...)."
        )
    if shape[0] != shape[1]:
        raise ValueError(
            f"X must be a square matrix with metric='precomputed', the distances of all rows from each other. Got "
            f"shape {tuple(shape)} instead."
        )


def check_distances(distances: Tensor) -> None:
    """Refuse a square matrix whose rows are not at 0 from themselves, or as far from others as these from them."""
    limit = TOLERANCE * float(distances.max())
    far = torch.nonzero(distances.diagonal() > limit).flatten()
    if len(far):
        row = int(far[0])
        raise ValueError(
            f"Row {row} of X is at a distance above 0 from itself, but metric='precomputed' takes distances: set the "
            "diagonal to 0, and turn similarities into distances."
        )
    for row, (there, back) in enumerate(zip(distances, distances.T, strict=True)):
        if bool(((there - back).abs() > limit).any()):
            column = int((there - back).abs().argmax())
            raise ValueError(
                f"X must be symmetric with metric='precomputed', but row {row}, column {column} differs from row "
                f"{column}, column {row} (counted from 0): pass (X + X.T) / 2 if both mean the same."
            )
