r"""The repulsion of all pairs: exact for few positions, on a grid in one to three dimensions, sampled in more."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tsee.data import blocks, blocks_in_cache
from tsee.distributed import all_sum

__all__ = ["Repulsion"]

# Up to this many positions all pairs are summed. More positions in up to three dimensions are spread on a grid, and
# forces read from it, by splines of SPLINE nodes; anything outside the largest grid is felt as if it lay on its rim.
MAX_ALL_PAIRS = 4096
SPLINE = 3
MAX_WIDTH = 2048.0
# Positions whose forces are read from the grid together.
READ_ROWS = 2**16
# In more dimensions each step draws this many positions, which stand for all others.
SOURCES = 4096


@dataclass(frozen=True)
class _Grid:
    """Nodes along each axis of a grid: their spacing, the fewest, in what steps they grow, and the most.

    They grow in steps so that kernels serve many calls. A map that is too narrow for the fewest nodes, or too wide for
    the most, has other spacings.
    """

    spacing: float
    fewest: int
    step: int
    most: int

    def of(self, width: float) -> tuple[int, float]:
        """How many nodes a map of this width has along each axis, and their spacing."""
        wanted = width / self.spacing + SPLINE
        nodes = min(self.most, self.fewest + self.step * math.ceil(max(0.0, wanted - self.fewest) / self.step))
        if self.fewest < wanted <= nodes or width == 0:
            return nodes, self.spacing
        return nodes, width / (nodes - SPLINE)


# By the number of dimensions. In three there are many more nodes, and far neighbors count for more.
GRIDS = {1: _Grid(0.5, 48, 48, 1056), 2: _Grid(0.5, 48, 48, 1056), 3: _Grid(0.75, 48, 16, 128)}


class Repulsion:
    """The repulsion of all pairs: call it with positions of shape (n, h).

    Several processes share the work if each also gives a slice of its own: it gets the forces on these positions. The
    slices must be parts of one whole, and the call is a collective.

    Returns for each i the sum over j of w_ij^2 (y_i - y_j), and the normalizer, the sum of w_ij over i and j other
    than i, with w = 1 / (1 + |y_i - y_j|^2).

    Up to 4,096 positions the sums are exact. More positions in up to three dimensions are interpolated by Fourier
    transforms on a grid (Linderman et al., Nature Methods 2019), at a cost of n and the area of the map instead of n
    squared; splines put positions on the grid and read forces from it, and their smoothing is undone in the spectrum
    (Hockney and Eastwood, Computer Simulation Using Particles, 1981). The error is one or two percent of the forces if
    there are some positions per unit of area, and more if they lie far apart. In more dimensions the sums run over
    4,096 positions, drawn anew in each call, and are scaled up: without bias, and with an error that many steps of a
    descent average out. The draws are the same for every object of this class.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._kernels: tuple[tuple[int, float, int], tuple[int, Tensor, list[Tensor]]] | None = None

    def __call__(self, positions: Tensor, own: slice | None = None) -> tuple[Tensor, float]:
        n, h = positions.shape
        self.calls += 1
        if n <= MAX_ALL_PAIRS:
            return _by_products(positions, own)
        if h in GRIDS:
            return self.interpolated(positions, own)
        return self.sampled(positions, own)

    def sampled(self, positions: Tensor, own: slice | None = None) -> tuple[Tensor, float]:
        """The same by a sample of the positions that repel."""
        generator = torch.Generator().manual_seed(self.calls)
        drawn = torch.randperm(len(positions), generator=generator)[:SOURCES].sort().values
        forces, normalizer = _by_products(positions, own, drawn)
        share = len(positions) / len(drawn)
        return forces.mul_(share), normalizer * share

    def interpolated(self, positions: Tensor, own: slice | None = None) -> tuple[Tensor, float]:
        """The same by Fourier transforms, whatever the number of positions."""
        n, h = positions.shape
        middle = positions[:: 1 + n // MAX_ALL_PAIRS].median(0).values  # a sample is good enough here
        positions = middle + (positions - middle).clamp(-MAX_WIDTH / 2, MAX_WIDTH / 2)
        low = positions.amin(0)
        nodes, spacing = GRIDS[h].of(float((positions.amax(0) - low).max()))
        size, energies, forces = self._transformed_kernels(nodes, spacing, h)

        scaled = ((positions if own is None else positions[own]) - low) / spacing + 1
        node = scaled.round()
        weights = _parabolas(scaled - node)  # (n, h, 3)
        along = (node.int() - 1)[:, :, None] + torch.arange(SPLINE, dtype=torch.int32)  # (n, h, 3)
        cells, shares = along[:, 0], weights[:, 0]
        for axis in range(1, h):
            cells = (cells[:, :, None] * nodes + along[:, axis, None]).flatten(1)
            shares = (shares[:, :, None] * weights[:, axis, None]).flatten(1)
        del scaled, node, weights, along  # what is left, cells and shares of shape (n, 3^h), is the most of this

        grid = torch.zeros(nodes**h).index_add_(0, cells.flatten(), shares.flatten())
        grid = (grid if own is None else all_sum(grid)).view((nodes,) * h)
        # One axis after the other: half of the zeros around the grid are never transformed, and half of the values that
        # are not read.
        spread = torch.fft.rfft(grid, size)
        for axis in range(h - 1):
            spread = torch.fft.fft(spread, size, dim=axis)
        normalizer = float((energies * (spread.real.square() + spread.imag.square())).sum(dtype=torch.float64))
        felt = torch.empty(len(shares), h)
        for number, kernel in enumerate(forces):
            field = spread * kernel
            for axis in range(h - 1):
                field = torch.fft.ifft(field, dim=axis).narrow(axis, 0, nodes)
            field = torch.fft.irfft(field, size)[..., :nodes].flatten()
            for rows in blocks(len(shares), READ_ROWS):
                near = field.index_select(0, cells[rows].flatten()).view(-1, SPLINE**h)
                felt[rows, number] = near.mul_(shares[rows]).sum(1)
        return felt, normalizer - n

    def _transformed_kernels(self, nodes: int, spacing: float, h: int) -> tuple[int, Tensor, list[Tensor]]:
        """The length of the transforms, and the spectra of w and of w^2 times each coordinate of the difference.

        The spectrum of w is real, and scaled so that the normalizer is its sum over the squared spectrum of the
        positions (Parseval; half of the spectrum is stored, and stands for its mirror image). All are divided by the
        spectrum of the spline that puts positions on the grid and reads forces from it.
        """
        if self._kernels is None or self._kernels[0] != (nodes, spacing, h):
            from scipy.fft import next_fast_len  # here: it would be a tenth of the time of importing tsee

            size = next_fast_len(2 * (nodes + SPLINE), real=True)  # undoing the spline blurs the far end
            lags = torch.arange(size)
            lags = torch.where(lags < size - lags, lags, lags - size)
            twice = torch.sinc(lags / size) ** (2 * SPLINE)  # put and read
            lags = spacing * lags
            smooth, kernel = twice[: size // 2 + 1], 1 + lags.square()
            for axis in range(1, h):
                smooth = twice.view(-1, *[1] * axis) * smooth
                kernel = lags.square().view(-1, *[1] * axis) + kernel
            kernel = 1 / kernel
            energies = torch.fft.rfftn(kernel).real / smooth / size**h
            energies[..., 1 : (size + 1) // 2] *= 2
            kernel.square_()
            lags[size // 2] *= size % 2  # a lag that is its own mirror image pushes neither way
            forces = [torch.fft.rfftn(kernel * lags.view(-1, *[1] * (h - 1 - axis))) / smooth for axis in range(h)]
            self._kernels = (nodes, spacing, h), (size, energies, forces)
        return self._kernels[1]


def _by_products(positions: Tensor, own: slice | None, drawn: Tensor | None = None) -> tuple[Tensor, float]:
    """All pairs of an own position and one of those drawn (all, by default), except pairs of a position with itself.

    By products: [y, 1 + |y|^2, 1] with [-2 y', 1, |y'|^2] is 1 + |y - y'|^2. The normalizer is of all processes.
    """
    shared, own = own is not None, slice(0, len(positions)) if own is None else own
    positions = positions - positions.mean(0)  # the forces are small differences of sums of coordinates
    ones, norms = torch.ones_like(positions[:, :1]), positions.square().sum(1, keepdim=True)
    left, right = torch.cat([positions, norms + 1, ones], 1)[own], torch.cat([-2 * positions, ones, norms], 1)
    sources = torch.cat([positions, ones], 1)
    if drawn is not None:
        right, sources = right[drawn], sources[drawn]
    right, sources = right.T.contiguous(), sources.T.contiguous()
    felt, total, tile = positions.new_empty(len(sources), len(left)), 0.0, None
    for rows in blocks_in_cache(len(left), right.shape[1]):
        n = rows.stop - rows.start
        tile = positions.new_empty(n, right.shape[1]) if tile is None else tile[:n]
        similarities = torch.mm(left[rows], right, out=tile).clamp_min_(1).reciprocal_()
        begin, end = own.start + rows.start, own.start + rows.stop
        if drawn is None:
            similarities[:, begin:end].diagonal().zero_()
        else:
            first, last = torch.searchsorted(drawn, torch.tensor([begin, end])).tolist()
            similarities[drawn[first:last] - begin, torch.arange(first, last)] = 0
        total += float(similarities.sum())
        felt[:, rows] = sources @ similarities.square_().T
    h = positions.shape[1]
    forces = (felt[h:] * positions[own].T - felt[:h]).T.contiguous()
    return forces, float(all_sum(torch.tensor(total, dtype=torch.float64))) if shared else total


def _parabolas(offset: Tensor) -> Tensor:
    """The quadratic B-spline at a node and its two neighbors, for an offset of -1/2 to 1/2 from the node."""
    return torch.stack([(0.5 - offset).square() / 2, 0.75 - offset.square(), (0.5 + offset).square() / 2], -1)
