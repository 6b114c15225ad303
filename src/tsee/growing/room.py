"""Where new rows start: known ones among their neighbors, and new kinds in free room near what they are most like."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree
from torch import Tensor

from tsee.affinities import Affinities
from tsee.data import blocks
from tsee.exemplars import Exemplars
from tsee.layout import Descent, lay_out
from tsee.placement.refined import refined_positions, settle

__all__ = ["starting_positions"]

# Rows of a new kind are first laid out alone, in so many steps, held to where they would be placed among the old ones
# by this pull. Fewer rows than this do not make a kind: they stay where they would be placed.
STEPS, PULL = 150, 1 / 3
LEAST_ROWS = 10
# Groups of this layout are more than so many times farther from each other than rows are from their 5th neighbor.
NEIGHBOR, APART = 5, 3.0
# A gap between the rows of a map that is smaller, compared with the gap of a layout alone, is none: they are equal.
LEAST_GAP = 1e-3
# The neighbors of a row that can link it to a group.
LINKS = 16
# Places that are tried for a group, and rows of it that must not come near others there: no more than this share of
# them more than at the best place.
TRIED, PROBES, CROWDED = 2048, 128, 0.02
# Old rows that count most for where a group should be.
KIN = 512
# The neighbors of a row that count for its start, and rows that are settled together.
NEAREST, SETTLED_ROWS = 20, 4096


def starting_positions(exemplars: Exemplars, inputs: Tensor, neighbors: Affinities, fresh: Tensor) -> Tensor:
    """Where new rows start among old exemplars.

    Parameters
    ----------
    exemplars : Exemplars
        The z old ones.
    inputs : Tensor of shape (m, d)
        The new rows.
    neighbors : Affinities
        Their neighbors among all z + m, the old ones first.
    fresh : Tensor of shape (m,), bool
        Which of the new rows are of a new kind.

    Returns
    -------
    Tensor of shape (m, h)
    """
    assert exemplars.positions is not None
    old, z = exemplars.positions, len(exemplars)
    positions = torch.cat([old, old.new_zeros(len(inputs), old.shape[1])])
    known = torch.arange(len(positions)) < z
    groups = torch.nonzero(fresh).squeeze(1)
    if len(groups):
        positions[z + groups] = refined_positions(inputs[groups], exemplars.index, old)
        if len(groups) >= LEAST_ROWS:
            _put_in_room(positions, known, groups + z, _part(neighbors, groups))
        known[z + groups] = True
    others = torch.nonzero(~fresh).squeeze(1)
    positions[z + others] = _among_known(positions, known, inputs[others], _part(neighbors, others), exemplars)
    return positions[z:]


def _part(neighbors: Affinities, rows: Tensor) -> Affinities:
    return Affinities(neighbors.indices[rows], neighbors.probabilities[rows])


def _among_known(
    positions: Tensor, known: Tensor, inputs: Tensor, neighbors: Affinities, exemplars: Exemplars
) -> Tensor:
    """Where the attraction of rows to their neighbors with a position is least."""
    weights = neighbors.probabilities.masked_fill(~known[neighbors.indices], 0)
    weights, order = weights.topk(min(NEAREST, weights.shape[1]), dim=1)
    indices, totals = neighbors.indices.gather(1, order), weights.sum(1, keepdim=True)
    weights = weights / totals.clamp_min(1e-30)
    found = positions.new_empty(len(inputs), positions.shape[1])
    for rows in blocks(len(inputs), SETTLED_ROWS):
        found[rows] = settle(positions[indices[rows]], weights[rows])
    alone = torch.nonzero(totals.squeeze(1) <= 0).squeeze(1)  # no neighbor has one
    if len(alone):
        assert exemplars.positions is not None
        found[alone] = refined_positions(inputs[alone], exemplars.index, exemplars.positions)
    return found


def _put_in_room(positions: Tensor, known: Tensor, rows: Tensor, neighbors: Affinities) -> None:
    """Move rows of new kinds, group by group, to free room near their kin; ``positions`` and ``known`` are changed."""
    known = known.clone()
    alone = _laid_out_alone(positions[rows], rows, neighbors)
    # As dense as the map, unless most of its rows are equal: their gap is none.
    own_gap, gap = _usual_gap(alone), _usual_gap(positions[known].numpy())
    if gap > LEAST_GAP * own_gap:
        alone = alone * (gap / max(own_gap, 1e-12))
    gap = max(gap, _usual_gap(alone))
    group = _groups(alone)
    sizes = np.bincount(group)
    for number in np.argsort(-sizes, kind="stable"):
        if sizes[number] < LEAST_ROWS:
            break
        members = torch.from_numpy(np.flatnonzero(group == number))
        outline = alone[members.numpy()] - alone[members.numpy()].mean(0)
        weights = neighbors.probabilities[members].masked_fill(~known[neighbors.indices[members]], 0)
        kin = positions.new_zeros(len(positions)).index_add_(0, neighbors.indices[members].flatten(), weights.flatten())
        if not kin.any():  # like nothing on the map: near where they would be placed
            kin[rows[members]] = 1
        place = _free_place(positions[known].numpy(), outline, gap, positions, kin)
        positions[rows[members]] = torch.from_numpy(outline + place).float()
        known[rows[members]] = True


def _laid_out_alone(placed: Tensor, rows: Tensor, neighbors: Affinities) -> np.ndarray:
    """Rows of new kinds by forces among themselves, from where they would be placed, made small."""
    number = torch.full((int(max(neighbors.indices.max(), rows.max())) + 1,), -1)
    number[rows] = torch.arange(len(rows))
    indices = number[neighbors.indices]
    probabilities = neighbors.probabilities.masked_fill(indices < 0, 0)
    totals = probabilities.sum(1, keepdim=True)
    probabilities = torch.where(totals > 0, probabilities / totals.clamp_min(1e-30), 0)
    centered = placed - placed.mean(0)
    shape = centered / centered.square().sum(1).mean().sqrt().clamp_min(1e-12)
    own = Affinities(indices.clamp_min(0), probabilities)
    found, _ = lay_out(Descent(shape, own, pull=PULL, n_iterations=STEPS, alone=True))
    return found.numpy()


def _usual_gap(positions: np.ndarray) -> float:
    """The median distance of positions from their 5th neighbor."""
    sample = positions[:: max(1, len(positions) // 2048)]
    k = min(NEIGHBOR + 1, len(positions))
    return float(np.median(cKDTree(positions).query(sample, k)[0][:, -1]))


def _groups(positions: np.ndarray) -> np.ndarray:
    """The number of the group of each position: groups lie apart."""
    n = len(positions)
    reach = APART * _usual_gap(positions)
    _, near = cKDTree(positions).query(positions, min(LINKS, n), distance_upper_bound=reach)
    row, column = np.nonzero(near < n)  # n stands for none
    links = csr_matrix((np.ones(len(row)), (row, near[row, column])), shape=(n, n))
    group: np.ndarray = connected_components(links, directed=False)[1]
    return group


def _free_place(taken: np.ndarray, outline: np.ndarray, gap: float, positions: Tensor, kin: Tensor) -> np.ndarray:
    """The place nearest to its kin at which a group comes near to no more others than it must."""
    radius = float(np.sqrt(np.square(outline).sum(1).max()))
    low, high = taken.min(0) - radius, taken.max(0) + radius
    tried = low + (high - low) * _spread(TRIED, taken.shape[1])
    probes = outline[:: max(1, len(outline) // PROBES)]
    reached = (tried[:, None] + probes).reshape(-1, taken.shape[1])
    near, _ = cKDTree(taken).query(reached, distance_upper_bound=APART * gap)
    crowded = np.isfinite(near).reshape(len(tried), -1).mean(1)
    weights, nearest = kin.topk(min(KIN, len(kin)))
    apart = np.square(tried[:, None] - positions[nearest].numpy()).sum(2)  # (tried, kin)
    attraction = np.log1p(apart) @ weights.double().numpy()
    place: np.ndarray = tried[np.where(crowded <= crowded.min() + CROWDED, attraction, np.inf).argmin()]
    return place


def _spread(n: int, n_components: int) -> np.ndarray:
    """Points that fill the unit cube evenly, by multiples of powers of the golden ratio of so many dimensions."""
    ratio = 2.0
    for _ in range(50):  # to the root of x^(h + 1) = x + 1
        ratio = (1 + ratio) ** (1 / (n_components + 1))
    return (0.5 + np.arange(n)[:, None] * ratio ** -np.arange(1, n_components + 1.0)) % 1  # (n, h)
