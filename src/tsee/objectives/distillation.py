"""Learning a layout: how far the network puts rows from the positions of the exemplars that were found without it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsee.affinities import gaussian
from tsee.batches import Batch
from tsee.distributed import all_sum, all_sum_with_gradient
from tsee.neighbors import ExactIndex
from tsee.networks import Network
from tsee.objectives.kernels import squared_distances
from tsee.objectives.sampled import Sampled

__all__ = ["Distillation", "choice_loss", "distance_loss"]

# The unit of the distance from a layout, as a share of its size, in the first epoch and in the last: at first to bring
# every row near its position, then to part it from its neighbors. A choice among places can part nearer ones.
FIRST_UNIT, LAST_UNIT, LAST_UNIT_OF_PLACES = 1 / 5, 1 / 15, 1 / 30
# The weight of the choice beside the distance in the first epoch and in the last: at first rows learn which places are
# theirs, which distances alone hardly teach, then where among them they are.
FIRST_CHOICE, LAST_CHOICE = 1.0, 0.05
# The nearest neighbors of an exemplar whose differences move the rows.
MOVING_NEIGHBORS = 15
# The nearest places of a position, among which the choice is spread.
NEAR_PLACES = 8


def distance_loss(Y: Tensor, targets: Tensor, unit: float = 1.0) -> Tensor:
    r"""How far points are from their targets, :math:`\frac{u^2}{n} \sum_i \log(1 + |y_i - t_i|^2 / u^2)`.

    It is the mean squared distance of points that are nearer than u, and grows slowly for the others.

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The positions of the batch.
    targets : Tensor of shape (n, h)
        Where they should be.
    unit : float
        u.
    """
    apart = torch.log1p(squared_distances(Y, targets) / unit**2).sum()
    return unit**2 * all_sum_with_gradient(apart) / all_sum(len(Y))


def choice_loss(log_probabilities: Tensor, indices: Tensor, weights: Tensor) -> Tensor:
    r"""How unlike the choice among places is to the right one, :math:`-\frac1n \sum_i \sum_k w_{ik} \log p_{ik}`.

    Parameters
    ----------
    log_probabilities : Tensor of shape (n, places)
        log p, the choice of the batch.
    indices, weights : Tensor of shape (n, k)
        The places that are right for each point, and their weights w; each row sums to 1.
    """
    missed = -(log_probabilities.gather(1, indices) * weights).sum()
    return all_sum_with_gradient(missed) / all_sum(len(log_probabilities))


class Distillation:
    """The network is to give the exemplars, and the rows among them, given positions. Making one is a collective.

    Rows are moved by noise as they learn. With places it is a share of the difference of two exemplars near the row:
    rows then move as rows of their kind differ, which new rows do, too.

    Parameters
    ----------
    objective : Sampled
        Draws the exemplars of each row.
    positions : Tensor of shape (z, h)
        Where the exemplars should be.
    size : float
        The size of the map, in whose units distances are measured.
    n_epochs : int
    places : Tensor of shape (n, h), optional
        The places of a network that chooses among places, before it is trained.
    """

    def __init__(
        self, objective: Sampled, positions: Tensor, *, size: float, n_epochs: int, places: Tensor | None = None
    ) -> None:
        self.objective, self.positions, self.size, self.n_epochs = objective, positions, size, n_epochs
        self.near = self.neighbors = None
        if places is not None:
            self.near = _near_places(positions, places, size)
            self.neighbors = objective.neighborhoods.nearest[:, :MOVING_NEIGHBORS]

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """The distance of the batch from where it should be; if the network has places, also its choice among them."""
        objective, device = self.objective, self.objective.device
        drawn, exemplars = objective.learned(batch)
        targets = self.positions[exemplars].to(device) / self.size
        if self.near is None or not isinstance(network, Network):
            points, _ = objective.jittered(batch["inputs"], drawn, objective.jitter_of_targets, others_too=False)
            unit = self._falling(FIRST_UNIT, LAST_UNIT, batch.epoch)
            return distance_loss(network(points.to(device)) / self.size, targets, unit)
        chosen = network.units(self.moved(batch["inputs"], exemplars).to(device)).log_softmax(1)
        indices, weights = (part[exemplars].to(device) for part in self.near)
        choice = choice_loss(chosen, indices, weights)
        unit = self._falling(FIRST_UNIT, LAST_UNIT_OF_PLACES, batch.epoch)
        distance = distance_loss(network.readout(chosen.exp()) / self.size, targets, unit)
        return self._falling(FIRST_CHOICE, LAST_CHOICE, batch.epoch) * choice + distance / unit**2

    def moved(self, points: Tensor, exemplars: Tensor) -> Tensor:
        """Rows, each moved by a share of the difference of two random neighbors of its exemplar."""
        assert self.neighbors is not None
        objective, (_, k) = self.objective, self.neighbors.shape
        inputs = objective.neighborhoods.seen
        drawn = torch.randint(k, (len(points), 2), generator=objective.generator)
        first, second = self.neighbors[exemplars].gather(1, drawn).T
        return points + objective.jitter_of_targets * (inputs[first] - inputs[second])

    def _falling(self, first: float, last: float, epoch: int) -> float:
        return first * (last / first) ** (epoch / max(1, self.n_epochs - 1))


def _near_places(positions: Tensor, places: Tensor, size: float) -> tuple[Tensor, Tensor]:
    """The places nearest to each position, and Gaussian weights as wide as places usually lie apart."""
    index, everyone = ExactIndex(places), torch.arange(len(places))
    gaps = index.query(places, 1, exclude=everyone)[1] if len(places) > 1 else places.new_ones(1, 1)
    width = max(float(gaps.median()), (1e-6 * size) ** 2)
    indices, squared = index.query(positions, min(NEAR_PLACES, len(places)))
    return indices, gaussian(squared, torch.full((len(positions),), 1 / (2 * width)))
