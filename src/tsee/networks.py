"""The two parametric maps of the paper; any ``torch.nn.Module`` from rows to places fits in their stead."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

__all__ = ["ACTIVATIONS", "NORMALIZATIONS", "DeepNetwork", "HighOrderNetwork", "folded"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}
NORMALIZATIONS = ("layer", "batch", None)


class DeepNetwork(nn.Module):
    """A feed-forward network: linear, normalisation, activation for each hidden layer, then linear.

    Parameters
    ----------
    n_inputs, n_components : int
        The dimensions of a row and of its place on the map.
    hidden_layers : sequence of int
        The paper has 500, 500, 2000.
    normalization : {"layer", "batch", None}
        What stands before each activation. None is the paper's network.
    activation : {"relu", "silu", "gelu", "tanh", "sigmoid"}
    generator : torch.Generator, optional
        Draws the initial weights.

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
            layers += [_linear(width, size, generator, gain=2.0), *_normalization(normalization, size)]
            layers.append(ACTIVATIONS[activation]())
            width = size
        # No bias at the end: a shift of the whole map changes no loss, so it would only drift.
        layers.append(_linear(width, n_components, generator, gain=1.0, bias=False))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        places: Tensor = self.layers(x)
        return places


class HighOrderNetwork(nn.Module):
    r"""The shallow network with factorised high-order feature interactions (equation 7).

    .. math:: y_s = \sum_{k=1}^m V_{sk}\, \sigma\Big(\sum_{f=1}^F W_{fk} (C_f^T x')^O + b_k\Big)

    where :math:`x' = [x; 1]`.

    Parameters
    ----------
    n_inputs, n_components : int
        The dimensions of a row and of its place on the map.
    n_factors : int
        F, the columns of C.
    n_hidden : int
        m, the high-order hidden units.
    order : int
        O; all interactions up to this order are captured, because the last component of x' is 1.
    normalization : {"layer", "batch", None}
        "batch" normalises the argument of the sigmoid over the batch: it folds into W and b, so that
        what is learned is equation 7 to the letter. "layer" normalises the powers and that argument
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
        self.factors = _linear(n_inputs, n_factors, generator, gain=1.0)  # C
        self.mixing = _linear(n_factors, n_hidden, generator, gain=1.0)  # W, b
        self.readout = _linear(n_hidden, n_components, generator, gain=1.0, bias=False)  # V
        self.power_norm = nn.LayerNorm(n_factors) if normalization == "layer" else nn.Identity()
        self.hidden_norm = nn.Sequential(*_normalization(normalization, n_hidden))
        if normalization is None:
            # Powers of unit factors are not centred; smaller mixing weights keep the sigmoid off its ends.
            with torch.no_grad():
                self.mixing.weight *= 0.3

    def forward(self, x: Tensor) -> Tensor:
        powers = self.power_norm(self.factors(x) ** self.order)  # (rows, F)
        hidden = torch.sigmoid(self.hidden_norm(self.mixing(powers)))  # (rows, m)
        places: Tensor = self.readout(hidden)
        return places


def folded(network: nn.Module) -> nn.Module:
    """The network for inference: batch normalisation folded into the linear map before it.

    The result computes what ``network.eval()`` computes, to rounding, and is a network of the same kind
    without normalisation. A network with nothing to fold is returned as it is, in evaluation mode.
    """
    network = network.eval()
    if not isinstance(network, DeepNetwork | HighOrderNetwork) or network.config["normalization"] != "batch":
        return network
    fuse = nn.utils.fusion.fuse_linear_bn_eval
    plain = type(network)(**{**network.config, "normalization": None})  # type: ignore[arg-type]
    if isinstance(network, DeepNetwork):
        layers = list(network.layers)
        norms = [i for i, layer in enumerate(layers) if isinstance(layer, nn.BatchNorm1d)]
        for i in norms:
            layers[i - 1] = fuse(layers[i - 1], layers[i])  # type: ignore[type-var]
        plain.layers = nn.Sequential(*(layer for i, layer in enumerate(layers) if i not in norms))
    else:
        plain.factors, plain.readout = network.factors, network.readout
        plain.mixing = fuse(network.mixing, network.hidden_norm[0])  # type: ignore[type-var]
    return plain.eval()


def _linear(
    n_inputs: int, n_outputs: int, generator: torch.Generator | None, *, gain: float, bias: bool = True
) -> nn.Linear:
    """A linear layer drawn from the given generator: nn.Linear itself would draw from the global one."""
    layer = nn.utils.skip_init(nn.Linear, n_inputs, n_outputs, bias=bias)
    with torch.no_grad():
        layer.weight.normal_(0.0, (gain / n_inputs) ** 0.5, generator=generator)
        if bias:
            layer.bias.zero_()
    return layer


def _normalization(name: str | None, size: int) -> list[nn.Module]:
    if name is None:
        return []
    return [nn.LayerNorm(size) if name == "layer" else nn.BatchNorm1d(size)]
