"""The neighbors that a fit has found, kept beside its state: a search that takes minutes is not repeated."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from tsee.affinities import Affinities
from tsee.training.checkpoint import Checkpoint
from tsee.values import need

__all__ = ["KeptNeighbors"]


class KeptNeighbors:
    """Neighbors of exemplars, in files that this process writes into the folder of a checkpoint one after the other.

    A search that ends before the checkpoint is first due leaves no file.

    Parameters
    ----------
    checkpoint : Checkpoint
        Says when to write, and whose neighbors they are.
    """

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.checkpoint = checkpoint
        self._unwritten: list[Tensor] = []
        self._has_files = False

    def read(self, n: int, k: int) -> Iterator[tuple[Tensor, Affinities]]:
        """The numbers of some of ``n`` exemplars and their ``k`` neighbors, file by file."""
        for tensors in self.checkpoint.read_parts():
            try:
                rows, indices, probabilities = (tensors[name] for name in ("rows", "indices", "probabilities"))
                need(rows.dtype == indices.dtype == torch.int32, "its numbers are of another type")
                need(rows.ndim == 1 and indices.shape == (len(rows), k), "it has another number of neighbors")
                need(bool(((rows >= 0) & (rows < n)).all()), "it has other exemplars")
                need(bool(((indices >= 0) & (indices < n)).all()), "its neighbors are no exemplars")
                need(probabilities.shape == indices.shape, "it has another number of probabilities")
                need(probabilities.dtype == torch.float32, "its probabilities are of another type")
                need(bool(((probabilities >= 0) & (probabilities <= 1)).all()), "its probabilities are none")
            except (ValueError, KeyError) as error:
                raise self.checkpoint.damaged(error) from error
            self._has_files = True
            yield rows.long(), Affinities(indices, probabilities)

    def add(self, rows: Tensor, found: Affinities) -> None:
        """The neighbors of the exemplars of these numbers were found; ``found`` has a row for every exemplar."""
        self._unwritten.append(rows)
        if self.checkpoint.is_due():
            self._write(found)

    def finish(self, found: Affinities) -> None:
        """All were found: if the search was long enough to write some of them, write the others, too."""
        if self._has_files and self._unwritten:
            self._write(found)
        self._unwritten = []

    def _write(self, found: Affinities) -> None:
        rows = torch.cat(self._unwritten)
        tensors = {"rows": rows.int(), "indices": found.indices[rows], "probabilities": found.probabilities[rows]}
        self.checkpoint.write_part(tensors)
        self._has_files, self._unwritten = True, []
        self.checkpoint.end_if_told()
