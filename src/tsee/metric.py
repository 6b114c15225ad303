"""All distances: how rows are prepared, scored by matrix products, and compared exactly.

A score is a squared distance, up to rounding, minus a constant of the query: the smaller, the nearer. Matrix products
give scores many times faster than differences give distances, but they lose digits if rows are long compared with
the distance between them. So a search takes the candidates with the smallest scores, a few more than wanted, and puts
them in order by `Metric.exact`; `Metric.rounding` tells whether a candidate can have been missed.

Another metric is another class with these methods. Cosine distance, for example, scales rows to unit length in
``prepare`` and ``exact``, and centers in ``means``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import pad

__all__ = ["Euclidean", "Metric", "Prepared", "euclidean", "exclude_from", "shifted"]

# A bound on what rounding does to a score, in units of the last digit of the squared lengths that it is made of.
ROUNDING_UNITS = 16


@dataclass(frozen=True, eq=False)
class Prepared:
    """Rows as matrix products need them.

    Attributes
    ----------
    rows : Tensor of shape (n, d)
    norms : Tensor of shape (n,)
        Their squared lengths. A score and the norm of its query add up to a squared distance.
    """

    rows: Tensor
    norms: Tensor

    def __getitem__(self, part: slice | Tensor) -> Prepared:
        return Prepared(self.rows[part], self.norms[part])

    def to(self, device: torch.device) -> Prepared:
        return Prepared(self.rows.to(device), self.norms.to(device))


class Metric(Protocol):
    """A measure of distance between rows. Distances are squared everywhere."""

    def origin(self, rows: Tensor) -> Tensor | None:
        """The point to subtract from ``rows`` and from everything compared with them, so that products round least."""

    def prepare(self, rows: Tensor, origin: Tensor | None = None) -> Prepared:
        """Rows minus ``origin``, ready for products. Queries and candidates need the same origin.

        A metric that changes with the origin ignores it, and returns None from `origin`.
        """

    def candidate_factors(self, candidates: Prepared) -> Tensor:
        """One row per candidate, to be multiplied with `query_factors`. The last column must be able to be infinite."""

    def query_factors(self, queries: Prepared) -> Tensor:
        """One row per query: ``query_factors(q) @ candidate_factors(c).T`` are scores. The last column is positive."""

    def scores(self, queries: Prepared, candidates: Prepared) -> Tensor:
        """The scores of all candidates for all queries, (n, z)."""

    def distances(self, queries: Prepared, candidates: Prepared) -> Tensor:
        """The squared distances of all candidates from all queries, by products, (n, z)."""

    def exact(self, rows: Tensor, others: Tensor) -> Tensor:
        """The squared distances of pairs of unprepared rows, by differences: exactly 0 for equal rows.

        The last dimension holds the columns; the others broadcast.
        """

    def rounding(self, queries: Prepared, largest_norm: Tensor, reach: Tensor) -> Tensor:
        """How much rounding can change a query's scores, (n,).

        Only candidates count whose norm is not above ``largest_norm``, and whose squared distance is not above
        ``reach``, one per query: a single row far away from all others would hide what is near to them.
        """

    def means(self, sums: Tensor, counts: Tensor, before: Tensor) -> Tensor:
        """The centers of clusters of rows with these sums. The center of an empty cluster stays as it was before."""


@dataclass(frozen=True)
class Euclidean:
    r"""The Euclidean metric.

    .. math:: |x - e|^2 = |x|^2 + s(x, e), \qquad s(x, e) = |e|^2 - 2 x \cdot e

    where :math:`s` is the score of the candidate :math:`e` for the query :math:`x`.

    Examples
    --------
    >>> import torch
    >>> E = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    >>> origin = euclidean.origin(E)
    >>> rows = euclidean.prepare(E, origin)
    >>> euclidean.distances(rows, rows)
    tensor([[ 0., 25.],
            [25.,  0.]])
    """

    def origin(self, rows: Tensor) -> Tensor:
        """The mean. Far from the origin, products would lose the digits in which near and far differ."""
        return rows.mean(0)

    def prepare(self, rows: Tensor, origin: Tensor | None = None) -> Prepared:
        rows = shifted(rows, origin)
        return Prepared(rows, rows.square().sum(1))

    def candidate_factors(self, candidates: Prepared) -> Tensor:
        return torch.cat([-2 * candidates.rows, candidates.norms[:, None]], 1)

    def query_factors(self, queries: Prepared) -> Tensor:
        return pad(queries.rows, (0, 1), value=1.0)

    def scores(self, queries: Prepared, candidates: Prepared) -> Tensor:
        return torch.addmm(candidates.norms, queries.rows, candidates.rows.T, alpha=-2)

    def distances(self, queries: Prepared, candidates: Prepared) -> Tensor:
        norms = queries.norms[:, None] + candidates.norms
        return norms.addmm_(queries.rows, candidates.rows.T, alpha=-2).clamp_min_(0)

    def exact(self, rows: Tensor, others: Tensor) -> Tensor:
        return (rows - others).square_().sum(-1)

    def rounding(self, queries: Prepared, largest_norm: Tensor, reach: Tensor) -> Tensor:
        within = (queries.norms.sqrt() + reach.clamp_min(0).sqrt()).square()  # by the triangle inequality
        norms = queries.norms + torch.minimum(largest_norm, within)
        return ROUNDING_UNITS * torch.finfo(queries.norms.dtype).eps * norms

    def means(self, sums: Tensor, counts: Tensor, before: Tensor) -> Tensor:
        return torch.where(counts[:, None] > 0, (sums / counts[:, None]).to(before.dtype), before)


euclidean = Euclidean()


def shifted(rows: Tensor, origin: Tensor | None) -> Tensor:
    """Rows minus the origin of a metric: distances between them are the same, and their products round less."""
    return rows if origin is None else rows - origin


def exclude_from(scores: Tensor, exclude: Tensor | None) -> Tensor:
    """The scores or distances, changed in place: infinity for the candidate that a row must not choose.

    ``exclude`` holds the number of that candidate for each row, or -1 for none.
    """
    if exclude is not None:
        exclude = exclude.to(scores.device)
        rows = torch.nonzero(exclude >= 0).squeeze(1)
        scores[rows, exclude[rows]] = torch.inf
    return scores
