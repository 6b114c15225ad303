"""The network of an estimator: deep, high-order, or the user's own."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from tsee.distributed import broadcast
from tsee.networks import DeepNetwork, FlatteningNetwork, HighOrderNetwork

__all__ = ["Deep", "HighOrder", "check_network"]


class Deep:
    """Estimators with a deep network, or with a network of the user's own."""

    def _make_network(self: Any, n_inputs: int, generator: torch.Generator) -> nn.Module:
        if self.network is not None:
            own = copy.deepcopy(self.network)  # so that every fit starts from the same weights
            for weights in own.state_dict().values():
                weights.copy_(broadcast(weights))  # so does every process
            return own
        network = DeepNetwork(
            n_inputs,
            self.n_components + self.spare_dimensions,
            self.hidden_layers,
            normalization=self.normalization,
            activation=self.activation,
            generator=generator,
        )
        return FlatteningNetwork(network, self.n_components)


class HighOrder:
    """Estimators with the shallow high-order network."""

    def _make_network(self: Any, n_inputs: int, generator: torch.Generator) -> nn.Module:
        network = HighOrderNetwork(
            n_inputs,
            self.n_components + self.spare_dimensions,
            self.n_factors,
            self.n_hidden,
            self.order,
            normalization=self.normalization,
            generator=generator,
        )
        return FlatteningNetwork(network, self.n_components)


def check_network(network: nn.Module, rows: Tensor, n_components: int) -> None:
    """Refuse a network that does not fit the data, before an hour is spent on finding neighbors."""
    if isinstance(network, FlatteningNetwork):
        return
    if not any(p.requires_grad for p in network.parameters()):
        raise ValueError("The 'network' parameter must have weights to train; it has none.")
    try:
        with torch.no_grad():
            positions = network.eval()(rows)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"The 'network' parameter must take rows of {rows.shape[1]} inputs (see n_inputs), "
            f"but it failed on them: {str(error).splitlines()[0]}."
        ) from error
    shape = tuple(positions.shape) if isinstance(positions, Tensor) else type(positions).__name__
    if shape != (len(rows), n_components):
        raise ValueError(
            f"The 'network' parameter must map rows to n_components={n_components} numbers, "
            f"but it maps {tuple(rows.shape)} to {shape}."
        )
