"""The two parametric maps of the paper. Any ``torch.nn.Module`` from rows to positions can replace them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["ACTIVATIONS", "NORMALIZATIONS", "DeepNetwork", "FlatteningNetwork", "HighOrderNetwork", "Network", "folded"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}
NORMALIZATIONS = ("layer", "batch", None)
# Of the weights that pt-SNE's published network starts from. With torch's, which are much smaller, layers of sigmoids,
# which are flat, pass on next to nothing.
PUBLISHED_DEVIATION = 0.1


class Network(nn.Module):
    """Hidden layers and a linear readout: what the two networks share.

    Attributes
    ----------
    quick : bool
        Whether hidden layers of float32 use bfloat16 (8 significant bits) in training, except for sums and statistics.
    """

    quick = False
    config: dict[str, Any]
    readout: nn.Linear

    def hidden(self, x: Tensor) -> Tensor:
        """The outputs of the last hidden layer."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        if self.quick and self.training and x.dtype == torch.float32:
            with torch.autocast(x.device.type, torch.bfloat16):
                hidden = self.hidden(x)
            hidden = hidden.float()  # a position needs more digits than the hidden units
        else:
            hidden = self.hidden(x)
        positions: Tensor = self.readout(hidden)
        return positions


class DeepNetwork(Network):
    """A feed-forward network: linear, normalization, activation for each hidden layer, then linear.

    Parameters
    ----------
    n_inputs, n_components : int
        The dimensions of a row and of its position on the map.
    hidden_layers : sequence of int
        The paper has 500, 500, 2000.
    normalization : {"layer", "batch", None}
        What precedes each activation. None is the paper's network.
    activation : {"relu", "silu", "gelu", "tanh", "sigmoid"}
    generator : torch.Generator, optional
        Draws the initial weights. They are torch's, except for sigmoid units without normalization, the network that
        pt-SNE was published with: its weights have a standard deviation of 0.1, and its biases are 0.

    Examples
    --------
    >>> import torch
    >>> network = DeepNetwork(64, 2, hidden_layers=(500, 500, 2000), normalization=None)
    >>> network(torch.zeros(3, 64)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        n_inputs: int,
        n_components: int,
        hidden_layers: Sequence[int] = (500, 500, 2000),
        *,
        normalization: str | None = "layer",
        activation: str = "relu",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.config = {
            "n_inputs": n_inputs,
            "n_components": n_components,
            "hidden_layers": [int(size) for size in hidden_layers],
            "normalization": normalization,
            "activation": activation,
        }
        layers: list[nn.Module] = []
        width = n_inputs
        for size in hidden_layers:
            layers += [_linear(width, size, generator), *_normalization(normalization, size)]
            layers.append(ACTIVATIONS[activation]())
            width = size
        self.layers = nn.Sequential(*layers)
        # No bias at the end: a shift of the whole map changes no loss, so it would only drift.
        self.readout = _linear(width, n_components, generator, bias=False)
        if activation == "sigmoid" and normalization is None:
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.normal_(0, PUBLISHED_DEVIATION, generator=generator).mul_(parameter.ndim > 1)

    def hidden(self, x: Tensor) -> Tensor:
        units: Tensor = self.layers(x)
        return units


class HighOrderNetwork(Network):
    r"""The shallow network with factorized high-order feature interactions (equation 7).

    .. math:: y_s = \sum_{k=1}^m V_{sk}\, \sigma\Big(\sum_{f=1}^F W_{fk} (C_f^T x')^O + b_k\Big)

    where :math:`x' = [x; 1]`.

    Parameters
    ----------
    n_inputs, n_components : int
        The dimensions of a row and of its position on the map.
    n_factors : int
        F, the columns of C.
    n_hidden : int
        m, the high-order hidden units.
    order : int
        O; all interactions up to this order are captured, because the last component of x' is 1.
    normalization : {"layer", "batch", None}
        "batch" normalizes the argument of the sigmoid over the batch: it folds into W and b, so that
        the network learns exactly equation 7. "layer" normalizes the powers and that argument
        within each row. None is the paper's network.
    generator : torch.Generator, optional
        Draws the initial weights.

    Examples
    --------
    >>> import torch
    >>> HighOrderNetwork(64, 2, n_factors=80, n_hidden=40)(torch.zeros(3, 64)).shape
    torch.Size([3, 2])
    """

    def __init__(
        self,
        n_inputs: int,
        n_components: int,
        n_factors: int = 800,
        n_hidden: int = 400,
        order: int = 2,
        *,
        normalization: str | None = "layer",
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.config = {
            "n_inputs": n_inputs,
            "n_components": n_components,
            "n_factors": n_factors,
            "n_hidden": n_hidden,
            "order": order,
            "normalization": normalization,
        }
        self.order = order
        # The bias of each linear map is the weight of the component of 1 in x', or b.
        self.factors = _linear(n_inputs, n_factors, generator)  # C
        self.mixing = _linear(n_factors, n_hidden, generator)  # W, b
        self.readout = _linear(n_hidden, n_components, generator, bias=False)  # V
        self.power_norm = nn.LayerNorm(n_factors) if normalization == "layer" else nn.Identity()
        self.hidden_norm = nn.Sequential(*_normalization(normalization, n_hidden))

    def hidden(self, x: Tensor) -> Tensor:
        powers = self.power_norm(self.factors(x) ** self.order)  # (rows, F)
        return torch.sigmoid(self.hidden_norm(self.mixing(powers)))  # (rows, m)


class FlatteningNetwork(nn.Module):
    """A network with spare output dimensions, which are flattened during training.

    In the plane, clusters that start on the wrong side of one another block each other's way. With a few
    spare dimensions they can pass. ``height`` is the factor on the spare dimensions, from 1 down to 0.

    Parameters
    ----------
    network : DeepNetwork or HighOrderNetwork
        Its outputs are the dimensions of the map, then the spare ones.
    n_components : int
        The dimensions of the map.
    """

    def __init__(self, network: DeepNetwork | HighOrderNetwork, n_components: int) -> None:
        super().__init__()
        self.network = network
        self.n_components = n_components
        self.height = 1.0

    def forward(self, x: Tensor) -> Tensor:
        positions: Tensor = self.network(x)
        plane, spare = positions[:, : self.n_components], positions[:, self.n_components :]
        return torch.cat([plane, self.height * spare], 1) if self.height > 0 else plane

    def flat(self) -> nn.Module:
        """The network without its spare dimensions."""
        last = self.network.readout
        kept = _blank_linear(last.in_features, self.n_components, bias=False)
        with torch.no_grad():
            kept.weight.copy_(last.weight[: self.n_components])
        self.network.readout = kept.to(last.weight.device)
        self.network.config["n_components"] = self.n_components
        return self.network


def folded(network: nn.Module) -> nn.Module:
    """The network for inference: batch normalization folded into the linear map before it.

    The result equals ``network.eval()`` up to rounding, and is a network of the same kind without normalization.
    A network with nothing to fold is returned unchanged, in evaluation mode.
    """
    network = network.eval()
    if not isinstance(network, DeepNetwork | HighOrderNetwork) or network.config["normalization"] != "batch":
        return network
    fuse: Any = nn.utils.fusion.fuse_linear_bn_eval
    plain = type(network)(**{**network.config, "normalization": None})
    plain.readout = network.readout
    if isinstance(network, DeepNetwork):
        layers = list(network.layers)
        norms = [i for i, layer in enumerate(layers) if isinstance(layer, nn.BatchNorm1d)]
        for i in norms:
            layers[i - 1] = fuse(layers[i - 1], layers[i])
        plain.layers = nn.Sequential(*(layer for i, layer in enumerate(layers) if i not in norms))
    else:
        plain.factors = network.factors
        plain.mixing = fuse(network.mixing, network.hidden_norm[0])
    return plain.eval()


def _linear(n_inputs: int, n_outputs: int, generator: torch.Generator | None, bias: bool = True) -> nn.Linear:
    """A linear layer with torch's initial weights, but drawn from the given generator instead of the global one."""
    layer = _blank_linear(n_inputs, n_outputs, bias=bias)
    bound = n_inputs**-0.5
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-bound, bound, generator=generator)
    return layer


def _blank_linear(n_inputs: int, n_outputs: int, *, bias: bool) -> nn.Linear:
    """A linear layer with arbitrary weights. No numbers are drawn.

    `torch.nn.utils.skip_init` gives the same, but its first call imports sympy, which takes half a second.
    """
    layer = nn.Linear(n_inputs, n_outputs, bias=bias, device="meta")
    for name, parameter in list(layer.named_parameters()):
        setattr(layer, name, nn.Parameter(torch.empty(parameter.shape)))
    return layer


def _normalization(name: str | None, size: int) -> list[nn.Module]:
    if name is None:
        return []
    return [nn.LayerNorm(size) if name == "layer" else nn.BatchNorm1d(size)]
