"""pt-SNE and hot-SNE: every point of a mini-batch against every other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsee.affinities import joint_probabilities
from tsee.batches import Batch, Columns
from tsee.data import blocks_in_cache
from tsee.distributed import all_gather, all_offset, all_sum_with_gradient
from tsee.metric import Metric, euclidean
from tsee.objectives.kernels import dense_pairs

__all__ = ["Pairwise", "pairwise_loss"]


def pairwise_loss(Y: Tensor, P: Tensor, negative_entropy: Tensor | None = None) -> Tensor:
    r"""KL divergence over the pairs of a batch, the objective of pt-SNE and hot-SNE (equations 4 to 6).

    .. math:: \ell = \sum_{i \ne j} p_{ij} \log \frac{p_{ij}}{q_{ij}}, \qquad
        q_{ij} = \frac{(1 + |y_i - y_j|^2)^{-1}}{\sum_{k \ne l} (1 + |y_k - y_l|^2)^{-1}}

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The positions of the batch on the map; with several processes, each gives the positions of its own rows.
    P : Tensor of shape (n, n)
        Joint probabilities, zero on the diagonal, summing to 1 (equation 3); the lines of the process's own rows.
    negative_entropy : Tensor of shape (), optional
        The sum of p log p over these lines, if it is known.
    """
    start, _ = all_offset(len(Y))
    pull, z = dense_pairs(Y, all_gather(Y), P, torch.arange(start, start + len(Y), device=Y.device))
    constant = _negative_entropy(P) if negative_entropy is None else negative_entropy
    return all_sum_with_gradient(constant + pull) + all_sum_with_gradient(z).log()


def _negative_entropy(P: Tensor) -> Tensor:
    return torch.stack([torch.xlogy(P[rows], P[rows]).sum() for rows in blocks_in_cache(*P.shape)]).sum()


class Pairwise:
    """The pairwise objective: nothing is kept for a row, and neighbors are searched for within each batch.

    Parameters
    ----------
    perplexity : float
        Less than the number of rows of the smallest batch.
    device : torch.device
        Where the network is trained.
    metric : Metric, default `euclidean`
        The distance between rows.
    """

    def __init__(self, perplexity: float, device: torch.device, metric: Metric = euclidean) -> None:
        self.perplexity, self.device, self.metric = perplexity, device, metric

    def columns(self, inputs: Tensor, rows: slice) -> Columns:
        return {}

    def prepared(self, batch: Batch) -> Batch:
        """The probabilities of the pairs of the batch, and their entropy."""
        rows = batch["inputs"].to(self.device)
        P = joint_probabilities(rows, self.perplexity, self.metric)
        return Batch({"rows": rows, "P": P, "entropy": _negative_entropy(P)}, batch.epoch)

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Equation 6 for the rows of a batch."""
        return pairwise_loss(network(batch["rows"]), batch["P"], batch["entropy"])
