"""Learning a layout: each part of the loss against a naive sum, and what a batch is compared with."""

import math

import pytest
import torch
from torch import nn
from torch.autograd import gradcheck

from tsee.batches import Batch
from tsee.exemplars import Exemplars
from tsee.networks import DeepNetwork
from tsee.objectives import Distillation, Neighborhoods, Sampled, choice_loss, distance_loss

CPU = torch.device("cpu")


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def rows():
    return draw(60, 4)


@pytest.fixture
def points(rows):
    """Every other row."""
    return Exemplars(rows[::2], torch.arange(0, 60, 2))


def sampled_of(exemplars, jitter=0.0):
    generator = torch.Generator().manual_seed(0)
    neighborhoods = Neighborhoods(exemplars, 0, 4.0, 12, remember=True)
    return Sampled(
        neighborhoods, n_rows=60, n_epochs=20, jitter=jitter, exaggeration=1.0, device=CPU, generator=generator
    )


def batch_of(form, rows, epoch):
    return Batch({"inputs": rows, **form.columns(rows, slice(0, len(rows)))}, epoch)


def test_distance_loss_is_the_naive_mean():
    Y, targets = draw(5, 2).double(), draw(5, 2, seed=1).double()
    expected = sum(math.log1p(float((y - t).square().sum()) / 9) for y, t in zip(Y, targets, strict=True)) / 5 * 9
    assert float(distance_loss(Y, targets, 3.0)) == pytest.approx(expected)
    assert gradcheck(lambda Y: distance_loss(Y, targets, 3.0), (Y.requires_grad_(),))


def test_choice_loss_is_the_naive_mean():
    scores = draw(5, 7).double()
    indices = torch.stack([torch.randperm(7, generator=torch.Generator().manual_seed(i))[:3] for i in range(5)])
    weights = draw(5, 3, seed=1).double().softmax(1)
    expected = 0.0
    for i in range(5):
        total = sum(math.exp(score) for score in scores[i])
        for k in range(3):
            expected -= float(weights[i, k]) * math.log(math.exp(scores[i, indices[i, k]]) / total) / 5
    assert float(choice_loss(scores.log_softmax(1), indices, weights)) == pytest.approx(expected)
    assert gradcheck(lambda s: choice_loss(s.log_softmax(1), indices, weights), (scores.requires_grad_(),))


def wanted_positions(batch, positions, column):
    own, drawn = batch["own"], batch["drawn"][:, column]
    return torch.stack([positions[own[i] if own[i] >= 0 else drawn[i]] for i in range(len(own))])


def test_a_row_is_drawn_to_its_own_position_or_to_an_exemplar_drawn_for_it(rows, points):
    torch.manual_seed(0)
    network, positions, form = nn.Linear(4, 2), draw(30, 2, seed=5), sampled_of(points)
    lesson = Distillation(form, positions, size=4.0, n_epochs=3)
    for epoch, unit in enumerate([1 / 5, 75**-0.5, 1 / 15]):
        batch = batch_of(form, rows, epoch)
        wanted = wanted_positions(batch, positions, -1 - epoch)
        torch.testing.assert_close(lesson.loss(network, batch), distance_loss(network(rows) / 4, wanted / 4, unit))


def test_rows_are_moved_by_a_share_of_the_difference_of_two_neighbors(rows, points):
    form = sampled_of(points, jitter=0.3)
    batch = batch_of(form, rows, epoch=0)
    lesson = Distillation(form, draw(30, 2), size=1.0, n_epochs=3, places=draw(4, 2, seed=1))
    _, exemplars = form.learned(batch)
    apart = torch.cdist(points.inputs, points.inputs) + torch.diag(torch.full((30,), torch.inf))
    form.generator.manual_seed(3)
    steps = torch.stack([lesson.moved(rows, exemplars) - rows for _ in range(200)]).double()  # (200, rows, columns)
    for i, exemplar in enumerate(exemplars):
        near = points.inputs[apart[exemplar].argsort()[:12]].double()
        possible = 0.3 * (near[:, None] - near[None]).flatten(0, 1)
        missed = torch.cdist(steps[:, i], possible).min(1).values
        assert missed.max() < 1e-5
        assert len(torch.unique(steps[:, i].round(decimals=4), dim=0)) > 60  # of 133


@pytest.mark.parametrize("n_places", [1, 5, 20])
def test_a_network_with_places_also_learns_which_are_nearest(n_places, rows, points):
    positions, places, form = draw(30, 2, seed=5), draw(n_places, 2, seed=6), sampled_of(points)
    network = DeepNetwork(4, 2, (8,), generator=torch.Generator().manual_seed(0))
    network.choose_among(places, torch.Generator().manual_seed(1))
    lesson = Distillation(form, positions, size=4.0, n_epochs=3, places=places)
    apart = torch.cdist(places, places).square() + torch.diag(torch.full((n_places,), torch.inf))
    width = apart.min(1).values.median() if n_places > 1 else 1.0
    for epoch, (weight, unit) in enumerate([(1, 1 / 5), (0.05**0.5, 150**-0.5), (0.05, 1 / 30)]):
        batch = batch_of(form, rows, epoch)
        wanted = wanted_positions(batch, positions, -1 - epoch)
        choice = network.hidden(rows).softmax(1).detach()
        expected = 0.0
        for i in range(60):
            squared = (wanted[i] - places).square().sum(1)
            near = squared.argsort()[:8]
            right = (-squared[near] / (2 * width)).softmax(0)
            expected -= weight * float((right * choice[i, near].log()).sum()) / 60
            away = (choice[i] @ network.readout.weight.T.detach() - wanted[i]) / 4
            expected += math.log1p(float(away.square().sum()) / unit**2) / 60
        assert float(lesson.loss(network, batch)) == pytest.approx(expected, rel=1e-5)
