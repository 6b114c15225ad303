"""What the exemplar methods train for: the three forms of their loss, the refinement, and places among exemplars.

A form of the loss is made once for a fit. Its ``columns`` say what is kept of each row besides its inputs, and are
called with consecutive blocks of rows; its ``loss`` is that of a batch of rows with these columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from tsee.affinities import Affinities, conditional_probabilities, gaussian, precisions, to_double
from tsee.batches import Batch, Columns
from tsee.data import blocks, blocks_in_cache, pad_rows
from tsee.distributed import all_sum, broadcast, rank
from tsee.estimators.base import ParametricMap
from tsee.estimators.fitting import Plan, places_by
from tsee.exceptions import TrainingWarning, warn
from tsee.layout import free_places, place_weights, settle
from tsee.neighbors import Candidates, candidates_of, nearest
from tsee.objectives import distance_loss, exemplar_loss, noise_contrastive_loss, sampled_loss
from tsee.progress import progress_bar
from tsee.training import Loss

__all__ = ["Full", "Neighborhoods", "Noise", "Own", "Sampled", "among"]

SETTLED_ROWS = 4096
MAX_JITTER = 0.5
# A row's exemplars are drawn beforehand, one for each epoch; after so many epochs they come round again.
MAX_DRAWS = 64
# What a row's place among the exemplars depends on, and how near a row is to an exemplar that is the same row.
PLACE_NEIGHBORS = 15
ROUNDING = 1e-9
# Up to so many rows for each exemplar a place among exemplars is better than the network's. MNIST's error of 1-NN with
# 3 rows for each: 4.8 % against 6.0; with 15: 9.0 against 8.4.
ROWS_AN_EXEMPLAR = 4

# For a block of rows, which of the exemplars each is itself, -1 for none.
Own = Callable[[slice], Tensor]


class Full:
    """All exemplars in every batch, for the map and for the probabilities.

    Of the probabilities only the precision of each row is kept, and a batch's are made again from it:
    they cost a product of the batch with the exemplars, and the memory of n numbers instead of n x z.
    """

    def __init__(self, exemplars: Tensor, own: Own | None, perplexity: float, device: torch.device) -> None:
        self.exemplars, self.own, self.perplexity, self.device = exemplars.to(device), own, perplexity, device
        candidates = to_double(self.exemplars)
        self.center = candidates.mean(0)
        self.candidates = candidates - self.center
        self.half_norms = self.candidates.square().sum(1) / 2

    def columns(self, inputs: Tensor, rows: slice) -> Columns:
        """The precision of each row, and which exemplar it is."""
        beta = torch.empty(len(inputs), dtype=torch.float64)
        own = None if self.own is None else self.own(rows)
        for part in blocks_in_cache(len(inputs), len(self.exemplars)):
            distances = self._distances(inputs[part], None if own is None else own[part])
            beta[part] = precisions(distances, self.perplexity).cpu()
        return {"beta": beta} if own is None else {"beta": beta, "own": own.int()}

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Equation 12."""
        own = None if self.own is None else batch["own"].long()
        Y, V = _embed(network, batch["inputs"].to(self.device), self.exemplars)
        distances = self._distances(batch["inputs"], own)
        P = gaussian(distances, batch["beta"].to(distances.device)).to(device=self.device, dtype=Y.dtype)
        return exemplar_loss(Y, V, P, None if own is None else own.to(self.device))

    def _distances(self, inputs: Tensor, own: Tensor | None) -> Tensor:
        """Squared, less what is the same for every exemplar, which probabilities do not depend on."""
        rows = to_double(inputs.to(self.device)) - self.center
        table = 2 * torch.addmm(self.half_norms, rows, self.candidates.T, alpha=-1)
        if own is not None:
            mine = own.to(table.device)
            known = torch.nonzero(mine >= 0).squeeze(1)
            table[known, mine[known]] = torch.inf
        return table


class Neighborhoods:
    """The nearest exemplars of rows and their probabilities; those of the exemplars themselves are kept."""

    def __init__(self, exemplars: Tensor, own: Own | None, perplexity: float, k: int, *, keep: bool = False) -> None:
        self.exemplars, self.own, self.perplexity, self.k = exemplars, own, perplexity, k
        self.candidates = candidates_of(exemplars, k)
        self._kept = None
        if keep:
            shape = (len(exemplars), k)
            self._kept = Affinities(torch.zeros(shape, dtype=torch.int64), torch.zeros(shape))

    def __call__(self, inputs: Tensor, rows: slice) -> tuple[Affinities, Tensor | None]:
        """The neighbors of a block of rows, and which exemplar each row is."""
        own = None if self.own is None else self.own(rows)
        indices, distances = nearest(inputs, self.candidates, self.k, exclude=own)
        found = Affinities(indices, conditional_probabilities(distances, self.perplexity))
        if self._kept is not None and own is not None:
            mine = own >= 0
            self._kept.indices[own[mine]] = indices[mine]
            self._kept.probabilities[own[mine]] = found.probabilities[mine]
        return found, own

    @property
    def of_exemplars(self) -> Affinities:
        """The neighbors of the exemplars among themselves, each found by the process that has its row."""
        assert self._kept is not None
        return Affinities(all_sum(self._kept.indices), all_sum(self._kept.probabilities))


class Noise:
    """The nearest exemplars of each point, and a weighted sample of the others, itself not among them."""

    def __init__(self, estimator: ParametricMap, around: Neighborhoods, plan: Plan) -> None:
        self.around, self.device, self.generator = around, plan.device, plan.draws
        self.n_others = len(around.exemplars) - around.k - (around.own is not None)
        self.n_noise = min(estimator.n_noise, self.n_others)
        self.weight = estimator.noise_weight
        if self.weight == "auto":
            self.weight = self.n_others / self.n_noise if self.n_noise else 1.0

    def columns(self, inputs: Tensor, rows: slice) -> Columns:
        """The neighbors and their probabilities, and which exemplar a row is."""
        found, own = self.around(inputs, rows)
        columns = {"near": found.indices.int(), "probabilities": found.probabilities}
        return columns if own is None else {**columns, "own": own.int()}

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """The noise-contrastive form of equation 12."""
        near = batch["near"].long()
        excluded = near
        if self.around.own is not None:
            # For a row that is no exemplar, one past the last: it never draws the last of the others.
            itself = torch.where(batch["own"] >= 0, batch["own"], len(self.around.exemplars)).long()
            excluded = torch.cat([near, itself[:, None]], 1)
        # A draw of r is the r-th exemplar that is not excluded, found by shifting r past those that are.
        shifts = excluded.sort(1).values - torch.arange(excluded.shape[1])  # (rows, excluded)
        draws = torch.randint(max(self.n_others, 1), (len(batch), self.n_noise), generator=self.generator)
        noise = draws + torch.searchsorted(shifts, draws, right=True)
        used, position = torch.unique(torch.cat([near, noise], 1), return_inverse=True)
        Y, V = _embed(network, batch["inputs"].to(self.device), self.around.exemplars[used].to(self.device))
        places = V[position.to(self.device)]  # (rows, z_e + z_n, h)
        k = near.shape[1]
        return noise_contrastive_loss(
            Y, places[:, :k], places[:, k:], batch["probabilities"].to(self.device), self.weight
        )


class Sampled:
    """One exemplar a point, drawn from its probabilities; those drawn are everybody's sample.

    Of a row's probabilities only the exemplars drawn for it are kept, one for each epoch. Together they are a
    stratified sample: an exemplar of probability p is drawn p times the number of epochs, rounded up or down.
    """

    def __init__(self, estimator: ParametricMap, around: Neighborhoods, plan: Plan) -> None:
        self.estimator, self.around, self.device, self.generator = estimator, around, plan.device, plan.draws
        self.n_rows, self.n_draws = plan.n_rows, min(plan.n_epochs, MAX_DRAWS)
        # As with the width of a kernel: the more data, the less there is to smooth over.
        automatic = min(MAX_JITTER, MAX_JITTER * (1000 / plan.n_rows) ** 0.5)
        self.jitter = automatic if estimator.jitter is None else estimator.jitter
        of_exemplars = 1.0 if around.own is None else 2.0
        self.exaggeration = of_exemplars if estimator.exaggeration is None else estimator.exaggeration

    def columns(self, inputs: Tensor, rows: slice) -> Columns:
        """The exemplars drawn for each epoch, and which exemplar a row is."""
        found, own = self.around(inputs, rows)
        cumulative = found.probabilities.cumsum(1)
        cumulative[:, -1] = 1.0
        shape = (len(inputs), self.n_draws)
        strata = torch.rand(shape, generator=self.generator).argsort(1)
        # Rounding may not lead past the last.
        draws = ((strata + torch.rand(shape, generator=self.generator)) / self.n_draws).clamp_max_(1 - 1e-7)
        drawn = found.indices.gather(1, torch.searchsorted(cumulative, draws, right=True)).int()
        return {"drawn": drawn} if own is None else {"drawn": drawn, "own": own.int()}

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """An estimate of equation 12, the attraction exaggerated."""
        points, others = self._jittered(batch["inputs"], self.drawn(batch), self.jitter)
        Y, V = _embed(network, points.to(self.device), others.to(self.device))
        return sampled_loss(Y, V, exaggeration=self.exaggeration)

    def drawn(self, batch: Batch) -> Tensor:
        """The exemplars drawn for the rows of a batch in its epoch."""
        return batch["drawn"][:, batch.epoch % self.n_draws].long()

    def _jittered(self, points: Tensor, drawn: Tensor, jitter: float) -> tuple[Tensor, Tensor]:
        """The inputs of rows and of the exemplars drawn for them, with noise in proportion to the gap between.

        The map is held smooth so where data are few.
        """
        others = self.around.exemplars[drawn]
        if not jitter:
            return points, others
        length = (points - others).norm(dim=1, keepdim=True) * (jitter / points.shape[1] ** 0.5)
        points = points + length * torch.randn(points.shape, generator=self.generator)
        return points, others + length * torch.randn(others.shape, generator=self.generator)

    def refine(self, network: nn.Module, freed: Tensor | None = None) -> tuple[dict[str, Any], Loss | None]:
        """Free the exemplars from the network, then have the network learn where they, and the rows among them, went.

        These are auxiliary coordinates (Carreira-Perpinan and Vladymyrov, NIPS 2015): the loss of the places is
        lowered by exact forces, which sampling and the network's stiffness blur, and the network is fitted to the
        result. A row that is no exemplar is drawn to the place of one that is drawn for it: over the epochs, to where
        its own attraction is least. ``freed`` are their places if they are known.
        """
        complete = True
        if freed is None:
            freed, complete = self._freed(network)
        found: dict[str, Any] = {"_exemplar_places": freed}
        if self.n_rows <= ROWS_AN_EXEMPLAR * len(freed):
            found["placement_"] = "refined"
        jitter = MAX_JITTER if self.estimator.jitter is None else self.estimator.jitter

        def loss_of(network: nn.Module, batch: Batch) -> Tensor:
            drawn = batch["drawn"][:, -1 - batch.epoch % self.n_draws].long()
            points, _ = self._jittered(batch["inputs"], drawn, jitter)
            targets = freed[torch.where(batch["own"] >= 0, batch["own"], drawn)]
            return distance_loss(network(points.to(self.device)), targets.to(self.device))

        return found, loss_of if complete else None

    def _freed(self, network: nn.Module) -> tuple[Tensor, bool]:
        """Where the exemplars go from the network's places, and whether they were let go all the way."""
        exemplars, steps = self.around.exemplars, self.estimator.refinement
        freed = torch.from_numpy(places_by(network, exemplars))
        neighbors = self.around.of_exemplars
        complete = True
        if rank() == 0:
            with progress_bar(steps, "refinement", "step", verbose=bool(self.estimator.verbose)) as bar:
                freed, complete = free_places(
                    freed,
                    neighbors,
                    # Nearer to the loss as it is: the clusters have been found, and neighbors want their room.
                    exaggeration=self.exaggeration**0.5,
                    n_iterations=steps,
                    progress=lambda done: bar.update(),
                )
        freed, complete = broadcast(freed), bool(broadcast(torch.tensor(float(complete))))
        if not complete:
            warn("The refinement was interrupted: the places found until then are kept.", TrainingWarning)
        return same_for_equal(exemplars, freed), complete


@torch.inference_mode()
def among(inputs: Tensor, exemplars: Candidates, places: Tensor) -> Tensor:
    """Places of inputs among those of their nearest exemplars; an input that is an exemplar has its place."""
    k = min(PLACE_NEIGHBORS, len(exemplars.rows))
    found = torch.empty((len(inputs), places.shape[1]))
    nearby = nearest(inputs, exemplars, k)
    for rows in blocks(len(inputs), SETTLED_ROWS):
        # Filled up: sums over few rows may be taken in another order than those over many.
        indices, distances = (pad_rows(part[rows]) for part in nearby)
        settled = settle(places[indices], place_weights(distances))
        itself = distances[:, :1] <= ROUNDING * distances[:, -1:]
        settled = torch.where(itself, places[indices[:, 0]], settled)
        settled.masked_fill_(torch.isinf(distances[:, :1]), torch.nan)  # too far for a distance
        found[rows] = settled[: rows.stop - rows.start]
    return found


def same_for_equal(inputs: Tensor, places: Tensor) -> Tensor:
    """Places in which equal inputs have the same, the mean of theirs."""
    distinct, group = torch.unique(inputs, dim=0, return_inverse=True)
    if len(distinct) == len(inputs):
        return places
    sums = places.new_zeros(len(distinct), places.shape[1]).index_add_(0, group, places)
    return (sums / torch.bincount(group)[:, None])[group]


def _embed(network: nn.Module, points: Tensor, exemplars: Tensor) -> tuple[Tensor, Tensor]:
    """The places of points and exemplars by one pass of the network."""
    places = network(torch.cat([points, exemplars]))
    return places[: len(points)], places[len(points) :]
