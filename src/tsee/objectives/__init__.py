"""The losses, one form per file: what to keep for each row, and the loss of a batch.

Every form has the same three methods. ``columns(inputs, rows)`` is called with consecutive blocks of rows and returns
what the loss needs for each row besides its inputs. ``prepared(batch)`` takes a batch of rows with these columns and
returns what does not depend on the network. ``loss(network, batch)`` is the loss of a batch that was prepared; a line
search evaluates it many times. ``perplexity`` is the perplexity that took effect.
"""

from typing import Protocol

from torch import Tensor, nn

from tsee.batches import Batch, Columns
from tsee.objectives.distillation import Distillation, choice_loss, distance_loss
from tsee.objectives.full import Full, exemplar_loss
from tsee.objectives.kernels import log_normalizer
from tsee.objectives.neighborhoods import Keeper, Neighborhoods
from tsee.objectives.noise import Noise, noise_contrastive_loss
from tsee.objectives.pairwise import Pairwise, pairwise_loss
from tsee.objectives.sampled import Sampled, sampled_loss

__all__ = [
    "Distillation",
    "Full",
    "Keeper",
    "Neighborhoods",
    "Noise",
    "Objective",
    "Pairwise",
    "Sampled",
    "choice_loss",
    "distance_loss",
    "exemplar_loss",
    "log_normalizer",
    "noise_contrastive_loss",
    "pairwise_loss",
    "sampled_loss",
]


class Objective(Protocol):
    """What a network is trained for."""

    perplexity: float

    def columns(self, inputs: Tensor, rows: slice) -> Columns:
        """What the loss needs for each row of a block, besides its inputs."""
        ...

    def prepared(self, batch: Batch) -> Batch:
        """What the loss of a batch needs, computed once for all evaluations. A collective."""
        ...

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """The loss of a batch that was prepared. A collective."""
        ...
