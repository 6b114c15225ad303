"""What the exemplar methods train for: the three forms of their loss, the refinement, and places among exemplars."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from tsee.affinities import Affinities, conditional_probabilities, gaussian, precisions, to_double
from tsee.data import BLOCK_ROWS, blocks
from tsee.estimators.base import Loss, ParametricMap, places_by
from tsee.layout import free_places, settle
from tsee.messages import TrainingWarning, warn
from tsee.neighbors import nearest
from tsee.objectives import exemplar_loss, noise_contrastive_loss, sampled_loss
from tsee.progress import progress_bar

__all__ = ["SEARCH_ROWS", "Draws", "among", "full_objective", "noise_objective", "refine", "sampled_objective"]

SEARCH_ROWS = 4096
MAX_JITTER = 0.5
# What a row's place among the exemplars depends on, and how near a row is to an exemplar that is the same row.
PLACE_NEIGHBORS = 15
PLACE_PERPLEXITY = 5.0
ROUNDING = 1e-9


def full_objective(
    estimator: ParametricMap,
    inputs: Tensor,
    exemplars: Tensor,
    own: Tensor | None,
    perplexity: float,
    device: torch.device,
) -> Loss:
    """All exemplars in every batch, for the map and for the probabilities.

    Of the probabilities only the precision of each row is kept, and a batch's are made again from it:
    they cost a product of the batch with the exemplars, and the memory of n numbers instead of n x z.
    """
    everyone = exemplars.to(device)
    candidates = to_double(everyone)
    centre = candidates.mean(0)
    candidates = candidates - centre
    half_norms = candidates.square().sum(1) / 2

    def distances(rows: Tensor) -> Tensor:
        """Squared, less what is the same for every exemplar, which probabilities do not depend on."""
        batch = to_double(inputs[rows].to(device)) - centre
        table = 2 * torch.addmm(half_norms, batch, candidates.T, alpha=-1)
        if own is not None:
            mine = own[rows].to(table.device)
            known = torch.nonzero(mine >= 0).squeeze(1)
            table[known, mine[known]] = torch.inf
        return table

    beta = torch.empty(len(inputs), dtype=torch.float64)
    with progress_bar(len(inputs), "precisions", "row", verbose=bool(estimator.verbose)) as bar:
        for rows in torch.arange(len(inputs)).split(BLOCK_ROWS):
            beta[rows] = precisions(distances(rows), perplexity).cpu()
            bar.update(len(rows))

    def loss_of(network: nn.Module, rows: Tensor) -> Tensor:
        Y, V = _embed(network, inputs[rows].to(device), everyone)
        table = distances(rows)
        P = gaussian(table, beta[rows].to(table.device)).to(device=device, dtype=Y.dtype)
        return exemplar_loss(Y, V, P, None if own is None else own[rows].to(device))

    return loss_of


def noise_objective(
    estimator: ParametricMap,
    inputs: Tensor,
    exemplars: Tensor,
    own: Tensor | None,
    affinities: Affinities,
    device: torch.device,
    generator: torch.Generator,
) -> Loss:
    """The nearest exemplars of each point, and a weighted sample of the others, itself not among them."""
    n_near = affinities.indices.shape[1]
    n_others = len(exemplars) - n_near - (own is not None)
    n_noise = min(estimator.n_noise, n_others)
    weight = estimator.noise_weight
    if weight == "auto":
        weight = n_others / n_noise if n_noise else 1.0
    excluded = affinities.indices
    if own is not None:  # for a row that is no exemplar, one past the last: it never draws the last of the others
        itself = torch.where(own >= 0, own, len(exemplars))
        excluded = torch.cat([excluded, itself[:, None]], 1)
    # A draw of r is the r-th exemplar that is not excluded, found by shifting r past those that are.
    shifts = excluded.sort(1).values - torch.arange(excluded.shape[1])  # (n, excluded)

    def loss_of(network: nn.Module, rows: Tensor) -> Tensor:
        near = affinities.indices[rows]
        draws = torch.randint(max(n_others, 1), (len(rows), n_noise), generator=generator)
        noise = draws + torch.searchsorted(shifts[rows], draws, right=True)
        used, position = torch.unique(torch.cat([near, noise], 1), return_inverse=True)
        Y, V = _embed(network, inputs[rows].to(device), exemplars[used].to(device))
        places = V[position.to(device)]  # (rows, z_e + z_n, h)
        return noise_contrastive_loss(
            Y, places[:, :n_near], places[:, n_near:], affinities.probabilities[rows].to(device), weight
        )

    return loss_of


class Draws:
    """For rows of the data an exemplar each, drawn from their probabilities."""

    def __init__(self, inputs: Tensor, exemplars: Tensor, affinities: Affinities, generator: torch.Generator) -> None:
        self.inputs, self.exemplars, self.affinities, self.generator = inputs, exemplars, affinities, generator
        self.cumulative = affinities.probabilities.cumsum(1)
        self.cumulative[:, -1] = 1.0

    def __call__(self, rows: Tensor, jitter: float) -> tuple[Tensor, Tensor]:
        """The inputs of the rows and of the exemplars drawn for them, with noise in proportion to the gap between.

        The map is held smooth so where data are few.
        """
        draw = torch.rand(len(rows), 1, generator=self.generator)
        draw = torch.searchsorted(self.cumulative[rows], draw, right=True)
        points = self.inputs[rows]
        others = self.exemplars[self.affinities.indices[rows].gather(1, draw).squeeze(1)]
        if not jitter:
            return points, others
        length = (points - others).norm(dim=1, keepdim=True) * (jitter / points.shape[1] ** 0.5)
        points = points + length * torch.randn(points.shape, generator=self.generator)
        return points, others + length * torch.randn(others.shape, generator=self.generator)


def sampled_objective(estimator: ParametricMap, draw: Draws, device: torch.device) -> Loss:
    """One exemplar a point, drawn from its probabilities; those drawn are everybody's sample."""
    jitter = estimator.jitter
    if jitter is None:
        # As with the width of a kernel: the more data, the less there is to smooth over.
        jitter = min(MAX_JITTER, MAX_JITTER * (1000 / len(draw.inputs)) ** 0.5)

    def loss_of(network: nn.Module, rows: Tensor) -> Tensor:
        points, others = draw(rows, jitter)
        Y, V = _embed(network, points.to(device), others.to(device))
        return sampled_loss(Y, V, exaggeration=estimator.exaggeration)

    return loss_of


def refine(
    estimator: ParametricMap, draw: Draws, own: Tensor, device: torch.device, network: nn.Module
) -> tuple[dict[str, Any], Loss | None]:
    """Free the exemplars from the network, then have the network learn where they, and the rows among them, went.

    These are auxiliary coordinates (Carreira-Perpinan and Vladymyrov, NIPS 2015): the loss of the places is lowered
    by exact forces, which sampling and the network's stiffness blur, and the network is fitted to the result.
    """
    rows = torch.nonzero(own >= 0).squeeze(1)
    order = rows[own[rows].argsort()]  # the rows that the exemplars are
    neighbors = Affinities(draw.affinities.indices[order], draw.affinities.probabilities[order])
    with progress_bar(estimator.refinement, "refinement", "step", verbose=bool(estimator.verbose)) as bar:
        freed, complete = free_places(
            torch.from_numpy(places_by(network, draw.exemplars)),
            neighbors,
            # Nearer to the loss as it is: the clusters have been found, and neighbours want their room.
            exaggeration=estimator.exaggeration**0.5,
            n_iterations=estimator.refinement,
            progress=lambda done: bar.update(),
        )
    if not complete:
        warn("The refinement was interrupted: the places found until then are kept.", TrainingWarning)
    freed = same_for_equal(draw.exemplars, freed)
    targets = freed[own]
    others = torch.nonzero(own < 0).squeeze(1)
    targets[others] = among(draw.inputs[others], draw.exemplars, freed)
    placement = "forward" if len(others) else "refined"
    found = {"_exemplar_places": freed, "_refined_rows": targets.numpy(), "placement_": placement}
    jitter = MAX_JITTER if estimator.jitter is None else estimator.jitter

    def loss_of(network: nn.Module, rows: Tensor) -> Tensor:
        points, _ = draw(rows, jitter)
        away = (network(points.to(device)) - targets[rows].to(device)).square().sum(1)
        return torch.log1p(away).mean()

    return found, loss_of if complete else None


def among(inputs: Tensor, exemplars: Tensor, places: Tensor) -> Tensor:
    """Places of inputs among those of their nearest exemplars; an input that is an exemplar has its place."""
    k = min(PLACE_NEIGHBORS, len(exemplars))
    found = torch.empty((len(inputs), places.shape[1]))
    for rows in blocks(len(inputs), SEARCH_ROWS):
        indices, distances = nearest(inputs[rows], exemplars, k)
        probabilities = conditional_probabilities(distances, min(PLACE_PERPLEXITY, max(1.0, k / 3)))
        settled = settle(places[indices], probabilities)
        itself = distances[:, :1] <= ROUNDING * distances[:, -1:]
        found[rows] = torch.where(itself, places[indices[:, 0]], settled)
        found[rows][~torch.isfinite(distances[:, 0])] = torch.nan  # too far for a distance
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
