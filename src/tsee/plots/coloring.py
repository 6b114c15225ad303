"""From labels to colors: classes have names, and amounts have a scale."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tsee.plots.canvas import COLORS, UNLABELED, drawable
from tsee.plots.palette import class_colors

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable

__all__ = ["MOST_CLASSES", "Coloring", "Floats", "color_by"]

Floats = NDArray[np.float64]
# Up to this many different whole numbers are classes; more are amounts.
MOST_CLASSES = 100
# Colors are mixed as light, which is about this power of a color's red, green and blue.
GAMMA = 2.2


@dataclass
class Coloring:
    """The colors of points, as red, green and blue from 0 to 1.

    Attributes
    ----------
    known : ndarray of shape (n,)
        Which points have a label.
    colors : ndarray of shape (n, 3)
        The points' colors.
    names : list of str
        The names of the classes; empty for amounts.
    palette : ndarray of shape (classes, 3)
        The classes' colors.
    codes : ndarray of shape (n,)
        The class of each point, -1 for none.
    scale : ScalarMappable, optional
        The colors of amounts.
    heights : ndarray of shape (n,), optional
        The positions of the amounts on the scale, from 0 to 1.
    """

    known: NDArray[np.bool_]
    colors: Floats
    names: list[str] = field(default_factory=list)
    palette: Floats = field(default_factory=lambda: np.empty((0, 3)))
    codes: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    scale: ScalarMappable | None = None
    heights: Floats | None = None

    def mixing(self, chosen: NDArray[np.bool_]) -> tuple[Floats, Callable[[Floats], Floats]]:
        """What to average over points, (n, f), and a function from such means to colors.

        Classes are averaged as light, and amounts as amounts. Either all chosen points have a label, or none has.
        """
        if self.scale is None or self.heights is None or not self.known[chosen].any():
            return self.colors[chosen] ** GAMMA, lambda light: light.clip(0, 1) ** (1 / GAMMA)
        cmap = self.scale.get_cmap()
        return self.heights[chosen, None], lambda heights: cmap(heights[:, 0])[:, :3]


def color_by(values: NDArray[Any], palette: Any = None, cmap: Any = None) -> Coloring:
    """Names, and up to 100 different whole numbers, are classes; other numbers are amounts.

    Parameters
    ----------
    values : ndarray of shape (n,)
        The labels; None and NaN are missing.
    palette : sequence of colors, or mapping of classes to colors, optional
        The colors of the classes, in their order.
    cmap : str or matplotlib Colormap, optional
        The colors of amounts.
    """
    numbers = np.unique(values[np.isfinite(values)]) if values.dtype.kind in "iuf" else np.empty(0)
    if len(numbers) > MOST_CLASSES or bool((numbers % 1 != 0).any()):
        return _by_amount(values, cmap)
    return _by_class(values, palette)


def _by_amount(values: NDArray[Any], cmap: Any) -> Coloring:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import to_rgb

    known = np.isfinite(values)
    # The lowest and the highest 1 % share a color each: otherwise a few extremes would leave one color for all others.
    try:
        scale = ScalarMappable(cmap="viridis" if cmap is None else cmap)
    except (ValueError, TypeError) as error:
        raise ValueError(f"The 'cmap' parameter must be a color map of matplotlib. Got {cmap!r}.") from error
    scale.set_clim(*np.percentile(values[known], (1, 99)))
    heights = np.asarray(scale.norm(np.where(known, values, 0)), dtype=np.float64).clip(0, 1)
    colors = np.where(known[:, None], scale.get_cmap()(heights)[:, :3], to_rgb(UNLABELED))
    return Coloring(known, colors, scale=scale, heights=heights)


def _by_class(values: NDArray[Any], palette: Any) -> Coloring:
    from matplotlib.colors import to_rgba_array

    listed = values.tolist()
    known = {value for value in listed if value is not None and value == value}
    classes = sorted(known, key=str if len({type(value) for value in known}) > 1 else None)
    number = {value: i for i, value in enumerate(classes)}
    codes = np.array([number.get(value, -1) for value in listed])
    if palette is None:
        named: Any = class_colors(np.bincount(codes[codes >= 0], minlength=len(classes)))
    else:
        named = _chosen(palette, classes)
    colors = to_rgba_array(named)[:, :3].reshape(-1, 3)
    # The code -1 takes the last color: gray if there are classes, the first color if there are none.
    last = to_rgba_array(UNLABELED if classes else COLORS[0])[:, :3]
    names = [f"{value:g}" if isinstance(value, float) else drawable(value) for value in classes]
    return Coloring(codes >= 0, np.concatenate([colors, last])[codes], names, colors, codes)


def _chosen(palette: Any, classes: list[Any]) -> list[Any]:
    """The user's color of each class."""
    from matplotlib.colors import is_color_like

    if isinstance(palette, Mapping):
        missing = [value for value in classes if value not in palette]
        if missing:
            raise ValueError(
                f"The 'palette' parameter must have a color for each class. It has none for {missing[0]!r}."
            )
        colors = [palette[value] for value in classes]
    else:
        colors = list(palette)[: len(classes)]
        if len(colors) < len(classes):
            raise ValueError(
                f"The 'palette' parameter must have a color for each of {len(classes)} classes. Got {len(colors)}."
            )
    for color in colors:
        if not is_color_like(color):
            raise ValueError(f"The 'palette' parameter must hold colors that matplotlib knows. Got {color!r}.")
    return colors
