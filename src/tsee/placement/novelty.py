"""How unlike the rows of ``fit`` a row is: its distance from the exemplars, compared with theirs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from tsee.data import pad_rows, spaced_slices
from tsee.neighbors import Index

__all__ = ["NEIGHBORS", "NoveltyReference", "exemplar_distances", "sample_slices", "share_nearer", "subsample"]

# The nearest exemplars whose mean squared distance counts: a single one can be as odd as the row itself.
NEIGHBORS = 5
# The rows of fit that novelty is measured against: this many slices of this many rows, evenly spaced over the data.
SLICES, SLICE_ROWS = 64, 128
# At most this many exemplars stand for all of them when all are too many to carry along.
SUBSAMPLE_SIZE = 2000


@dataclass(frozen=True, eq=False)
class NoveltyReference:
    """How far rows of ``fit`` lie from their nearest exemplars, not counting themselves.

    Attributes
    ----------
    distances : Tensor of shape (n,), float32
        Distances of a sample of the rows of ``fit``, in ascending order.
    subsample_distances : Tensor of shape (n,), float32
        The same to a `subsample` of the exemplars.
    """

    distances: Tensor
    subsample_distances: Tensor


def share_nearer(reference: Tensor, distances: Tensor) -> Tensor:
    """The share of an ascending ``reference`` that is smaller than each of ``distances``, float32."""
    return (torch.searchsorted(reference, distances.contiguous()) / len(reference)).float()


def exemplar_distances(
    inputs: Tensor, outside: Tensor, index: Index, own: Tensor | None = None, near: Tensor | None = None
) -> Tensor:
    """The distances of rows from their nearest exemplars, including the part that the principal components leave out.

    Parameters
    ----------
    inputs : Tensor of shape (n, d)
    outside : Tensor of shape (n,)
        The squared length of the part of each row that the principal components leave out.
    index : Index
        The exemplars, ready to be searched.
    own : Tensor of shape (n,), optional
        The exemplar that a row itself is, or -1.
    near : Tensor of shape (z,), optional
        What was found before: the mean squared distance of each exemplar from its nearest others, or NaN. Needs
        ``own``.

    Returns
    -------
    Tensor of shape (n,)
    """
    if near is not None and own is not None:
        found = near[own].masked_fill_(own < 0, torch.nan)
        unknown = torch.nonzero(found.isnan()).squeeze(1)
        distances = (found + outside).sqrt()
        if len(unknown):
            distances[unknown] = exemplar_distances(inputs[unknown], outside[unknown], index, own[unknown])
        return distances
    k = min(NEIGHBORS, len(index.rows) - (own is not None))
    _, squared = index.query(inputs, k, exclude=own)
    return (pad_rows(squared).mean(1)[: len(squared)] + outside).sqrt()


def subsample(exemplars: Tensor) -> Tensor:
    """At most 2,000 of the exemplars, evenly spaced."""
    return exemplars[:: -(-len(exemplars) // SUBSAMPLE_SIZE)].contiguous()


def sample_slices(n_rows: int) -> Iterator[slice]:
    """Slices of the rows of ``fit`` that novelty is measured against."""
    return spaced_slices(n_rows, SLICES, SLICE_ROWS)
