"""The Euclidean metric, by products of matrices."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from tsee.metric.protocol import Prepared

__all__ = ["Euclidean", "Prepared", "euclidean", "shifted"]

# A bound on what rounding does to a score, in units of the last digit of the squared lengths that it is made of.
ROUNDING_UNITS = 16


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

    def lengths(self, rows: Tensor, others: Tensor) -> Tensor:
        return torch.cdist(rows, others)

    def among(self, inputs: Tensor, rows: slice | Tensor, others: Tensor) -> Tensor:
        return self.lengths(inputs[rows], inputs[others])

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
