"""Positions of points and exemplars by one pass of the network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["embed_in_parts", "embed_together"]


def embed_together(network: nn.Module, points: Tensor, exemplars: Tensor) -> tuple[Tensor, Tensor]:
    """The positions of points and of exemplars, by one pass of the network through both."""
    return embed_in_parts(network, torch.cat([points, exemplars]), len(points))


def embed_in_parts(network: nn.Module, rows: Tensor, n_points: int) -> tuple[Tensor, Tensor]:
    """The positions of the first ``n_points`` rows, and of the others, by one pass of the network."""
    positions = network(rows)
    return positions[:n_points], positions[n_points:]
