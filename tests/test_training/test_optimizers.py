"""The schedule, and the conjugate gradient on functions with known minima."""

import math

import pytest
import torch

from tsee.training.optimizers import ConjugateGradient, scheduled_rate


def test_the_rate_rises_then_falls_to_zero():
    rates = [scheduled_rate(step, 200, 0.5) for step in range(200)]
    top = rates.index(max(rates))
    assert max(rates) == 0.5
    assert 15 <= top <= 25
    assert all(a < b for a, b in zip(rates[:top], rates[1 : top + 1], strict=True))
    assert all(a >= b for a, b in zip(rates[top:], rates[top + 1 :], strict=False))
    assert 0 < rates[-1] < 1e-4


@pytest.mark.parametrize("n_steps", [1, 2, 9])
def test_short_schedules_have_usable_rates(n_steps):
    rates = [scheduled_rate(step, n_steps, 1.0) for step in range(n_steps)]
    assert rates[0] == 1.0
    assert all(0 < rate <= 1 for rate in rates)


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
