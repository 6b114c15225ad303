"""How the weights are moved: Adam and its schedule, or the paper's conjugate gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from tsee.distributed import all_sum_together
from tsee.training.conjugate import ConjugateGradient
from tsee.values import need

__all__ = ["Adam", "ConjugateGradient", "check_like", "make_optimizer", "scheduled_rate"]

BETAS = (0.9, 0.95)
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
    """torch's Adam over several processes, with one rate per step.

    Parameters
    ----------
    parameters : iterable of Tensor
    """

    has_rate = True
    advice = "a lower learning_rate may help"

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self._adam = torch.optim.Adam(self.parameters, betas=BETAS)

    def step(self, closure: Callable[[], Tensor], rate: float) -> float:
        """Lower ``closure``, the loss of one batch, and return the loss before the step."""
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.zero_grad(set_to_none=True)
        loss = closure()
        value = float(loss.detach())
        if math.isfinite(value):
            loss.backward()
            sum_gradients(self.parameters)
            self._adam.step()
        return value

    def state(self) -> dict[str, Tensor]:
        """The moments, by the number of the parameter and their names."""
        moments = self._adam.state_dict()["state"]
        return {f"{i}.{name}": value for i, kept in moments.items() for name, value in kept.items()}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        for number, like in enumerate(self.parameters):
            names = (f"{number}.{name}" for name in ("step", "exp_avg", "exp_avg_sq"))
            expected = dict(zip(names, (torch.zeros(()), like, like), strict=True))
            found = {key: value for key, value in state.items() if key in expected}
            if found:  # a weight that never had a gradient has no moments
                check_like(found, expected)
                need(bool(found[f"{number}.step"] >= 0), "it has a negative number of steps")
        need(all(int(key.partition(".")[0]) < len(self.parameters) for key in state), "it has more weights")
        moments: dict[int, dict[str, Tensor]] = {}
        for key, value in state.items():
            i, _, name = key.partition(".")
            moments.setdefault(int(i), {})[name] = value
        self._adam.load_state_dict({"state": moments, "param_groups": self._adam.state_dict()["param_groups"]})


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
