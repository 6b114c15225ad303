"""Exemplars: a random subset of the rows, or the centers of k-means seeded by scalable k-means++."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import torch
from torch import Tensor

from tsee.distributed import all_offset, all_sum
from tsee.metric import Metric, ProductMetric, euclidean
from tsee.neighbors import GivenIndex, Index, build_index

__all__ = ["Centers", "Exemplars", "choose_centers", "choose_points", "take", "take_own"]

SEEDINGS = ("k-means||", "random")
# Scalable k-means++ takes about OVERSAMPLING * n_exemplars candidates in each of ROUNDS rounds. Four times as
# many cost four times as much and lowered the inertia after ten updates by 0.1 % (MNIST in 50 components).
ROUNDS, OVERSAMPLING = 5, 0.5
# Elements of one tile of scores (4 MB, which stay in cache between the product and the reduction), and of its rows.
TILE, MIN_ROWS, MAX_ROWS = 2**20, 256, 8192
# The products of all pairs of candidates are computed once if they are no more than this (512 MB).
MAX_PAIRS = 2**27
# A refilled center can take another's last row, so the final refill may have to be repeated.
MAX_REFILLS = 4
# Neighbors that an index of exemplars is made for.
FEW_NEIGHBORS = 20


class Rows(Protocol):
    """Data read in order: ``shape``, and slices ``X[a:b]`` that are tensors."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __getitem__(self, rows: slice, /) -> Tensor: ...


@dataclass(frozen=True)
class Centers:
    """The centers of k-means.

    Attributes
    ----------
    positions : Tensor of shape (z, d), float32
        The centers, all distinct, on the CPU.
    counts : Tensor of shape (z,), int64
        How many rows are nearest to each: at least one, and together all of them.
    inertia : float
        The sum over all rows of the squared distance to the nearest of ``positions``.
    """

    positions: Tensor
    counts: Tensor
    inertia: float


def choose_points(n_rows: int, n_exemplars: int, generator: torch.Generator) -> Tensor:
    """A uniformly random subset of row numbers, without replacement.

    Parameters
    ----------
    n_rows : int
        The number of rows to choose from.
    n_exemplars : int
        How many to choose. All rows are chosen if there are no more than this.
    generator : torch.Generator
        The source of randomness.

    Returns
    -------
    indices : Tensor of shape (min(n_exemplars, n_rows),), int64
        The chosen row numbers, in ascending order.
    """
    _check_at_least("n_exemplars", n_exemplars, 1)
    if n_exemplars >= n_rows:
        return torch.arange(n_rows)
    seed = int(torch.randint(2**62, (1,), generator=generator, device=generator.device))
    return torch.tensor(sorted(random.Random(seed).sample(range(n_rows), n_exemplars)))  # stores only the chosen


def choose_centers(
    X: Rows,
    n_exemplars: int,
    *,
    seeding: str = "k-means||",
    n_iterations: int = 10,
    generator: torch.Generator,
    device: str | torch.device = "cpu",
    metric: ProductMetric = euclidean,
    progress: Callable[[int], None] | None = None,
) -> Centers:
    """The centers of a fixed number of k-means updates, as in the paper.

    An update assigns every row to its nearest center and moves every center to the mean of its rows::

        c(i) = argmax_j  x_i . e_j - |e_j|^2 / 2
        e_j  = mean of the x_i with c(i) = j

    The start is scalable k-means++ (Bahmani et al., 2012): one random row, then rounds in which each row
    becomes a candidate with probability ``min(1, l d(x)^2 / sum d^2)``, where ``d`` is the distance to the
    nearest candidate so far. Then k-means++ over the candidates, each weighted by the rows nearest to it.

    Empty clusters are refilled by the rows farthest from their centers, at most one row of each cluster.
    Only distinct centers are returned: there are *fewer* than ``n_exemplars`` if the data has fewer
    distinct rows. The caller decides whether to warn.

    Parameters
    ----------
    X : Tensor of shape (n, d), float32
        The rows. Anything with ``shape`` whose slices ``X[a:b]`` are such tensors will do: it is read only by
        consecutive slices of bounded size, in passes from the start. Otherwise, only vectors of n numbers are kept.
        If there are several processes (see `tsee.distributed`), each gives its own rows, and all get the centers of
        all rows, which equal the centers from one process up to rounding.
    n_exemplars : int
        The number of centers, z.
    seeding : {"k-means||", "random"}
        Scalable k-means++, or a random subset of the rows.
    n_iterations : int
        The number of k-means updates. Fewer are made if the centers stop moving.
    generator : torch.Generator
        The source of randomness. The global generators are not used.
    device : str or torch.device
        The device that computes distances. The CPU adds up rows in their order, in float64, so that the sums are
        the same in every run.
    metric : ProductMetric, default `euclidean`
        The distance by which rows choose their centers.
    progress : callable, optional
        Called after each update with the number of updates made.

    Returns
    -------
    Centers
    """
    if seeding not in SEEDINGS:
        raise ValueError(f"The 'seeding' parameter must be one of {list(SEEDINGS)}. Got {seeding!r} instead.")
    _check_at_least("n_exemplars", n_exemplars, 1)
    _check_at_least("n_iterations", n_iterations, 0)
    if len(X.shape) != 2 or X.shape[0] < 1:
        raise ValueError(f"'X' must have two dimensions and at least one row. Got {tuple(X.shape)} instead.")
    device = torch.device(device)
    _, n = all_offset(X.shape[0])
    if seeding == "random" or n <= n_exemplars:
        E = take(X, choose_points(n, n_exemplars, generator))
    else:
        E, weights = _candidates(X, n_exemplars, generator, device, metric)
        if len(E) > n_exemplars:
            E = E[_kmeans_plusplus(E, weights, n_exemplars, generator, device, metric)]
    return _kmeans(X, E, n_iterations, device, metric, progress)


def _check_at_least(name: str, value: int, least: int) -> None:
    if value < least:
        raise ValueError(f"The '{name}' parameter must be at least {least}. Got {value!r} instead.")


@dataclass(frozen=True)
class _Clusters:
    labels: Tensor  # (n,) the nearest center of each row
    squared: Tensor  # (n,) the squared distance to it
    sums: Tensor  # (z, d) float64
    counts: Tensor  # (z,)


def _kmeans(
    X: Rows,
    E: Tensor,
    n_iterations: int,
    device: torch.device,
    metric: ProductMetric,
    progress: Callable[[int], None] | None = None,
) -> Centers:
    """k-means updates from the centers ``E``, and the last assignment."""
    clusters = _assign(X, E, device, metric)
    for iteration in range(n_iterations):
        moved = _refill(X, metric.means(clusters.sums, clusters.counts, E), clusters)
        if torch.equal(moved, E):
            break
        E, clusters = moved, _assign(X, moved, device, metric)
        if progress is not None:
            progress(iteration + 1)
    for _ in range(MAX_REFILLS):
        refilled = _refill(X, E, clusters)
        if torch.equal(refilled, E):
            break
        E, clusters = refilled, _assign(X, refilled, device, metric)
    # No distinct row is left for a center that is still empty, or equal to another.
    occupied = clusters.counts > 0
    positions, inverse = torch.unique(E[occupied], dim=0, return_inverse=True)
    counts = torch.zeros(len(positions), dtype=torch.int64).index_add_(0, inverse, clusters.counts[occupied])
    return Centers(positions, counts, float(clusters.squared.sum(dtype=torch.float64)))


def _assign(X: Rows, E: Tensor, device: torch.device, metric: ProductMetric) -> _Clusters:
    start, n = all_offset(X.shape[0])
    labels = torch.zeros(n, dtype=torch.int64)
    squared = torch.zeros(n)
    sums = torch.zeros(E.shape, dtype=torch.float64)
    nearest = _nearest_of(E, device, metric)
    for rows, block in _blocks(X, len(E)):
        mine = slice(start + rows.start, start + rows.stop)
        labels[mine], squared[mine] = nearest(block)
        sums.index_add_(0, labels[mine], block.to("cpu", torch.float64))
    labels, squared, sums = all_sum(labels), all_sum(squared), all_sum(sums)
    return _Clusters(labels, squared, sums, torch.bincount(labels, minlength=len(E)))


def _refill(X: Rows, E: Tensor, clusters: _Clusters) -> Tensor:
    """``E`` with the empty centers moved to the farthest rows, at most one row of each cluster.

    Equal rows share a cluster, so taking one row of each keeps the new centers distinct.
    """
    labels, squared, counts = clusters.labels, clusters.squared, clusters.counts
    empty = torch.nonzero(counts == 0).squeeze(1)
    if len(empty) == 0:
        return E
    radii = torch.zeros(len(E)).scatter_reduce_(0, labels, squared, "amax")
    radii[counts == 1] = 0  # the mean of a single row is that row, which must not have two centers
    widest = radii.argsort(descending=True, stable=True)[: len(empty)]
    widest = widest[radii[widest] > 0]
    farthest = torch.nonzero(squared == radii[labels]).squeeze(1)
    # The first of equally far rows, so that the choice is the same in every run.
    first = torch.full((len(E),), len(labels)).scatter_reduce_(0, labels[farthest], farthest, "amin")
    E = E.clone()
    E[empty[: len(widest)]] = take(X, first[widest].sort().values)
    return E


def _candidates(
    X: Rows, n_exemplars: int, generator: torch.Generator, device: torch.device, metric: ProductMetric
) -> tuple[Tensor, Tensor]:
    """Distinct rows drawn in rounds, by the squared distance to earlier ones, and how many rows are nearest to each.

    Rounds continue beyond ROUNDS while candidates are fewer than exemplars and rows are left to draw.
    """
    _, n = all_offset(X.shape[0])
    labels = torch.zeros(n, dtype=torch.int64)
    squared = torch.full((n,), torch.inf)
    drawn = (_uniform(1, generator) * n).long()
    found: list[Tensor] = []
    count = rounds = 0
    while True:
        if len(drawn) > 0:
            new, own = torch.unique(take(X, drawn), dim=0, return_inverse=True)
            clusters = _assign(X, new, device, metric)
            labels = torch.where(clusters.squared < squared, clusters.labels + count, labels)
            squared = torch.minimum(clusters.squared, squared)
            # Rounding may find a neighbor instead. A candidate represents itself, and is never drawn again.
            labels[drawn], squared[drawn] = own + count, 0
            found.append(new)
            count += len(new)
        potential = float(squared.sum(dtype=torch.float64))
        enough = rounds >= ROUNDS and count >= n_exemplars
        if enough or not 0 < potential < math.inf:
            return torch.cat(found), torch.bincount(labels, minlength=count)
        probability = squared.double().mul_(OVERSAMPLING * n_exemplars / potential)
        drawn = torch.nonzero(_uniform(n, generator) < probability).squeeze(1)
        rounds += 1


def _kmeans_plusplus(
    C: Tensor,
    weights: Tensor,
    n_exemplars: int,
    generator: torch.Generator,
    device: torch.device,
    metric: ProductMetric,
) -> Tensor:
    """Greedy k-means++: draws a few points by ``w d^2`` and keeps the one that lowers ``sum w d^2`` most."""
    candidates = metric.prepare(C, metric.origin(C)).to(device)
    w = weights.to(device, C.dtype)
    table = metric.distances(candidates, candidates) if len(C) ** 2 <= MAX_PAIRS else None
    closest = torch.full_like(w, torch.inf)
    left = torch.ones_like(w)
    chosen: list[int] = []
    odds, n_trials = w, 1  # there are no distances yet for the first
    while len(chosen) < n_exemplars:
        drawn = _draw(odds, n_trials, generator)
        distances = metric.distances(candidates[drawn], candidates) if table is None else table[drawn]
        distances = torch.minimum(distances, closest)  # (trials, candidates)
        best = int(torch.argmin(distances @ w))
        chosen.append(int(drawn[best]))
        closest = distances[best]
        closest[chosen[-1]] = left[chosen[-1]] = 0
        odds, n_trials = closest * w, 2 + int(math.log(n_exemplars))
        if not odds.any():
            odds = left  # in float32, all points left equal a chosen one
    return torch.tensor(chosen)


def _draw(weights: Tensor, n_draws: int, generator: torch.Generator) -> Tensor:
    """Indices drawn with replacement, in proportion to ``weights``."""
    cumulative = weights.cpu().cumsum(0, dtype=torch.float64)
    # From (0, 1], so that an index of weight 0 is never drawn.
    points = (1 - _uniform(n_draws, generator)) * cumulative[-1]
    return torch.searchsorted(cumulative, points).to(weights.device)


def _uniform(n: int, generator: torch.Generator) -> Tensor:
    return torch.rand(n, dtype=torch.float64, generator=generator, device=generator.device).cpu()


def _blocks(X: Rows, n_columns: int) -> Iterator[tuple[slice, Tensor]]:
    """Slices of ``X`` from the first row to the last, of a size that suits ``n_columns`` scores per row."""
    n, d = X.shape
    size = min(max(TILE // max(n_columns, d), MIN_ROWS), MAX_ROWS)
    for start in range(0, n, size):
        rows = slice(start, min(start + size, n))
        yield rows, X[rows].to(torch.float32)


def take(X: Rows, indices: Tensor) -> Tensor:
    """The rows with these ascending numbers, read in order. They are numbered over all processes."""
    start, _ = all_offset(X.shape[0])
    taken = torch.zeros((len(indices), X.shape[1]))
    first, last = torch.searchsorted(indices, torch.tensor([start, start + X.shape[0]])).tolist()
    taken[first:last] = take_own(X, indices[first:last] - start)
    return all_sum(taken)


def take_own(X: Rows, indices: Tensor) -> Tensor:
    """The rows of this process with these ascending numbers, counted in this process, read in order."""
    taken = torch.empty((len(indices), X.shape[1]))
    for rows, block in _blocks(X, 1):
        first, last = torch.searchsorted(indices, torch.tensor([rows.start, rows.stop])).tolist()
        taken[first:last] = block[(indices[first:last] - rows.start).to(block.device)].cpu()
        if last == len(indices):
            break
    return taken


def _nearest_of(E: Tensor, device: torch.device, metric: ProductMetric) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """A function of a block of rows: the nearest row of ``E`` to each, and the squared distance to it."""
    E = E.to(device)
    origin = E.median(0).values  # not the mean, which empty centers far away would drag along
    candidates = metric.prepare(E, origin)

    def nearest(block: Tensor) -> tuple[Tensor, Tensor]:
        block = block.to(device)
        labels = metric.scores(metric.prepare(block, origin), candidates).argmin(1)  # of (rows, z)
        return labels.cpu(), metric.exact(block, E[labels]).cpu()

    return nearest


@dataclass(frozen=True, eq=False)
class Exemplars:
    """The exemplars of a map.

    Attributes
    ----------
    inputs : Tensor of shape (z, d), float32
        The exemplars as the network sees them.
    indices : Tensor of shape (z,), int64, or None
        Which rows of ``fit`` they are, over all processes, in ascending order. None for k-means centers.
    positions : Tensor of shape (z, h), float32, or None
        Where they are on the map; None until they are known.
    metric : Metric, default `euclidean`
        How rows are compared with them.
    neighbors : GivenIndex or None
        Their neighbors among themselves, if these were given.
    """

    inputs: Tensor
    indices: Tensor | None = None
    positions: Tensor | None = None
    metric: Metric = euclidean
    neighbors: GivenIndex | None = None

    def __len__(self) -> int:
        return len(self.inputs)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "index"}  # it is made when needed

    @cached_property
    def index(self) -> Index:
        """The index that finds the nearest exemplars of a row, made when first needed."""
        return build_index(self.inputs, FEW_NEIGHBORS, self.metric)

    def replaced(self, **changes: Any) -> Exemplars:
        """The same exemplars with other positions or given neighbors, and with the index if there is one."""
        changed = replace(self, **changes)
        vars(changed).update({name: value for name, value in vars(self).items() if name == "index"})
        return changed

    def own(self, rows: slice, start: int = 0) -> Tensor | None:
        """For each row of a slice from ``start`` on, the exemplar that the row is, or -1. None for centers."""
        if self.indices is None:
            return None
        begin, end = start + rows.start, start + rows.stop
        first, last = torch.searchsorted(self.indices, torch.tensor([begin, end])).tolist()
        own = torch.full((end - begin,), -1)
        own[self.indices[first:last] - begin] = torch.arange(first, last)
        return own
