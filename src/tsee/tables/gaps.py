r"""Gaps in rows of numbers, filled with what the other numbers of the row let expect.

The rows are taken as a Gaussian of few directions: :math:`x = \mu + V z`, plus noise. A gap is filled with its expected
value given the numbers that are there, found by repeating :math:`x_{gap} \leftarrow \mu + (V S V^T (x - \mu))_{gap}`,
where S shrinks each direction by its share of noise. The square of the difference of two rows is then about what it
would be without gaps, as far as columns tell of each other; where they do not, a gap is the mean.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from tsee.data import apply_padded

__all__ = ["GapFiller", "learn_gaps"]

# Directions that are kept, rounds in which they are learned, and steps in which a row is filled.
MAX_DIRECTIONS, ROUNDS, STEPS = 24, 12, 25
# Rows to learn from; more would hardly change the directions.
MAX_ROWS = 5000


@dataclass(frozen=True)
class GapFiller:
    """Fills gaps.

    Attributes
    ----------
    mean : ndarray of shape (width,), float64
    axes : ndarray of shape (width, directions), float64
        V times the root of S.
    """

    mean: np.ndarray
    axes: np.ndarray

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Rows without NaN."""
        gaps = np.isnan(rows)
        incomplete = gaps.any(1)
        if not incomplete.any():
            return rows
        filled, there = rows.copy(), torch.from_numpy(~gaps[incomplete])
        known = torch.from_numpy(np.where(gaps[incomplete], 0.0, rows[incomplete] - self.mean))
        axes, centered = torch.from_numpy(self.axes), known
        for _ in range(STEPS):
            centered = torch.where(there, known, apply_padded(lambda block: block @ axes @ axes.T, centered))
        filled[incomplete] = np.where(gaps[incomplete], self.mean + centered.numpy(), rows[incomplete])
        return filled


def learn_gaps(rows: np.ndarray) -> GapFiller:
    """A filler that has learned from rows, which may have gaps."""
    rows = rows[:: -(-len(rows) // MAX_ROWS)]
    gaps = np.isnan(rows)
    counts = np.maximum((~gaps).sum(0), 1)
    mean = np.where(gaps, 0.0, rows).sum(0) / counts
    centered = np.where(gaps, 0.0, rows - mean)
    width = rows.shape[1]
    n_directions = max(0, min(MAX_DIRECTIONS, width // 2, len(rows) // 4))
    filler = GapFiller(mean, np.zeros((width, n_directions)))
    if n_directions == 0:
        return filler
    for _ in range(ROUNDS if gaps.any() else 1):
        variances, vectors = np.linalg.eigh(centered.T @ centered / len(rows))  # ascending
        noise = float(np.maximum(variances[:-n_directions], 0).mean())
        kept = np.maximum(variances[-n_directions:], 0)
        shrunk = np.maximum(kept - noise, 0) / np.maximum(kept, 1e-12)
        filler = GapFiller(mean, vectors[:, -n_directions:] * np.sqrt(shrunk))
        centered = filler(np.where(gaps, np.nan, rows)) - mean
    return filler
