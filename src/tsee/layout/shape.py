r"""The large shape of the data: a picture of all rows that no seed touches, to start from and to be held to.

It is the principal plane or, if that shows the distances better, a metric scaling of landmarks, the positions that
minimize the stress

.. math:: \sum_{i < j} (\delta_{ij} - |y_i - y_j|)^2

of their distances :math:`\delta` in the data (SMACOF: de Leeuw, 1977), among which every other row is then placed by
the same rule. Neither depends on anything drawn at random, and small changes of the data change them little.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tsee.data import blocks, blocks_in_cache
from tsee.metric import Metric, euclidean

__all__ = ["classical_scaling", "landmark_plane", "large_shape", "principal_plane", "turned"]

# Rows, evenly spaced, that are scaled together, and updates of their positions and of the other rows'.
LANDMARKS = 500
UPDATES, PLACING_UPDATES = 300, 10
# Positions nearer than this share of the largest distance count as this far apart.
NEAREST = 1e-4
# Scaling is chosen over the principal plane if its distances correlate this much more with the distances in the data.
MARGIN = 0.01
# With more inputs than this, the principal plane is the plane of this many rows, evenly spaced.
MAX_COVARIANCE = 2048
# Entries of the inputs that are centered together, in float64: 128 MiB, however many inputs a row has.
PLANE_ENTRIES = 2**24


def large_shape(inputs: Tensor, n_components: int, metric: Metric = euclidean) -> Tensor:
    """A picture of all rows in which distances are as near as possible to the distances in the data.

    Parameters
    ----------
    inputs : Tensor of shape (n, d)
    n_components : int
    metric : Metric, default `euclidean`
        The distances in the data.

    Returns
    -------
    Tensor of shape (n, n_components)
        Centered, with a mean squared length of 1, and turned so that the first axes are the principal axes. All zeros
        if all rows are the same.
    """
    chosen = _spaced(len(inputs), LANDMARKS)
    distances = metric.among(inputs, chosen, chosen)
    if metric is euclidean:
        plane = principal_plane(inputs, n_components)
    else:  # it has no axes
        plane = landmark_plane(inputs, chosen, distances, n_components, metric)
    factor = _factor(distances, plane[chosen])
    scaled = _scaled(distances, factor * plane[chosen])
    if _agreement(distances, scaled) > _agreement(distances, plane[chosen]) + MARGIN:
        plane = turned(_placed(inputs, chosen, scaled, factor * plane, metric), plane)
    centered = plane - plane.mean(0)
    size = centered.square().sum(1).mean().sqrt()
    return centered / size if size > 0 else torch.zeros_like(centered)


def principal_plane(inputs: Tensor, n_components: int) -> Tensor:
    """The leading principal components of all rows; the largest weight of each axis is positive."""
    (n, d), mean = inputs.shape, inputs.mean(0)
    size = max(1, PLANE_ENTRIES // max(1, d))
    if d <= MAX_COVARIANCE:
        covariance = torch.zeros(d, d, dtype=torch.float64)
        for rows in blocks(n, size):
            centered = (inputs[rows] - mean).double()
            covariance += centered.T @ centered
            del centered  # before the next one is made
        axes = torch.linalg.eigh(covariance).eigenvectors.flip(1)
    else:
        some = inputs[_spaced(n, MAX_COVARIANCE)] - mean
        axes = torch.linalg.svd(some.double(), full_matrices=False).Vh.T
    axes = axes[:, :n_components]
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    plane = inputs.new_zeros(n, n_components)
    for rows in blocks(n, size):
        plane[rows, : axes.shape[1]] = (inputs[rows] - mean) @ (axes * signs).float()
    return plane


def classical_scaling(distances: Tensor, n_components: int) -> Tensor:
    r"""The positions whose products are nearest to :math:`-\frac12 J D^2 J`, with J as the centering (Torgerson, 1952).

    The largest coordinate along each axis is positive.
    """
    squares = distances.double().square()
    products = -(squares - squares.mean(0) - squares.mean(1, keepdim=True) + squares.mean()) / 2
    values, vectors = torch.linalg.eigh(products)
    axes = vectors.flip(1)[:, :n_components] * values.flip(0)[:n_components].clamp_min(0).sqrt()
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    positions = distances.new_zeros(len(distances), n_components)
    positions[:, : axes.shape[1]] = (axes * signs).to(distances.dtype)
    return positions


def landmark_plane(inputs: Tensor, chosen: Tensor, distances: Tensor, n_components: int, metric: Metric) -> Tensor:
    r"""Where all rows lie beside landmarks, the chosen ones of them, in their `classical_scaling` (Gower, 1968).

    .. math:: y = -\frac12 \Lambda^{-1} V^T (\delta^2 - \overline{\delta^2})

    where V are the positions of the landmarks, :math:`\Lambda` the squared lengths of its columns, :math:`\delta` the
    distances of a row from the landmarks, and :math:`\overline{\delta^2}` the mean squared distances among these.
    """
    scaled = classical_scaling(distances, n_components)
    inverse = scaled / scaled.square().sum(0).clamp_min(1e-30)
    usual = distances.square().mean(0)
    plane = inputs.new_zeros(len(inputs), n_components)
    for rows in blocks_in_cache(len(inputs), len(chosen)):
        plane[rows] = (usual - metric.among(inputs, rows, chosen).square()) @ inverse / 2
    return plane


def turned(positions: Tensor, reference: Tensor) -> Tensor:
    """Centered positions, turned and mirrored to lie as near as possible to reference positions of the same rows."""
    centered = positions - positions.mean(0)
    products = centered.T.double() @ (reference - reference.mean(0)).double()
    left, _, right = torch.linalg.svd(products)
    return centered @ (left @ right).float()


def _spaced(n: int, wanted: int) -> Tensor:
    """At most ``wanted`` of n numbers, evenly spaced."""
    count = min(n, wanted)
    return torch.arange(count) * n // count


def _apart(positions: Tensor, others: Tensor) -> Tensor:
    """Distances between positions, by differences, so that positions that coincide are at 0."""
    squared = positions.new_zeros(len(positions), len(others))
    for here, there in zip(positions.T, others.T, strict=True):
        squared.add_((here[:, None] - there).square_())
    return squared.sqrt_()


def _agreement(distances: Tensor, positions: Tensor) -> float:
    """The correlation of distances in the data with distances between positions; 0 if either are all the same."""
    upper = torch.triu(torch.ones_like(distances, dtype=torch.bool), 1)
    pairs = torch.stack([distances[upper], _apart(positions, positions)[upper]]).double()
    if pairs.shape[1] < 2 or not bool((pairs.std(1) > 0).all()):
        return 0.0
    return float(torch.corrcoef(pairs)[0, 1])


def _factor(distances: Tensor, positions: Tensor) -> float:
    """The factor on positions that brings their distances nearest to those in the data."""
    apart = _apart(positions, positions)
    return float((apart * distances).sum() / apart.square().sum().clamp_min(1e-30))


def _scaled(distances: Tensor, positions: Tensor) -> Tensor:
    """Positions of landmarks with little stress, from where they lie on the principal plane."""
    for _ in range(UPDATES):
        positions = _less_stress(distances, positions, positions)
    return positions


def _placed(inputs: Tensor, chosen: Tensor, scaled: Tensor, start: Tensor, metric: Metric) -> Tensor:
    """Positions of rows with little stress among landmarks, from where they lie on the plane.

    A start at the nearest landmark would leave its mark: other landmarks would make another picture.
    """
    placed = torch.empty_like(start)
    for rows in blocks_in_cache(len(inputs), len(chosen)):
        distances, positions = metric.among(inputs, rows, chosen), start[rows]
        for _ in range(PLACING_UPDATES):
            positions = _less_stress(distances, positions, scaled)
        placed[rows] = positions
    return placed


def _less_stress(distances: Tensor, positions: Tensor, landmarks: Tensor) -> Tensor:
    """One update of SMACOF: the mean of where each landmark wants a position, at its distance in its direction."""
    apart = _apart(positions, landmarks).clamp_min_(NEAREST * float(distances.amax()))
    wanted = distances / apart  # (rows, landmarks)
    toward = wanted.sum(1, keepdim=True) * positions - wanted @ landmarks
    return landmarks.mean(0) + toward / len(landmarks)
