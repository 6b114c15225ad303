r"""What the losses share: similarities on the map, sums over all pairs, and their gradients.

Every loss is a Kullback-Leibler divergence of the probabilities P of the data from the t-distributed Q of the map.
With :math:`w(y, v) = (1 + |y - v|^2)^{-1}` and Q = w / Z it splits into three parts,

.. math:: KL(P || Q) = \sum p \log p \; + \; \sum p \log(1 + |y - v|^2) \; + \; \log Z,

a constant, an *attraction* along the pairs that carry probability, and a *repulsion* over all pairs.

A batch can be spread over several processes (see `tsee.distributed`): each process passes its own points, and the
losses and normalizers cover all points together.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tsee.data import blocks_in_cache
from tsee.distributed import all_sum_with_gradient

__all__ = ["dense_pairs", "entropy_term", "log_normalizer", "squared_distances"]


def log_normalizer(Y: Tensor, V: Tensor, weights: Tensor | None = None) -> Tensor:
    r""":math:`\log \sum_i \sum_k u_k (1 + |y_i - v_k|^2)^{-1}`, the logarithm of the sum in equation 10."""
    return all_sum_with_gradient(_Normalizer.apply(Y, V, weights)).log()


def dense_pairs(Y: Tensor, V: Tensor, P: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
    r"""The attraction :math:`\sum p_{ij} \log(1 + |y_i - v_j|^2)` and the normalizer :math:`\sum w_{ij}` of all pairs.

    Parameters
    ----------
    Y : Tensor of shape (n, h)
    V : Tensor of shape (z, h)
    P : Tensor of shape (n, z)
    own : Tensor of shape (n,), optional
        For each point the column of V that is the point itself, or -1: this pair is left out of the normalizer.
    """
    attraction, normalizer = _DensePairs.apply(Y, V, P, own)
    return attraction, normalizer


def entropy_term(probabilities: Tensor, n: int) -> Tensor:
    """The sum of p log p, where p is the probabilities divided by the number of points."""
    # The division is taken out of the logarithm: p / n can underflow when p does not.
    return (torch.xlogy(probabilities, probabilities).sum() - math.log(n) * probabilities.sum()) / n


def squared_distances(Y: Tensor, V: Tensor) -> Tensor:
    """Squared distances on the map along the last axis, summed from differences."""
    return (Y - V).square().sum(-1)


class _DensePairs(torch.autograd.Function):
    """Attraction and normalizer over all pairs of Y and V, with one matrix of pairs kept for both.

    Distances are summed from differences: products would lose the digits that tell near points apart. The gradient
    only needs squares of the similarities, so it is finite when points coincide.
    """

    @staticmethod
    def forward(ctx: Any, Y: Tensor, V: Tensor, P: Tensor, own: Tensor | None) -> tuple[Tensor, Tensor]:
        pull = Y.new_zeros(())
        similarities = torch.zeros(len(Y), len(V), dtype=Y.dtype, device=Y.device)
        for rows in blocks_in_cache(*similarities.shape):
            block = similarities[rows]
            for y, v in zip(Y[rows].unbind(1), V.unbind(1), strict=True):
                difference = y[:, None] - v
                block.addcmul_(difference, difference)
            pull += torch.log1p(block).mul_(P[rows]).sum()
            block.add_(1).reciprocal_()
        if own is not None:
            known = torch.nonzero(own >= 0).squeeze(1)
            similarities[known, own[known]] = 0
        ctx.save_for_backward(Y, V, P, similarities)
        return pull, similarities.sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_pull: Tensor, grad_z: Tensor) -> tuple[Tensor | None, ...]:
        Y, V, P, similarities = ctx.saved_tensors
        push, pull = -float(grad_z), float(grad_pull)
        middle = V.mean(0)
        forces = _Forces(Y - middle, V - middle)
        for rows in blocks_in_cache(*similarities.shape):
            # d Z / d d2 = -w^2 and d pull / d d2 = p w: (rows, columns)
            force = similarities[rows].square().mul_(push)
            forces.add(rows, force.addcmul_(P[rows], similarities[rows], value=pull))
        return *forces.net(), None, None


class _Normalizer(torch.autograd.Function):
    """The sum of u_k / (1 + |y_i - v_k|^2) over all pairs of Y and V, with its gradient computed in the same pass.

    Distances are products, ten times faster than sums of differences; the digits that they lose do not count next to
    the 1 of 1 + d. Pairs exist one block at a time, and nothing as large as their number is kept.
    """

    @staticmethod
    def forward(ctx: Any, Y: Tensor, V: Tensor, weights: Tensor | None) -> Tensor:
        middle = V.mean(0)
        y, v = Y - middle, V - middle
        left = torch.cat([y, y.square().sum(1, keepdim=True).add_(1), y.new_ones(len(y), 1)], 1)
        right = torch.cat([-2 * v, v.new_ones(len(v), 1), v.square().sum(1, keepdim=True)], 1).T
        forces = _Forces(y, v) if any(ctx.needs_input_grad) else None
        z = Y.new_zeros(())
        tile: Tensor | None = None
        for rows in blocks_in_cache(len(y), len(v)):
            tile = Y.new_empty(rows.stop - rows.start, len(v)) if tile is None else tile[: rows.stop - rows.start]
            similarities = torch.mm(left[rows], right, out=tile).clamp_min_(1).reciprocal_()
            z += similarities.sum() if weights is None else (similarities @ weights).sum()
            if forces is not None:
                # d Z / d d2 = -u w^2
                squares = similarities.square_()
                forces.add(rows, squares if weights is None else squares.mul_(weights))
        if forces is not None:
            ctx.save_for_backward(*forces.net())
        return z

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_z: Tensor) -> tuple[Tensor | None, ...]:
        of_y, of_v = ctx.saved_tensors
        return -grad_z * of_y, -grad_z * of_v, None


class _Forces:
    """The forces between points Y and V: sums of forces times differences, gathered from blocks of pairs.

    They are small differences of sums of coordinates, so the coordinates must be centered on the middle of V.
    """

    def __init__(self, Y: Tensor, V: Tensor) -> None:
        self.y, self.v = _with_ones(Y), _with_ones(V)
        self.felt_by_y, self.felt_by_v = torch.empty_like(self.y), torch.zeros_like(self.v)

    def add(self, rows: slice, force: Tensor) -> None:
        """Add the forces of a block of Y with all of V; each row of Y comes once."""
        # A few rows times many columns: the other way around takes several times as long.
        self.felt_by_y[:, rows] = self.v @ force.T
        self.felt_by_v += self.y[:, rows] @ force

    def net(self) -> tuple[Tensor, Tensor]:
        """Twice the sums: the gradients, if the forces are derivatives with respect to squared distances."""
        return _net(self.felt_by_y, self.y), _net(self.felt_by_v, self.v)


def _with_ones(points: Tensor) -> Tensor:
    """Coordinates along the rows, and a row of ones: weighted sums of these are forces."""
    return torch.cat([points.T, points.new_ones(1, len(points))])


def _net(felt: Tensor, points: Tensor) -> Tensor:
    """Twice the sum of the weights times a point, minus the weighted sum of the other points."""
    return (2 * (felt[-1] * points[:-1] - felt[:-1])).T
