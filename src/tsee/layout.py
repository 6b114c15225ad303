r"""Positions that no network ties together: exemplars under the exact forces of the loss.

With all rows as exemplars, the loss of equation 12 as a function of the positions themselves is

.. math:: \ell = a \sum_{ij} p_{ij} \log(1 + |y_i - y_j|^2) + \log \sum_{i \ne j} (1 + |y_i - y_j|^2)^{-1},

with the p of equation 3 and the attraction exaggerated by a. Its gradient has a sum over the pairs that carry
probability, and one over all pairs, the repulsion. The second is smooth: it is computed on a grid by Fourier transforms
(Linderman et al., Nature Methods 2019), at a cost of n and the area of the map instead of n squared. Positions are
spread on the grid and forces read from it by splines, whose smoothing is undone in the spectrum (Hockney and Eastwood,
Computer Simulation Using Particles, 1981).
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

from tsee.affinities import Affinities
from tsee.data import blocks_in_cache

__all__ = ["Repulsion", "free_positions"]

# The usual gradient descent of t-SNE: momentum, and a gain for each coordinate that grows while it keeps its direction.
MOMENTUM = 0.8
GAIN_UP, GAIN_DOWN, LEAST_GAIN = 0.2, 0.8, 0.01
LONGEST_STEP = 5.0
# Up to this many positions all pairs are summed. More positions are spread on a grid, and forces read from it, by
# splines of SPLINE nodes; anything outside the largest grid is felt as if it lay on its rim.
MAX_ALL_PAIRS = 4096
SPLINE = 3
SPACING, NODE_STRIDE = 0.5, 48
MAX_WIDTH = 512.0


def free_positions(
    positions: Tensor,
    affinities: Affinities,
    *,
    exaggeration: float,
    n_iterations: int,
    progress: Callable[[int], None] = lambda done: None,
) -> tuple[Tensor, bool]:
    """Let exemplars move from where the network puts them to where the loss wants them, each on its own.

    Parameters
    ----------
    positions : Tensor of shape (n, 2)
        Where they start.
    affinities : Affinities
        Their neighbors among themselves.
    exaggeration : float
        The factor a on the attraction.
    n_iterations : int
        Steps of gradient descent.
    progress : callable
        Called after each step with the number of steps done.

    Returns
    -------
    positions : Tensor of shape (n, 2)
    complete : bool
        Whether all steps were taken: a KeyboardInterrupt ends the descent where it is.
    """
    velocity, gains = torch.zeros_like(positions), torch.ones_like(positions)
    rate = len(positions) / exaggeration
    try:
        attraction, repulsion = _Attraction(affinities), Repulsion()
        for done in range(1, n_iterations + 1):
            forces, normalizer = repulsion(positions)
            gradient = attraction(positions).mul_(exaggeration).sub_(forces, alpha=1 / normalizer)
            gains = torch.where(gradient * velocity < 0, gains + GAIN_UP, gains * GAIN_DOWN).clamp_min_(LEAST_GAIN)
            velocity = MOMENTUM * velocity - rate * gains * gradient
            length = velocity.norm(dim=1, keepdim=True)
            velocity *= (LONGEST_STEP / length.clamp_min(1e-12)).clamp_max(1)
            moved = positions + velocity
            positions = moved - moved.mean(0)
            progress(done)
    except KeyboardInterrupt:
        return positions, False
    return positions, True


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

    def __call__(self, positions: Tensor) -> Tensor:
        # Complex numbers gather and subtract both coordinates at once.
        points = torch.view_as_complex(positions.contiguous())
        apart = points.index_select(0, self.rows).sub_(points.index_select(0, self.others))
        distances = torch.ones_like(self.probabilities)
        distances.addcmul_(apart.real, apart.real).addcmul_(apart.imag, apart.imag)
        pull = torch.div(self.probabilities, distances, out=distances)
        table = torch.cat([positions, torch.ones_like(positions[:, :1])], 1)
        pulled = embedding_bag(
            self.others, table, self.starts, per_sample_weights=pull, mode="sum", include_last_offset=True
        )
        return pulled[:, 2:] * positions - pulled[:, :2]


class Repulsion:
    """The repulsion of all pairs on the plane: call it with positions of shape (n, 2).

    Returns for each i the sum over j of w_ij^2 (y_i - y_j), and the normalizer, the sum of w_ij over i and j other
    than i, with w = 1 / (1 + |y_i - y_j|^2). For more than 4,096 positions it is interpolated. The error is one or two
    percent of the forces if there are some positions per unit of area, and more if they lie far apart.
    """

    def __init__(self) -> None:
        self._kernels: tuple[tuple[int, float], tuple[int, Tensor, list[Tensor]]] | None = None

    def __call__(self, positions: Tensor) -> tuple[Tensor, float]:
        return _all_pairs(positions) if len(positions) <= MAX_ALL_PAIRS else self.interpolated(positions)

    def interpolated(self, positions: Tensor) -> tuple[Tensor, float]:
        """The same by Fourier transforms, whatever the number of positions."""
        middle = positions[:: 1 + len(positions) // MAX_ALL_PAIRS].median(0).values  # a sample is good enough here
        positions = middle + (positions - middle).clamp(-MAX_WIDTH / 2, MAX_WIDTH / 2)
        low = positions.amin(0)
        width = float((positions.amax(0) - low).max())
        if 0 < width < SPACING * (NODE_STRIDE - SPLINE):
            nodes, spacing = NODE_STRIDE, width / (NODE_STRIDE - SPLINE)
        else:  # a grid that grows in strides, so that its kernels serve many calls
            nodes, spacing = NODE_STRIDE * math.ceil((width / SPACING + SPLINE) / NODE_STRIDE), SPACING
        size, energies, forces = self._transformed_kernels(nodes, spacing)

        scaled = (positions - low) / spacing + 1
        node = scaled.round()
        weights = _parabolas(scaled - node)  # (n, 2, 3)
        along = (node.long() - 1)[:, :, None] + torch.arange(SPLINE)  # (n, 2, 3)
        cells = (along[:, 0, :, None] * nodes + along[:, 1, None, :]).flatten()  # (n * 9,)
        shares = (weights[:, 0, :, None] * weights[:, 1, None, :]).flatten(1)  # (n, 9)

        grid = torch.zeros(nodes * nodes).index_add_(0, cells, shares.flatten()).view(nodes, nodes)
        # One axis after the other: half of the zeros around the grid are never transformed, and half of the values that
        # are not read.
        spread = torch.fft.fft(torch.fft.rfft(grid, size), size, dim=0)
        normalizer = float((energies * (spread.real.square() + spread.imag.square())).sum(dtype=torch.float64))
        felt = []
        for kernel in forces:
            field = torch.fft.irfft(torch.fft.ifft(spread * kernel, dim=0)[:nodes], size)[:, :nodes]
            felt.append((field.flatten().index_select(0, cells).view_as(shares) * shares).sum(1))
        return torch.stack(felt, 1), normalizer - len(positions)

    def _transformed_kernels(self, nodes: int, spacing: float) -> tuple[int, Tensor, list[Tensor]]:
        """The length of the transforms, and the spectra of w and of w^2 times each coordinate of the difference.

        The spectrum of w is real, and scaled so that the normalizer is its sum over the squared spectrum of the
        positions (Parseval; half of the spectrum is stored, and stands for its mirror image). All are divided by the
        spectrum of the spline that puts positions on the grid and reads forces from it.
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
            lags[size // 2] *= size % 2  # a lag that is its own mirror image pushes neither way
            forces = [torch.fft.rfft2(kernel * along) / smooth for along in (lags[:, None], lags)]
            self._kernels = (nodes, spacing), (size, energies, forces)
        return self._kernels[1]


def _all_pairs(positions: Tensor) -> tuple[Tensor, float]:
    """By products: [y, 1 + |y|^2, 1] with [-2 y', 1, |y'|^2] is 1 + |y - y'|^2."""
    positions = positions - positions.mean(0)  # the forces are small differences of sums of coordinates
    ones, norms = torch.ones_like(positions[:, :1]), positions.square().sum(1, keepdim=True)
    left, right = torch.cat([positions, norms + 1, ones], 1), torch.cat([-2 * positions, ones, norms], 1).T.contiguous()
    table = torch.cat([positions, ones], 1).T.contiguous()
    felt, total, tile = torch.empty_like(table), 0.0, None
    for rows in blocks_in_cache(len(positions), len(positions)):
        n = rows.stop - rows.start
        tile = positions.new_empty(n, len(positions)) if tile is None else tile[:n]
        similarities = torch.mm(left[rows], right, out=tile).clamp_min_(1).reciprocal_()
        similarities[:, rows].diagonal().zero_()  # the pairs of a position with itself
        total += float(similarities.sum())
        felt[:, rows] = table @ similarities.square_().T
    return (felt[2] * table[:2] - felt[:2]).T.contiguous(), total


def _parabolas(offset: Tensor) -> Tensor:
    """The quadratic B-spline at a node and its two neighbors, for an offset of -1/2 to 1/2 from the node."""
    return torch.stack([(0.5 - offset).square() / 2, 0.75 - offset.square(), (0.5 + offset).square() / 2], -1)
