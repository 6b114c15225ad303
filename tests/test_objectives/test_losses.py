"""Each loss against a naive loop in float64, its gradient against finite differences."""

import itertools
import math

import pytest
import torch
from torch.autograd import gradcheck

from tsee.affinities import conditional_probabilities, joint_probabilities
from tsee.data import slices as data
from tsee.objectives import (
    exemplar_loss,
    log_normalizer,
    noise_contrastive_loss,
    pairwise_loss,
    sampled_loss,
)


def draw(*shape, seed=0, grad=False):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, dtype=torch.float64, generator=generator).requires_grad_(grad)


def similarity(y, v):
    return 1 / (1 + sum((a - b) ** 2 for a, b in zip(y.tolist(), v.tolist(), strict=True)))


def exemplar_probabilities(n, k, seed=1):
    return conditional_probabilities(draw(n, k, seed=seed).square(), min(2.0, k))


def all_exemplars(n, z):
    return torch.arange(z).expand(n, z)


def test_pairwise_loss_is_equation_6():
    Y, P = draw(6, 2), joint_probabilities(draw(6, 3, seed=1), 2.0)
    pairs = [(i, j) for i in range(6) for j in range(6) if i != j]
    z = sum(similarity(Y[i], Y[j]) for i, j in pairs)
    expected = sum(float(P[i, j]) * math.log(float(P[i, j]) / (similarity(Y[i], Y[j]) / z)) for i, j in pairs)
    assert float(pairwise_loss(Y, P)) == pytest.approx(expected)


def test_exemplar_loss_is_equation_12():
    n, z = 5, 4
    Y, V, P = draw(n, 2), draw(z, 2, seed=2), exemplar_probabilities(n, z)
    total = sum(similarity(Y[i], V[j]) for i in range(n) for j in range(z))
    expected = 0.0
    for i, j in itertools.product(range(n), range(z)):
        p, q = float(P[i, j]) / n, similarity(Y[i], V[j]) / total
        expected += p * math.log(p / q)
    assert float(exemplar_loss(Y, V, P)) == pytest.approx(expected)


def test_noise_contrastive_loss_is_the_naive_sum():
    n, z_e, z_n, weight = 4, 3, 2, 2.5
    Y, near, noise, P = draw(n, 2), draw(n, z_e, 2, seed=2), draw(n, z_n, 2, seed=3), exemplar_probabilities(n, z_e)
    total = 0.0
    for i in range(n):
        total += sum(similarity(Y[i], near[i, j]) for j in range(z_e))
        total += weight * sum(similarity(Y[i], noise[i, j]) for j in range(z_n))
    expected = 0.0
    for i, j in itertools.product(range(n), range(z_e)):
        p = float(P[i, j]) / n
        expected += p * math.log(p * total / similarity(Y[i], near[i, j]))
    assert float(noise_contrastive_loss(Y, near, noise, P, weight)) == pytest.approx(expected)


def test_noise_contrastive_loss_with_every_exemplar_near_is_the_full_one():
    n, z = 5, 4
    Y, V, P = draw(n, 2, grad=True), draw(z, 2, seed=2, grad=True), exemplar_probabilities(n, z)
    indices = all_exemplars(n, z)
    full = exemplar_loss(Y, V, P)
    noise = noise_contrastive_loss(Y, V[indices], V[indices[:, :0]], P, 18.0)
    torch.testing.assert_close(noise, full)
    for a, b in zip(torch.autograd.grad(noise, (Y, V)), torch.autograd.grad(full, (Y, V)), strict=True):
        torch.testing.assert_close(a, b)


def test_the_sampled_loss_is_the_naive_sum():
    n, a = 5, 1.7
    Y, V, u = draw(n, 2), draw(n, 2, seed=2), draw(n, seed=3).exp()
    pull = sum(-math.log(similarity(Y[i], V[i])) for i in range(n)) / n
    total = sum(float(u[k]) * similarity(Y[i], V[k]) for i in range(n) for k in range(n))
    assert float(sampled_loss(Y, V, u, a)) == pytest.approx(a * pull + math.log(total / n))


def test_the_sampled_loss_estimates_the_full_one_without_bias():
    """Over all possible draws, the mean attraction and the mean normalizer are the full ones."""
    n, z = 3, 4
    Y, E, P = draw(n, 2), draw(z, 2, seed=2), exemplar_probabilities(n, z)
    popularity = P.mean(0)
    pull = total = plain = 0.0
    for outcome in itertools.product(range(z), repeat=n):
        chance = math.prod(float(P[i, j]) for i, j in enumerate(outcome))
        drawn = torch.tensor(outcome)
        V = E[drawn]
        weighted = sampled_loss(Y, V, 1 / popularity[drawn], 1.0)
        attracted = torch.log1p((Y - V).square().sum(1)).mean()
        pull += chance * float(attracted)
        total += chance * float((weighted - attracted).exp())
        plain += chance * float((sampled_loss(Y, V) - attracted).exp())
    assert pull == pytest.approx(float((P * torch.log1p(torch.cdist(Y, E).square())).sum() / n))
    assert total == pytest.approx(float(log_normalizer(Y, E).exp()))
    assert plain == pytest.approx(float(log_normalizer(Y, E, popularity).exp()))


def test_the_sampled_loss_approaches_the_full_one_as_the_batch_grows():
    n, z = 4000, 5
    generator = torch.Generator().manual_seed(4)
    Y, E = draw(n, 2), draw(z, 2, seed=2)
    P = conditional_probabilities(draw(n, z, seed=3).square(), 2.0)
    drawn = torch.multinomial(P, 1, generator=generator).squeeze(1)
    sampled = sampled_loss(Y, E[drawn], 1 / P.mean(0)[drawn])
    full = exemplar_loss(Y, E, P)
    entropy = torch.xlogy(P, P / n).sum() / n
    assert float(sampled) == pytest.approx(float(full - entropy), abs=0.02)


LOSSES = {
    "pairwise": lambda Y, V: pairwise_loss(Y, joint_probabilities(draw(len(Y), 3, seed=9), 2.0)),
    "full": lambda Y, V: exemplar_loss(Y, V, exemplar_probabilities(len(Y), len(V))),
    "noise": lambda Y, V: noise_contrastive_loss(
        Y,
        V[all_exemplars(len(Y), 3)],
        V[torch.full((len(Y), 2), 3)],
        exemplar_probabilities(len(Y), 3),
        1.5,
    ),
    "sampled": lambda Y, V: sampled_loss(Y, V[: len(Y)], exaggeration=2.0),
    "weighted": lambda Y, V: sampled_loss(Y, V[: len(Y)], draw(len(Y), seed=8).exp(), 2.0),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_gradients(name, dimensions):
    Y, V = draw(4, dimensions, grad=True), draw(5, dimensions, seed=2, grad=True)
    assert gradcheck(LOSSES[name], (Y, V))


@pytest.mark.parametrize("name", LOSSES)
def test_the_work_in_blocks_of_rows_changes_nothing(monkeypatch, name):
    def loss_and_gradients():
        Y, V = draw(11, 2, grad=True), draw(12, 2, seed=2, grad=True)
        loss = LOSSES[name](Y, V)
        gradients = torch.autograd.grad(loss, (Y, V), allow_unused=True)
        return [loss, *(g for g in gradients if g is not None)]

    whole = loss_and_gradients()
    monkeypatch.setattr(data, "BLOCK_ENTRIES", 4 * 12)  # two whole blocks and a part
    torch.testing.assert_close(loss_and_gradients(), whole)


@pytest.mark.parametrize("name", LOSSES)
def test_coincident_points_have_finite_loss_and_gradient(name):
    Y = torch.zeros(4, 2, requires_grad=True)
    V = torch.zeros(5, 2, requires_grad=True)
    loss = LOSSES[name](Y.double(), V.double())
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(Y.grad).all()
    if V.grad is not None:
        assert torch.isfinite(V.grad).all()


def test_exaggeration_multiplies_the_attraction_only():
    Y, V = draw(6, 2), draw(6, 2, seed=1)
    once, twice = sampled_loss(Y, V, exaggeration=1.0), sampled_loss(Y, V, exaggeration=2.0)
    torch.testing.assert_close(twice - once, torch.log1p((Y - V).square().sum(1)).mean())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_that_all_but_vanish_leave_the_loss_finite(dtype):
    tiny = torch.finfo(dtype).smallest_normal / 1000  # so small that a division by n makes it zero
    P = torch.tensor([[1.0, tiny, 0.0], [0.5, 0.5, tiny]], dtype=dtype)
    Y, V = torch.zeros(2, 2, dtype=dtype), torch.ones(3, 2, dtype=dtype)
    assert torch.isfinite(exemplar_loss(Y, V, P))
    near = V.expand(2, 3, 2)
    assert torch.isfinite(noise_contrastive_loss(Y, near, near[:, :0], P, 1.0))


def test_a_points_own_exemplar_counts_for_nothing():
    n = 4
    Y, others = draw(n, 2, grad=True), draw(3, 2, seed=2)
    V = torch.cat([Y, others])
    P = exemplar_probabilities(n, n + 3)
    own = torch.tensor([0, 1, 2, -1])
    P[[0, 1, 2], [0, 1, 2]] = 0
    P = P / P.sum(1, keepdim=True)
    total = sum(similarity(Y[i], V[j]) for i in range(n) for j in range(n + 3) if own[i] != j)
    expected = 0.0
    for i, j in itertools.product(range(n), range(n + 3)):
        p = float(P[i, j]) / n
        if p > 0:
            expected += p * math.log(p * total / similarity(Y[i], V[j]))
    assert float(exemplar_loss(Y, V, P, own).detach()) == pytest.approx(expected)
    assert gradcheck(lambda Y: exemplar_loss(Y, torch.cat([Y, others]), P, own), (Y,))


def test_the_normalizer_of_float32_positions_far_from_the_origin():
    """Its distances come from products, which lose digits if the map is wide or off center."""
    generator = torch.Generator().manual_seed(0)
    Y = 1000 + 40 * torch.randn(300, 2, generator=generator)
    V = Y + 0.1 * torch.randn(300, 2, generator=generator)
    losses, gradients = [], []
    for dtype in (torch.float32, torch.float64):
        y, v = Y.to(dtype).requires_grad_(), V.to(dtype).requires_grad_()
        loss = log_normalizer(y, v)
        losses.append(float(loss.detach()))
        gradients.append(torch.cat(torch.autograd.grad(loss, (y, v))).double())
    y, v = Y.double().requires_grad_(), V.double().requires_grad_()
    naive = (1 / (1 + (y[:, None] - v).square().sum(2))).sum().log()
    expected = torch.cat(torch.autograd.grad(naive, (y, v)))
    assert losses == pytest.approx([float(naive.detach())] * 2, rel=1e-4)
    torch.testing.assert_close(gradients[1], expected)
    torch.testing.assert_close(gradients[0], expected, rtol=0, atol=5e-3 * float(expected.abs().max()))
