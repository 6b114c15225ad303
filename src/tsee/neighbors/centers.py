"""The k-means that divides very many candidates into cells, and these into groups."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tsee.data import blocks_in_cache
from tsee.metric import Prepared, ProductMetric

__all__ = ["cell_centers", "in_groups", "nearest_centers"]

# How many rows k-means reads per cell, and how many updates it makes.
SAMPLE_ROWS, UPDATES = 64, 5


def cell_centers(rows: Tensor, n_cells: int, metric: ProductMetric) -> Tensor:
    """Centers by a few updates of k-means over a sample of the rows, taken at regular intervals.

    `tsee.exemplars.choose_centers` makes the same updates, but reads rows from anywhere, shares the work with other
    processes, sums in float64, and refills empty clusters. Here a process has all rows in memory, and needs no more
    than cells of roughly equal size.
    """
    sample = rows[:: max(1, len(rows) // (SAMPLE_ROWS * n_cells))]
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
        nearest[part] = metric.scores(metric.prepare(rows[part]), centers).argmin(1)
    return nearest
