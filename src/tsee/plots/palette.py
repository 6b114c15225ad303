"""Colors of classes that are distinct in normal vision and in color blindness, on a light and on a dark background."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["COLORS", "DARK_COLORS", "class_colors", "distinct_colors", "seen_by_all"]

# Ten colors for a white background. In normal vision and in red, green and blue color blindness (Machado et al. 2009),
# no two are closer than 0.095 in OKLab; the usual tab10 has a pair at 0.007. The first few are the farthest apart.
COLORS = ["#526db0", "#ff8804", "#06c9ff", "#c93f4e", "#24475e"]
COLORS += ["#7b4113", "#86b977", "#702dab", "#009891", "#e898c7"]
# Similar hues for a dark background. No two are closer than 0.105 in OKLab, in each of these kinds of vision.
DARK_COLORS = ["#8d92f5", "#efb42c", "#0cd5fc", "#d54463", "#498aa1"]
DARK_COLORS += ["#c98811", "#abfe73", "#9c53f7", "#a1c89c", "#fce1d9"]
# More classes than this repeat colors.
MAX_COLORS = 100
# Steps of red, green and blue among which further colors are chosen, and the limits of their lightness and chroma.
STEPS = 16
LIGHTNESS = {"light": (0.35, 0.82), "dark": (0.55, 0.93)}
CHROMA = (0.045, 0.22)

# Normal vision and red, green and blue color blindness (Machado et al. 2009, severity 1), in linear RGB.
VISIONS = np.array(
    [
        [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
    ]
)
TO_CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
TO_OKLAB = np.array(
    [
        [0.2104542553, 0.793617785, -0.0040720468],
        [1.9779984951, -2.428592205, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.808675766],
    ]
)

Floats = NDArray[np.float64]


def seen_by_all(rgb: Floats) -> Floats:
    """Colors (n, 3), red, green and blue from 0 to 1, in OKLab as each of four kinds of vision sees them: (n, 4, 3)."""
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    seen = np.einsum("vij,nj->nvi", VISIONS, linear).clip(0, 1)
    lab: Floats = np.cbrt(seen @ TO_CONES.T) @ TO_OKLAB.T
    return lab


@lru_cache
def distinct_colors(background: str) -> tuple[str, ...]:
    """A hundred colors for a background, "light" or "dark".

    The first ten are the base colors. Each further one is the farthest from all before it, for the vision that tells
    it least well from the most similar one.
    """
    colors = list(COLORS if background == "light" else DARK_COLORS)
    steps = np.arange(STEPS) / (STEPS - 1)
    candidates = np.stack(np.meshgrid(steps, steps, steps, indexing="ij"), -1).reshape(-1, 3)
    seen = seen_by_all(candidates)  # (candidates, visions, 3)
    lightness, chroma = seen[:, 0, 0], np.hypot(seen[:, 0, 1], seen[:, 0, 2])
    low, high = LIGHTNESS[background]
    fits = (lightness > low) & (lightness < high) & (chroma > CHROMA[0]) & (chroma < CHROMA[1])
    candidates, seen = candidates[fits], seen[fits]
    nearest = np.full(len(seen), np.inf)

    def add(color: Floats) -> None:
        np.minimum(nearest, np.square(seen - color).sum(2).min(1), out=nearest)

    for color in seen_by_all(np.array([_rgb(color) for color in colors])):
        add(color)
    while len(colors) < MAX_COLORS:
        best = int(nearest.argmax())
        colors.append("#" + "".join(f"{round(255 * part):02x}" for part in candidates[best]))
        add(seen[best])
    return tuple(colors)


def class_colors(counts: NDArray[np.int64], background: str = "light") -> list[str]:
    """A color for each class, given the number of its points.

    Up to ten classes have the base colors, in their order. Of more, the most frequent have the most distinct.
    """
    colors = distinct_colors(background)
    if len(counts) <= len(COLORS):
        return list(colors[: len(counts)])
    order = np.argsort(-counts, kind="stable")
    chosen = [""] * len(counts)
    for rank, number in enumerate(order.tolist()):
        chosen[number] = colors[rank % len(colors)]
    return chosen


def _rgb(color: str) -> list[float]:
    return [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
