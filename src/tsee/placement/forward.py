"""Positions by one pass of the network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsee.data import apply_padded, blocks

__all__ = ["forward_positions"]

# Rows that pass the network together.
FORWARD_ROWS = 1024


@torch.inference_mode()
def forward_positions(network: nn.Module, inputs: Tensor) -> Tensor:
    """The positions that a network gives to inputs, float32; each is independent of the other rows.

    Parameters
    ----------
    network : torch.nn.Module
    inputs : Tensor of shape (n, d)

    Returns
    -------
    Tensor of shape (n, h), on the CPU
    """
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    parts = [apply_padded(network, inputs[rows].to(device)).cpu() for rows in blocks(len(inputs), FORWARD_ROWS)]
    return torch.cat(parts).float()
