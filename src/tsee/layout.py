r"""Places that no network ties together: those of exemplars under the forces of the loss, and of a row among them.

With all rows as exemplars, the loss of equation 12 as a function of the places themselves is

.. math:: \ell = a \sum_{ij} p_{ij} \log(1 + |y_i - y_j|^2) + \log \sum_{i \ne j} (1 + |y_i - y_j|^2)^{-1},

the p of equation 3 and the attraction exaggerated by a. Its gradient has a sum over the pairs that carry probability,
and one over all pairs, the repulsion. The second is smooth: it is computed on a grid by Fourier transforms (Linderman
et al., Nature Methods 2019), at a cost of n and the area of the map in place of n squared; places are put on the grid
and forces read from it by splines, whose smoothing is undone in the spectrum (Hockney and Eastwood, Computer Simulation
Using Particles, 1981).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.fft import next_fast_len
from scipy.sparse import csr_matrix
from torch import Tensor
from torch.nn.functional import embedding_bag

from tsee.affinities import Affinities, gaussian
from tsee.data import blocks_in_cache

__all__ = ["Repulsion", "free_places", "place_weights", "settle"]

# Gradient descent as it is usual for t-SNE: momentum, and for each coordinate a gain that grows while it keeps going.
MOMENTUM = 0.8
GAIN_UP, GAIN_DOWN, LEAST_GAIN = 0.2, 0.8, 0.01
LONGEST_STEP = 5.0
# Up to so many places all pairs are summed. Beyond, places are spread on a grid, and forces read from it, by splines
# of so many nodes; what lies outside the largest grid is felt as if it lay on its rim.
FEW = 4096
SPLINE = 3
SPACING, FEW_NODES = 0.5, 48
WIDEST = 512.0
# Fixed-point iterations of a place among its neighbors', and how far each goes on the way to its point: beyond it they
# converge sooner (and do for any factor below 2), but where neighbors are near, the point itself is the answer. Of
# MNIST's rows 99 of 100 are then within five ten-thousandths of a map's extent of where more would bring them.
SETTLING = (1.5, 1.5, 1.5, 1.5, 1.5, 1.0)
# The precision of Gaussian weights in a row's place, in units of the gap between its nearest neighbor and one a third
# down the list: for 15 neighbors in images and in Gaussian clouds their perplexity is 4 to 6.
PRECISION = 3.0


def free_places(
    places: Tensor,
    affinities: Affinities,
    *,
    exaggeration: float,
    n_iterations: int,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[Tensor, bool]:
    """Let exemplars go from where the network puts them to where the loss wants them, each on its own.

    Parameters
    ----------
    places : Tensor of shape (n, 2)
        Where they start.
    affinities : Affinities
        Their neighbors among themselves.
    exaggeration : float
        The factor a on the attraction.
    n_iterations : int
        Steps of gradient descent.
    progress : callable
        Told the number of steps done after each.

    Returns
    -------
    places : Tensor of shape (n, 2)
    complete : bool
        Whether all steps were taken: a KeyboardInterrupt ends the descent where it is.
    """
    velocity, gains = torch.zeros_like(places), torch.ones_like(places)
    rate = len(places) / exaggeration
    try:
        attraction, repulsion = _Attraction(affinities), Repulsion()
        for done in range(1, n_iterations + 1):
            forces, normalizer = repulsion(places)
            gradient = attraction(places).mul_(exaggeration).sub_(forces, alpha=1 / normalizer)
            gains = torch.where(gradient * velocity < 0, gains + GAIN_UP, gains * GAIN_DOWN).clamp_min_(LEAST_GAIN)
            velocity = MOMENTUM * velocity - rate * gains * gradient
            length = velocity.norm(dim=1, keepdim=True)
            velocity *= (LONGEST_STEP / length.clamp_min(1e-12)).clamp_max(1)
            moved = places + velocity
            places = moved - moved.mean(0)
            progress(done)
    except KeyboardInterrupt:
        return places, False
    return places, True


class _Attraction:
    """For each i the sum over j of p_ij w_ij (y_i - y_j), a quarter of the gradient of the attraction."""

    def __init__(self, affinities: Affinities) -> None:
        n, k = affinities.indices.shape
        # 32 bits, half of what they would take otherwise.
        chosen = (affinities.probabilities.float().numpy().ravel(), affinities.indices.int().numpy().ravel())
        one_way = csr_matrix((*chosen, np.arange(0, n * k + 1, k)), shape=(n, n))
        both = (one_way + one_way.T).tocsr()
        both.data /= 2 * n
        self.probabilities = torch.from_numpy(both.data)
        self.others, self.starts = torch.from_numpy(both.indices), torch.from_numpy(both.indptr)
        self.rows = torch.repeat_interleave(torch.arange(n, dtype=self.starts.dtype), self.starts.diff())

    def __call__(self, places: Tensor) -> Tensor:
        # As complex numbers, of which gathering and subtracting one is gathering and subtracting both coordinates.
        points = torch.view_as_complex(places.contiguous())
        apart = points.index_select(0, self.rows).sub_(points.index_select(0, self.others))
        distances = torch.ones_like(self.probabilities)
        distances.addcmul_(apart.real, apart.real).addcmul_(apart.imag, apart.imag)
        pull = torch.div(self.probabilities, distances, out=distances)
        table = torch.cat([places, torch.ones_like(places[:, :1])], 1)
        pulled = embedding_bag(
            self.others, table, self.starts, per_sample_weights=pull, mode="sum", include_last_offset=True
        )
        return pulled[:, 2:] * places - pulled[:, :2]


class Repulsion:
    """The repulsion of all pairs on the plane: call it with places of shape (n, 2).

    Returns for each i the sum over j of w_ij^2 (y_i - y_j), and the normalizer, the sum of w_ij over i and j other
    than i, with w = 1 / (1 + |y_i - y_j|^2). Of more than 4,096 places it is interpolated, which errs by one or two
    hundredths of the forces where there are some places in a unit of area, and by more where they lie far apart.
    """

    def __init__(self) -> None:
        self._kernels: tuple[tuple[int, float], tuple[int, Tensor, list[Tensor]]] | None = None

    def __call__(self, places: Tensor) -> tuple[Tensor, float]:
        return _all_pairs(places) if len(places) <= FEW else self.interpolated(places)

    def interpolated(self, places: Tensor) -> tuple[Tensor, float]:
        """The same by Fourier transforms, whatever the number of places."""
        middle = places[:: 1 + len(places) // FEW].median(0).values  # of some, which is as good here
        places = middle + (places - middle).clamp(-WIDEST / 2, WIDEST / 2)
        low = places.amin(0)
        width = float((places.amax(0) - low).max())
        if 0 < width < SPACING * (FEW_NODES - SPLINE):
            nodes, spacing = FEW_NODES, width / (FEW_NODES - SPLINE)
        else:  # a grid that grows in strides, so that its kernels serve many calls
            nodes, spacing = FEW_NODES * math.ceil((width / SPACING + SPLINE) / FEW_NODES), SPACING
        size, energies, forces = self._transformed_kernels(nodes, spacing)

        scaled = (places - low) / spacing + 1
        node = scaled.round()
        weights = _parabolas(scaled - node)  # (n, 2, 3)
        along = (node.long() - 1)[:, :, None] + torch.arange(SPLINE)  # (n, 2, 3)
        cells = (along[:, 0, :, None] * nodes + along[:, 1, None, :]).flatten()  # (n * 9,)
        shares = (weights[:, 0, :, None] * weights[:, 1, None, :]).flatten(1)  # (n, 9)

        grid = torch.zeros(nodes * nodes).index_add_(0, cells, shares.flatten()).view(nodes, nodes)
        # One axis after the other: of the zeros around the grid, and of what is not read, half is never transformed.
        spread = torch.fft.fft(torch.fft.rfft(grid, size), size, dim=0)
        normalizer = float((energies * (spread.real.square() + spread.imag.square())).sum(dtype=torch.float64))
        felt = []
        for kernel in forces:
            field = torch.fft.irfft(torch.fft.ifft(spread * kernel, dim=0)[:nodes], size)[:, :nodes]
            felt.append((field.flatten().index_select(0, cells).view_as(shares) * shares).sum(1))
        return torch.stack(felt, 1), normalizer - len(places)

    def _transformed_kernels(self, nodes: int, spacing: float) -> tuple[int, Tensor, list[Tensor]]:
        """The length of the transforms, and the spectra of w and of w^2 times each coordinate of the difference.

        That of w is real, and such that the normalizer is its sum over the squared spectrum of the places (Parseval;
        half of the spectrum is held, and stands for its mirror image). All are divided by that of the spline by which
        places are put on the grid and read from it.
        """
        if self._kernels is None or self._kernels[0] != (nodes, spacing):
            size = next_fast_len(2 * (nodes + SPLINE), real=True)  # undoing the spline blurs the far end
            lags = torch.arange(size)
            lags = torch.where(lags < size - lags, lags, lags - size)
            twice = torch.sinc(lags / size) ** (2 * SPLINE)  # put and read
            smooth = twice[:, None] * twice[: size // 2 + 1]
            lags = spacing * lags
            kernel = 1 / (1 + lags.square()[:, None] + lags.square())
            energies = torch.fft.rfft2(kernel).real / smooth / size**2
            energies[:, 1 : (size + 1) // 2] *= 2
            kernel.square_()
            lags[size // 2] *= size % 2  # that which is its own mirror image pushes neither way
            forces = [torch.fft.rfft2(kernel * along) / smooth for along in (lags[:, None], lags)]
            self._kernels = (nodes, spacing), (size, energies, forces)
        return self._kernels[1]


def _all_pairs(places: Tensor) -> tuple[Tensor, float]:
    """By products: [y, 1 + |y|^2, 1] with [-2 y', 1, |y'|^2] is 1 + |y - y'|^2."""
    places = places - places.mean(0)  # the forces are small differences of sums of coordinates
    ones, norms = torch.ones_like(places[:, :1]), places.square().sum(1, keepdim=True)
    left, right = torch.cat([places, norms + 1, ones], 1), torch.cat([-2 * places, ones, norms], 1).T.contiguous()
    table = torch.cat([places, ones], 1).T.contiguous()
    felt, total, tile = torch.empty_like(table), 0.0, None
    for rows in blocks_in_cache(len(places), len(places)):
        n = rows.stop - rows.start
        tile = places.new_empty(n, len(places)) if tile is None else tile[:n]
        similarities = torch.mm(left[rows], right, out=tile).clamp_min_(1).reciprocal_()
        similarities[:, rows].diagonal().zero_()  # the pairs of a place with itself
        total += float(similarities.sum())
        felt[:, rows] = table @ similarities.square_().T
    return (felt[2] * table[:2] - felt[:2]).T.contiguous(), total


def _parabolas(offset: Tensor) -> Tensor:
    """The quadratic B-spline at a node and those before and after it, for an offset of -1/2 to 1/2 from the node."""
    return torch.stack([(0.5 - offset).square() / 2, 0.75 - offset.square(), (0.5 + offset).square() / 2], -1)


def place_weights(squared_distances: Tensor) -> Tensor:
    """The weights of a row's neighbors in its place.

    Their perplexity is about a third of their number, where distances grow evenly; more where they tie. That is near
    enough for what is no part of the loss, and spares a search for the precision of each row.

    Parameters
    ----------
    squared_distances : Tensor of shape (n, k)
        The nearest first. Infinity has no weight.

    Returns
    -------
    Tensor of shape (n, k)
        Each row sums to 1.
    """
    gap = squared_distances[:, squared_distances.shape[1] // 3] - squared_distances[:, 0]
    return gaussian(squared_distances, PRECISION / gap.clamp(1e-30, 1e30))


def settle(neighbors: Tensor, probabilities: Tensor) -> Tensor:
    r"""The place that minimizes a row's own attraction, :math:`\sum_j p_j \log(1 + |y - v_j|^2)`.

    Neighbors that lie apart from the others hardly count: it is a median more than a mean, and does not put a
    row in the empty space between two clusters. It starts at the best of the neighbors' places. With a multiple of
    32 rows, the place of a row does not hang on the others to the last bit.

    Parameters
    ----------
    neighbors : Tensor of shape (n, k, h)
        The places v of each row's neighbors.
    probabilities : Tensor of shape (n, k)
        Each row sums to 1.

    Returns
    -------
    Tensor of shape (n, h)
    """
    # The rows last: sums over the others then run along them, which is twice as fast. (No `lerp`: how it rounds hangs
    # on where a thread's share ends.)
    neighbors = neighbors.permute(2, 1, 0).contiguous()  # (h, k, n)
    probabilities = probabilities.T.contiguous()  # (k, n)
    apart = (neighbors[:, :, None] - neighbors[:, None]).square_().sum(0)  # (k, k, n)
    best = apart.log1p_().mul_(probabilities).sum(1).argmin(0)
    places = neighbors.gather(1, best.expand(len(neighbors), 1, -1))  # (h, 1, n)
    for factor in SETTLING:
        pull = probabilities / (neighbors - places).square_().sum(0).add_(1)  # (k, n)
        point = (pull * neighbors).sum(1, keepdim=True) / pull.sum(0)
        places = places + (point - places).mul_(factor)
    return places.squeeze(1).T
