"""The sampled form: one exemplar is drawn per point, and all drawn exemplars serve as the sample of the others."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from tsee.batches import Batch, Columns
from tsee.distributed import all_gather, all_sum, all_sum_with_gradient
from tsee.objectives.embedding import embed_together
from tsee.objectives.kernels import log_normalizer, squared_distances
from tsee.objectives.neighborhoods import Neighborhoods

__all__ = ["Sampled", "sampled_loss"]

MAX_JITTER = 0.5
# A row's exemplars are drawn beforehand, one for each epoch; after this many epochs they repeat.
MAX_DRAWS = 64


def sampled_loss(Y: Tensor, V: Tensor, weights: Tensor | None = None, exaggeration: float = 1.0) -> Tensor:
    r"""The exemplar loss by one exemplar per point, at a cost that does not grow with the number of exemplars.

    .. math:: \ell = \frac{a}{n} \sum_i \log(1 + |y_i - v_i|^2)
        + \log \frac1n \sum_i \sum_k u_k (1 + |y_i - v_k|^2)^{-1}

    where :math:`v_i` is the position of an exemplar drawn from :math:`P_i`, and the exemplars drawn for all
    points serve each of them as the sample of the others. An exemplar j comes up as often as points
    choose it, :math:`\pi_j = \frac1n \sum_i p_{j|i}`. With :math:`u_k = 1/\pi_{j(k)}` the sum inside the
    logarithm estimates the normalizer of equation 10 without bias; with :math:`u_k = 1` it estimates
    :math:`\sum_i \sum_j \pi_j (1 + d_{ij})^{-1}`, in which exemplars count as often as they are chosen.

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The positions of the batch.
    V : Tensor of shape (n, h)
        The positions of the exemplars drawn, one for each point.
    weights : Tensor of shape (n,), optional
        u; 1 unless given.
    exaggeration : float
        a, a factor on the attraction: above 1 it draws clusters together.
    """
    n = all_sum(len(Y))
    pull = torch.log1p(squared_distances(Y, V)).sum() / n
    everyone = None if weights is None else all_gather(weights)
    return exaggeration * all_sum_with_gradient(pull) + log_normalizer(Y, all_gather(V), everyone) - math.log(n)


class Sampled:
    """One exemplar per point, drawn from its probabilities; all drawn exemplars serve as the sample of the others.

    For each row only the exemplars drawn are kept, one for each epoch, and not its probabilities. Together they are a
    stratified sample: an exemplar of probability p is drawn p times the number of epochs, give or take less than two.

    Parameters
    ----------
    neighborhoods : Neighborhoods
    n_rows : int
        The rows of all processes.
    n_epochs : int
    jitter : float or None
        Noise on the inputs, as a share of the distance between a row and its exemplar; None chooses by ``n_rows``.
    exaggeration : float
        A factor on the attraction.
    device : torch.device
        Where the network is trained.
    generator : torch.Generator
        Draws exemplars and noise.
    """

    def __init__(
        self,
        neighborhoods: Neighborhoods,
        *,
        n_rows: int,
        n_epochs: int,
        jitter: float | None,
        exaggeration: float,
        device: torch.device,
        generator: torch.Generator,
    ) -> None:
        self.neighborhoods, self.exaggeration = neighborhoods, exaggeration
        self.device, self.generator = device, generator
        self.perplexity = neighborhoods.perplexity
        self.n_draws = min(n_epochs, MAX_DRAWS)
        # As with the width of a kernel: the more data, the less there is to smooth over.
        automatic = min(MAX_JITTER, MAX_JITTER * (1000 / n_rows) ** 0.5)
        self.jitter = automatic if jitter is None else jitter
        self.jitter_of_targets = MAX_JITTER if jitter is None else jitter

    def columns(self, inputs: Tensor, rows: slice) -> Columns:
        """The exemplars drawn for each epoch, and which exemplar the row is."""
        found, own = self.neighborhoods.find(inputs, rows)
        cumulative = found.probabilities.cumsum(1)
        cumulative[:, -1] = 1.0
        shape = (len(inputs), self.n_draws)
        strata = torch.rand(shape, generator=self.generator).argsort(1)
        # Rounding must not lead past the last.
        draws = ((strata + torch.rand(shape, generator=self.generator)) / self.n_draws).clamp_max_(1 - 1e-7)
        drawn = found.indices.gather(1, torch.searchsorted(cumulative, draws, right=True)).int()
        columns = {"drawn": drawn, **self.neighborhoods.seen_columns(inputs)}
        return columns if own is None else {**columns, "own": own.int()}

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """An estimate of equation 12, with the attraction exaggerated."""
        drawn = batch["drawn"][:, batch.epoch % self.n_draws].long()
        points, others = self.jittered(batch["inputs"], drawn, self.jitter)
        Y, V = embed_together(network, points.to(self.device), others.to(self.device))
        return sampled_loss(Y, V, exaggeration=self.exaggeration)

    def learned(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The exemplar drawn for each row that learns a layout, and the one whose position it learns: itself, or that.

        Over the epochs, a row that is not an exemplar is pulled to where its own attraction is least.
        """
        drawn = batch["drawn"][:, -1 - batch.epoch % self.n_draws].long()
        return drawn, torch.where(batch["own"] >= 0, batch["own"], drawn)

    def jittered(
        self, points: Tensor, drawn: Tensor, jitter: float, *, others_too: bool = True
    ) -> tuple[Tensor, Tensor]:
        """The inputs of rows and of the exemplars drawn for them, with noise in proportion to their distance.

        This keeps the map smooth between the data when there are few of them. Exemplars that no one looks at get none.
        """
        others = self.neighborhoods.seen[drawn]
        if not jitter:
            return points, others
        length = (points - others).norm(dim=1, keepdim=True) * (jitter / points.shape[1] ** 0.5)
        points = points + length * torch.randn(points.shape, generator=self.generator)
        return points, others + length * torch.randn(others.shape, generator=self.generator) if others_too else others
