"""Numbers of any unit on one scale: their median, their usual spread, and logarithms of what is far."""

from __future__ import annotations

import numpy as np

__all__ = ["FAR", "QUARTILES", "balance", "squashed"]

# Beyond this many times the usual spread, a number counts by its logarithm.
FAR = 3.0
# The quartiles of a normal distribution are this many standard deviations apart.
QUARTILES = 1.349


def balance(values: np.ndarray) -> tuple[float, float, float]:
    """The median, the usual spread, and the standard deviation of what `squashed` makes of the values."""
    low, center, high = (float(value) for value in np.percentile(values, (25, 50, 75)))
    spread = (high - low) / QUARTILES
    if not spread > 1e-9 * abs(center):  # more than half of the values are equal
        spread = float(values.std())
    if not spread > 1e-9 * abs(center):  # rounding: it must not count for more than other columns
        return center, max(1.0, float(np.abs(values - center).max())), 1.0
    unit = float(squashed(values, center, spread).std())
    return center, spread, unit if unit > 0 else 1.0


def squashed(values: np.ndarray, center: float, spread: float) -> np.ndarray:
    scaled = (values - center) / spread
    far = np.abs(scaled) - FAR
    with np.errstate(invalid="ignore"):
        return np.where(far > 0, np.sign(scaled) * (FAR + np.log1p(np.maximum(far, 0))), scaled)
