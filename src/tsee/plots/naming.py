"""Names of classes on a map, none over another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tsee.plots.coloring import Coloring, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["name_classes"]

# A name would hide a class of fewer points than this.
MIN_POINTS_UNDER_NAME = 10


def name_classes(ax: Axes, points: Floats, coloring: Coloring) -> None:
    """Write each class's name on a central one of its points, or next to it if another name is there."""
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
    # The name of a class of few points stands above them, so that it does not hide them.
    lift = np.zeros((len(texts), 1, 2))
    lift[np.bincount(coloring.codes[coloring.known]) < MIN_POINTS_UNDER_NAME, :, 1] = size * ax.figure.dpi / 72
    moves = _moved_apart(boxes + lift, np.reshape(ax.bbox.extents, (2, 2))) - boxes.mean(1)
    for text, move in zip(texts, moves, strict=True):
        x, y = ax.transData.inverted().transform(ax.transData.transform(text.get_position()) + move)
        text.set_position((x, y))


def _moved_apart(boxes: Floats, bounds: Floats) -> Floats:
    """Centers of boxes: each at the nearest position within bounds that the boxes before it leave free."""
    sizes = boxes[:, 1] - boxes[:, 0]
    sizes += sizes[:, 1].min() / 4  # some space between them
    low, high = bounds[0] + sizes / 2, bounds[1] - sizes / 2
    centers = boxes.mean(1).clip(low, high)
    # The positions to try are arranged like a sunflower's seeds: from the center outward, equally dense everywhere.
    k = np.arange(40_000)
    spiral = sizes[:, 1].min() / 5 * np.sqrt(k)[:, None] * np.stack([np.cos(2.4 * k), np.sin(2.4 * k)], 1)
    for i in range(1, len(boxes)):
        for part in np.split(spiral, [400, 4000]):  # the first part is usually enough
            positions = centers[i] + part
            distances = np.abs(positions[:, None] - centers[:i]) - (sizes[i] + sizes[:i]) / 2  # (positions, i, 2)
            free = ((low[i] <= positions) & (positions <= high[i])).all(1) & (distances >= 0).any(2).all(1)
            if free.any():
                centers[i] = positions[free.argmax()]
                break
    return centers
