"""The paper's optimizer: conjugate gradient, a few line searches per mini-batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from tsee.distributed import all_sum_together
from tsee.values import need

__all__ = ["ConjugateGradient"]

# What a step must fulfill (the strong Wolfe conditions): a loss lower by this share of what the first slope promises,
# and a slope of at most this share of the first one.
DECREASE, FLATNESS = 0.05, 0.1
# How far a search may extrapolate, as a multiple of the longest step known to be too short.
MAX_EXTRAPOLATION = 3.0
# How near to the ends of a bracket the next step may be, as a share of its width.
MARGIN = 0.1
# A search that has evaluated the loss this often takes the best step that it has seen.
MAX_EVALUATIONS = 20
# A first step may be this many times as long as the step before it.
MAX_GROWTH = 10.0


@dataclass(frozen=True, eq=False)
class _Point:
    """A point on a line: how far along the direction it is, and the loss there with its slope and gradient."""

    length: float
    value: float
    slope: float
    gradient: list[Tensor]


class ConjugateGradient:
    r"""Conjugate gradient with line searches that bracket and interpolate, a few per mini-batch.

    .. math:: d_0 = -g_0, \qquad d_{k+1} = -g_{k+1} + \beta_k d_k, \qquad
        \beta_k = \frac{g_{k+1} \cdot (g_{k+1} - g_k)}{g_k \cdot g_k}

    where :math:`g` is the gradient and :math:`d` the direction of a search (Polak-Ribiere). A step is accepted under
    the strong Wolfe conditions. This is the kind of optimizer that pt-SNE was published with. Each batch starts anew
    from its steepest descent, as there; only the length of the first step is remembered from the batch before.

    Each trial of a step evaluates the loss and its gradient together, once. The accepted one is where the next search
    starts, without another evaluation.

    Parameters
    ----------
    parameters : iterable of Tensor
    n_searches : int
        Line searches per call of ``step``.
    max_step : float
        The longest step of a search, as a share of the length of all parameters together (unless they are all 0). At
        the start, where the map is a point and the loss nearly flat, a search without a limit goes so far that most
        hidden units of a high-order network are saturated, from which it does not recover.

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

    def __init__(self, parameters: Iterable[Tensor], n_searches: int = 3, max_step: float = math.inf) -> None:
        self.parameters = [p for p in parameters if p.requires_grad]
        self.n_searches, self.max_step = n_searches, max_step
        # The length and the slope of the first step of the last batch; no length at the start.
        self._first = (0.0, 0.0)

    def step(self, closure: Callable[[], Tensor], rate: float = math.nan) -> float:
        """Lower ``closure``, the loss of one batch, and return the loss reached; ``rate`` is ignored."""
        self._position = [p.detach().clone() for p in self.parameters]
        try:
            return self._descend(closure)
        finally:
            # The searches try steps in the parameters themselves; an interrupt must not leave them there.
            for p, x in zip(self.parameters, self._position, strict=True):
                p.data.copy_(x)

    def state(self) -> dict[str, Tensor]:
        """The length and the slope of the last batch's first step."""
        return {"first": torch.tensor(self._first, dtype=torch.float64)}

    def restore(self, state: dict[str, Tensor]) -> None:
        """Continue from what `state` returned."""
        first = state.get("first")
        need(
            set(state) == {"first"}
            and first is not None
            and first.dtype == torch.float64
            and first.shape == (2,)
            and bool(torch.isfinite(first).all())
            and bool(first[0] >= 0 >= first[1]),
            "it lacks the last step of conjugate gradient",
        )
        length, slope = state["first"].tolist()
        self._first = (length, slope)

    def _descend(self, closure: Callable[[], Tensor]) -> float:
        value, gradient = self._evaluate(closure)
        if not math.isfinite(value):
            return value
        direction, slope = _steepest(gradient)
        length = _next_length(self._first, slope) if self._first[0] else 1 / (1 - slope)
        steepest = True
        for search in range(self.n_searches):
            if slope == 0:
                break
            found = self._search(_Point(0.0, value, slope, gradient), direction, length, closure)
            if found is None:
                if steepest:
                    break
                # The conjugate direction failed; try the steepest once.
                direction, slope = _steepest(gradient)
                length, steepest = 1 / (1 - slope), True
                continue
            for x, d in zip(self._position, direction, strict=True):
                x.add_(d, alpha=found.length)
            taken = (found.length, slope)
            if search == 0:
                self._first = taken
            squared = _dot(gradient, gradient)
            beta = (_dot(found.gradient, found.gradient) - _dot(gradient, found.gradient)) / squared
            value, gradient = found.value, found.gradient
            for d, g in zip(direction, gradient, strict=True):
                d.mul_(beta).sub_(g)
            slope, steepest = _dot(gradient, direction), False
            if not slope < 0:
                direction, slope = _steepest(gradient)
                steepest = True
            length = _next_length(taken, slope)
        return value

    def _search(
        self, start: _Point, direction: list[Tensor], length: float, closure: Callable[[], Tensor]
    ) -> _Point | None:
        """A step along ``direction`` under the strong Wolfe conditions; None if no step lowers the loss.

        ``low`` is the longest step known to be too short, and ``high`` the shortest known to be too long. Between the
        two there is a step that fulfills the conditions. The longest step that is allowed is taken if it is too short.
        """
        before = low = best = start
        high: _Point | None = None
        size = math.sqrt(_dot(self._position, self._position))
        longest = self.max_step * size / math.sqrt(_dot(direction, direction)) if size else math.inf
        length = min(length, longest)
        for _ in range(MAX_EVALUATIONS):
            for p, x, d in zip(self.parameters, self._position, direction, strict=True):
                torch.add(x, d, alpha=length, out=p.data)
            value, gradient = self._evaluate(closure)
            here = _Point(length, value, _dot(gradient, direction), gradient)
            if not (math.isfinite(value) and math.isfinite(here.slope)):
                high = _Point(length, math.inf, math.nan, gradient)
            else:
                best = here if value < best.value else best
                if value > start.value + DECREASE * length * start.slope:
                    high = here
                elif abs(here.slope) <= -FLATNESS * start.slope or (here.slope < 0 and length >= longest):
                    return here
                elif here.slope > 0:
                    high = here
                else:
                    before, low = low, here
            length = min(_extrapolated(before, low), longest) if high is None else _interpolated(low, high)
        return None if best is start else best

    def _evaluate(self, closure: Callable[[], Tensor]) -> tuple[float, list[Tensor]]:
        """The loss and its gradient at the parameters. A collective."""
        loss = closure()
        gradients = torch.autograd.grad(loss, self.parameters, allow_unused=True)
        filled = [torch.zeros_like(p) if g is None else g for p, g in zip(self.parameters, gradients, strict=True)]
        return float(loss.detach()), all_sum_together(filled)


def _steepest(gradient: list[Tensor]) -> tuple[list[Tensor], float]:
    """The direction of steepest descent, and its slope."""
    return [-g for g in gradient], -_dot(gradient, gradient)


def _dot(a: list[Tensor], b: list[Tensor]) -> float:
    return float(sum(torch.dot(x.reshape(-1), y.reshape(-1)) for x, y in zip(a, b, strict=True)))


def _next_length(taken: tuple[float, float], slope: float) -> float:
    """The first length to try after a step: it promises the same change of the loss, if it is not too long."""
    length, before = taken
    return length * min(MAX_GROWTH, before / slope) if slope else length


def _extrapolated(before: _Point, low: _Point) -> float:
    """The minimum of the cubic through two points that are both too short, within bounds."""
    width = low.length - before.length
    nearest, farthest = low.length + MARGIN * width, MAX_EXTRAPOLATION * low.length
    found = low.length + _cubic_minimum(low.slope, before.value - low.value, before.slope, -width)
    # A cubic without a minimum ahead falls ever more steeply.
    return min(max(found, nearest), farthest) if found > low.length else farthest


def _interpolated(low: _Point, high: _Point) -> float:
    """The minimum, between a step too short and one too long, of the cubic through both, or of a parabola."""
    width = high.length - low.length
    if not math.isfinite(high.value):
        return low.length + width / 2
    if high.value > low.value:  # so far off that its slope says little
        bend = high.value - low.value - low.slope * width  # the curvature times width^2 / 2
        offset = -low.slope * width**2 / (2 * bend)
    else:
        offset = _cubic_minimum(low.slope, high.value - low.value, high.slope, width)
    offset = offset if math.isfinite(offset) else width / 2
    return low.length + min(max(offset, MARGIN * width), (1 - MARGIN) * width)


def _cubic_minimum(slope: float, rise: float, other_slope: float, width: float) -> float:
    r"""Where a cubic has its minimum, as an offset from a point with the given slope; NaN if it has none.

    Another point of it is at an offset of ``width``, higher by ``rise``, with the slope ``other_slope``. With

    .. math:: c(t) = s t + b t^2 + a t^3, \qquad c(w) = r, \qquad c'(w) = s'

    the minimum is the root of :math:`c'` at which :math:`c'' > 0`:
    :math:`t = \frac{-b + \sqrt{b^2 - 3 a s}}{3 a} = \frac{-s}{b + \sqrt{b^2 - 3 a s}}`.
    """
    mean = rise / width
    a = (slope + other_slope - 2 * mean) / width**2
    b = (3 * mean - 2 * slope - other_slope) / width
    discriminant = b**2 - 3 * a * slope
    if not discriminant >= 0:
        return math.nan
    root = math.sqrt(discriminant)
    if b > 0:  # of the two forms, the one without a difference of nearly equal numbers
        return -slope / (b + root)
    return (root - b) / (3 * a) if a else math.nan
