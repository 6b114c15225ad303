"""From labels to colours: classes have names, amounts a scale."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tsee.plots.canvas import COLOURS, UNLABELLED

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable

__all__ = ["MOST_CLASSES", "Colouring", "Floats", "colour_by"]

Floats = NDArray[np.float64]
# Up to this many different whole numbers are names of classes, more are amounts.
MOST_CLASSES = 100
# Light adds up, and the numbers of a colour are about this root of it.
GAMMA = 2.2


@dataclass
class Colouring:
    """The colours of points.

    Attributes
    ----------
    known : ndarray of shape (n,)
        Which points have a label.
    features : ndarray of shape (n, f)
        What stands for a point's colour and may be averaged: its amount, or the red, green and blue of its light.
    names : list of str
        The classes; none for amounts.
    palette : ndarray of shape (classes, 3)
        Their colours.
    codes : ndarray of shape (n,)
        Which class each point is of, -1 for none.
    scale : ScalarMappable, optional
        The colours of amounts.
    """

    known: NDArray[np.bool_]
    features: Floats
    names: list[str] = field(default_factory=list)
    palette: Floats = field(default_factory=lambda: np.empty((0, 3)))
    codes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    scale: ScalarMappable | None = None

    @cached_property
    def unlabelled(self) -> Floats:
        """The colour of points without a label: grey beside others, a colour where there are none."""
        from matplotlib.colors import to_rgb

        return np.array(to_rgb(UNLABELLED if self.known.any() else COLOURS[0]))

    def paint(self, features: Floats) -> Floats:
        """The colours of features, or of means of them: (..., f) to (..., 3)."""
        if self.scale is None:
            light: Floats = features.clip(0, 1) ** (1 / GAMMA)
            return light
        return np.asarray(self.scale.to_rgba(features[..., 0]), dtype=np.float64)[..., :3]

    def of_points(self) -> Floats:
        """The colour of each point: (n, 3)."""
        colours = np.tile(self.unlabelled, (len(self.known), 1))
        colours[self.known] = self.paint(self.features[self.known])
        return colours


def colour_by(values: NDArray[Any]) -> Colouring:
    """Names, and up to 100 different whole numbers, are classes; other numbers are amounts."""
    numbers = np.unique(values[np.isfinite(values)]) if values.dtype.kind in "iuf" else np.empty(0)
    if len(numbers) > MOST_CLASSES or bool((numbers % 1 != 0).any()):
        return _by_amount(values)
    return _by_class(values)


def _by_amount(values: NDArray[Any]) -> Colouring:
    from matplotlib.cm import ScalarMappable

    known = np.isfinite(values)
    # The hundredth at each end shares a colour: a few extremes would else leave one to all the rest.
    low, high = np.percentile(values[known], (1, 99))
    scale = ScalarMappable(cmap="viridis")
    scale.set_clim(low, high)
    amounts = np.where(known, values, low).clip(low, high).astype(np.float64)
    return Colouring(known, amounts[:, None], scale=scale)


def _by_class(values: NDArray[Any]) -> Colouring:
    from colorcet import glasbey_dark
    from matplotlib.colors import to_rgba_array

    listed = values.tolist()
    known = {value for value in listed if value is not None and value == value}
    classes = sorted(known, key=str if len({type(value) for value in known}) > 1 else None)
    number = {value: i for i, value in enumerate(classes)}
    codes = np.array([number.get(value, -1) for value in listed])
    colours = COLOURS if len(classes) <= len(COLOURS) else glasbey_dark
    palette = to_rgba_array([colours[i % len(colours)] for i in range(len(classes))])[:, :3]
    light = np.concatenate([palette**GAMMA, np.zeros((1, 3))])  # the code -1 takes the last
    names = [f"{value:g}" if isinstance(value, float) else str(value) for value in classes]
    return Colouring(codes >= 0, light[codes], names, palette, codes)
