"""Names of classes on a map, none over another, and none over the points of a small class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tsee.plots.coloring import Coloring, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["name_classes"]

# The share of a class that may be hidden instead of moving a name by its own height.
HIDDEN_PER_HEIGHT = 0.06
# Cells per height of a name, of the grid on which hidden points are counted.
CELLS = 4


def name_classes(ax: Axes, points: Floats, coloring: Coloring) -> None:
    """Write each class's name near a central one of its points, where it hides least."""
    from matplotlib.patheffects import withStroke

    texts, halo = [], withStroke(linewidth=3, foreground="white")
    size = float(np.clip(13.5 - len(coloring.names) / 15, 7, 13))
    for i, name in enumerate(coloring.names):
        own = points[coloring.codes == i]
        # The median of a class in several clusters may lie in none of them, so it is taken again of the nearest half.
        for _ in range(3):
            order = np.square(own - np.median(own, axis=0)).sum(1).argsort(kind="stable")
            own = own[order[: -(-len(own) // 2)]]
        text = ax.text(own[0, 0], own[0, 1], name, ha="center", va="center", weight="bold", parse_math=False)
        text.set(color=0.55 * coloring.palette[i], fontsize=size, path_effects=[halo], in_layout=False)
        texts.append(text)
    ax.figure.figure.draw_without_rendering()  # so that sizes and positions are known
    boxes = np.array([text.get_window_extent().extents for text in texts]).reshape(-1, 2, 2)
    bounds = np.reshape(ax.bbox.extents, (2, 2))
    known = coloring.known
    # Each point weighs one part of its class: a name that hides a whole class, however small, hides 1.
    weights = 1 / np.bincount(coloring.codes[known])[coloring.codes[known]]
    hidden = _Hidden(ax.transData.transform(points[known]), weights, bounds, float((boxes[0, 1] - boxes[0, 0])[1]))
    for text, move in zip(texts, _placed(boxes, bounds, hidden) - boxes.mean(1), strict=True):
        x, y = ax.transData.inverted().transform(ax.transData.transform(text.get_position()) + move)
        text.set_position((x, y))


class _Hidden:
    """How much of the classes a box would hide, by sums over a grid: (boxes, 2), (boxes, 2) -> (boxes,)."""

    def __init__(self, points: Floats, weights: Floats, bounds: Floats, height: float) -> None:
        self.low, self.cell = bounds[0], height / CELLS
        shape: NDArray[np.int64] = np.ceil((bounds[1] - bounds[0]) / self.cell).astype(np.int64) + 1
        at = ((points - self.low) / self.cell).astype(np.int64).clip(0, shape - 1)
        grid = np.zeros(shape)
        np.add.at(grid, (at[:, 0], at[:, 1]), weights)
        self.sums = np.pad(grid.cumsum(0).cumsum(1), ((1, 0), (1, 0)))

    def __call__(self, low: Floats, high: Floats) -> Floats:
        most = np.array(self.sums.shape) - 1
        a = np.floor((low - self.low) / self.cell).astype(np.int64).clip(0, most)
        b = np.ceil((high - self.low) / self.cell).astype(np.int64).clip(0, most)
        sums = self.sums
        total: Floats = (
            sums[b[:, 0], b[:, 1]] - sums[a[:, 0], b[:, 1]] - sums[b[:, 0], a[:, 1]] + sums[a[:, 0], a[:, 1]]
        )
        return total


def _placed(boxes: Floats, bounds: Floats, hidden: _Hidden) -> Floats:
    """Centers of boxes: each near its own center, hiding little, where bounds and the boxes before it leave room."""
    tight = boxes[:, 1] - boxes[:, 0]
    height = tight[:, 1].min()
    sizes = tight + height / 4  # some space between them
    low, high = bounds[0] + sizes / 2, bounds[1] - sizes / 2
    centers = boxes.mean(1).clip(low, high)
    # The positions to try are arranged like a sunflower's seeds: from the center outward, equally dense everywhere.
    k = np.arange(40_000)
    spiral = height / 5 * np.sqrt(k)[:, None] * np.stack([np.cos(2.4 * k), np.sin(2.4 * k)], 1)
    far = np.linalg.norm(spiral, axis=1) / height
    for i in range(len(boxes)):
        for part in (slice(0, 1200), slice(1200, 6000), slice(6000, None)):  # the first part is usually enough
            positions = centers[i] + spiral[part]
            distances = np.abs(positions[:, None] - centers[:i]) - (sizes[i] + sizes[:i]) / 2  # (positions, i, 2)
            free = ((low[i] <= positions) & (positions <= high[i])).all(1) & (distances >= 0).any(2).all(1)
            if free.any():
                cost = hidden(positions - tight[i] / 2, positions + tight[i] / 2) + HIDDEN_PER_HEIGHT * far[part]
                centers[i] = positions[np.where(free, cost, np.inf).argmin()]
                break
    return centers
