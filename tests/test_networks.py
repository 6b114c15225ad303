"""The networks against the formulas, and folded networks against the originals."""

import math

import pytest
import torch
from torch import nn

from tsee.networks import ACTIVATIONS, DeepNetwork, FlatteningNetwork, HighOrderNetwork, folded, put_before


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_equation_7(order):
    network = HighOrderNetwork(4, 2, 5, 3, order, normalization=None, generator=generator()).double()
    for p in network.parameters():
        nn.init.normal_(p, generator=generator(1))
    x = torch.randn(4, dtype=torch.float64, generator=generator(2))
    extended = torch.cat([x, torch.ones(1)])  # x' = [x; 1]
    C = torch.cat([network.factors.weight, network.factors.bias[:, None]], 1).T  # (H + 1, F)
    W, b, V = network.mixing.weight.T, network.mixing.bias, network.readout.weight
    expected = [
        sum(
            V[s, k] / (1 + torch.exp(-(sum(W[f, k] * (C[:, f] @ extended) ** order for f in range(5)) + b[k])))
            for k in range(3)
        )
        for s in range(2)
    ]
    torch.testing.assert_close(network(x[None])[0], torch.stack(expected))


def test_the_papers_deep_network():
    network = DeepNetwork(6, 2, (5, 4), normalization=None, activation="sigmoid", generator=generator())
    first, second = (layer for layer in network.layers if isinstance(layer, nn.Linear))
    x = torch.randn(3, 6, generator=generator(1))
    hidden = torch.sigmoid(x @ first.weight.T + first.bias)
    hidden = torch.sigmoid(hidden @ second.weight.T + second.bias)
    torch.testing.assert_close(network(x), hidden @ network.readout.weight.T)


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("normalization", ["layer", "batch", None])
def test_gradients(activation, normalization):
    network = DeepNetwork(3, 2, (4,), normalization=normalization, activation=activation, generator=generator())
    network.double()
    x = torch.randn(5, 3, dtype=torch.float64, generator=generator(1), requires_grad=True)
    assert torch.autograd.gradcheck(network, (x,))


@pytest.mark.parametrize("normalization", ["layer", "batch", None])
def test_high_order_gradients(normalization):
    network = HighOrderNetwork(3, 2, 4, 5, normalization=normalization, generator=generator()).double()
    x = torch.randn(6, 3, dtype=torch.float64, generator=generator(1), requires_grad=True)
    assert torch.autograd.gradcheck(network, (x,))


def softmax(scores):
    return [math.exp(score) / sum(math.exp(other) for other in scores) for score in scores]


def test_equation_7_with_places():
    """A softmax over the hidden units instead of their sigmoids."""
    network = HighOrderNetwork(4, 2, 5, 3, normalization=None, generator=generator()).double()
    places = torch.randn(6, 2, dtype=torch.float64, generator=generator(1))
    network.choose_among(places, generator(2))
    network.double()
    x = torch.randn(4, dtype=torch.float64, generator=generator(3))
    powers = (network.factors(x) ** 2).tolist()
    W, b = network.mixing.weight.detach(), network.mixing.bias.detach()
    chosen = softmax([sum(float(W[k, f]) * powers[f] for f in range(5)) + float(b[k]) for k in range(6)])
    expected = sum(p * place for p, place in zip(chosen, places, strict=True))
    torch.testing.assert_close(network(x[None])[0], expected)


def test_a_deep_network_with_places():
    network = DeepNetwork(6, 2, (5,), generator=generator())
    x = torch.randn(3, 6, generator=generator(1))
    hidden = network.hidden(x)
    places = torch.randn(7, 2, generator=generator(2))
    network.choose_among(places, generator(3))
    scores = hidden @ network.layers[-1].weight.T + network.layers[-1].bias
    for i in range(3):
        expected = sum(p * place for p, place in zip(softmax(scores[i].tolist()), places, strict=True))
        torch.testing.assert_close(network(x)[i], expected)


@pytest.mark.parametrize("kind", [DeepNetwork, HighOrderNetwork])
def test_a_sharper_choice_is_nearer_to_one_place(kind):
    network = kind(6, 2, n_places=7, generator=generator(1))
    x = torch.randn(9, 6, generator=generator(2))
    scores = network.hidden(x)
    network.sharpen(50.0)
    torch.testing.assert_close(network.hidden(x), 50 * scores, rtol=1e-4, atol=1e-3)
    nearest = network.readout.weight.T[scores.argmax(1)]
    network.sharpen(1000.0)
    torch.testing.assert_close(network(x), nearest)


@pytest.mark.parametrize("normalization", ["layer", "batch", None])
@pytest.mark.parametrize("kind", [DeepNetwork, HighOrderNetwork])
def test_a_network_with_places_is_built_from_its_description(kind, normalization):
    network = kind(6, 2, normalization=normalization, generator=generator(1))
    network.choose_among(torch.randn(7, 2, generator=generator(2)), generator(3))
    x = torch.randn(9, 6, dtype=torch.float64, generator=generator(4))
    again = kind(**network.config)
    again.load_state_dict(network.state_dict())
    assert torch.equal(again.eval()(x.float()), network.eval()(x.float()))
    small = kind(3, 2, *(((4,),) if kind is DeepNetwork else (4, 3)), normalization=normalization, n_places=5)
    for parameter in small.double().parameters():
        nn.init.normal_(parameter, generator=generator(5))
    assert torch.autograd.gradcheck(small, (x[:, :3].clone().requires_grad_(),))


@pytest.mark.parametrize(
    "make",
    [
        lambda: DeepNetwork(7, 2, (8, 9), normalization="batch", generator=generator()),
        lambda: HighOrderNetwork(7, 2, 8, 9, normalization="batch", generator=generator()),
        lambda: DeepNetwork(7, 2, (8, 9), normalization="batch", n_places=6, generator=generator()),
        lambda: HighOrderNetwork(7, 2, 8, 9, normalization="batch", n_places=6, generator=generator()),
    ],
)
def test_batch_normalization_folds_away(make):
    network = make()
    for i in range(20):  # running statistics and affine weights that are not the initial ones
        network(3 + 2 * torch.randn(64, 7, generator=generator(i)))
    for module in network.modules():
        if isinstance(module, nn.BatchNorm1d):
            nn.init.normal_(module.weight, generator=generator(30))
            nn.init.normal_(module.bias, generator=generator(31))
    x = 3 + 2 * torch.randn(10, 7, generator=generator(40))
    plain = folded(network)
    assert not any(isinstance(module, nn.BatchNorm1d) for module in plain.modules())
    assert plain.config["normalization"] is None
    torch.testing.assert_close(plain(x), network.eval()(x), rtol=1e-4, atol=1e-5)
    # A folded network is of the same kind: it can be built from its description and filled.
    again = type(plain)(**plain.config)
    again.load_state_dict(plain.state_dict())
    assert torch.equal(again.eval()(x), plain(x))


@pytest.mark.parametrize("normalization", ["layer", None])
def test_nothing_to_fold(normalization):
    network = DeepNetwork(3, 2, (4,), normalization=normalization, generator=generator())
    assert folded(network) is network
    assert not network.training


@pytest.mark.parametrize("kind", [DeepNetwork, HighOrderNetwork])
def test_the_start_is_drawn_from_the_generator_alone(kind):
    torch.manual_seed(5)
    state = torch.random.get_rng_state()
    first, second = kind(6, 2, generator=generator(1)), kind(6, 2, generator=generator(1))
    other = kind(6, 2, generator=generator(2))
    assert torch.equal(torch.random.get_rng_state(), state)
    x = torch.randn(4, 6, generator=generator(3))
    assert torch.equal(first(x), second(x))
    assert not torch.equal(first(x), other(x))


@pytest.mark.parametrize("kind", [DeepNetwork, HighOrderNetwork])
def test_spare_dimensions_are_scaled_and_dropped(kind):
    network = kind(6, 5, generator=generator(1))
    x = torch.randn(4, 6, generator=generator(3))
    positions = network(x)
    flattening = FlatteningNetwork(network, 2)
    torch.testing.assert_close(flattening(x), positions)
    flattening.height = 0.25
    torch.testing.assert_close(flattening(x), torch.cat([positions[:, :2], positions[:, 2:] / 4], 1))
    flattening.height = 0.0
    torch.testing.assert_close(flattening(x), positions[:, :2])
    flat = flattening.flat()
    assert isinstance(flat, kind)
    torch.testing.assert_close(flat(x), positions[:, :2])
    again = kind(**flat.config)
    again.load_state_dict(flat.state_dict())
    assert torch.equal(again(x), flat(x))


@pytest.mark.parametrize("kind", [DeepNetwork, HighOrderNetwork])
def test_quick_hidden_layers_err_by_hundredths_and_only_while_training(kind):
    network = kind(20, 2, generator=generator(1))
    x = torch.randn(64, 20, generator=generator(2))

    def positions_and_gradients():
        network.zero_grad()
        positions = network(x)
        positions.square().sum().backward()
        return [positions.detach(), *(p.grad for p in network.parameters())]

    exact = positions_and_gradients()
    network.quick = True
    quick = positions_and_gradients()
    errors = [float((a - b).norm() / a.norm()) for a, b in zip(exact, quick, strict=True)]
    assert 0 < errors[0] < 0.02
    assert max(errors) < 0.1
    assert all(values.dtype == torch.float32 for values in quick)
    assert len(quick[0].unique()) > len(quick[0].bfloat16().unique())  # positions have all digits
    assert torch.equal(network.eval()(x), exact[0])


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_only_float32_is_made_quick(dtype):
    network = DeepNetwork(20, 2, generator=generator(1)).to(dtype)
    x = torch.randn(64, 20, generator=generator(2)).to(dtype)
    exact = network(x)
    network.quick = True
    assert torch.equal(network(x), exact)


@pytest.mark.parametrize("make", [lambda: DeepNetwork(5, 2, (7, 6)), lambda: HighOrderNetwork(5, 2, 7, 6)])
def test_what_is_put_before_a_network_is_multiplied_into_it(make):
    x = torch.randn(30, 12, generator=generator(1), dtype=torch.float64)
    weight, bias = (torch.randn(*shape, generator=generator(2), dtype=torch.float64) for shape in ((12, 5), (5,)))
    for network in (make().double(), FlatteningNetwork(make().double(), 1)):
        expected = network(x @ weight + bias)
        put_before(network, weight, bias)
        torch.testing.assert_close(network.double()(x), expected, rtol=1e-5, atol=1e-5)
    assert network.flat().config["n_inputs"] == 12
