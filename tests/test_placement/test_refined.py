"""A position among neighbors: its weights, and where it settles."""

import pytest
import torch

from tsee.data import pad_rows
from tsee.placement.refined import neighbor_weights, settle


@pytest.mark.parametrize("dimensions", [2, 10, 50])
def test_weights_in_a_position_are_of_the_nearest_few(dimensions):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(2000, dimensions, generator=generator)
    squared = torch.cdist(rows[:200], rows[200:]).square().sort(1).values[:, :20]
    weights = neighbor_weights(squared)
    torch.testing.assert_close(weights.sum(1), torch.ones(200))
    assert (weights.diff(dim=1) <= 0).all()
    perplexity = torch.exp(-(weights * weights.clamp_min(1e-30).log()).sum(1))
    assert 6 < perplexity.median() < 13
    assert perplexity.min() > 2
    torch.testing.assert_close(neighbor_weights(1e6 * squared), weights)  # in whatever units


def test_weights_of_neighbors_that_tie_or_are_out_of_reach():
    far = torch.inf
    squared = torch.tensor([[2.0, 2, 2, 5, 6, 7], [2.0] * 6, [0.0, 1, far, far, far, far], [0.0, 0, 0, 0, far, far]])
    weights = neighbor_weights(squared)
    expected = [[1 / 3] * 3 + [0.0] * 3, [1 / 6] * 6, [0.5, 0.5] + [0.0] * 4, [0.25] * 4 + [0.0] * 2]
    torch.testing.assert_close(weights, torch.tensor(expected))
    assert neighbor_weights(torch.tensor([[1.0, 4.0]])).tolist() == [[1.0, 0.0]]
    assert neighbor_weights(torch.tensor([[3.0], [0.0]])).tolist() == [[1.0], [1.0]]


def test_a_position_settles_at_the_least_attraction():
    generator = torch.Generator().manual_seed(0)
    neighbors = torch.randn(40, 7, 2, generator=generator) * 2
    probabilities = torch.softmax(torch.randn(40, 7, generator=generator), 1)
    positions = settle(neighbors, probabilities).double().requires_grad_()
    cost = (probabilities * torch.log1p((positions[:, None] - neighbors).square().sum(2))).sum(1)
    at_neighbors = (
        probabilities[:, None, :] * torch.log1p((neighbors[:, :, None] - neighbors[:, None]).square().sum(3))
    ).sum(2)
    assert (cost <= at_neighbors.amin(1) + 1e-6).all()
    cost.sum().backward()
    assert positions.grad.norm(dim=1).quantile(0.9) < 1e-3


@pytest.mark.parametrize(("spread", "error"), [(0.01, 1e-3), (0.1, 1e-3), (1.0, 0.2), (5.0, 0.2)])
def test_a_position_settles_in_few_steps(spread, error):
    generator = torch.Generator().manual_seed(0)
    neighbors = spread * torch.randn(200, 15, 2, generator=generator, dtype=torch.float64)
    weights = torch.softmax(torch.randn(200, 15, generator=generator, dtype=torch.float64), 1)
    settled = settle(neighbors, weights)
    rest = settled
    for _ in range(1000):
        pull = weights / (1 + (neighbors - rest[:, None]).square().sum(2))
        rest = (pull[:, :, None] * neighbors).sum(1) / pull.sum(1, keepdim=True)
    assert (settled - rest).norm(dim=1).quantile(0.99) < error * spread


@pytest.mark.parametrize("components", [1, 2, 30])
def test_a_position_does_not_depend_on_the_other_rows(components):
    generator = torch.Generator().manual_seed(0)
    neighbors = torch.randn(100, 15, components, generator=generator)
    weights = torch.softmax(torch.randn(100, 15, generator=generator), 1)
    together = settle(pad_rows(neighbors), pad_rows(weights))
    for i in range(0, 100, 7):
        alone = settle(pad_rows(neighbors[i : i + 1]), pad_rows(weights[i : i + 1]))
        assert torch.equal(alone[0], together[i])


def test_a_stray_neighbor_does_not_draw_a_position_away():
    neighbors = torch.tensor([[[0.0, 0.0], [0.2, 0.0], [0.0, 0.2], [100.0, 0.0]]])
    position = settle(neighbors, torch.full((1, 4), 0.25))
    assert position.norm() < 0.3
