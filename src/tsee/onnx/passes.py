"""From raw rows to positions as modules of torch, whose steps become the nodes of a graph."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import hardshrink

from tsee.exemplars import Exemplars
from tsee.metric import UNIT_LENGTH, Jaccard, Metric, ProductMetric
from tsee.neighbors import CellIndex
from tsee.neighbors.index import MARGIN
from tsee.neighbors.traced import Cells, TracedIndex, scanned
from tsee.placement.refined import NEIGHBORS, among_neighbors
from tsee.preprocessing import Preprocessing
from tsee.preprocessing.fitting import NEGLIGIBLE
from tsee.preprocessing.principal import leveled

__all__ = ["ForwardPass", "RefinedPass"]

CELL_TENSORS = ("members", "homes", "centers", "groups", "group")


class _Preprocess(nn.Module):
    """From raw float32 rows to inputs: the steps of `Preprocessing`."""

    mean: Tensor
    basis: Tensor | None
    divisor: Tensor | None
    margin: Tensor | None

    def __init__(self, preprocessing: Preprocessing) -> None:
        super().__init__()
        # float32 as the rows are: `transform` centers float32 rows with it too.
        self.register_buffer("mean", torch.from_numpy(preprocessing.mean.astype(np.float32)))
        self.register_buffer("basis", None if preprocessing.basis is None else torch.from_numpy(preprocessing.basis))
        self.factor, self.metric, self.length = 1 / preprocessing.scale, preprocessing.metric, preprocessing.length
        spread = preprocessing.spread
        self.register_buffer("divisor", None if spread is None else torch.from_numpy(preprocessing.divisor).float())
        margin = preprocessing.margin
        self.register_buffer("margin", None if margin is None else torch.from_numpy(margin))

    def forward(self, rows: Tensor) -> Tensor:
        if self.metric in UNIT_LENGTH:
            rows = rows / rows.abs().amax(1, keepdim=True)  # not a number, if all are zeros
            rows = rows - rows.mean(1, keepdim=True) if self.metric == "correlation" else rows
            rows = rows / rows.square().sum(1, keepdim=True).sqrt()
        centered = rows - self.mean
        inputs = centered * self.factor if self.divisor is None else centered / self.divisor
        inputs = inputs if self.basis is None else leveled(inputs @ self.basis, self.length)
        inputs = hardshrink(inputs, NEGLIGIBLE)
        return inputs if self.margin is None else inputs.masked_fill(inputs.abs() <= self.margin, 0)


class ForwardPass(nn.Module):
    """What ``transform`` computes with ``placement="forward"``: the preprocessing, then the network itself."""

    def __init__(self, preprocessing: Preprocessing, network: nn.Module) -> None:
        super().__init__()
        self.preprocess, self.network = _Preprocess(preprocessing), network

    def forward(self, rows: Tensor) -> Tensor:
        positions: Tensor = self.network(self.preprocess(rows)).float()
        return positions


class RefinedPass(nn.Module):
    """What ``transform`` computes with ``placement="refined"``: the search for the nearest exemplars, and settling.

    Only the exemplars are stored. What a search derives from them is computed in `forward`, so that it becomes part
    of the graph and takes no room in the file.
    """

    exemplars: Tensor
    exemplar_positions: Tensor

    def __init__(self, preprocessing: Preprocessing, exemplars: Exemplars) -> None:
        super().__init__()
        index = exemplars.index
        assert exemplars.positions is not None
        self.preprocess = _Preprocess(preprocessing)
        self.metric: Metric = index.metric
        self.register_buffer("exemplars", exemplars.inputs.cpu())
        self.register_buffer("exemplar_positions", exemplars.positions.cpu())
        cells = Cells.of(index.roughly) if isinstance(index, CellIndex) else None
        self.in_cells = cells is not None
        if cells is not None:
            for name in CELL_TENSORS:
                self.register_buffer(name, getattr(cells, name))
            self.n_searched, self.n_near = cells.n_searched, cells.n_near

    @property
    def numbers_per_row(self) -> int:
        """The size of the largest table that is made for a row: its scores, or its differences from candidates."""
        n_exemplars, n_inputs = self.exemplars.shape
        if not isinstance(self.metric, ProductMetric | Jaccard):
            return n_exemplars * n_inputs
        return max(n_exemplars, (NEIGHBORS + MARGIN) * n_inputs)

    def forward(self, rows: Tensor) -> Tensor:
        k = min(NEIGHBORS, len(self.exemplars))
        if not isinstance(self.metric, ProductMetric):
            found = scanned(self.preprocess(rows), self.exemplars, self.metric, k)
            return among_neighbors(*found, self.exemplar_positions)
        cells = None
        if self.in_cells:
            members, homes, centers, groups, group = (self.get_buffer(name) for name in CELL_TENSORS)
            cells = Cells(members, homes, centers, self.n_searched, groups, group, self.n_near)
        index = TracedIndex(self.exemplars, self.metric, cells)
        indices, distances = index.query(self.preprocess(rows), k)
        return among_neighbors(indices, distances, self.exemplar_positions)
