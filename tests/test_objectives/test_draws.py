"""What the forms draw: from their own generator, never the row itself, every neighbor as often as it should come."""

import pytest
import torch
from torch import nn

from tsee.batches import Batch
from tsee.exemplars import Exemplars
from tsee.objectives import Neighborhoods, Noise, Sampled, noise_contrastive_loss

CPU = torch.device("cpu")


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def seeded():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Linear(4, 2)


@pytest.fixture
def rows():
    return draw(60, 4)


@pytest.fixture
def points(rows):
    """Every other row."""
    return Exemplars(rows[::2], torch.arange(0, 60, 2))


def sampled_of(exemplars, k=12, perplexity=4.0, **changes):
    settings = dict(n_rows=60, n_epochs=20, jitter=0.3, exaggeration=1.5, device=CPU, generator=seeded()) | changes
    return Sampled(Neighborhoods(exemplars, 0, perplexity, k), **settings)


def noise_of(exemplars, n_noise):
    return Noise(Neighborhoods(exemplars, 0, 3.0, 6), n_noise, "auto", CPU, seeded())


def batch_of(form, rows):
    return Batch({"inputs": rows, **form.columns(rows, slice(0, len(rows)))}, 0)


@pytest.mark.parametrize("make", [sampled_of, lambda points: noise_of(points, 5)], ids=["sampled", "noise"])
def test_every_draw_comes_from_the_generator_that_was_given(make, network, rows, points):
    before = torch.get_rng_state()
    losses, batches = [], []
    with torch.no_grad():
        for _ in range(2):
            form = make(points)
            batches.append(batch_of(form, rows))
            losses.append(float(form.loss(network, batches[-1])))
        later = float(form.loss(network, batches[-1]))
    assert torch.equal(torch.get_rng_state(), before)
    assert losses[0] == losses[1] != later
    for name, column in batches[0].columns.items():
        assert torch.equal(column, batches[1][name])


@pytest.mark.parametrize("columns", [1, 9])
def test_both_a_row_and_its_exemplar_are_moved_in_proportion_to_their_distance(columns):
    rows = draw(60, columns)
    points = Exemplars(rows[::2], torch.arange(0, 60, 2))
    form = sampled_of(points)
    drawn = batch_of(form, rows)["drawn"][:, 0].long()
    others = points.inputs[drawn]
    moved = [form.jittered(rows, drawn, 0.3) for _ in range(2000)]
    steps = torch.stack([torch.stack([a - rows, b - others]) for a, b in moved])  # (2000, 2, rows, columns)
    length = 0.3 * (rows - others).norm(dim=1)
    for steps_of in steps.unbind(1):
        torch.testing.assert_close(steps_of.square().sum(2).mean(0).sqrt(), length, rtol=0.1, atol=1e-6)
        assert (steps_of.mean(0) / length[:, None]).abs().max() < 5 / 2000**0.5  # in no direction more than in others
    # Each has noise of its own.
    together = (steps[:, 0] * steps[:, 1]).sum(2).mean(0) / length.square()
    assert together.abs().max() < 5 / 2000**0.5


def test_neighbors_of_equal_probability_are_drawn_equally_often():
    """The last of the neighbors, too."""
    corners = torch.cat([torch.eye(4), -torch.eye(4)])
    form = sampled_of(Exemplars(corners), k=8, perplexity=5.0, n_epochs=24)
    drawn = form.columns(torch.zeros(50, 4), slice(0, 50))["drawn"].long()
    assert drawn.shape == (50, 24)
    for row in drawn:
        assert torch.bincount(row, minlength=8).tolist() == [3] * 8


def test_the_largest_random_number_draws_no_neighbor_past_the_last(monkeypatch, rows, points):
    """In float32, 19 plus the largest number below 1 is 20."""
    form = sampled_of(points)
    monkeypatch.setattr(torch, "rand", lambda shape, generator: torch.full(shape, 1 - 2.0**-24))
    drawn = form.columns(rows, slice(0, 60))["drawn"].long()
    near = form.neighborhoods.find(rows, slice(0, 60))[0].indices
    for i in range(60):
        assert set(drawn[i].tolist()) <= set(near[i].tolist())


@pytest.mark.parametrize(("n_epochs", "n_draws"), [(1, 1), (63, 63), (64, 64), (65, 64)])
def test_no_more_is_drawn_beforehand_than_64_epochs_need(rows, points, n_epochs, n_draws):
    assert sampled_of(points, n_epochs=n_epochs).columns(rows, slice(0, 60))["drawn"].shape == (60, n_draws)


@pytest.mark.parametrize("kind", ["points", "centers"])
def test_noise_is_its_formula_over_its_draws(network, rows, points, kind):
    """The draws are repeated from the same state of the generator, and the positions are found one by one."""
    exemplars = points if kind == "points" else Exemplars(draw(30, 4, seed=1))
    form = noise_of(exemplars, 7)
    batch = batch_of(form, rows)
    state = form.generator.get_state()
    found = form.loss(network, batch)
    form.generator.set_state(state)
    drawn = form.draw(batch["near"].long(), batch["own"].long() if kind == "points" else None)
    for i in range(60):
        assert not set(drawn[i].tolist()) & set(batch["near"][i].tolist())
        assert kind == "centers" or int(batch["own"][i]) not in drawn[i].tolist()
    V = network(exemplars.inputs)
    near = torch.stack([torch.stack([V[j] for j in row]) for row in batch["near"].tolist()])
    noise = torch.stack([torch.stack([V[j] for j in row]) for row in drawn.tolist()])
    weight = (30 - 6 - (kind == "points")) / 7
    expected = noise_contrastive_loss(network(rows), near, noise, batch["probabilities"], weight)
    torch.testing.assert_close(found, expected)


def test_without_any_others_there_is_no_noise(network, rows):
    """All exemplars are near: the loss has a normalizer of these alone."""
    exemplars = Exemplars(draw(6, 4, seed=1))
    form = noise_of(exemplars, 5)
    assert (form.n_others, form.n_noise, form.weight) == (0, 0, 1.0)
    batch = batch_of(form, rows)
    near = network(exemplars.inputs)[batch["near"].long()]
    expected = noise_contrastive_loss(network(rows), near, near[:, :0], batch["probabilities"], 1.0)
    torch.testing.assert_close(form.loss(network, batch), expected)
