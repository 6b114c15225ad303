"""Positions of points and exemplars by one pass of the network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["embed_together"]


def embed_together(network: nn.Module, points: Tensor, exemplars: Tensor) -> tuple[Tensor, Tensor]:
    """The positions of points and of exemplars, by one pass of the network through both."""
    positions = network(torch.cat([points, exemplars]))
    return positions[: len(points)], positions[len(points) :]
