"""How the weights are moved: Adam and its schedule, and the paper's conjugate gradient."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

import torch
from torch import Tensor

from tsee.distributed import all_sum, world_size
from tsee.values import need

__all__ = ["Adam", "ConjugateGradient", "check_like", "make_optimizer", "scheduled_rate"]

BETAS = (0.9, 0.95)


def make_optimizer(name: str, parameters: Iterable[Tensor]) -> Adam | ConjugateGradient:
    """The optimizer with this name."""
    return Adam(parameters) if name == "adam" else ConjugateGradient(parameters)


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
    if world_size() == 1:
        return
    gradients = [p.grad for p in parameters if p.grad is not None]
    sums = all_sum(torch.cat([gradient.flatten() for gradient in gradients]))
    for gradient, found in zip(gradients, sums.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(found.view_as(gradient))


class ConjugateGradient:
    """Conjugate gradient with line searches by cubic and quadratic interpolation, a few per mini-batch.

    Polak-Ribiere directions; a step is accepted under the strong Wolfe conditions. This is the optimizer
    that pt-SNE was published with (Rasmussen's ``minimize``), run for ``n_searches`` line searches on each
    batch, each time starting from the steepest descent of that batch.

    Parameters
    ----------
    parameters : iterable of Tensor
    n_searches : int
        Line searches per call of ``step``.

    Examples
    --------
    >>> import torch
    >>> x = torch.tensor([3.0, -2.0], requires_grad=True)
    >>> optimizer = ConjugateGradient([x], n_searches=10)
    >>> _ = optimizer.step(lambda: (x - torch.tensor([1.0, 5.0])).square().sum())
    >>> x.detach().round(decimals=3)
    tensor([1., 5.])
    """

    has_rate = False
    advice = 'optimizer="adam" may help'

    # Rasmussen's constants: the ratio of slopes and the decrease that the Wolfe conditions ask for, how far to
    # extrapolate and how near the ends of a bracket to go, and the most evaluations per search.
    SIGMA, RHO = 0.1, 0.05
    EXTRAPOLATION, MARGIN = 3.0, 0.1
    MAX_EVALUATIONS = 20
    MAX_SLOPE_RATIO = 10.0

    def __init__(self, parameters: Iterable[Tensor], n_searches: int = 3) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.n_searches = n_searches

    def step(self, closure: Callable[[], Tensor], rate: float = math.nan) -> float:
        """Lower ``closure``, the loss of one batch, and return the loss reached; ``rate`` is ignored."""
        self._position = self._gather([p.data for p in self.parameters])
        try:
            return self._descend(closure)
        finally:
            # The searches try values in the parameters themselves; an interrupt must not leave them there.
            self._scatter(self._position)

    def state(self) -> dict[str, Tensor]:
        """Nothing is kept from one batch to the next."""
        return {}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        need(not state, "conjugate gradient keeps no moments")

    def _descend(self, closure: Callable[[], Tensor]) -> float:
        value, gradient = self._evaluate(self._position, closure)
        if not math.isfinite(value):
            return value
        direction = -gradient
        slope = -float(gradient @ gradient)
        length = 1 / (1 - slope)
        steepest = True
        for _ in range(self.n_searches):
            if slope == 0:
                break
            found = self._search(self._position, value, direction, slope, length, closure)
            if found is None:
                if steepest:
                    break
                # The conjugate direction failed; try the steepest once.
                direction, slope, steepest = -gradient, -float(gradient @ gradient), True
                length = 1 / (1 - slope)
                continue
            step_length, value, new_gradient = found
            self._position = self._position + step_length * direction
            beta = float(new_gradient @ new_gradient - gradient @ new_gradient) / float(gradient @ gradient)
            direction = beta * direction - new_gradient
            gradient = new_gradient
            old_slope, slope, steepest = slope, float(gradient @ direction), False
            if slope >= 0:
                direction, slope, steepest = -gradient, -float(gradient @ gradient), True
            ratio = old_slope / slope if slope != 0 else self.MAX_SLOPE_RATIO
            length = step_length * min(self.MAX_SLOPE_RATIO, ratio)
        return value

    def _search(
        self,
        position: Tensor,
        value: float,
        direction: Tensor,
        slope: float,
        length: float,
        closure: Callable[[], Tensor],
    ) -> tuple[float, float, Tensor] | None:
        """A step along ``direction`` under the strong Wolfe conditions; None if there is no decrease."""
        low = (0.0, value, slope)  # step, value, slope of the best point below the bracket
        high: tuple[float, float] | None = None  # step and value of a point known to be too far
        best: tuple[float, float, Tensor] | None = None
        for _ in range(self.MAX_EVALUATIONS):
            here, gradient = self._evaluate(position + length * direction, closure)
            if not math.isfinite(here):
                high = (length, math.inf)
                length = (low[0] + length) / 2
                continue
            slope_here = float(gradient @ direction)
            if here < value and (best is None or here < best[1]):
                best = (length, here, gradient)
            if here > value + self.RHO * length * slope or (low[0] > 0 and here >= low[1]):
                high = (length, here)
            elif abs(slope_here) <= -self.SIGMA * slope:
                return length, here, gradient
            elif slope_here > 0:
                high = (length, here)
            else:
                low = (length, here, slope_here)
            length = self._next_length(low, high)
        return best

    def _next_length(self, low: tuple[float, float, float], high: tuple[float, float] | None) -> float:
        if high is None:
            return max(low[0], 1e-12) * self.EXTRAPOLATION
        width = high[0] - low[0]
        # The minimum of the parabola through both values and the slope at the lower end.
        bend = high[1] - low[1] - low[2] * width  # the curvature times width^2 / 2
        offset = -low[2] * width**2 / (2 * bend) if 0 < bend < math.inf else width / 2
        return low[0] + min(max(offset, self.MARGIN * width), (1 - self.MARGIN) * width)

    def _evaluate(self, position: Tensor, closure: Callable[[], Tensor]) -> tuple[float, Tensor]:
        self._scatter(position)
        loss = closure()
        gradients = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        filled = [torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, gradients, strict=True)]
        return float(loss.detach()), all_sum(self._gather(filled))

    def _gather(self, tensors: list[Tensor]) -> Tensor:
        return torch.cat([t.reshape(-1) for t in tensors])

    def _scatter(self, position: Tensor) -> None:
        start = 0
        for p in self.parameters:
            p.data.copy_(position[start : start + p.numel()].view_as(p))
            start += p.numel()
