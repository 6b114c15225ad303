"""Very many points as one image: how many there are shades it, what they are on average colors it."""

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

# How much of its color a lone point has, where the densest place has all of it.
FAINTEST = 0.4
# The densest place is that of this quantile of all pixels with points: a few doublets would else pale the rest.
FULL = 0.999
# A disc covers a pixel in 64ths; less than one is a rounding error.
LEAST = 0.5 / 64


def shade(ax: Axes, points: Floats, features: Floats, paint: Callable[[Floats], Floats], diameter: float) -> None:
    """Draw points as an image of the size that the axes have in a file, each a disc of a diameter in 1/72 inch.

    The mean of the features of the points on a pixel is painted, (pixels, f) to (pixels, 3). The layout of the
    figure must be final.
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
    counts = _spread(index, None, (height, width), disc)
    covered = counts > LEAST
    means = [_spread(index, each, (height, width), disc)[covered] / counts[covered] for each in features[inside].T]
    picture = np.zeros((height, width, 4))
    picture[covered, :3] = paint(np.stack(means, axis=1))
    picture[covered, 3] = _opacity(counts[covered])
    image = AxesImage(ax, extent=(*ax.get_xlim(), *ax.get_ylim()), origin="lower", interpolation="antialiased")
    image.set_data((picture * 255).round().astype(np.uint8))
    image.set_clip_path(ax.patch)
    ax.add_image(image)


def _disc(diameter: float) -> Floats:
    """How much of each pixel around its middle one a disc covers, the middle one wholly."""
    reach = int(np.ceil(diameter / 2))
    fine = (np.arange(-reach * 8 - 4, reach * 8 + 4) + 0.5) / 8  # eight places a pixel, each way
    covered = np.hypot(fine[:, None], fine[None, :]) <= diameter / 2
    disc: Floats = covered.reshape(2 * reach + 1, 8, 2 * reach + 1, 8).mean((1, 3))
    disc[reach, reach] = 1
    return disc


def _spread(index: NDArray[np.int64], feature: Floats | None, shape: tuple[int, int], disc: Floats) -> Floats:
    """For each pixel the sum of a feature of the points whose disc covers it, or without a feature their number."""
    from scipy.signal import oaconvolve

    sums = np.bincount(index, feature, minlength=shape[0] * shape[1]).reshape(shape)
    spread: Floats = oaconvolve(sums.astype(np.float64), disc, mode="same")
    return spread


def _opacity(counts: Floats) -> Floats:
    """From faint to full by the logarithm of counts; below one point, at the edge of a disc, in proportion."""
    whole = counts.clip(1)
    dense = max(1.01, float(np.quantile(whole, FULL)))
    tone = (np.log(whole) / np.log(dense)).clip(0, 1)
    opacity: Floats = counts.clip(0, 1) * (FAINTEST + (1 - FAINTEST) * tone)
    return opacity
