"""The k-means that divides very many candidates into cells, and these into groups."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tsee.data import blocks_in_cache
from tsee.metric import Prepared, ProductMetric

__all__ = ["cell_centers", "dtype_of_centers", "in_groups", "nearest_centers"]

# How many rows k-means reads per cell, and how many updates it makes.
SAMPLE_ROWS, UPDATES = 64, 5
# So many rows are compared with each other to see whether float32 hides distances, and the share that may be hidden.
COMPARED_ROWS, HIDDEN = 1024, 0.01


def dtype_of_centers(rows: Tensor, metric: ProductMetric) -> torch.dtype:
    """The type in which rows are compared with centers: float64 for clusters so far apart that float32 hides the rest.

    It hides distances if rounding can change more than one in a hundred of those between a sample's neighbors by more
    than a hundredth. Rows that are equal do not count.
    """
    sample = rows[:: -(-len(rows) // COMPARED_ROWS)]
    prepared, precise = metric.prepare(sample), metric.prepare(sample.double())
    distances = metric.distances(precise, precise)
    nearest = distances.masked_fill_(distances <= 1e-12 * precise.norms[:, None], torch.inf).amin(1)
    bound = metric.rounding(prepared, prepared.norms.max(), nearest.to(rows.dtype))
    hidden = torch.isfinite(nearest) & (bound > HIDDEN * nearest)
    return torch.float64 if float(hidden.double().mean()) > HIDDEN else rows.dtype


def cell_centers(rows: Tensor, n_cells: int, metric: ProductMetric, dtype: torch.dtype | None = None) -> Tensor:
    """Centers by a few updates of k-means over a sample of the rows, taken at regular intervals.

    `tsee.exemplars.choose_centers` makes the same updates, but reads rows from anywhere, shares the work with other
    processes, sums in float64, and refills empty clusters. Here a process has all rows in memory, and needs no more
    than cells of roughly equal size.
    """
    sample = rows[:: max(1, len(rows) // (SAMPLE_ROWS * n_cells))].to(dtype or rows.dtype)
    centers = sample[torch.arange(n_cells) * len(sample) // n_cells]
    for _ in range(UPDATES):
        home = nearest_centers(sample, metric.prepare(centers), metric)
        sums = torch.zeros_like(centers).index_add_(0, home, sample)
        centers = metric.means(sums, torch.bincount(home, minlength=n_cells), centers)
    return centers


def in_groups(centers: Tensor, metric: ProductMetric) -> tuple[Tensor, Prepared, Tensor]:
    """Centers, those that are near each other one after the other; the groups that they form; the group of each."""
    groups = metric.prepare(cell_centers(centers, math.isqrt(len(centers)), metric))
    group, order = nearest_centers(centers, groups, metric).sort(stable=True)
    return centers[order], groups, group


def nearest_centers(rows: Tensor, centers: Prepared, metric: ProductMetric) -> Tensor:
    """The number of the center nearest to each row."""
    # Written in place: small results between large tables would tear the heap apart.
    nearest = torch.empty(len(rows), dtype=torch.int64)
    for part in blocks_in_cache(len(rows), len(centers.norms)):
        nearest[part] = metric.scores(metric.prepare(rows[part].to(centers.norms.dtype)), centers).argmin(1)
    return nearest
