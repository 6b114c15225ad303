"""Maps of very many points as one image: how many there are shades it, what they are on average colours it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tsee.plots.canvas import DPI
from tsee.plots.colouring import Colouring, Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["shade"]

# How much of its colour a lone point has, where the densest place has all of it.
FAINTEST = 0.4
# The densest place is that of this quantile of all pixels with points: a few doublets would else pale the rest.
FULL = 0.999


def shade(ax: Axes, points: Floats, colouring: Colouring, diameter: float) -> None:
    """Draw points as an image of the size of the axes in a file, each a disc of a diameter in 1/72 inch."""
    from matplotlib.image import AxesImage

    ax.update_datalim(points)
    ax.autoscale_view()
    ax.figure.figure.draw_without_rendering()  # so that sizes and limits are final
    scale = DPI / ax.figure.dpi
    width, height = (max(1, round(scale * length)) for length in ax.bbox.size)
    cells = np.floor((ax.transData.transform(points) - ax.bbox.p0) * scale).astype(np.int64)
    inside = ((cells >= 0) & (cells < (width, height))).all(1)
    index = cells[:, 1] * width + cells[:, 0]
    disc = _disc(diameter * DPI / 72)
    picture = np.zeros((height, width, 4), np.float32)
    for known in (False, True):  # labelled points cover those without a label
        chosen = inside & (colouring.known == known)
        if chosen.any():
            spread = partial(_spread, index[chosen], picture.shape[:2], disc)
            counts = spread(None)
            covered = counts > 0
            counts = counts[covered]
            colours = colouring.unlabelled
            if known:
                means = [spread(feature)[covered] / counts for feature in colouring.features[chosen].T]
                colours = colouring.paint(np.stack(means, axis=1))
            picture[covered] = _over(picture[covered], colours, _opacity(counts))
    image = AxesImage(ax, extent=(*ax.get_xlim(), *ax.get_ylim()), origin="lower", interpolation="antialiased")
    image.set_data((picture * 255).round().astype(np.uint8))
    image.set_clip_path(ax.patch)
    ax.add_image(image)


def _disc(diameter: float) -> Floats:
    """How much of each pixel around its middle one a disc covers, the middle one wholly."""
    reach = int(np.ceil(diameter / 2))
    fine = (np.arange(-reach * 8 - 4, reach * 8 + 4) + 0.5) / 8  # eight places a pixel, each way
    covered = np.hypot(fine[:, None], fine[None, :]) <= max(diameter, 1.0) / 2
    disc = covered.reshape(2 * reach + 1, 8, 2 * reach + 1, 8).mean((1, 3))
    disc[reach, reach] = 1
    return disc


def _spread(
    index: NDArray[np.int64], shape: tuple[int, int], disc: Floats, feature: Floats | None
) -> NDArray[np.float32]:
    """For each pixel the sum of a feature of the points whose disc covers it, or their number."""
    height, width = shape
    reach = len(disc) // 2
    sums = np.bincount(index, feature, minlength=height * width).reshape(shape)
    wide = np.pad(sums.astype(np.float32), reach)
    spread = np.zeros(shape, np.float32)
    for i, j in np.argwhere(disc > 0):
        spread += np.float32(disc[i, j]) * wide[i : i + height, j : j + width]
    return spread


def _opacity(counts: NDArray[np.float32]) -> NDArray[np.float32]:
    """From faint to full by the logarithm of counts; below one point, at the edge of a disc, in proportion."""
    whole = counts.clip(1)
    dense = float(np.quantile(whole, FULL))
    tone = np.log(whole) / np.log(dense) if dense > 1 else np.ones_like(counts)
    return counts.clip(None, 1) * (FAINTEST + (1 - FAINTEST) * tone.clip(None, 1))


def _over(below: NDArray[np.float32], colours: Floats, opacity: NDArray[np.float32]) -> Floats:
    """Colours laid over what is there, pixel by pixel: (pixels, 4)."""
    total = opacity + below[:, 3] * (1 - opacity)
    part = (opacity / total)[:, None]
    return np.concatenate([part * colours + (1 - part) * below[:, :3], total[:, None]], axis=1)
