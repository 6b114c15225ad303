"""How unlike the training data a row is: its distance from the exemplars, beside those of the training rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from tsee.data import blocks, pad_rows
from tsee.neighbors import Candidates, nearest

__all__ = ["NEIGHBORS", "DistanceReference", "exemplar_distances", "sample_slices", "subsample"]

# The nearest exemplars whose mean squared distance counts: one alone may be as odd as the row itself.
NEIGHBORS = 5
# The training rows that tell what is usual: slices of so many rows, evenly over the data.
SLICES, SLICE_ROWS = 64, 128
# Exemplars that stand for all where these are too many to carry along.
FEW = 2000


@dataclass(frozen=True)
class DistanceReference:
    """How far training rows lie from their nearest exemplars, themselves left out.

    Attributes
    ----------
    distances : Tensor of shape (n,), float32
        Of a sample of the training rows, in ascending order.
    """

    distances: Tensor

    def share_nearer(self, distances: Tensor) -> np.ndarray:
        """The share of the training rows that lie nearer than each of ``distances``."""
        found = torch.searchsorted(self.distances, distances.contiguous()) / len(self.distances)
        return found.float().numpy()


def exemplar_distances(inputs: Tensor, outside: Tensor, candidates: Candidates, own: Tensor | None = None) -> Tensor:
    """The distances of rows from their nearest exemplars, what the principal components leave out included.

    Parameters
    ----------
    inputs : Tensor of shape (n, d)
    outside : Tensor of shape (n,)
        The squared length of what the principal components leave out of each row.
    candidates : Candidates
        The exemplars.
    own : Tensor of shape (n,), optional
        The exemplar that a row is itself, or -1.

    Returns
    -------
    Tensor of shape (n,)
    """
    k = min(NEIGHBORS, len(candidates.rows) - (own is not None))
    _, squared = nearest(inputs, candidates, k, exclude=own)
    return (pad_rows(squared).mean(1)[: len(squared)] + outside).sqrt()


def subsample(exemplars: Tensor) -> Tensor:
    """At most 2,000 of the exemplars, evenly over all of them."""
    return exemplars[:: -(-len(exemplars) // FEW)].contiguous()


def sample_slices(n_rows: int) -> Iterator[slice]:
    """Slices evenly over all rows, in order: all of them where there are few."""
    if n_rows <= SLICES * SLICE_ROWS:
        yield from blocks(n_rows)
        return
    for i in range(SLICES):
        start = i * (n_rows - SLICE_ROWS) // (SLICES - 1)
        yield slice(start, start + SLICE_ROWS)
