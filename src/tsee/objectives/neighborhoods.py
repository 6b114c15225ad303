"""The nearest exemplars of rows, and the probabilities over them."""

from __future__ import annotations

from functools import cached_property

import torch
from torch import Tensor

from tsee.affinities import Affinities, conditional_probabilities
from tsee.batches import Columns
from tsee.distributed import all_sum
from tsee.exemplars import Exemplars, take
from tsee.labels import Labels
from tsee.neighbors import build_index
from tsee.preprocessing import Inputs, Preprocessing

__all__ = ["Neighborhoods"]


class Neighborhoods:
    """Finds the nearest exemplars of rows and their probabilities; can remember the neighbors of the exemplars, too.

    Parameters
    ----------
    exemplars : Exemplars
    start : int
        The number of this process's first row, over all processes.
    perplexity : float
    n_neighbors : int
        How many exemplars a row's probabilities are spread over.
    remember : bool
        Whether to remember the neighbors of rows that are exemplars, for `of_exemplars`.
    projection : Preprocessing, optional
        From inputs to the fewer numbers that the network is trained on. By default it is trained on the inputs.
    labels : Labels, optional
        The labels of the rows of this process, if neighbors count less whose labels differ. The exemplars must be rows.
    """

    def __init__(
        self,
        exemplars: Exemplars,
        start: int,
        perplexity: float,
        n_neighbors: int,
        *,
        remember: bool = False,
        projection: Preprocessing | None = None,
        labels: Labels | None = None,
    ) -> None:
        self.exemplars, self.start, self.projection = exemplars, start, projection
        self.perplexity, self.n_neighbors = perplexity, n_neighbors
        self._index = exemplars.neighbors or build_index(exemplars.inputs, n_neighbors, exemplars.metric)
        self.labels, self._exemplar_labels = labels, None
        if labels is not None and exemplars.indices is not None:
            self._exemplar_labels = take(labels.values[:, None], exemplars.indices)[:, 0]
        self._remembered = None
        if remember:
            shape = (len(exemplars), n_neighbors)
            self._remembered = Affinities(torch.zeros(shape, dtype=torch.int64), torch.zeros(shape))

    @cached_property
    def seen(self) -> Tensor:
        """The exemplars as the network is trained on them."""
        if self.projection is None:
            return self.exemplars.inputs
        return Inputs(self.exemplars.inputs.numpy(), self.projection)[:]

    def seen_columns(self, inputs: Tensor) -> Columns:
        """The inputs of rows as the network is trained on them, if these are not the inputs themselves."""
        return {} if self.projection is None else {"inputs": self.projection(inputs.numpy())}

    def find(self, inputs: Tensor, rows: slice) -> tuple[Affinities, Tensor | None]:
        """The neighbors of a block of rows, and which exemplar each row is (None if exemplars are centers)."""
        own = self.exemplars.own(rows, self.start)
        indices, distances = self._index.query(inputs, self.n_neighbors, exclude=own)
        found = Affinities(indices, conditional_probabilities(distances, self.perplexity))
        if self._remembered is not None and own is not None:
            mine = own >= 0
            self._remembered.indices[own[mine]] = indices[mine]
            self._remembered.probabilities[own[mine]] = found.probabilities[mine]
        if self.labels is not None and self._exemplar_labels is not None:
            found = self.labels.weigh(found, self.labels.values[rows], self._exemplar_labels)
        return found, own

    def of_exemplars(self) -> Affinities:
        """The neighbors of the exemplars among themselves, each found by the process that has its row; a collective."""
        assert self._remembered is not None
        found = Affinities(all_sum(self._remembered.indices), all_sum(self._remembered.probabilities))
        if self.labels is None or self._exemplar_labels is None:
            return found
        return self.labels.weigh_exemplars(found, self._exemplar_labels)
