r"""The low-dimensional similarities and the losses, pure functions of tensors.

Every loss is a Kullback-Leibler divergence of the probabilities P of the data from t-distributed Q of the
map. With :math:`w(y, v) = (1 + |y - v|^2)^{-1}` and Q = w / Z it splits into three parts,

.. math:: KL(P || Q) = \sum p \log p \; + \; \sum p \log(1 + |y - v|^2) \; + \; \log Z,

a constant, an *attraction* along the pairs that carry probability, and a *repulsion* over all pairs.

A batch may be spread over several processes (see `tsee.distributed`): each gives its own points, and the losses and
normalizers are those of all points together.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from tsee.data import blocks_in_cache
from tsee.distributed import all_gather, all_sum, all_sum_with_gradient

__all__ = [
    "distance_loss",
    "exemplar_loss",
    "log_normalizer",
    "noise_contrastive_loss",
    "pairwise_loss",
    "sampled_loss",
]


def pairwise_loss(Y: Tensor, P: Tensor) -> Tensor:
    r"""KL divergence over the pairs of a batch, the objective of pt-SNE and hot-SNE (equations 4 to 6).

    .. math:: \ell = \sum_{i \ne j} p_{ij} \log \frac{p_{ij}}{q_{ij}}, \qquad
        q_{ij} = \frac{(1 + |y_i - y_j|^2)^{-1}}{\sum_{k \ne l} (1 + |y_k - y_l|^2)^{-1}}

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The places of the batch on the map.
    P : Tensor of shape (n, n)
        Joint probabilities, zero on the diagonal, summing to 1 (equation 3).
    """
    pull, z = _DensePairs.apply(Y, Y, P, torch.arange(len(Y), device=Y.device))
    loss = sum((torch.xlogy(P[rows], P[rows]).sum() for rows in blocks_in_cache(*P.shape)), pull + z.log())
    # Pairs are those within a process: over several, the loss is the mean of theirs.
    return all_sum_with_gradient(loss * len(Y)) / all_sum(len(Y))


def exemplar_loss(Y: Tensor, V: Tensor, P: Tensor, own: Tensor | None = None) -> Tensor:
    r"""KL divergence from points to exemplars, the objective of dt-SEE and hot-SEE (equations 9 to 12).

    .. math:: \ell = \sum_{i=1}^{n} \sum_{j=1}^{z} p_{j|i} \log \frac{p_{j|i}}{q_{j|i}}, \qquad
        q_{j|i} = \frac{(1 + d_{ij})^{-1}}{\sum_i \sum_k (1 + d_{ik})^{-1}}

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The places of the batch.
    V : Tensor of shape (z, h)
        The places of all exemplars.
    P : Tensor of shape (n, z)
        Each row sums to 1 (equation 8), and is divided by n here (equation 9).
    own : Tensor of shape (n,), optional
        For each point the exemplar that it is itself, or -1: such a pair counts for nothing.
    """
    pull, z = _DensePairs.apply(Y, V, P, own)
    n = all_sum(len(Y))
    return all_sum_with_gradient(_entropy_term(P, n) + pull / n) + all_sum_with_gradient(z).log()


def noise_contrastive_loss(
    Y: Tensor, near: Tensor, noise: Tensor, probabilities: Tensor, noise_weight: float
) -> Tensor:
    r"""The exemplar loss over near exemplars and a sample of the others (the paper's section 3.3).

    The normalizer of equation 10 is estimated by

    .. math:: Z = \sum_i \Big( \sum_{j \in near(i)} (1 + d_{ij})^{-1}
        + K_e \sum_{j \in noise(i)} (1 + d_{ij})^{-1} \Big)

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The places of the batch.
    near : Tensor of shape (n, z_e, h)
        The places of the nearest exemplars of each point.
    noise : Tensor of shape (n, z_n, h)
        The places of exemplars drawn from the others; z_n may be 0.
    probabilities : Tensor of shape (n, z_e)
        Over the near exemplars; the others have probability 0.
    noise_weight : float
        K_e. (z - z_e) / z_n makes the estimate of Z unbiased.
    """
    near_distances = _squared_distances(Y[:, None, :], near)
    noise_distances = _squared_distances(Y[:, None, :], noise)
    z = (1 / (1 + near_distances)).sum() + noise_weight * (1 / (1 + noise_distances)).sum()
    n = all_sum(len(Y))
    pull = (probabilities * torch.log1p(near_distances)).sum() / n
    return all_sum_with_gradient(_entropy_term(probabilities, n) + pull) + all_sum_with_gradient(z).log()


def sampled_loss(Y: Tensor, V: Tensor, weights: Tensor | None = None, exaggeration: float = 1.0) -> Tensor:
    r"""The exemplar loss by one exemplar a point, at a cost that does not grow with their number.

    .. math:: \ell = \frac{a}{n} \sum_i \log(1 + |y_i - v_i|^2)
        + \log \frac1n \sum_i \sum_k u_k (1 + |y_i - v_k|^2)^{-1}

    where :math:`v_i` is the place of an exemplar drawn from :math:`P_i`, and the exemplars drawn for all
    points serve each of them as the sample of the others. An exemplar j comes up as often as points
    choose it, :math:`\pi_j = \frac1n \sum_i p_{j|i}`. With :math:`u_k = 1/\pi_{j(k)}` the sum inside the
    logarithm estimates the normalizer of equation 10 without bias; with :math:`u_k = 1` it estimates
    :math:`\sum_i \sum_j \pi_j (1 + d_{ij})^{-1}`, in which exemplars count as often as they are chosen.

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The places of the batch.
    V : Tensor of shape (n, h)
        The places of the exemplars drawn, one for each point.
    weights : Tensor of shape (n,), optional
        u; 1 unless given.
    exaggeration : float
        a, a factor on the attraction: above 1 it draws clusters together.
    """
    n = all_sum(len(Y))
    pull = torch.log1p(_squared_distances(Y, V)).sum() / n
    everyone = None if weights is None else all_gather(weights)
    return exaggeration * all_sum_with_gradient(pull) + log_normalizer(Y, all_gather(V), everyone) - math.log(n)


def distance_loss(Y: Tensor, targets: Tensor) -> Tensor:
    r"""How far points are from given places, :math:`\frac1n \sum_i \log(1 + |y_i - t_i|^2)`: the attraction to them.

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The places of the batch.
    targets : Tensor of shape (n, h)
        Where they are to be.
    """
    return all_sum_with_gradient(torch.log1p(_squared_distances(Y, targets)).sum()) / all_sum(len(Y))


def log_normalizer(Y: Tensor, V: Tensor, weights: Tensor | None = None) -> Tensor:
    r""":math:`\log \sum_i \sum_k u_k (1 + |y_i - v_k|^2)^{-1}`, the logarithm of the sum in equation 10."""
    return all_sum_with_gradient(_Normalizer.apply(Y, V, weights)).log()


def _entropy_term(probabilities: Tensor, n: int) -> Tensor:
    """The sum of p log p with p the probabilities divided by the number of points."""
    # The division is taken out of the logarithm: p / n can vanish where p does not.
    return (torch.xlogy(probabilities, probabilities).sum() - math.log(n) * probabilities.sum()) / n


def _squared_distances(Y: Tensor, V: Tensor) -> Tensor:
    return (Y - V).square().sum(-1)


class _DensePairs(torch.autograd.Function):
    """Attraction and normalizer over all pairs of Y and V, with one matrix of pairs kept for both.

    The distances are summed from differences: products would lose the digits that tell near points apart. The gradient
    needs only squares of the similarities: it is finite where points coincide.
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
    """The sum of u_k / (1 + |y_i - v_k|^2) over all pairs of Y and V, and its gradient with it.

    The distances are products, ten times faster than sums of differences, whose last digits do not count beside the 1
    of 1 + d. Of the pairs a block at a time is there, and nothing of their number is kept.
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
    """What points Y and V feel from one another: sums of forces times differences, from blocks of pairs.

    They are small differences of sums of coordinates, which are to be around the middle of V.
    """

    def __init__(self, Y: Tensor, V: Tensor) -> None:
        self.y, self.v = _with_ones(Y), _with_ones(V)
        self.felt_by_y, self.felt_by_v = torch.empty_like(self.y), torch.zeros_like(self.v)

    def add(self, rows: slice, force: Tensor) -> None:
        """Those of a block of Y, each row of it once, with all of V."""
        # A few rows times many columns: the other way round takes several times as long.
        self.felt_by_y[:, rows] = self.v @ force.T
        self.felt_by_v += self.y[:, rows] @ force

    def net(self) -> tuple[Tensor, Tensor]:
        """Twice the sums: the gradients where the forces are derivatives by squared distances."""
        return _net(self.felt_by_y, self.y), _net(self.felt_by_v, self.v)


def _with_ones(places: Tensor) -> Tensor:
    """Coordinates along the rows, and a row of ones: what is summed of them with weights are forces."""
    return torch.cat([places.T, places.new_ones(1, len(places))])


def _net(felt: Tensor, places: Tensor) -> Tensor:
    """Twice the sum of the weights times a place, less the weighted sum of the others'."""
    return (2 * (felt[-1] * places[:-1] - felt[:-1])).T
