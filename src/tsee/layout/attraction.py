"""The attraction of all pairs that carry probability."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from scipy.sparse import csr_matrix, hstack
from torch import Tensor
from torch.nn.functional import embedding_bag, pad

from tsee.affinities import Affinities
from tsee.data import blocks

__all__ = ["Attraction"]

# Pairs whose forces are computed together, in memory that every call uses again: fresh memory for all pairs would take
# longer to map than the forces take to compute.
PAIRS = 2**19


class Attraction:
    """For each i the sum over j of p_ij w_ij (y_i - y_j), a quarter of the gradient of the attraction.

    Call it with all positions, of shape (n, h).

    Parameters
    ----------
    affinities : Affinities
        The neighbors of positions among themselves. p is symmetric (equation 3): the mean of both directions, over n.
    n_held : int
        The first so many positions are held: they have no neighbors of their own and feel nothing. Those who choose
        them as neighbors count as chosen by them in return.
    own : slice, optional
        The positions whose forces are computed; by default all that are not held.
    order : Tensor of shape (n,), optional
        The positions come in this order. Where neighbors are near each other in memory, they are gathered faster.
    """

    def __init__(
        self, affinities: Affinities, n_held: int = 0, own: slice | None = None, order: Tensor | None = None
    ) -> None:
        n_felt, k = affinities.indices.shape
        n = n_held + n_felt
        # 32 bits, half of what they would take otherwise.
        chosen = (affinities.probabilities.float().numpy().ravel(), affinities.indices.int().numpy().ravel())
        one_way = csr_matrix((*chosen, np.arange(0, n_felt * k + 1, k)), shape=(n_felt, n))
        among = one_way[:, n_held:] if n_held else one_way
        both = (among + among.T).tocsr()
        if n_held:
            both = hstack([2 * one_way[:, :n_held], both], format="csr")
        del one_way, among
        if order is not None:
            _reorder(both, order.numpy())
        self.own = slice(n_held, n) if own is None else own
        if self.own != slice(n_held, n):
            both = both[self.own.start - n_held : self.own.stop - n_held]
        both.data /= 2 * n
        self.probabilities = torch.from_numpy(both.data)
        self.others, self.starts = torch.from_numpy(both.indices), torch.from_numpy(both.indptr)
        numbers = torch.arange(self.own.start, self.own.stop, dtype=self.starts.dtype)
        self.rows = torch.repeat_interleave(numbers, self.starts.diff())
        self.totals = torch.from_numpy(np.asarray(both.sum(1), dtype=np.float32)).flatten()  # of all n together 1
        self._parts = list(_parts(both.indptr))
        longest = max(int(self.starts[part.stop] - self.starts[part.start]) for part in self._parts)
        self._here, self._there = (torch.empty(longest, dtype=torch.complex64) for _ in range(2))
        self._pulls = torch.empty(longest)

    def __call__(self, positions: Tensor) -> Tensor:
        n, h = positions.shape
        # Complex numbers gather and subtract two coordinates at once.
        planes = torch.view_as_complex(pad(positions, (0, h % 2)).view(n, -1, 2)).T.contiguous()  # (h / 2, n)
        table = torch.cat([positions, torch.ones_like(positions[:, :1])], 1)
        pulled = torch.empty_like(table[self.own])
        for rows in self._parts:
            first, last = int(self.starts[rows.start]), int(self.starts[rows.stop])
            pairs, others = slice(first, last), self.others[first:last]
            here, there, pulls = (memory[: last - first] for memory in (self._here, self._there, self._pulls))
            pulls.fill_(1)
            for plane in planes:
                torch.index_select(plane, 0, self.rows[pairs], out=here)
                here.sub_(torch.index_select(plane, 0, others, out=there))
                pulls.addcmul_(here.real, here.real).addcmul_(here.imag, here.imag)
            torch.div(self.probabilities[pairs], pulls, out=pulls)
            starts = self.starts[rows.start : rows.stop + 1] - first
            pulled[rows] = embedding_bag(
                others, table, starts, per_sample_weights=pulls, mode="sum", include_last_offset=True
            )
        return pulled[:, h:] * positions[self.own] - pulled[:, :h]


def _reorder(matrix: csr_matrix, order: np.ndarray) -> None:
    """Bring rows and columns into another order, in half the memory that the matrix takes."""
    place = np.empty(len(order), dtype=matrix.indices.dtype)
    place[order] = np.arange(len(order), dtype=place.dtype)
    begins, lengths = matrix.indptr[:-1][order], np.diff(matrix.indptr)[order]
    starts = np.concatenate([[0], lengths.cumsum()]).astype(matrix.indptr.dtype)
    for name in ("data", "indices"):
        values = getattr(matrix, name)
        moved = np.empty_like(values)
        for rows in _parts(starts):
            first, last = starts[rows.start], starts[rows.stop]
            shifts = np.repeat(begins[rows] - starts[rows], lengths[rows])
            moved[first:last] = values[np.arange(first, last) + shifts]
        setattr(matrix, name, moved)
    for part in blocks(len(matrix.indices), PAIRS):
        matrix.indices[part] = place[matrix.indices[part]]
    matrix.indptr = starts


def _parts(starts: np.ndarray) -> Iterator[slice]:
    """Slices of rows that have at most PAIRS pairs together, or one row."""
    first, n = 0, len(starts) - 1
    while first < n:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + PAIRS, side="right")) - 1)
        yield slice(first, last)
        first = last
