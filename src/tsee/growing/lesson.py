"""What the network is taught by an update: the new rows, and again some of the old exemplars."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_matrix
from torch import Tensor

from tsee.affinities import Affinities, conditional_probabilities
from tsee.data import dense
from tsee.distributed import all_gather, rank, world_size
from tsee.exemplars import Exemplars
from tsee.neighbors import Index
from tsee.objectives import Neighborhoods
from tsee.preprocessing import Inputs, Preprocessing

__all__ = ["GrownNeighborhoods", "GrownRows", "Outside", "find_neighbors", "share_of"]


class GrownRows:
    """The inputs of old exemplars, then of new rows: ``rows[a:b]``.

    Parameters
    ----------
    old : Tensor of shape (r, d)
    new : Inputs
    """

    def __init__(self, old: Tensor, new: Inputs) -> None:
        self.old, self.new = old, new
        self.shape = (len(old) + len(new), new.shape[1])

    @property
    def cheap_to_recompute(self) -> bool:
        """Whether inputs need not be kept."""
        return self.new.cheap_to_recompute

    def take(self, rows: Tensor) -> Tensor:
        """The inputs of the rows of these numbers. Only if `cheap_to_recompute`."""
        taken = torch.empty(len(rows), self.shape[1])
        is_old = rows < len(self.old)
        taken[is_old], taken[~is_old] = self.old[rows[is_old]], self.new.take(rows[~is_old] - len(self.old))
        return taken

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Tensor:
        start, stop, _ = rows.indices(len(self))
        n = len(self.old)
        return torch.cat([self.old[start:stop], self.new[max(0, start - n) : max(0, stop - n)]])


class Outside:
    """The squared length of the part of each row that the inputs leave out, as one column: ``outside[a:b]``.

    Parameters
    ----------
    X : array, CSR matrix or Rows
    preprocessing : Preprocessing
    """

    def __init__(self, X: Any, preprocessing: Preprocessing) -> None:
        self._X, self._preprocessing = X, preprocessing
        self.shape = (int(X.shape[0]), 1)

    def __getitem__(self, rows: slice) -> Tensor:
        block = dense(self._X, rows)
        return self._preprocessing.outside(block, self._preprocessing(block))[:, None]


class GrownNeighborhoods(Neighborhoods):
    """The neighbors of the rows of `GrownRows`; those that were found before are not searched for again.

    Of an old exemplar, the network needs to know no more than how far its neighbors are. If new ones have it as a
    neighbor, these are its neighbors.

    Parameters
    ----------
    exemplars : Exemplars
        The old ones, then the new ones.
    perplexity : float
    own : Tensor of shape (n,)
        Which exemplar each row of this process is, or -1.
    known : Affinities
        The neighbors of the last exemplars.
    """

    def __init__(self, exemplars: Exemplars, perplexity: float, own: Tensor, known: Affinities) -> None:
        super().__init__(exemplars, 0, perplexity, known.indices.shape[1])
        self._own, self._known = own, known
        self._first = len(exemplars) - len(known.indices)  # the first whose neighbors are known
        shape = (len(known.indices), len(exemplars))
        starts = np.arange(0, known.indices.numel() + 1, self.n_neighbors)
        lists = csr_matrix((known.probabilities.numpy().ravel(), known.indices.numpy().ravel(), starts), shape=shape)
        self._choosers = lists[:, : self._first].tocsc()

    def find(self, inputs: Tensor, rows: slice) -> tuple[Affinities, Tensor]:
        own = self._own[rows]
        listed = own >= self._first
        indices = torch.empty(len(own), self.n_neighbors, dtype=torch.int64)
        probabilities = torch.empty(len(own), self.n_neighbors)
        indices[listed] = self._known.indices[own[listed] - self._first]
        probabilities[listed] = self._known.probabilities[own[listed] - self._first]
        chosen = ~listed & (own >= 0)
        indices[chosen], probabilities[chosen], found = self._those_who_choose(own[chosen])
        others = ~listed & ~chosen.masked_scatter(chosen, found)
        if others.any():
            nearest, squared = self._index.query(inputs[others], self.n_neighbors, exclude=own[others])
            indices[others], probabilities[others] = nearest, conditional_probabilities(squared, self.perplexity)
        return Affinities(indices, probabilities), own

    def _those_who_choose(self, old: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """New exemplars that have old ones among their neighbors, how probable each is, and which old ones have any."""
        starts, stops = (torch.from_numpy(self._choosers.indptr[old.numpy() + i]).long() for i in (0, 1))
        places = starts[:, None] + torch.arange(self.n_neighbors)  # (old, neighbors)
        some = places < stops[:, None]
        places = torch.where(some, places, 0)
        indices, values = (torch.from_numpy(part) for part in (self._choosers.indices, self._choosers.data))
        if not len(indices):
            return places, torch.zeros(places.shape), torch.zeros(len(old), dtype=torch.bool)
        probabilities = values[places] * some
        totals = probabilities.sum(1, keepdim=True)
        return self._first + indices[places].long(), probabilities / totals.clamp_min(1e-30), totals[:, 0] > 0

    @property
    def nearest(self) -> Tensor:
        return self.of_exemplars().indices

    def of_exemplars(self) -> Affinities:
        assert self._first == 0
        return self._known


def find_neighbors(index: Index, first: int, n_neighbors: int, perplexity: float) -> tuple[Affinities, Tensor]:
    """The neighbors of the last candidates among all, from number ``first`` on, and how far they are. A collective.

    Every process searches for its share of them.
    """
    own = torch.arange(first, len(index.rows))[share_of(len(index.rows) - first)]
    indices, squared = index.query(index.rows[own], n_neighbors, exclude=own)
    found = Affinities(all_gather(indices), all_gather(conditional_probabilities(squared, perplexity)))
    return found, all_gather(squared)


def share_of(n: int) -> slice:
    """The share of this process of n things that all processes have."""
    return slice(rank() * n // world_size(), (rank() + 1) * n // world_size())
