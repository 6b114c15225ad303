"""Forces by interpolation against all pairs, and the descent against the loss."""

import pytest
import torch

from tsee.affinities import Affinities, conditional_probabilities
from tsee.layout import Repulsion, _Attraction, free_positions
from tsee.neighbors import ExactIndex


def clusters(n, width, seed=0):
    generator = torch.Generator().manual_seed(seed)
    middles = width * torch.rand(10, 2, generator=generator)
    return middles[torch.randint(10, (n,), generator=generator)] + width / 15 * torch.randn(n, 2, generator=generator)


def neighbors_of(X, k=15, perplexity=5.0):
    indices, distances = ExactIndex(X).query(X, k, exclude=torch.arange(len(X)))
    return Affinities(indices, conditional_probabilities(distances, perplexity).float())


def naive_repulsion(Y):
    forces, total = [], -float(len(Y))
    for block in Y.double().split(256):
        differences = block[:, None] - Y.double()
        w = 1 / (1 + differences.square().sum(2))
        forces.append((w.square()[:, :, None] * differences).sum(1))
        total += float(w.sum())
    return torch.cat(forces), total


def naive_loss(Y, affinities, exaggeration):
    """The loss of the module's docstring, in float64, from a dense matrix of p."""
    n = len(Y)
    p = torch.zeros(n, n, dtype=torch.float64).scatter_(1, affinities.indices, affinities.probabilities.double())
    p = (p + p.T) / (2 * n)
    d = (Y[:, None] - Y).square().sum(2)
    off = ~torch.eye(n, dtype=torch.bool)
    return exaggeration * (p * torch.log1p(d)).sum() + (1 / (1 + d))[off].sum().log()


def test_far_apart_no_position_feels_itself():
    """The pairs of a position with itself are many times all others."""
    Y = 300 * torch.randn(10, 2, generator=torch.Generator().manual_seed(0))
    forces, normalizer = Repulsion()(Y)
    expected, total = naive_repulsion(Y)
    assert normalizer == pytest.approx(total, rel=1e-2)
    torch.testing.assert_close(forces.double(), expected, rtol=1e-2, atol=1e-2 * float(expected.abs().max()))


@pytest.mark.parametrize("width", [0.1, 5.0, 60.0])
def test_all_pairs_follow_the_definition(width):
    Y = clusters(500, width) + 100
    forces, normalizer = Repulsion()(Y)
    expected, total = naive_repulsion(Y)
    assert normalizer == pytest.approx(total, rel=1e-5)
    torch.testing.assert_close(forces.double(), expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("width", [0.1, 5.0, 25.0, 60.0])
def test_interpolated_forces_are_near_the_forces_of_all_pairs(width):
    Y = clusters(5000, width) - 7
    expected, total = naive_repulsion(Y)
    for forces, normalizer in (Repulsion().interpolated(Y), Repulsion()(Y)):  # 5,000 are not few
        assert normalizer == pytest.approx(total, rel=0.01)
        assert (forces - expected).norm() < 0.02 * expected.norm()


def test_the_grid_is_reused_and_grows_with_the_map():
    repulsion, served = Repulsion(), []
    for width in (60.0, 60.2, 110.0, 10.0, 60.0):
        Y = clusters(5000, width)
        expected, total = naive_repulsion(Y)
        forces, normalizer = repulsion(Y)
        assert normalizer == pytest.approx(total, rel=0.01)
        assert (forces - expected).norm() < 0.03 * expected.norm()
        served.append(repulsion._kernels[1])
    assert served[0] is served[1]
    assert len({size for size, _, _ in served}) == 3


@pytest.mark.parametrize("nodes", [48, 333])  # transforms of even and of odd length
def test_half_of_the_spectrum_has_all_of_the_normalizer(nodes):
    size, energies, forces = Repulsion()._transformed_kernels(nodes, 0.5)
    assert size % 2 == (nodes == 333)
    field = torch.randn(nodes, nodes, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    spectrum = torch.fft.fft2(field, s=(size, size))
    half = spectrum[:, : size // 2 + 1]
    found = (energies * half.abs().square()).sum()
    # The whole spectrum of w, from its half: the other half mirrors it.
    whole = torch.empty(size, size, dtype=torch.float64)
    single = energies.double().clone()
    single[:, 1 : (size + 1) // 2] /= 2
    whole[:, : size // 2 + 1] = single
    mirror = torch.arange(size // 2 + 1, size)
    whole[:, mirror] = single[(-torch.arange(size)) % size][:, size - mirror]
    assert float(found) == pytest.approx(float((whole * spectrum.abs().square()).sum()), rel=1e-5)
    for force in forces:
        assert force.real.abs().max() < 1e-5 * force.abs().max()


def test_forces_are_the_gradient_of_the_loss():
    X = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    affinities = neighbors_of(X)
    Y = clusters(200, 8.0).double().requires_grad_()
    naive_loss(Y, affinities, 1.7).backward()
    forces, normalizer = Repulsion()(Y.detach().float())
    gradient = 4 * (1.7 * _Attraction(affinities)(Y.detach().float()) - forces / normalizer)
    torch.testing.assert_close(gradient.double(), Y.grad, rtol=1e-3, atol=1e-6)


def test_descent_lowers_the_loss_and_brings_neighbors_together():
    X = clusters(600, 30.0, seed=1) @ torch.randn(2, 8, generator=torch.Generator().manual_seed(2))
    affinities = neighbors_of(X)
    start = torch.randn(600, 2, generator=torch.Generator().manual_seed(3))
    steps = []
    Y, complete = free_positions(start, affinities, exaggeration=1.5, n_iterations=150, progress=steps.append)
    assert complete
    assert steps == list(range(1, 151))
    assert naive_loss(Y.double(), affinities, 1.5) < naive_loss(start.double(), affinities, 1.5) - 1
    found = ExactIndex(Y).query(Y, 5, exclude=torch.arange(600))[0]
    wanted = affinities.indices[:, :5]
    assert (found[:, :, None] == wanted[:, None, :]).any(2).float().mean() > 0.5


def test_an_interrupt_leaves_the_positions_so_far():
    X = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))

    def stop(done):
        if done == 3:
            raise KeyboardInterrupt

    found = free_positions(X[:, :2], neighbors_of(X), exaggeration=1.0, n_iterations=10, progress=stop)
    expected = free_positions(X[:, :2], neighbors_of(X), exaggeration=1.0, n_iterations=3)
    assert torch.equal(found[0], expected[0])
    assert (found[1], expected[1]) == (False, True)


@pytest.mark.parametrize("n", [4, 5000])
def test_positions_that_coincide_stay_finite(n):
    indices = torch.stack([torch.arange(n).roll(1), torch.arange(n).roll(-1)], 1)
    start = torch.zeros(n, 2)
    start[n // 2 :] = 1.0
    Y, _ = free_positions(start, Affinities(indices, torch.full((n, 2), 0.5)), exaggeration=1.0, n_iterations=20)
    assert torch.isfinite(Y).all()
    assert not torch.equal(Y, start)


def test_a_position_far_outside_the_grid_does_not_spoil_the_others():
    Y = clusters(5000, 20.0)
    Y[0] = 1e5
    expected, total = naive_repulsion(Y)
    forces, normalizer = Repulsion()(Y)
    assert normalizer == pytest.approx(total, rel=0.02)
    assert (forces - expected)[1:].norm() < 0.05 * expected[1:].norm()
