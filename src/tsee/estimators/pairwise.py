"""pt-SNE and hot-SNE: every point of a mini-batch against every other."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike

import numpy as np
import torch
from torch import Tensor, nn

from tsee.affinities import joint_probabilities
from tsee.batches import Batch, smallest_batch
from tsee.distributed import all_max
from tsee.estimators.base import Deep, HighOrder, ParametricMap
from tsee.estimators.fitting import Objective, Plan, resolve_perplexity
from tsee.estimators.parameters import documented
from tsee.objectives import pairwise_loss

__all__ = ["HotSNE", "PtSNE"]


class PairwiseMap(ParametricMap):
    """Keeps the probabilities of neighboring among the rows of each mini-batch (equations 1 to 6).

    Of several processes each has its share of the batch, and neighbors are sought among its own rows.
    """

    _n_batches = 8  # few and large: a row's neighbors must be in its batch

    def _make_objective(self, plan: Plan) -> Objective:
        smallest = -int(all_max(-smallest_batch(len(plan.inputs), plan.n_steps)))
        perplexity = resolve_perplexity(self.perplexity, smallest - 1, "neighbors in a batch (see batch_size)")

        def loss_of(network: nn.Module, batch: Batch) -> Tensor:
            rows = batch["inputs"].to(plan.device)
            return pairwise_loss(network(rows), joint_probabilities(rows, perplexity))

        return Objective(loss_of, lambda block, rows: {}, {"perplexity_": perplexity})


@documented
class PtSNE(Deep, PairwiseMap):
    """Parametric t-SNE: a deep network that keeps the neighbors within mini-batches.

    Its map depends on how batch size and perplexity go together, because neighbors are sought within a
    batch; `DtSEE` is free of that and gives the better map. PtSNE is here to compare with.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tsee import PtSNE
    >>> X = load_digits().data
    >>> PtSNE(max_epochs=1, random_state=0).fit_transform(X).shape
    (1797, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 10.0,
        hidden_layers: Sequence[int] = (512, 512, 512),
        normalization: str | None = "layer",
        activation: str = "relu",
        network: nn.Module | None = None,
        n_inputs: int | None = 50,
        spare_dimensions: int = 8,
        batch_size: int | None = None,
        max_epochs: int | None = None,
        learning_rate: float = 0.01,
        optimizer: str = "adam",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | PathLike[str] | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.hidden_layers = hidden_layers
        self.normalization = normalization
        self.activation = activation
        self.network = network
        self.n_inputs = n_inputs
        self.spare_dimensions = spare_dimensions
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose


@documented
class HotSNE(HighOrder, PairwiseMap):
    """High-order t-SNE: the shallow network of equation 7 that keeps the neighbors within mini-batches.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tsee import HotSNE
    >>> X = load_digits().data
    >>> HotSNE(max_epochs=1, random_state=0).fit_transform(X).shape
    (1797, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 10.0,
        n_factors: int = 800,
        n_hidden: int = 400,
        order: int = 2,
        normalization: str | None = "layer",
        n_inputs: int | None = 50,
        spare_dimensions: int = 8,
        batch_size: int | None = None,
        max_epochs: int | None = None,
        learning_rate: float = 0.03,
        optimizer: str = "adam",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | PathLike[str] | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.n_factors = n_factors
        self.n_hidden = n_hidden
        self.order = order
        self.normalization = normalization
        self.n_inputs = n_inputs
        self.spare_dimensions = spare_dimensions
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose
