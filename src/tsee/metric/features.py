"""Metrics of the features themselves: Manhattan, Hamming and Jaccard.

Their distances come from sums of differences, or from counts that are whole numbers. So a distance of two rows is the
same, to the last bit, however many others are computed with it, and equal rows are at exactly 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from tsee.metric.protocol import Prepared

__all__ = ["Hamming", "Jaccard", "Manhattan"]


class _OfFeatures(ABC):
    """What the metrics of features share; a subclass has ``lengths_of``."""

    def origin(self, rows: Tensor) -> None:
        return None

    def prepare(self, rows: Tensor, origin: Tensor | None = None) -> Prepared:
        return Prepared(rows, rows.new_zeros(len(rows)))

    @abstractmethod
    def lengths_of(self, queries: Prepared, candidates: Prepared) -> Tensor:
        """The distances of all candidates from all queries, not squared: (n, z)."""

    def distances(self, queries: Prepared, candidates: Prepared) -> Tensor:
        return self.lengths_of(queries, candidates).square_()

    def scores(self, queries: Prepared, candidates: Prepared) -> Tensor:
        return self.distances(queries, candidates)

    def lengths(self, rows: Tensor, others: Tensor) -> Tensor:
        return self.lengths_of(self.prepare(rows), self.prepare(others))

    def among(self, inputs: Tensor, rows: slice | Tensor, others: Tensor) -> Tensor:
        return self.lengths(inputs[rows], inputs[others])


@dataclass(frozen=True)
class Manhattan(_OfFeatures):
    r"""The sum of the absolute differences, :math:`\sum_k |x_k - e_k|`.

    Examples
    --------
    >>> import torch
    >>> Manhattan().lengths(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[7., 1.]])
    """

    def lengths_of(self, queries: Prepared, candidates: Prepared) -> Tensor:
        return torch.cdist(queries.rows, candidates.rows, p=1)

    def exact(self, rows: Tensor, others: Tensor) -> Tensor:
        return (rows - others).abs_().sum(-1).square_()


@dataclass(frozen=True)
class Hamming(_OfFeatures):
    r"""The share of the features that differ, :math:`\frac1d |\{k : x_k \ne e_k\}|`.

    Rows of no more than two values, such as booleans, are compared by products: with b(x) as the features that have the
    larger value, :math:`|b(x)| + |b(e)| - 2 |b(x) \cap b(e)|` of them differ.

    Examples
    --------
    >>> import torch
    >>> Hamming().lengths(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 3.0], [1.0, 2.0]]))
    tensor([[0.5000, 0.0000]])
    """

    def prepare(self, rows: Tensor, origin: Tensor | None = None) -> Prepared:
        return _Values(rows, rows.new_zeros(len(rows)))

    def lengths_of(self, queries: Prepared, candidates: Prepared) -> Tensor:
        assert isinstance(candidates, _Values)
        n_features = candidates.rows.shape[1]
        if candidates.two is not None:
            low, high = candidates.ends
            larger = queries.rows == high
            if bool((larger | (queries.rows == low)).all()):
                bits = _bits(larger, queries.norms.dtype)
                differing = bits.norms[:, None] + candidates.two.norms - 2 * _common(bits, candidates.two)
                return differing.div_(n_features)
        return torch.cdist(queries.rows, candidates.rows, p=0).div_(n_features)

    def exact(self, rows: Tensor, others: Tensor) -> Tensor:
        return (rows != others).to(rows.dtype).mean(-1).square_()


@dataclass(frozen=True)
class Jaccard(_OfFeatures):
    r"""The share of the features of two rows that only one of them has: :math:`1 - |x \cap e| / |x \cup e|`.

    A row has the features that are not zero in it. Two rows without features are at a distance of 0.

    Examples
    --------
    >>> import torch
    >>> Jaccard().lengths(torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]]))
    tensor([[0.6667, 0.0000]])
    """

    def prepare(self, rows: Tensor, origin: Tensor | None = None) -> Prepared:
        return _bits(rows != 0, rows.dtype)

    def lengths_of(self, queries: Prepared, candidates: Prepared) -> Tensor:
        common = _common(queries, candidates)
        either = torch.sub(candidates.norms, common).add_(queries.norms[:, None])
        lengths = common.div_(either).neg_().add_(1)
        empty = queries.norms == 0
        if bool(empty.any()):  # without features on either side, 0 / 0 is not a number
            lengths[empty] = (candidates.norms > 0).to(lengths.dtype)
        return lengths

    def exact(self, rows: Tensor, others: Tensor) -> Tensor:
        dtype, rows, others = rows.dtype, rows != 0, others != 0
        common, either = (rows & others).sum(-1).to(dtype), (rows | others).sum(-1).to(dtype)
        return (1 - common.add_(either == 0).div_(either.clamp_min_(1))).square_()


class _Values(Prepared):
    """Rows whose values are compared for equality."""

    @cached_property
    def ends(self) -> tuple[Tensor, Tensor]:
        """The smallest and the largest value."""
        return self.rows.amin(), self.rows.amax()

    @cached_property
    def two(self) -> Prepared | None:
        """Where the larger value is, if there are no more than two values."""
        low, high = self.ends
        larger = self.rows == high
        return _bits(larger, self.norms.dtype) if bool((larger | (self.rows == low)).all()) else None


def _bits(rows: Tensor, dtype: torch.dtype) -> Prepared:
    """Booleans as factors of `_common`, and how many of each row are true."""
    return Prepared(rows.to(torch.int8 if rows.device.type == "cpu" else torch.float32), rows.sum(1).to(dtype))


def _common(queries: Prepared, candidates: Prepared) -> Tensor:
    """How many features each query shares with each candidate, exactly, in the dtype of the norms: (n, z)."""
    if queries.rows.dtype == torch.int8:
        # Products of bytes, summed in 32 bits, take a sixth of the time of products of floats.
        return torch._int_mm(queries.rows, candidates.rows.T).to(queries.norms.dtype)
    return (queries.rows @ candidates.rows.T).to(queries.norms.dtype)
