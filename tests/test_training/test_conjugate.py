"""The conjugate gradient on functions with known minima: its steps, its line searches, and what it remembers."""

import math

import numpy as np
import pytest
import scipy.optimize
import torch

from tsee.training import conjugate
from tsee.training.conjugate import ConjugateGradient, _cubic_minimum


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def bowl(x):
    """Smooth and convex, with curvatures from 1 to 1,000."""
    scales = torch.logspace(0, 3, len(x), dtype=x.dtype)
    return (scales * x.square()).sum().div(2) + torch.cosh(x - 1).sum()


def bumpy(x):
    return (x.square() + 3 * torch.sin(3 * x)).sum()


FUNCTIONS = [rosenbrock, bowl, bumpy]


def start_of(n=6):
    return torch.linspace(-1.5, 2.0, n, dtype=torch.float64).requires_grad_()


def test_conjugate_gradient_solves_a_quadratic_in_one_search_per_dimension():
    generator = torch.Generator().manual_seed(0)
    A = torch.randn(6, 6, dtype=torch.float64, generator=generator)
    A = A @ A.T + torch.eye(6)
    b = torch.randn(6, dtype=torch.float64, generator=generator)
    x = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    optimizer = ConjugateGradient([x], n_searches=40)
    optimizer.step(lambda: 0.5 * x @ A @ x - b @ x)
    torch.testing.assert_close(x.detach(), torch.linalg.solve(A, b), rtol=1e-4, atol=1e-5)


def test_conjugate_gradient_goes_down_the_rosenbrock_valley():
    x = torch.tensor([-1.0, 1.0], dtype=torch.float64, requires_grad=True)

    def loss():
        return 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2

    optimizer = ConjugateGradient([x], n_searches=3)
    values = [optimizer.step(loss) for _ in range(150)]
    assert all(b <= a + 1e-12 for a, b in zip(values, values[1:], strict=False))
    torch.testing.assert_close(x.detach(), torch.ones(2, dtype=torch.float64), rtol=1e-2, atol=1e-2)


def test_conjugate_gradient_at_a_minimum_stays():
    x = torch.zeros(3, requires_grad=True)
    assert ConjugateGradient([x]).step(lambda: x.square().sum()) == 0
    assert torch.equal(x.detach(), torch.zeros(3))


def test_conjugate_gradient_backs_out_of_where_the_loss_is_not_finite():
    x = torch.tensor([1.0], dtype=torch.float64, requires_grad=True)
    # Not a number below -1; the first step from 1 lands there.
    optimizer = ConjugateGradient([x], n_searches=10)
    value = optimizer.step(lambda: (50 * x - torch.log(x + 1)).sum())
    assert math.isfinite(value)
    assert float(x.detach()) == pytest.approx(1 / 50 - 1, abs=1e-3)


def test_a_loss_that_is_not_finite_changes_nothing():
    x = torch.tensor([1.0], requires_grad=True)
    assert math.isnan(ConjugateGradient([x]).step(lambda: (x * math.nan).sum()))
    assert float(x.detach()) == 1.0


def test_parameters_that_play_no_part_stay():
    x, idle = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    ConjugateGradient([x, idle], n_searches=5).step(lambda: x.square().sum())
    assert x.abs().max() < 1e-3
    assert torch.equal(idle.detach(), torch.ones(2))


def test_an_interrupted_search_leaves_the_best_point_found():
    x = torch.tensor([-1.0, 1.0], dtype=torch.float64, requires_grad=True)
    evaluated = []

    def loss():
        value = 100 * (x[1] - x[0] ** 2) ** 2 + (1 - x[0]) ** 2
        evaluated.append((x.detach().clone(), float(value.detach())))
        if len(evaluated) == 12:
            raise KeyboardInterrupt
        return value

    with pytest.raises(KeyboardInterrupt):
        ConjugateGradient([x], n_searches=20).step(loss)
    start = evaluated[0][1]
    kept = [value for point, value in evaluated if torch.equal(point, x.detach())]
    assert kept
    assert kept[0] < start


@pytest.mark.parametrize("function", [rosenbrock, bowl])
def test_it_ends_where_scipy_does(function):
    x = torch.zeros(6, dtype=torch.float64, requires_grad=True)
    optimizer = ConjugateGradient([x], n_searches=100)
    for _ in range(3):
        value = optimizer.step(lambda: function(x))
    theirs = scipy.optimize.minimize(
        lambda at: float(function(torch.from_numpy(at))), np.zeros(6), method="CG", tol=1e-9
    )
    assert value == pytest.approx(theirs.fun, abs=1e-4)
    np.testing.assert_allclose(x.detach().numpy(), theirs.x, atol=1e-2)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_accepted_steps_fulfill_the_strong_wolfe_conditions(function, monkeypatch):
    """Checked by evaluating the function anew along each line, without what the search computed."""
    x = start_of()
    searches = []
    search = ConjugateGradient._search

    def kept(self, start, direction, length, closure):
        before = self._position[0].clone()
        found = search(self, start, direction, length, closure)
        searches.append((before, direction[0].clone(), found))
        return found

    monkeypatch.setattr(ConjugateGradient, "_search", kept)
    optimizer = ConjugateGradient([x])
    for _ in range(3):
        optimizer.step(lambda: function(x))
    assert len(searches) == 9
    for before, direction, found in searches:
        step = torch.zeros((), dtype=torch.float64, requires_grad=True)
        first = function(before + step * direction)
        (slope,) = torch.autograd.grad(first, step)
        end = torch.tensor(found.length, dtype=torch.float64, requires_grad=True)
        last = function(before + end * direction)
        (flat,) = torch.autograd.grad(last, end)
        assert slope < 0
        assert found.value == pytest.approx(float(last.detach()), rel=1e-12)
        assert last <= first + 0.05 * found.length * slope + 1e-12
        assert abs(flat) <= 0.1 * abs(slope) * (1 + 1e-9)


def test_directions_are_those_of_polak_and_ribiere(monkeypatch):
    x = start_of()
    directions, gradients = [], []
    search = ConjugateGradient._search

    def kept(self, start, direction, length, closure):
        directions.append(direction[0].clone())
        gradients.append(start.gradient[0].clone())
        return search(self, start, direction, length, closure)

    monkeypatch.setattr(ConjugateGradient, "_search", kept)
    ConjugateGradient([x], n_searches=4).step(lambda: bowl(x))
    torch.testing.assert_close(directions[0], -gradients[0])
    for k in range(3):
        old, new = gradients[k : k + 2]
        beta = (new @ (new - old)) / (old @ old)
        torch.testing.assert_close(directions[k + 1], -new + beta * directions[k])


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_point_is_evaluated_twice(function):
    """An accepted point is where the next search starts, and its value and gradient are known."""
    x = start_of()
    optimizer = ConjugateGradient([x])
    for _ in range(3):
        points = []

        def loss(points=points):
            points.append(x.detach().clone())
            return function(x)

        optimizer.step(loss)
        assert not any(torch.equal(a, b) for i, a in enumerate(points) for b in points[:i])
        assert any(torch.equal(point, x.detach()) for point in points)


def test_a_parabola_takes_two_evaluations_a_search():
    """One to find out how it bends, one at its minimum; the first search also evaluates its start."""
    x = torch.tensor([2.0], dtype=torch.float64, requires_grad=True)
    count = 0

    def loss():
        nonlocal count
        count += 1
        return (x - 1).square().sum()

    ConjugateGradient([x], n_searches=1).step(loss)
    assert count <= 3
    assert float(x.detach()) == pytest.approx(1, abs=1e-6)


def test_no_step_is_longer_than_allowed():
    x = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    optimizer = ConjugateGradient([x], n_searches=1, max_step=0.1)
    before = x.detach().clone()
    optimizer.step(lambda: (x - 100).square().sum())
    assert float((x.detach() - before).norm()) == pytest.approx(0.5)  # a tenth of 5, and no less
    free = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)
    limited = free.detach().clone().requires_grad_()
    for x, limit in ((free, math.inf), (limited, 10.0)):
        ConjugateGradient([x], n_searches=5, max_step=limit).step(lambda x=x: (x - 1).square().sum())
    assert torch.equal(free.detach(), limited.detach())  # a limit that is not reached changes nothing


def test_parameters_of_zero_can_move():
    x = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    ConjugateGradient([x], n_searches=5, max_step=0.01).step(lambda: (x - 1).square().sum())
    assert float(x.detach().abs().max()) > 0


def test_the_next_batch_starts_with_the_step_that_suited_the_last():
    """Of two functions of the same shape, the second takes fewer evaluations."""
    x = torch.tensor([5.0], dtype=torch.float64, requires_grad=True)
    counts = []
    optimizer = ConjugateGradient([x], n_searches=1)
    for _ in range(2):
        x.data.fill_(5.0)
        counts.append(0)

        def loss():
            counts[-1] += 1
            return 1e-4 * torch.cosh(x - 1).sum()

        optimizer.step(loss)
    assert counts[1] < counts[0]


def test_it_continues_from_its_state_to_the_bit():
    x, again = start_of(), start_of()
    optimizer = ConjugateGradient([x])
    for step in range(4):
        if step == 2:
            again.data.copy_(x.detach())
            other = ConjugateGradient([again])
            other.restore(optimizer.state())
        optimizer.step(lambda: bumpy(x))
        if step >= 2:
            other.step(lambda: bumpy(again))
    assert torch.equal(x.detach(), again.detach())


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"first": torch.tensor([1.0, -1.0])},
        {"first": torch.tensor([1.0, -1.0, 0.0], dtype=torch.float64)},
        {"first": torch.tensor([math.nan, -1.0], dtype=torch.float64)},
        {"first": torch.tensor([1.0, 1.0], dtype=torch.float64)},
        {"first": torch.tensor([1.0, -1.0], dtype=torch.float64), "second": torch.zeros(2)},
    ],
)
def test_a_state_that_cannot_be_one_is_refused(state):
    with pytest.raises(ValueError, match="last step of conjugate gradient"):
        ConjugateGradient([start_of()]).restore(state)


def test_the_minimum_of_a_cubic_is_the_root_of_its_derivative():
    rng = np.random.default_rng(0)
    n_found = 0
    for _ in range(300):
        a, b, s = rng.normal(size=3)
        width = rng.choice([-1, 1]) * rng.uniform(0.1, 3)
        roots = np.roots([3 * a, 2 * b, s])
        minima = [root.real for root in roots if np.isreal(root) and 6 * a * root.real + 2 * b > 0]
        found = _cubic_minimum(s, s * width + b * width**2 + a * width**3, s + 2 * b * width + 3 * a * width**2, width)
        if minima:
            assert found == pytest.approx(minima[0], rel=1e-6)
            n_found += 1
        else:
            assert math.isnan(found)
    assert n_found > 100


def test_a_search_without_an_end_stops(monkeypatch):
    """A line falls forever: the farthest point seen is kept."""
    monkeypatch.setattr(conjugate, "MAX_EVALUATIONS", 5)
    x = torch.tensor([0.0], dtype=torch.float64, requires_grad=True)
    values = [ConjugateGradient([x], n_searches=1).step(lambda: -x.sum()) for _ in range(2)]
    assert values[1] < values[0] < 0
    assert float(x.detach()) == -values[1]
