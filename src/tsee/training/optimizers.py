"""How the weights are moved: Adam and its schedule, or the paper's conjugate gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from tsee.distributed import all_sum_together
from tsee.training.conjugate import ConjugateGradient
from tsee.values import need

__all__ = ["Adam", "ConjugateGradient", "check_like", "make_optimizer", "scheduled_rate"]

BETAS = (0.9, 0.95)
EPSILON = 1e-8
# Of conjugate gradient. The loss of hot-SEE on COIL-100 after 40 batches, for three seeds: 1.6, 3.4 and 2.2 without a
# limit, 1.6, 1.6 and 1.6 with 0.1, and 1.3, 1.2 and 1.3 with 0.03.
MAX_STEP = 0.03


def make_optimizer(name: str, parameters: Iterable[Tensor]) -> Adam | ConjugateGradient:
    """The optimizer with this name."""
    return Adam(parameters) if name == "adam" else ConjugateGradient(parameters, max_step=MAX_STEP)


def scheduled_rate(step: int, n_steps: int, peak: float, warmup: float = 0.1) -> float:
    """The learning rate at a step: a straight rise over the first tenth, then half a cosine to zero.

    Examples
    --------
    >>> [round(scheduled_rate(step, 100, 1.0), 2) for step in (0, 9, 10, 55, 99)]
    [0.1, 1.0, 1.0, 0.5, 0.0]
    """
    rise = max(1, round(warmup * n_steps))
    if step < rise:
        return peak * (step + 1) / rise
    return peak * 0.5 * (1 + math.cos(math.pi * (step - rise) / max(1, n_steps - rise)))


class Adam:
    """Adam over several processes, with one rate per step.

    It takes the steps of `torch.optim.Adam`, to the bit; making one of those imports torch's compiler, a second of
    processor time that no fit has a use for.

    Parameters
    ----------
    parameters : iterable of Tensor
    """

    has_rate = True
    advice = "a lower learning_rate may help"

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self._moments: dict[int, Moments] = {}  # of a weight, once it has had a gradient

    def step(self, closure: Callable[[], Tensor], rate: float) -> float:
        """Lower ``closure``, the loss of one batch, and return the loss before the step."""
        for parameter in self.parameters:
            parameter.grad = None
        loss = closure()
        value = float(loss.detach())
        if math.isfinite(value):
            loss.backward()
            sum_gradients(self.parameters)
            self._move(rate)
        return value

    @torch.no_grad()
    def _move(self, rate: float) -> None:
        for number, parameter in enumerate(self.parameters):
            if parameter.grad is None:
                continue
            if number not in self._moments:
                self._moments[number] = Moments(0, torch.zeros_like(parameter), torch.zeros_like(parameter))
            kept = self._moments[number]
            kept.step += 1
            kept.mean.lerp_(parameter.grad, 1 - BETAS[0])
            kept.square.mul_(BETAS[1]).addcmul_(parameter.grad, parameter.grad, value=1 - BETAS[1])
            scale = (kept.square.sqrt() / (1 - BETAS[1] ** kept.step) ** 0.5).add_(EPSILON)
            parameter.addcdiv_(kept.mean, scale, value=-rate / (1 - BETAS[0] ** kept.step))

    def state(self) -> dict[str, Tensor]:
        """The moments, by the number of the parameter and torch's names for them."""
        return {f"{i}.{name}": value for i, kept in self._moments.items() for name, value in kept.named().items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        need(all(int(key.partition(".")[0]) < len(self.parameters) for key in state), "it has more weights")
        moments: dict[int, Moments] = {}
        for number, like in enumerate(self.parameters):
            expected = {f"{number}.{name}": value for name, value in Moments(0, like, like).named().items()}
            found = {key: value for key, value in state.items() if key in expected}
            if found:  # a weight that never had a gradient has no moments
                check_like(found, expected)
                step, mean, square = (found[key] for key in expected)
                need(bool(step >= 0), "it has a negative number of steps")
                moments[number] = Moments(int(step), *(value.to(like.device, copy=True) for value in (mean, square)))
        self._moments = moments


@dataclass
class Moments:
    """What Adam keeps of a weight: how many gradients it had, and the running means of them and of their squares."""

    step: int
    mean: Tensor
    square: Tensor

    def named(self) -> dict[str, Tensor]:
        return {"step": torch.tensor(float(self.step)), "exp_avg": self.mean, "exp_avg_sq": self.square}


def check_like(found: dict[str, Tensor], expected: dict[str, Tensor]) -> None:
    """Raise ValueError unless tensors have the names, types and shapes of others, and finite values."""
    need(set(found) == set(expected), "its weights have other names")
    for name, value in found.items():
        like = expected[name]
        need(value.dtype == like.dtype and value.shape == like.shape, f"{name!r} has another type or shape")
        need(not value.is_floating_point() or bool(torch.isfinite(value).all()), f"{name!r} holds NaN or infinity")


def sum_gradients(parameters: Iterable[Tensor]) -> None:
    """Add up the gradients of all processes, in one message. A collective."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    for gradient, found in zip(gradients, all_sum_together(gradients), strict=True):
        if found is not gradient:
            gradient.copy_(found)
