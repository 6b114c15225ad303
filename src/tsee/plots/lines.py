"""Lines with their names at their right ends, on axes without clutter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tsee.plots.canvas import COLORS, FAINT, GRAY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Line", "draw_lines", "name_ends", "round_numbers"]

# Lines of more points than this have no markers.
MAX_MARKERS = 15
NAME_SIZE = 9.5


@dataclass
class Line:
    """A line of at least one point, its name if it has one, and its style; dashed lines have no markers."""

    points: Sequence[tuple[float, float]]
    name: str = ""
    color: str = COLORS[0]
    marker: str = "o"
    dashed: bool = False


def round_numbers() -> Any:
    """A locator of ticks at 1, 2 or 5 times a power of ten."""
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(nbins="auto", steps=[1, 2, 5, 10])


def draw_lines(ax: Axes, lines: list[Line]) -> None:
    """Draw lines, and remove clutter from the axes: the frame, ticks, and all but a light grid."""
    for line in lines:
        x, y = zip(*line.points, strict=True)
        if line.dashed:
            ax.plot(x, y, color=line.color, linestyle=(0, (4, 2)), linewidth=1.3)
        else:
            marker = line.marker if len(x) <= MAX_MARKERS else "none"
            ax.plot(x, y, color=line.color, marker=marker, markersize=4.5, linewidth=1.8)
    ax.yaxis.set_major_locator(round_numbers())
    ax.grid(axis="y", color=FAINT, linewidth=0.8)
    ax.set_axisbelow(True)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.spines["bottom"].set_color(GRAY)
    ax.tick_params(axis="both", length=0, labelsize=9, colors=GRAY)
    ax.tick_params(axis="x", length=3)


def name_ends(ax: Axes, lines: list[Line]) -> None:
    """Write names to the right of the last points of lines, moved apart if they would touch.

    The limits and scales of the axes must be final.
    """
    from sklearn.isotonic import isotonic_regression

    named = sorted((line for line in lines if line.name), key=lambda line: line.points[-1][1])
    if not named:
        return
    ax.figure.figure.draw_without_rendering()  # so that sizes and positions are known
    point = ax.figure.dpi / 72
    gap = 1.35 * NAME_SIZE * point
    heights = np.array([ax.transData.transform(line.points[-1])[1] for line in named])
    # The nearest heights at least a gap apart and not below the axes: without the gaps, they must not decrease.
    offsets = gap * np.arange(len(named))
    moved = isotonic_regression(heights - offsets, y_min=ax.bbox.y0 + gap / 2) + offsets
    right = max(line.points[-1][0] for line in named)
    for line, shift in zip(named, (moved - heights) / point, strict=True):
        x, y = line.points[-1]
        if x < right:  # a dotted line leads from its end to its name
            ax.plot([x, right], [y, y], color=line.color, linewidth=0.8, linestyle=":", alpha=0.6)
        text = ax.annotate(line.name, (right, y), xytext=(9, shift), textcoords="offset points", va="center")
        text.set(color=line.color, fontsize=NAME_SIZE, weight="bold", annotation_clip=False, parse_math=False)
