"""The schedule of the learning rate."""

import pytest

from tsee.training.optimizers import scheduled_rate


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
