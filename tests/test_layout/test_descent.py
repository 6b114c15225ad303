"""The descent against the loss that it lowers."""

import pytest
import torch

from tests.test_layout.naive import clusters, laid_out, naive_loss, naive_repulsion, neighbors_of
from tsee.affinities import Affinities
from tsee.layout import Attraction, Descent, Repulsion, attraction, descent, large_shape
from tsee.neighbors import ExactIndex


@pytest.mark.parametrize("n_components", [1, 2, 3, 5])
def test_forces_are_the_gradient_of_the_loss(n_components):
    X = torch.randn(200, 6, generator=torch.Generator().manual_seed(0))
    affinities = neighbors_of(X)
    Y = clusters(200, 8.0, n_components).double().requires_grad_()
    naive_loss(Y, affinities, 1.7).backward()
    forces, normalizer = Repulsion()(Y.detach().float())
    gradient = 4 * (1.7 * Attraction(affinities)(Y.detach().float()) - forces / normalizer)
    torch.testing.assert_close(gradient.double(), Y.grad, rtol=1e-3, atol=1e-6)


def test_attraction_in_parts_is_attraction_as_a_whole(monkeypatch):
    affinities = neighbors_of(torch.randn(300, 6, generator=torch.Generator().manual_seed(0)))
    Y = clusters(300, 8.0)
    whole = Attraction(affinities)(Y)
    monkeypatch.setattr(attraction, "PAIRS", 50)
    parts = Attraction(affinities)
    assert len(parts._parts) > 50
    assert torch.equal(parts(Y), whole)
    assert torch.equal(parts(Y), whole)  # the memory is used again


def test_attraction_in_another_order_is_the_same(monkeypatch):
    monkeypatch.setattr(attraction, "PAIRS", 500)
    generator = torch.Generator().manual_seed(0)
    affinities = neighbors_of(torch.randn(300, 6, generator=generator))
    Y, order = clusters(300, 8.0), torch.randperm(300, generator=generator)
    whole, reordered = Attraction(affinities), Attraction(affinities, order=order)
    torch.testing.assert_close(reordered(Y[order]), whole(Y)[order])
    torch.testing.assert_close(reordered.totals, whole.totals[order])
    part = Attraction(affinities, own=slice(100, 180), order=order)
    torch.testing.assert_close(part(Y[order]), whole(Y)[order[100:180]])


@pytest.mark.parametrize("weighted", [False, True])
def test_a_descent_in_another_order_goes_the_same_way(weighted):
    X = clusters(300, 30.0, 5, seed=1)
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    weights = torch.linspace(0, 1, 300) if weighted else None
    found = []
    for way in (None, order):
        moving = Descent(large_shape(X, 2), neighbors_of(X), pull=0.3, n_iterations=100, weights=weights, order=way)
        for _ in range(10):
            moving.step()
        found.append(moving.found())
    torch.testing.assert_close(found[0], found[1], rtol=1e-3, atol=1e-4)


def test_a_descent_is_resumed_in_another_order():
    """The order of cells depends on how a processor rounds; the state does not."""
    X = clusters(300, 30.0, 5, seed=1)
    orders = [torch.randperm(300, generator=torch.Generator().manual_seed(seed)) for seed in range(2)]
    whole, stopped, resumed, plain = (
        Descent(large_shape(X, 2), neighbors_of(X), pull=0.3, n_iterations=100, order=order)
        for order in (orders[0], orders[0], orders[1], None)
    )
    for _ in range(8):
        whole.step()
    for _ in range(4):
        stopped.step()
    for other in (resumed, plain):
        other.resume(4, stopped.state())
        for _ in range(4):
            other.step()
        torch.testing.assert_close(other.found(), whole.found(), rtol=1e-3, atol=1e-4)


def test_probabilities_of_all_pairs_sum_to_one():
    found = Attraction(neighbors_of(torch.randn(100, 4, generator=torch.Generator().manual_seed(0))))
    assert float(found.probabilities.sum()) == pytest.approx(1, rel=1e-5)
    assert float(found.totals.sum()) == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_descent_lowers_the_loss_and_brings_neighbors_together(n_components):
    X = clusters(600, 30.0, 3, seed=1) @ torch.randn(3, 8, generator=torch.Generator().manual_seed(2))
    affinities = neighbors_of(X)
    start, steps = large_shape(X, n_components), []
    Y, complete = laid_out(start, affinities, pull=0.1, n_iterations=200, exaggeration=1.5, progress=steps.append)
    assert complete
    assert steps == list(range(1, 201))
    assert naive_loss(Y.double(), affinities, 1.5) < naive_loss(start.double(), affinities, 1.5) - 1
    found = ExactIndex(Y).query(Y, 5, exclude=torch.arange(600))[0]
    kept = (found[:, :, None] == affinities.indices[:, None, :5]).any(2).float().mean()
    assert kept > (0.2 if n_components == 1 else 0.5)


def test_the_end_is_a_minimum_of_the_loss_with_its_pull():
    """The gradient by autograd of the loss in the docstring, at the end of many steps, is near zero."""
    X = clusters(120, 10.0, 3, seed=1)
    affinities, shape = neighbors_of(X), large_shape(X, 2)
    Y, _ = laid_out(shape, affinities, pull=1.0, n_iterations=3000)
    Y = Y.double().requires_grad_()
    size = float(Y.detach().square().sum(1).mean().sqrt())
    naive_loss(Y, affinities, 1.0, shape.double(), pull=1.0, size=size).backward()
    forces, normalizer = naive_repulsion(Y.detach())
    assert Y.grad.norm() < 0.01 * 4 * (forces / normalizer).norm()


def test_more_pull_is_nearer_to_the_shape():
    X = clusters(400, 30.0, 5, seed=1)
    affinities, shape = neighbors_of(X), large_shape(X, 2)
    apart = []
    for pull in (0.0, 0.3, 3.0, float("inf")):
        Y, _ = laid_out(shape, affinities, pull=pull, n_iterations=200)
        apart.append(float((Y / Y.square().sum(1).mean().sqrt() - shape).square().sum(1).mean()))
    assert apart == sorted(apart, reverse=True)
    assert apart[-1] < 0.02


def test_a_short_layout_of_many_grows_as_wide_as_a_long_one(monkeypatch):
    X = clusters(1500, 30.0, 5, seed=1)
    affinities, shape = neighbors_of(X), large_shape(X, 2)

    def width(n_iterations):
        Y, _ = laid_out(shape, affinities, pull=0.3, n_iterations=n_iterations)
        return float(Y.square().sum(1).mean().sqrt())

    usual = width(420)
    monkeypatch.setattr(descent, "USUAL_ROWS", 150)
    many = width(420), width(250)
    assert usual < 0.9 * many[0]
    assert many[1] == pytest.approx(many[0], rel=0.1)


@pytest.mark.parametrize(("n", "n_iterations"), [(65_536, 420), (3715, 100)])
def test_more_rows_than_the_steps_suffice_for_have_more_momentum(n, n_iterations):
    """A map grows with the root of its rows: a quarter of the steps suffices for a sixteenth of the rows."""
    assert descent._last_momentum(n, n_iterations) == descent.LAST_MOMENTUM
    assert descent._last_momentum(n, 10 * n_iterations) == descent.LAST_MOMENTUM
    assert descent._last_momentum(n + 1, n_iterations) > descent.LAST_MOMENTUM
    assert descent._last_momentum(10**9, n_iterations) == 1 - descent.LEAST_BRAKING


def test_a_descent_has_the_momentum_for_its_rows_and_steps():
    X = clusters(200, 30.0, 5, seed=1)
    for n_iterations in (3, 100, 420):
        moved = Descent(large_shape(X, 2), neighbors_of(X), pull=0.3, n_iterations=n_iterations)
        assert moved.last_momentum == descent._last_momentum(200, n_iterations)


def test_the_map_is_turned_like_the_shape():
    X = clusters(400, 30.0, 5, seed=1)
    shape = large_shape(X, 2)
    turned = shape @ torch.tensor([[0.0, -1.0], [-1.0, 0.0]])
    for reference in (shape, turned):
        Y, _ = laid_out(reference, neighbors_of(X), pull=0.0, n_iterations=100)
        products = Y.T @ reference
        torch.testing.assert_close(products, products.T, rtol=1e-3, atol=1e-2)
        assert torch.linalg.eigvalsh(products).min() > 0


def test_an_interrupt_leaves_the_positions_so_far():
    X = torch.randn(100, 4, generator=torch.Generator().manual_seed(0))

    def stop(done):
        if done == 3:
            raise KeyboardInterrupt

    Y, complete = laid_out(large_shape(X, 2), neighbors_of(X), pull=0.1, n_iterations=10, progress=stop)
    assert not complete
    assert torch.isfinite(Y).all()
    assert not torch.equal(Y, large_shape(X, 2))


@pytest.mark.parametrize("n", [4, 5000])
def test_positions_that_coincide_come_apart(n):
    indices = torch.stack([torch.arange(n).roll(1), torch.arange(n).roll(-1)], 1)
    Y, _ = laid_out(torch.zeros(n, 2), Affinities(indices, torch.full((n, 2), 0.5)), pull=0.3, n_iterations=50)
    assert torch.isfinite(Y).all()
    assert len(torch.unique(Y, dim=0)) == n


def test_a_dimension_that_the_data_do_not_have_is_filled():
    X = torch.linspace(0, 100, 500)[:, None] + torch.zeros(1, 3)
    shape = large_shape(X, 2)
    assert shape[:, 1].abs().max() < 1e-3
    Y, _ = laid_out(shape, neighbors_of(X), pull=0.0, n_iterations=200)
    assert Y[:, 1].std() > 0.02 * Y[:, 0].std()


@pytest.mark.parametrize("n, n_components", [(200, 2), (5000, 2), (5000, 3), (5000, 4)])
def test_a_descent_that_is_resumed_ends_as_one_that_is_not(n, n_components):
    """With all pairs, on both grids, and with samples."""
    X = clusters(n, 30.0, 5, seed=1)
    settings = dict(pull=0.3, n_iterations=12, exaggeration=1.0)
    whole, first, second = (Descent(large_shape(X, n_components), neighbors_of(X), **settings) for _ in range(3))
    for _ in range(5):
        first.step()
    second.resume(first.done, {name: value.clone() for name, value in first.state().items()})
    for _ in range(12):
        whole.step()
    for _ in range(7):
        second.step()
    assert second.done == whole.done
    assert torch.equal(second.positions, whole.positions)


def test_another_state_is_refused():
    X = clusters(100, 30.0, 5, seed=1)
    descent = Descent(large_shape(X, 2), neighbors_of(X), pull=0.3, n_iterations=12, exaggeration=1.0)
    state = descent.state()
    for done, changed, reason in (
        (13, state, "more steps"),
        (3, {"layout.positions": state["layout.positions"]}, "not the state of a layout"),
        (3, {name: value[:50] for name, value in state.items()}, "other exemplars"),
        (3, {name: value / 0 for name, value in state.items()}, "not finite"),
    ):
        with pytest.raises(ValueError, match=reason):
            descent.resume(done, changed)


def test_parts_of_the_forces_are_the_forces():
    X = clusters(5000, 30.0, 5, seed=1)
    affinities, Y = neighbors_of(X), clusters(5000, 20.0)
    assert torch.equal(Attraction(affinities, own=slice(1000, 3000))(Y), Attraction(affinities)(Y)[1000:3000])
    near = Y[:400]
    forces, _ = Repulsion()(near)
    part, _ = Repulsion()(near, slice(100, 200))
    torch.testing.assert_close(part, forces[100:200])
