"""Repulsion by products, on a grid and by samples, against all pairs."""

import pytest
import torch

from tests.test_layout.naive import clusters, naive_repulsion
from tsee.layout import Repulsion


def test_far_apart_no_position_feels_itself():
    """The pairs of a position with itself are many times all others."""
    Y = 300 * torch.randn(10, 2, generator=torch.Generator().manual_seed(0))
    forces, normalizer = Repulsion()(Y)
    expected, total = naive_repulsion(Y)
    assert normalizer == pytest.approx(total, rel=1e-2)
    torch.testing.assert_close(forces.double(), expected, rtol=1e-2, atol=1e-2 * float(expected.abs().max()))


@pytest.mark.parametrize("n_components", [1, 2, 3, 10])
@pytest.mark.parametrize("width", [0.1, 5.0, 60.0])
def test_all_pairs_follow_the_definition(width, n_components):
    Y = clusters(500, width, n_components) + 100
    forces, normalizer = Repulsion()(Y)
    expected, total = naive_repulsion(Y)
    assert normalizer == pytest.approx(total, rel=1e-5)
    torch.testing.assert_close(forces.double(), expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max()))


@pytest.mark.parametrize("n_components", [1, 2, 3])
@pytest.mark.parametrize("width", [0.1, 5.0, 25.0])
def test_interpolated_forces_are_near_the_forces_of_all_pairs(width, n_components):
    Y = clusters(5000, width, n_components) - 7
    expected, total = naive_repulsion(Y)
    forces, normalizer = Repulsion().interpolated(Y, slice(0, len(Y)))
    assert normalizer == pytest.approx(total, rel=0.01)
    assert (forces - expected).norm() < 0.02 * expected.norm()


@pytest.mark.parametrize(
    "width, n_components", [(0.1, 2), (5.0, 2), (25.0, 2), (60.0, 2), (0.1, 3), (5.0, 3), (25.0, 3)]
)
def test_many_positions_are_interpolated(width, n_components):
    Y = clusters(5000, width, n_components) - 7
    expected, total = naive_repulsion(Y)
    for forces, normalizer in (Repulsion().interpolated(Y, slice(0, len(Y))), Repulsion()(Y)):  # 5,000 are not few
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
    size, energies, forces = Repulsion()._transformed_kernels(nodes, 0.5, 2)
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


def test_a_position_far_outside_the_grid_does_not_spoil_the_others():
    Y = clusters(5000, 20.0)
    Y[0] = 1e5
    expected, total = naive_repulsion(Y)
    forces, normalizer = Repulsion()(Y)
    assert normalizer == pytest.approx(total, rel=0.02)
    assert (forces - expected)[1:].norm() < 0.05 * expected[1:].norm()


def test_a_map_too_wide_for_the_finest_grid_has_a_coarser_one():
    Y = clusters(5000, 150.0, 3, seed=1)
    forces, normalizer = Repulsion()(Y)
    expected, total = naive_repulsion(Y)
    assert normalizer == pytest.approx(total, rel=0.05)
    assert (forces - expected).norm() < 0.4 * expected.norm()  # near pairs are coarse, far ones are not


@pytest.mark.parametrize("n_components", [4, 5])
def test_sampled_forces_have_no_bias(n_components):
    """The mean over many calls is near the sum over all pairs; each call draws other positions."""
    Y = clusters(6000, 10.0, n_components)
    expected, total = naive_repulsion(Y)
    repulsion = Repulsion()
    calls = [repulsion(Y) for _ in range(40)]
    assert not torch.equal(calls[0][0], calls[1][0])
    assert sum(normalizer for _, normalizer in calls) / 40 == pytest.approx(total, rel=0.01)
    assert (torch.stack([forces for forces, _ in calls]).mean(0) - expected).norm() < 0.02 * expected.norm()
    assert torch.equal(Repulsion()(Y)[0], calls[0][0])


def test_a_drawn_position_does_not_repel_itself():
    Y = 300 * torch.rand(5000, 4, generator=torch.Generator().manual_seed(0))
    _, total = naive_repulsion(Y)
    _, normalizer = Repulsion()(Y)
    assert total < 5000 / 2  # far less than the pairs with themselves would add
    assert normalizer == pytest.approx(total, rel=0.1)
