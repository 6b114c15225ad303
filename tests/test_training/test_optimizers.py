"""Adam, and the schedule of its learning rate."""

import pytest
import torch

from tsee.training.optimizers import BETAS, Adam, scheduled_rate


@pytest.mark.parametrize("restored", [False, True])
def test_adam_takes_the_steps_of_torchs_adam(restored):
    """To the bit; a weight without a gradient stays where it is until it has one."""
    generator = torch.Generator().manual_seed(0)
    start = [torch.randn(shape, generator=generator) for shape in ((4, 3), (3,), (2,))]
    own, theirs = ([value.clone().requires_grad_() for value in start] for _ in range(2))
    adam, expected = Adam(own), torch.optim.Adam(theirs, betas=BETAS)
    x = torch.randn(5, 4, generator=generator)

    def loss_of(weights, step):
        late = weights[2].square().sum() if step > 3 else 0
        return (x @ weights[0] + weights[1]).tanh().square().sum() + late

    for step in range(8):
        rate = 0.1 / (1 + step)
        adam.step(lambda step=step: loss_of(own, step), rate)
        expected.param_groups[0]["lr"] = rate
        expected.zero_grad()
        loss_of(theirs, step).backward()
        expected.step()
        if restored:
            state = adam.state()
            adam = Adam(own)
            adam.restore(state)
        assert all(torch.equal(a, b) for a, b in zip(own, theirs, strict=True))


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
