"""The losses, one form per file: what to keep for each row, and the loss of a batch.

Every form has the same two methods. ``columns(inputs, rows)`` is called with consecutive blocks of rows and returns
what the loss needs for each row besides its inputs. ``loss(network, batch)`` is the loss of a batch of rows with these
columns. ``perplexity`` is the perplexity that took effect.
"""

from typing import Protocol

from torch import Tensor, nn

from tsee.batches import Batch, Columns
from tsee.objectives.distillation import Distillation, choice_loss, distance_loss
from tsee.objectives.full import Full, exemplar_loss
from tsee.objectives.kernels import log_normalizer
from tsee.objectives.neighborhoods import Neighborhoods
from tsee.objectives.noise import Noise, noise_contrastive_loss
from tsee.objectives.pairwise import Pairwise, pairwise_loss
from tsee.objectives.sampled import Sampled, sampled_loss

__all__ = [
    "Distillation",
    "Full",
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

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """The loss of a batch."""
        ...
