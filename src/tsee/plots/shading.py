"""Very many points as one image: their number gives the opacity of a pixel, their average gives its color."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tsee.plots.canvas import DPI
from tsee.plots.coloring import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["shade"]

# The opacity of a single point; the densest pixels have 1.
LOWEST_OPACITY = 0.4
# Pixels from this quantile of counts on are opaque: otherwise a few pixels of duplicates would make all others pale.
OPAQUE_QUANTILE = 0.999
# A disc covers a pixel in steps of 1/64; less than half a step is a rounding error.
MIN_COVERED = 0.5 / 64


def shade(ax: Axes, points: Floats, features: Floats, paint: Callable[[Floats], Floats], diameter: float) -> None:
    """Draw points as one image, as large as the axes are in a file; each point is a disc of a diameter in 1/72 inch.

    ``paint`` turns the mean features of the points on each pixel, (pixels, f), into colors, (pixels, 3). The layout
    of the figure must be final.
    """
    from matplotlib.image import AxesImage

    ax.update_datalim(points)
    ax.autoscale_view()
    ax.apply_aspect()
    scale = DPI / ax.figure.dpi
    width, height = (max(1, round(scale * length)) for length in ax.bbox.size)
    cells = np.floor((ax.transData.transform(points) - ax.bbox.p0) * scale).astype(np.int64)
    inside = ((cells >= 0) & (cells < (width, height))).all(1)
    index = (cells[:, 1] * width + cells[:, 0])[inside]
    disc = _disc(diameter * DPI / 72)
    counts = _sums(index, None, (height, width), disc)
    covered = counts > MIN_COVERED
    means = [_sums(index, each, (height, width), disc)[covered] / counts[covered] for each in features[inside].T]
    picture = np.zeros((height, width, 4))
    picture[covered, :3] = paint(np.stack(means, axis=1))
    picture[covered, 3] = _opacity(counts[covered])
    image = AxesImage(ax, extent=(*ax.get_xlim(), *ax.get_ylim()), origin="lower", interpolation="antialiased")
    image.set_data((picture * 255).round().astype(np.uint8))
    image.set_clip_path(ax.patch)
    ax.add_image(image)


def _disc(diameter: float) -> Floats:
    """The share of each pixel that a disc covers; the middle pixel counts as covered entirely."""
    reach = int(np.ceil(diameter / 2))
    fine = (np.arange(-reach * 8 - 4, reach * 8 + 4) + 0.5) / 8  # eight samples per pixel, in both directions
    covered = np.hypot(fine[:, None], fine[None, :]) <= diameter / 2
    disc: Floats = covered.reshape(2 * reach + 1, 8, 2 * reach + 1, 8).mean((1, 3))
    disc[reach, reach] = 1
    return disc


def _sums(index: NDArray[np.int64], feature: Floats | None, shape: tuple[int, int], disc: Floats) -> Floats:
    """For each pixel, the sum of a feature over the points whose discs cover it; without a feature, their number."""
    from scipy.signal import oaconvolve

    sums = np.bincount(index, feature, minlength=shape[0] * shape[1]).reshape(shape)
    summed: Floats = oaconvolve(sums.astype(np.float64), disc, mode="same")
    return summed


def _opacity(counts: Floats) -> Floats:
    """Opacity by the logarithm of counts; in proportion to counts below one, at the edge of a disc."""
    whole = counts.clip(1)
    dense = max(1.01, float(np.quantile(whole, OPAQUE_QUANTILE)))
    tone = (np.log(whole) / np.log(dense)).clip(0, 1)
    opacity: Floats = counts.clip(0, 1) * (LOWEST_OPACITY + (1 - LOWEST_OPACITY) * tone)
    return opacity
