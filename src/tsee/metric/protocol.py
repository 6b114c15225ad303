"""What a metric is to everything that compares rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

__all__ = ["Metric", "Prepared", "ProductMetric", "exclude_from"]


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows as a metric compares them by blocks.

    Attributes
    ----------
    rows : Tensor of shape (n, d)
    norms : Tensor of shape (n,)
        The squared lengths of rows for `euclidean`; how many features a row has for `Jaccard`. In the dtype of the
        distances.
    """

    rows: Tensor
    norms: Tensor

    def __getitem__(self, part: slice | Tensor) -> Prepared:
        return type(self)(self.rows[part], self.norms[part])

    def to(self, device: torch.device) -> Prepared:
        return type(self)(self.rows.to(device), self.norms.to(device))


class Metric(Protocol):
    """A measure of distance between rows. Distances are squared everywhere, except where they are called lengths."""

    def origin(self, rows: Tensor) -> Tensor | None:
        """The point to subtract from ``rows`` and from everything compared with them, so that products round least.

        None if the metric changes with the origin, or does not need one.
        """

    def prepare(self, rows: Tensor, origin: Tensor | None = None) -> Prepared:
        """Rows minus ``origin``, ready to be compared. Queries and candidates need the same origin."""

    def scores(self, queries: Prepared, candidates: Prepared) -> Tensor:
        """The squared distances, up to rounding, minus a constant of the query: (n, z). The smaller, the nearer."""

    def distances(self, queries: Prepared, candidates: Prepared) -> Tensor:
        """The squared distances of all candidates from all queries, (n, z)."""

    def lengths(self, rows: Tensor, others: Tensor) -> Tensor:
        """The distances, not squared, of all ``others`` from all ``rows``, both unprepared: (n, z)."""

    def among(self, inputs: Tensor, rows: slice | Tensor, others: Tensor) -> Tensor:
        """The distances, not squared, of ``others`` from ``rows``, both by their numbers in ``inputs``: (n, z)."""

    def exact(self, rows: Tensor, others: Tensor) -> Tensor:
        """The squared distances of pairs of unprepared rows, by differences: exactly 0 for equal rows.

        The last dimension holds the columns; the others broadcast.
        """


@runtime_checkable
class ProductMetric(Metric, Protocol):
    """A metric whose scores are products of matrices.

    Matrix products give scores many times faster than differences give distances, but they lose digits if rows are long
    compared with the distance between them. So a search takes the candidates with the smallest scores, a few more than
    wanted, and puts them in order by `exact`; `rounding` tells whether a candidate can have been missed.
    """

    def candidate_factors(self, candidates: Prepared) -> Tensor:
        """One row per candidate, to be multiplied with `query_factors`. The last column must be able to be infinite."""

    def query_factors(self, queries: Prepared) -> Tensor:
        """One row per query: ``query_factors(q) @ candidate_factors(c).T`` are scores. The last column is positive."""

    def rounding(self, queries: Prepared, largest_norm: Tensor, reach: Tensor) -> Tensor:
        """How much rounding can change a query's scores, (n,).

        Only candidates count whose norm is not above ``largest_norm``, and whose squared distance is not above
        ``reach``, one per query: a single row far away from all others would hide what is near to them.
        """

    def means(self, sums: Tensor, counts: Tensor, before: Tensor) -> Tensor:
        """The centers of clusters of rows with these sums. The center of an empty cluster stays as it was before."""


def exclude_from(scores: Tensor, exclude: Tensor | None) -> Tensor:
    """The scores or distances, changed in place: infinity for the candidate that a row must not choose.

    ``exclude`` holds the number of that candidate for each row, or -1 for none.
    """
    if exclude is not None:
        exclude = exclude.to(scores.device)
        rows = torch.nonzero(exclude >= 0).squeeze(1)
        scores[rows, exclude[rows]] = torch.inf
    return scores
