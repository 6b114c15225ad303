"""The noise-contrastive form: the nearest exemplars of each point, and a weighted sample of the others."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from tsee.batches import Batch, Columns
from tsee.distributed import all_sum, all_sum_with_gradient
from tsee.objectives.embedding import embed_in_parts
from tsee.objectives.kernels import entropy_term, squared_distances
from tsee.objectives.neighborhoods import Neighborhoods

__all__ = ["Noise", "noise_contrastive_loss"]


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
        The positions of the batch.
    near : Tensor of shape (n, z_e, h)
        The positions of the nearest exemplars of each point.
    noise : Tensor of shape (n, z_n, h)
        The positions of exemplars drawn from the others; z_n can be 0.
    probabilities : Tensor of shape (n, z_e)
        Over the near exemplars; the others have probability 0.
    noise_weight : float
        K_e. (z - z_e) / z_n makes the estimate of Z unbiased.
    """
    near_distances = squared_distances(Y[:, None, :], near)
    noise_distances = squared_distances(Y[:, None, :], noise)
    z = (1 / (1 + near_distances)).sum() + noise_weight * (1 / (1 + noise_distances)).sum()
    n = all_sum(len(Y))
    pull = (probabilities * torch.log1p(near_distances)).sum() / n
    return all_sum_with_gradient(entropy_term(probabilities, n) + pull) + all_sum_with_gradient(z).log()


class Noise:
    """The nearest exemplars of each point, and a weighted sample of the others; never the point itself.

    Parameters
    ----------
    neighborhoods : Neighborhoods
    n_noise : int
        z_n, exemplars drawn for each row.
    weight : float or "auto"
        K_e; "auto" makes the normalizer unbiased.
    device : torch.device
        Where the network is trained.
    generator : torch.Generator
        Draws the noise.
    """

    def __init__(
        self,
        neighborhoods: Neighborhoods,
        n_noise: int,
        weight: float | str,
        device: torch.device,
        generator: torch.Generator,
    ) -> None:
        self.neighborhoods, self.device, self.generator = neighborhoods, device, generator
        self.perplexity = neighborhoods.perplexity
        exemplars = neighborhoods.exemplars
        self.n_others = len(exemplars) - neighborhoods.n_neighbors - (exemplars.indices is not None)
        self.n_noise = min(n_noise, self.n_others)
        unbiased = self.n_others / self.n_noise if self.n_noise else 1.0
        self.weight = unbiased if isinstance(weight, str) else weight

    def columns(self, inputs: Tensor, rows: slice) -> Columns:
        """The neighbors and their probabilities, and which exemplar the row is."""
        found, own = self.neighborhoods.find(inputs, rows)
        columns = {"near": found.indices.int(), "probabilities": found.probabilities}
        columns |= self.neighborhoods.seen_columns(inputs)
        return columns if own is None else {**columns, "own": own.int()}

    def prepared(self, batch: Batch) -> Batch:
        """The noise of the batch, and the rows of one pass: the batch, and each exemplar that it uses once."""
        near = batch["near"].long()
        noise = self.draw(near, batch["own"].long() if "own" in batch else None)
        used, place = torch.unique(torch.cat([near, noise], 1), return_inverse=True)
        rows = torch.cat([batch["inputs"], self.neighborhoods.seen[used]])
        columns = {"place": place, "rows": rows, "probabilities": batch["probabilities"]}
        return Batch({name: values.to(self.device) for name, values in columns.items()}, batch.epoch)

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """The noise-contrastive form of equation 12."""
        Y, V = embed_in_parts(network, batch["rows"], len(batch))
        # Unlike indexing, the gradient of `embedding` is summed in the same order every time.
        positions = embedding(batch["place"], V)  # (rows, z_e + z_n, h)
        k = batch["probabilities"].shape[1]
        return noise_contrastive_loss(Y, positions[:, :k], positions[:, k:], batch["probabilities"], self.weight)

    def draw(self, near: Tensor, own: Tensor | None) -> Tensor:
        """Exemplars drawn uniformly, with replacement, from those that are neither near nor the row itself.

        Parameters
        ----------
        near : Tensor of shape (n, z_e), int64
        own : Tensor of shape (n,), int64, optional
            The exemplar that a row is, or -1.

        Returns
        -------
        Tensor of shape (n, z_n), int64
        """
        excluded = near
        if own is not None:
            # For a row that is not an exemplar, one past the last: such a row never draws the last of the others.
            itself = torch.where(own >= 0, own, len(self.neighborhoods.exemplars))
            excluded = torch.cat([near, itself[:, None]], 1)
        # A draw of r is the r-th exemplar that is not excluded, found by shifting r past the excluded ones.
        shifts = excluded.sort(1).values - torch.arange(excluded.shape[1])  # (rows, excluded)
        draws = torch.randint(max(self.n_others, 1), (len(near), self.n_noise), generator=self.generator)
        return draws + torch.searchsorted(shifts, draws, right=True)
