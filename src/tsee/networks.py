"""The two parametric maps of the paper. Any ``torch.nn.Module`` from rows to positions can replace them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from tsee.exceptions import ModelError

__all__ = [
    "ACTIVATIONS",
    "DeepNetwork",
    "FlatteningNetwork",
    "HighOrderNetwork",
    "Network",
    "NoNetwork",
    "folded",
    "put_before",
]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}
# Of the weights that pt-SNE's published network starts from. With torch's, which are much smaller, layers of sigmoids,
# which are flat, pass on next to nothing.
PUBLISHED_DEVIATION = 0.1


class Network(nn.Module, ABC):
    r"""Hidden layers and a linear readout: what the two networks share.

    The units of the last hidden layer can be places: positions :math:`v_k` on the map, the columns of the readout,
    among which a softmax of their scores s chooses,

    .. math:: y = \sum_k p_k v_k, \qquad p_k = e^{s_k} / \sum_l e^{s_l}.

    Other units change slowly from row to row, and so do positions that are read from them. A choice jumps from one
    cluster of the map to the next.

    Attributes
    ----------
    quick : bool
        Whether hidden layers of float32 use bfloat16 (8 significant bits) in training, except for sums and statistics.
    """

    quick = False
    config: dict[str, Any]
    readout: nn.Linear

    @property
    def n_places(self) -> int:
        """How many places the network chooses among; 0 if it does not."""
        return int(self.config.get("n_places", 0))

    @abstractmethod
    def hidden(self, x: Tensor) -> Tensor:
        """The outputs of the last hidden layer; of places, the scores."""

    def choose_among(self, places: Tensor, generator: torch.Generator | None = None) -> None:
        """Make places the last hidden layer; the generator draws the weights of their scores.

        Parameters
        ----------
        places : Tensor of shape (n, n_components)
        generator : torch.Generator, optional
        """
        self._add_places(len(places), generator)
        self.readout = nn.utils.skip_init(nn.Linear, *places.shape, bias=False)
        with torch.no_grad():
            self.readout.weight.copy_(places.T)
        self.config["n_places"] = len(places)
        self.to(places.device)

    def add_places(self, places: Tensor, generator: torch.Generator | None = None) -> None:
        """Add places, of shape (n, n_components), to those that the network chooses among."""
        before, weight = self.scoring, self.readout.weight
        with torch.no_grad():
            self.choose_among(torch.cat([weight.T, places.to(weight.device)]), generator)
            for known, scores in zip(before.parameters(), self.scoring.parameters(), strict=True):
                scores[: len(known)] = known

    def sharpen(self, factor: float) -> None:
        """Multiply the scores of the places."""
        with torch.no_grad():
            for weights in self.scoring.parameters():
                weights.mul_(factor)

    @property
    @abstractmethod
    def scoring(self) -> nn.Linear:
        """The layer that gives places their scores."""

    @abstractmethod
    def _add_places(self, n_places: int, generator: torch.Generator | None) -> None:
        """Make that layer, instead of the present one."""

    def units(self, x: Tensor) -> Tensor:
        """The outputs of the last hidden layer with all digits, which a position needs."""
        if self.quick and self.training and x.dtype == torch.float32:
            with torch.autocast(x.device.type, torch.bfloat16):
                return self.hidden(x).float()
        return self.hidden(x)

    def forward(self, x: Tensor) -> Tensor:
        units = self.units(x)
        positions: Tensor = self.readout(units.softmax(1) if self.n_places else units)
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
    n_places : int
        If not 0, a last hidden layer is so many places. 0 is the paper's network.
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
        n_places: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        self.config = {
            "n_inputs": n_inputs,
            "n_components": n_components,
            "hidden_layers": [int(size) for size in hidden_layers],
            "normalization": normalization,
            "activation": activation,
            **({"n_places": n_places} if n_places else {}),
        }
        layers: list[nn.Module] = []
        width = n_inputs
        for size in hidden_layers:
            layers += [_linear(width, size, generator), *_normalization(normalization, size)]
            layers.append(ACTIVATIONS[activation]())
            width = size
        self.layers = nn.Sequential(*layers)
        if n_places:
            self._add_places(n_places, generator)
        # No bias at the end: a shift of the whole map changes no loss, so it would only drift.
        self.readout = _linear(n_places or width, n_components, generator, bias=False)
        if activation == "sigmoid" and normalization is None:
            with torch.no_grad():
                for parameter in self.parameters():
                    parameter.normal_(0, PUBLISHED_DEVIATION, generator=generator).mul_(parameter.ndim > 1)

    def hidden(self, x: Tensor) -> Tensor:
        units: Tensor = self.layers(x)
        return units

    @property
    def scoring(self) -> nn.Linear:
        last = self.layers[-1]
        assert isinstance(last, nn.Linear)
        return last

    def _add_places(self, n_places: int, generator: torch.Generator | None) -> None:
        width = [self.config["n_inputs"], *self.config["hidden_layers"]][-1]
        if len(self.layers) and isinstance(self.layers[-1], nn.Linear):
            del self.layers[-1]
        self.layers.append(_linear(width, n_places, generator))


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
    n_places : int
        If not 0, the hidden units are so many places, m, and a softmax over them replaces the sigmoid.
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
        n_places: int = 0,
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
            **({"n_places": n_places} if n_places else {}),
        }
        self.order = order
        # The bias of each linear map is the weight of the component of 1 in x', or b.
        self.factors = _linear(n_inputs, n_factors, generator)  # C
        self.mixing = _linear(n_factors, n_places or n_hidden, generator)  # W, b
        self.readout = _linear(n_places or n_hidden, n_components, generator, bias=False)  # V
        self.power_norm = nn.LayerNorm(n_factors) if normalization == "layer" else nn.Identity()
        self.hidden_norm = nn.Sequential(*_normalization(None if n_places else normalization, n_hidden))

    def hidden(self, x: Tensor) -> Tensor:
        powers = self.power_norm(self.factors(x) ** self.order)  # (rows, F)
        arguments: Tensor = self.hidden_norm(self.mixing(powers))  # (rows, m)
        return arguments if self.n_places else torch.sigmoid(arguments)

    @property
    def scoring(self) -> nn.Linear:
        return self.mixing

    def _add_places(self, n_places: int, generator: torch.Generator | None) -> None:
        self.mixing = _linear(self.config["n_factors"], n_places, generator)
        self.hidden_norm = nn.Sequential()


class NoNetwork(nn.Module):
    """Stands for a network in a map of given distances: there are no features that one could learn from."""

    config: ClassVar[dict[str, Any]] = {}

    def forward(self, x: Tensor) -> Tensor:
        raise ModelError(
            'A map of metric="precomputed" has no network: leave the placement "refined", or fit features instead of '
            "distances."
        )


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
        plain.mixing = network.mixing if network.n_places else fuse(network.mixing, network.hidden_norm[0])
    return plain.eval()


def put_before(network: nn.Module, weight: Tensor, bias: Tensor) -> None:
    """Make a network of tsee compute ``network(x @ weight + bias)``, multiplied into its first layer.

    Parameters
    ----------
    network : DeepNetwork, HighOrderNetwork or FlatteningNetwork
        With at least one hidden layer. Changed in place.
    weight : Tensor of shape (more inputs, inputs of the network)
    bias : Tensor of shape (inputs of the network,)
    """
    if isinstance(network, FlatteningNetwork):
        network = network.network
    assert isinstance(network, DeepNetwork | HighOrderNetwork)
    first: Any = network.layers[0] if isinstance(network, DeepNetwork) else network.factors
    wider = nn.utils.skip_init(nn.Linear, len(weight), first.out_features).to(first.weight.device)
    own = first.weight.detach().double().cpu()
    with torch.no_grad():
        wider.weight.copy_(own @ weight.double().T)
        wider.bias.copy_(first.bias.detach().double().cpu() + own @ bias.double())
    if isinstance(network, DeepNetwork):
        network.layers[0] = wider
    else:
        network.factors = wider
    network.config["n_inputs"] = len(weight)


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
