"""New positions among old ones: forces against naive sums, and how the old ones are held."""

import pytest
import torch

from tests.test_layout.naive import clusters, naive_loss, neighbors_of
from tsee.affinities import Affinities
from tsee.layout import Attraction, Growth, Repulsion, lay_out


def grow(old, start, affinities, *, hold, n_iterations, progress=lambda done: None):
    return lay_out(Growth(old, start, affinities, hold=hold, n_iterations=n_iterations), progress=progress)


def halves(n=240, n_old=150):
    X = clusters(n, 10.0, 4, seed=1)
    affinities = neighbors_of(X)
    new = Affinities(affinities.indices[n_old:], affinities.probabilities[n_old:])
    return affinities, new, clusters(n, 8.0)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_the_attraction_of_new_ones_is_a_naive_sum(n_components):
    n, n_old = 240, 150
    _, new, _ = halves(n, n_old)
    Y = clusters(n, 8.0, n_components).double()
    p = torch.zeros(n, n, dtype=torch.float64)
    p[n_old:].scatter_(1, new.indices, new.probabilities.double())
    p[:n_old, n_old:] = p[n_old:, :n_old].T  # the old ones choose those who choose them
    p = (p + p.T) / (2 * n)
    differences = Y[:, None] - Y
    expected = (p[:, :, None] * differences / (1 + differences.square().sum(2))[:, :, None]).sum(1)
    found = Attraction(new, n_old)
    torch.testing.assert_close(found(Y.float()).double(), expected[n_old:], rtol=1e-4, atol=1e-8)
    torch.testing.assert_close(found.totals.double(), p[n_old:].sum(1), rtol=1e-5, atol=0)


def test_held_ones_do_not_move_and_new_ones_come_to_rest():
    _, new, Y = halves()
    old, start = Y[:150], Y[150:]
    steps = []
    found, complete = grow(old, start, new, hold=1.0, n_iterations=1500, progress=steps.append)
    assert complete
    assert len(steps) == 1500
    assert torch.equal(found[:150], old)

    def gradient(positions):
        forces, normalizer = Repulsion()(positions)
        return Attraction(new, 150)(positions) - forces[150:] / normalizer

    assert gradient(found).norm() < 0.02 * gradient(Y).norm()


def test_the_less_old_ones_are_held_the_farther_they_move_and_the_lower_is_the_loss():
    affinities, new, Y = halves()
    old, start = Y[:150], Y[150:]
    moved, losses = [], []
    for hold in (1.0, 0.5, 0.1, 0.0):
        found, _ = grow(old, start, new if hold == 1 else affinities, hold=hold, n_iterations=300)
        moved.append(float((found[:150] - old).norm(dim=1).median()))
        losses.append(float(naive_loss(found.double(), affinities, 1.0)))
    assert moved == sorted(moved)
    assert moved[0] == 0
    assert losses == sorted(losses, reverse=True)


def test_free_ones_are_turned_back():
    """Nothing ties free positions to where they were: the map as a whole must not drift."""
    affinities, _, Y = halves()
    found, _ = grow(Y[:150] + 100, Y[150:] + 100, affinities, hold=0.0, n_iterations=5)
    torch.testing.assert_close(found[:150].mean(0), Y[:150].mean(0) + 100, rtol=1e-4, atol=1e-3)


def test_an_interrupt_keeps_what_was_found():
    def stop(done):
        if done == 3:
            raise KeyboardInterrupt

    _, new, Y = halves()
    found, complete = grow(Y[:150], Y[150:], new, hold=1.0, n_iterations=10, progress=stop)
    assert not complete
    assert torch.isfinite(found).all()
