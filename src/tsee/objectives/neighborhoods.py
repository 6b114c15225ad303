"""The nearest exemplars of rows, and the probabilities over them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Protocol

import torch
from torch import Tensor

from tsee.affinities import Affinities, conditional_probabilities
from tsee.batches import Columns
from tsee.distributed import all_sum, broadcast, rank, world_size
from tsee.exceptions import CheckpointError
from tsee.exemplars import Exemplars, take
from tsee.labels import Labels
from tsee.metric import euclidean
from tsee.neighbors import MOST_IN_CELLS, build_index, part_of
from tsee.preprocessing import Inputs, Preprocessing
from tsee.progress import progress_bar

__all__ = ["Keeper", "Neighborhoods"]

# Exemplars whose neighbors are searched for together.
SEARCHED_ROWS = 2**15
# So many positions do not stay in the cache of a processor: a layout gathers more of them faster in another order.
SCATTERED = 2**18


class Keeper(Protocol):
    """Keeps the neighbors of exemplars, so that a search that was stopped does not begin again."""

    def read(self, n: int, k: int) -> Iterable[tuple[Tensor, Affinities]]:
        """The numbers of some of ``n`` exemplars, which this process found before, and their ``k`` neighbors."""
        ...

    def add(self, rows: Tensor, found: Affinities) -> None:
        """The neighbors of the exemplars of these numbers were found; ``found`` has a row for every exemplar."""
        ...

    def finish(self, found: Affinities) -> None:
        """All neighbors were found."""
        ...


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
        Whether to find the neighbors of the exemplars among themselves first, for `of_exemplars`. The exemplars must be
        rows.
    projection : Preprocessing, optional
        From inputs to the fewer numbers that the network is trained on. By default it is trained on the inputs.
    labels : Labels, optional
        The labels of the rows of this process, if neighbors count less whose labels differ. The exemplars must be rows.
    learners : Tensor, optional
        The exemplars that the rows of this process are, if the network learns from exemplars only.
    keeper : Keeper, optional
        Keeps the neighbors of the exemplars while they are searched for.
    verbose : bool
        Whether to show how far the search for the exemplars' neighbors is.
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
        learners: Tensor | None = None,
        keeper: Keeper | None = None,
        verbose: bool = False,
    ) -> None:
        self.exemplars, self.start, self.projection = exemplars, start, projection
        self.learners = learners
        self.perplexity, self.n_neighbors = perplexity, n_neighbors
        if n_neighbors <= MOST_IN_CELLS:
            self._index = exemplars.neighbors or exemplars.index
        else:
            self._index = exemplars.neighbors or build_index(exemplars.inputs, n_neighbors, exemplars.metric)
        self.labels, self._exemplar_labels = labels, None
        if labels is not None and exemplars.indices is not None:
            self._exemplar_labels = take(labels.values[:, None], exemplars.indices)[:, 0]
        self._of_exemplars = self._search(keeper, verbose=verbose) if remember else None

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
        own = self.exemplars.own(rows, self.start) if self.learners is None else self.learners[rows]
        known = self._of_exemplars
        if known is None or own is None:
            found = self._nearest(inputs, own)
        else:
            others = own < 0
            found = Affinities(known.indices[own].long(), known.probabilities[own])
            if bool(others.any()):
                nearest = self._nearest(inputs[others], None)
                found.indices[others], found.probabilities[others] = nearest.indices, nearest.probabilities
        if self.labels is not None and self._exemplar_labels is not None:
            labels = self.labels.values[rows] if self.learners is None else self._exemplar_labels[self.learners[rows]]
            found = self.labels.weigh(found, labels, self._exemplar_labels)
        return found, own

    @property
    def nearest(self) -> Tensor:
        """The numbers of each exemplar's neighbors, the nearest first: (z, k), int32."""
        assert self._of_exemplars is not None
        return self._of_exemplars.indices

    def of_exemplars(self) -> Affinities:
        """The neighbors of the exemplars among themselves, in 32 bits."""
        assert self._of_exemplars is not None
        if self.labels is None or self._exemplar_labels is None:
            return self._of_exemplars
        inputs = self.exemplars.inputs if self.exemplars.metric == euclidean else None
        return self.labels.weigh_exemplars(self._of_exemplars, self._exemplar_labels, inputs)

    def order(self) -> Tensor | None:
        """An order of very many exemplars in which neighbors are near each other; None for few. A collective."""
        if len(self.exemplars) <= SCATTERED or self.exemplars.neighbors is not None:
            return None
        return broadcast(self._index.part(0, 1))

    def _nearest(self, inputs: Tensor, own: Tensor | None) -> Affinities:
        indices, distances = self._index.query(inputs, self.n_neighbors, exclude=own)
        return Affinities(indices, conditional_probabilities(distances, self.perplexity))

    def _search(self, keeper: Keeper | None, *, verbose: bool) -> Affinities:
        """The neighbors of the exemplars among themselves. Each process searches for a part of them. A collective."""
        shape = (len(self.exemplars), self.n_neighbors)
        found = Affinities(torch.zeros(shape, dtype=torch.int32), torch.zeros(shape))
        if self.exemplars.neighbors is not None:
            keeper, mine = None, self._index.part(rank(), world_size())  # those that were given to this process
        else:
            known = torch.zeros(len(self.exemplars), dtype=torch.int32)
            for rows, nearest in () if keeper is None else keeper.read(*shape):
                found.indices[rows], found.probabilities[rows] = nearest.indices, nearest.probabilities
                known[rows] = 1
            known = all_sum(known)
            if int(known.max()) > 1:
                raise CheckpointError("The checkpoint has the neighbors of a row twice: remove it to start over.")
            # The cells of the first process: another machine may round to others, and a row must be in one part.
            order = broadcast(self._index.part(0, 1))
            mine = part_of(order[known[order] == 0], rank(), world_size())
        with progress_bar(len(mine), "neighbors", "row", verbose=verbose) as bar:
            for part in mine.split(SEARCHED_ROWS) if len(mine) else ():
                nearest = self._nearest(self.exemplars.inputs[part], part)
                found.indices[part], found.probabilities[part] = nearest.indices.int(), nearest.probabilities
                if keeper is not None:
                    keeper.add(part, found)
                bar.update(len(part))
        if keeper is not None:
            keeper.finish(found)
        return Affinities(all_sum(found.indices), all_sum(found.probabilities))
