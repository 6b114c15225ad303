"""Gaussian probabilities of neighbors. Each row has its own precision, so that all have the same perplexity."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tsee.data import blocks_in_cache
from tsee.distributed import all_gather, all_offset, all_sum
from tsee.metric import Metric, euclidean

__all__ = ["Affinities", "conditional_probabilities", "gaussian", "joint_probabilities", "precisions", "to_double"]

# Newton steps inside a bracket find the logarithm of the precision. Rows whose distances tie have no solution and
# finish at the end of the bracket: this many halvings reach it to the precision of a float.
LOWEST_LOG, HIGHEST_LOG = -30.0, 40.0
# The usual value, in the units of `precisions`: 1.2 to 1.4 for the images of MNIST at perplexities of 3 to 30.
START_LOG = 1.25
MAX_ITERATIONS = 60
TOLERANCE = 2e-7


@dataclass(frozen=True)
class Affinities:
    """The exemplars that each row may choose as a neighbor, and with what probability.

    Attributes
    ----------
    indices : Tensor of shape (n, k), int64
        The nearest exemplars of each row, the nearest first.
    probabilities : Tensor of shape (n, k), float32
        Each row sums to 1 (equation 8, before its division by n in equation 9).
    """

    indices: Tensor
    probabilities: Tensor


def conditional_probabilities(squared_distances: Tensor, perplexity: float) -> Tensor:
    r"""Probabilities of each row over its candidates, at a given perplexity (equations 1 and 8).

    .. math:: p_{j|i} = \frac{\exp(-\beta_i d_{ij}^2)}{\sum_k \exp(-\beta_i d_{ik}^2)}

    where the precision :math:`\beta_i = 1/2\sigma_i^2` makes
    :math:`\exp(-\sum_j p_{j|i} \log p_{j|i})` equal to the perplexity.

    Parameters
    ----------
    squared_distances : Tensor of shape (n, k)
        Infinity marks a candidate that must not be chosen.
    perplexity : float
        Between 1 and the number of candidates. A row whose m nearest candidates tie, with m larger than
        the perplexity, gets the closest possible distribution: 1/m for each of them.

    Returns
    -------
    Tensor of shape (n, k)
        In the dtype of the distances; each row sums to 1.

    Examples
    --------
    >>> import torch
    >>> P = conditional_probabilities(torch.rand(5, 20), perplexity=7.0)
    >>> torch.exp(-(P * P.log()).sum(1)).round(decimals=3)
    tensor([7., 7., 7., 7., 7.])
    """
    return gaussian(squared_distances, precisions(squared_distances, perplexity))


def gaussian(squared_distances: Tensor, beta: Tensor) -> Tensor:
    """The probabilities of equation 8 for given precisions, one per row."""
    excess = squared_distances - squared_distances.amin(1, keepdim=True)
    return torch.softmax(-beta.to(excess.dtype)[:, None] * excess, dim=1)


def precisions(squared_distances: Tensor, perplexity: float) -> Tensor:
    """The precision of each row at which its probabilities have the given perplexity, float64."""
    # Only differences count. Their unit is the distance of about the u-th nearest, for a perplexity of u.
    excess = to_double(squared_distances - squared_distances.amin(1, keepdim=True))  # (n, k)
    unit = excess.topk(min(int(perplexity) + 1, excess.shape[1]), largest=False, sorted=False).values.amax(1)
    unit = torch.where((unit > 0) & torch.isfinite(unit), unit, 1.0)
    # A candidate that must not be chosen is finite but so far away that its weight is zero: infinity would give NaN.
    excess = excess.div_(unit[:, None]).clamp_max_(1e100)

    solution = torch.empty_like(unit)
    target = math.log(perplexity)
    active = torch.arange(len(excess), device=excess.device)
    log_beta = torch.full_like(unit, START_LOG)
    low, high = torch.full_like(unit, LOWEST_LOG), torch.full_like(unit, HIGHEST_LOG)
    for _ in range(MAX_ITERATIONS):
        solution[active] = log_beta
        # With weights w = exp(-beta excess) the entropy is log(sum w) + beta E(excess): one exponential per candidate.
        beta = log_beta.exp()
        weights = (excess * -beta[:, None]).exp_()
        total = weights.sum(1)
        mean = weights.mul_(excess).sum(1) / total
        error = total.log() + beta * mean - target
        # Entropy falls as beta grows: d entropy / d log beta = -beta^2 Var(excess).
        slope = beta.square() * (weights.mul_(excess).sum(1) / total - mean.square())
        low, high = torch.where(error > 0, log_beta, low), torch.where(error > 0, high, log_beta)
        newton = log_beta + error / slope.clamp_min(1e-12)
        log_beta = torch.where((newton > low) & (newton < high), newton, (low + high) / 2)
        left = error.abs() > TOLERANCE
        if not bool(left.any()):
            break
        if not bool(left.all()):
            active, excess = active[left], excess[left]
            log_beta, low, high = log_beta[left], low[left], high[left]
    return solution.exp() / unit


def joint_probabilities(X: Tensor, perplexity: float, metric: Metric = euclidean) -> Tensor:
    r"""Symmetric joint probabilities of the pairs of a batch (equations 1 to 3). A collective.

    .. math:: p_{ij} = \frac{p_{j|i} + p_{i|j}}{2n}, \qquad p_{i|i} = 0

    Parameters
    ----------
    X : Tensor of shape (n, d)
        The rows of one mini-batch: n is their number, and neighbors are chosen among them only. If there are several
        processes (see `tsee.distributed`), each gives its own rows of the batch.
    perplexity : float
        Less than n.
    metric : Metric, default `euclidean`
        The distance between rows.

    Returns
    -------
    Tensor of shape (n, n)
        Zero on the diagonal; all entries together sum to 1. Each process gets the lines of its own rows.
    """
    everyone = all_gather(X)
    n, (start, _) = len(everyone), all_offset(len(X))
    doubled = to_double(everyone)  # products of float32 rows cannot tell the distances within a tight cluster apart
    rows = metric.prepare(doubled, metric.origin(doubled))
    joint = torch.zeros(n, n, dtype=X.dtype, device=doubled.device)
    for block in blocks_in_cache(len(X), n):
        own = slice(start + block.start, start + block.stop)
        distances = metric.distances(rows[own], rows)
        distances[:, own].fill_diagonal_(torch.inf)
        conditional = conditional_probabilities(distances, perplexity).div_(2 * n).to(X.dtype)
        joint[own] += conditional
        joint[:, own] += conditional.T
    return all_sum(joint)[start : start + len(X)].to(X.device)


def to_double(values: Tensor) -> Tensor:
    """In float64, on the CPU if the device has no float64 (Apple's MPS)."""
    return values.cpu().double() if values.device.type == "mps" else values.double()
