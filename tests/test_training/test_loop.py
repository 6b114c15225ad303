"""The loop: what it learns, records, and keeps when it is stopped."""

import math
import warnings

import pytest
import torch
from torch import nn

from tsee.batches import Batch, MemoryStore
from tsee.exceptions import TrainingWarning
from tsee.networks import DeepNetwork, FlatteningNetwork
from tsee.training import precision
from tsee.training.loop import train
from tsee.training.optimizers import make_optimizer
from tsee.training.run import Run


def store_of():
    """A hundred rows with one column, the number of the row."""
    store = MemoryStore(100, 0)
    store.append({"row": torch.arange(100)})
    return store


def problem():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(100, 3, generator=generator)
    target = X @ torch.tensor([[1.0], [2.0], [3.0]])
    network = nn.Linear(3, 1)
    with torch.no_grad():
        network.weight.zero_()
        network.bias.zero_()
    return network, lambda net, batch: (net(X[batch["row"]]) - target[batch["row"]]).square().mean()


def run(network, loss_of, *, n_steps=5, n_epochs=30, optimizer="adam", **changes):
    run = Run(network, make_optimizer(optimizer, network.parameters()), n_steps=n_steps, n_epochs=n_epochs, n_rows=100)
    settings = dict(learning_rate=0.1, generator=torch.Generator()) | changes
    run.complete = train(run, loss_of, store_of(), **settings)
    return run


@pytest.mark.parametrize("optimizer", ["adam", "cg"])
def test_the_loss_falls_and_is_recorded(optimizer):
    network, loss_of = problem()
    history = run(network, loss_of, optimizer=optimizer)
    assert len(history.loss) == len(history.learning_rate) == 30
    assert history.loss[-1] < 0.01 * history.loss[0]
    assert not network.training


@pytest.mark.parametrize("optimizer", ["adam", "cg"])
def test_a_batch_is_prepared_once_however_often_its_loss_is_evaluated(optimizer):
    network, loss_of = problem()
    prepared, evaluated = [], []

    def prepare(batch):
        prepared.append(batch)
        return Batch(batch.columns | {"number": torch.tensor([len(prepared)])}, batch.epoch)

    def counted(net, batch):
        evaluated.append(int(batch["number"]))
        return loss_of(net, batch)

    run(network, counted, n_steps=5, n_epochs=3, optimizer=optimizer, prepare=prepare)
    assert len(prepared) == 15
    assert evaluated == sorted(evaluated)
    assert set(evaluated) == set(range(1, 16))
    assert (len(evaluated) > 30) == (optimizer == "cg")


def test_an_interrupt_keeps_what_was_learned():
    network, loss_of = problem()
    calls = 0

    def interrupted(net, batch):
        nonlocal calls
        calls += 1
        if calls > 52:
            raise KeyboardInterrupt
        return loss_of(net, batch)

    history = run(network, interrupted)
    assert history.interrupted
    assert not history.complete
    assert len(history.loss) == 10
    assert float(loss_of(network, Batch({"row": torch.arange(100)}, 0)).detach()) < history.loss[0]


def test_a_loss_that_is_not_a_number_restores_the_last_good_weights():
    network, loss_of = problem()
    calls, kept = 0, {}

    def poisoned(net, batch):
        nonlocal calls
        calls += 1
        if calls == 51:  # the first step of the eleventh epoch sees the weights of the tenth
            kept.update({name: value.clone() for name, value in net.state_dict().items()})
        return loss_of(net, batch) * (math.nan if calls == 53 else 1)

    with pytest.warns(TrainingWarning, match=r"diverged in epoch 11 .* from epoch 10, are kept; .*learning_rate"):
        history = run(network, poisoned)
    assert len(history.loss) == 10
    for name, value in network.state_dict().items():
        assert torch.equal(value, kept[name])


def test_a_gradient_that_is_not_finite_is_caught():
    network, loss_of = problem()

    def steep(net, batch):
        # A finite value with an infinite slope at the start.
        return loss_of(net, batch) + net.weight.abs().sqrt().sum()

    with pytest.warns(TrainingWarning, match="diverged"):
        run(network, steep)
    assert all(torch.isfinite(p).all() for p in network.parameters())


def test_a_diverging_loss_is_caught():
    network, loss_of = problem()
    with pytest.warns(TrainingWarning, match="a lower learning_rate may help"):
        run(network, loss_of, learning_rate=1e6)
    assert all(torch.isfinite(p).all() for p in network.parameters())


def test_an_undisturbed_run_says_nothing(capsys):
    network, loss_of = problem()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(network, loss_of, verbose=True)  # not a terminal: no bar either
    captured = capsys.readouterr()
    assert captured.out == captured.err == ""


def test_conjugate_gradient_searches_one_function_per_batch():
    """A loss draws the same numbers at each evaluation of a line search."""
    network, loss_of = problem()
    generator = torch.Generator().manual_seed(0)
    draws = []

    def noisy(net, batch):
        draws.append((tuple(batch["row"].tolist()), float(torch.rand(1, generator=generator))))
        return loss_of(net, batch) + draws[-1][1]

    run(network, noisy, n_steps=2, n_epochs=3, optimizer="cg", generator=generator)
    by_batch = {}
    for rows, value in draws[:-1]:
        by_batch.setdefault(rows, set()).add(value)
    assert all(len(values) == 1 for values in by_batch.values())
    assert len({value for values in by_batch.values() for value in values}) == len(by_batch)


def test_layers_are_quick_while_training_only(monkeypatch):
    network = FlatteningNetwork(DeepNetwork(3, 4, (5,)), 2)
    for has in (False, True):
        monkeypatch.setattr(precision, "has_bfloat16", lambda device, has=has: has)
        with precision.bfloat16_layers(network, torch.device("cpu")):
            assert network.network.quick is has
        assert not network.network.quick


def test_a_processor_that_is_not_known_to_be_quick_is_not():
    assert not precision.has_bfloat16(torch.device("mps"))
    assert not precision.has_bfloat16(torch.device("meta"))
