"""dt-SEE and hot-SEE: every point against the exemplars only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from tsee.affinities import Affinities, conditional_probabilities, gaussian, precisions, to_double
from tsee.data import BLOCK_ROWS, blocks
from tsee.estimators.base import Deep, HighOrder, Loss, Objective, ParametricMap, places_by, resolve_perplexity
from tsee.estimators.parameters import check_parameters, documented
from tsee.exemplars import choose_centres, choose_points
from tsee.layout import free_places, settle
from tsee.messages import DataWarning, TrainingWarning, warn
from tsee.neighbors import nearest
from tsee.objectives import exemplar_loss, noise_contrastive_loss, sampled_loss
from tsee.preprocessing import evenly
from tsee.progress import progress_bar

__all__ = ["DtSEE", "HotSEE"]

AUTO_CENTRES = 2000
NOISE_NEIGHBORS = 100
SEARCH_ROWS = 4096
MAX_JITTER = 0.5
# What a row's place among the exemplars depends on, and how near a row is to an exemplar that is the same row.
PLACE_NEIGHBORS = 15
PLACE_PERPLEXITY = 5.0
ROUNDING = 1e-9
# Of fewer exemplars every pair are neighbours: nothing is left to hold them apart.
FEWEST = 10


class ExemplarMap(ParametricMap):
    """Keeps the probabilities of neighbouring the exemplars (equations 8 to 12)."""

    def _make_objective(self, inputs: Tensor, device: torch.device, generator: torch.Generator) -> Objective:
        exemplars, own, fitted = self._choose(inputs, device, generator)
        n_candidates = len(exemplars) - (own is not None)
        if self.contrast == "full":
            perplexity = resolve_perplexity(self.perplexity, n_candidates, "exemplars")
            objective = Objective(full_objective(self, inputs, exemplars, own, perplexity, device), fitted)
        else:
            n_candidates = min(n_candidates, self.n_neighbors or n_candidates)
            perplexity = resolve_perplexity(self.perplexity, n_candidates, "exemplars (see n_neighbors)")
            affinities = self._affinities(inputs, exemplars, own, perplexity, n_candidates)
            if self.contrast == "noise":
                loss_of = noise_objective(self, inputs, exemplars, own, affinities, device, generator)
                objective = Objective(loss_of, fitted)
            else:
                draw = Draws(inputs, exemplars, affinities, generator)
                objective = Objective(sampled_objective(self, draw, device), fitted)
                if own is not None and self.n_components == 2 and self.refinement and len(exemplars) >= FEWEST:
                    objective.second = partial(refine, self, draw, own, device)
        fitted |= {"perplexity_": perplexity, "placement_": "forward"}
        return objective

    def _choose(
        self, inputs: Tensor, device: torch.device, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None, dict[str, Any]]:
        """The exemplars, for each row which of them it is itself (-1 for none; None if no row is), and attributes."""
        n_rows = len(inputs)
        if self.exemplars == "points":
            wanted = n_rows if self.n_exemplars is None else self.n_exemplars
            chosen = choose_points(n_rows, wanted, generator)
            own = torch.full((n_rows,), -1)
            own[chosen] = torch.arange(len(chosen))
            exemplars = inputs[chosen]
            fitted: dict[str, Any] = {"exemplar_indices_": chosen.numpy()}
        else:
            wanted = min(AUTO_CENTRES, max(2, n_rows // 2)) if self.n_exemplars is None else self.n_exemplars
            with progress_bar(self.kmeans_iterations, "k-means", "update", verbose=bool(self.verbose)) as bar:
                centres = choose_centres(
                    inputs,
                    wanted,
                    seeding=self.seeding,
                    n_iterations=self.kmeans_iterations,
                    generator=generator,
                    device=device,
                    progress=lambda done: bar.update(),
                )
            own, exemplars, fitted = None, centres.positions, {"exemplar_indices_": None}
        if len(exemplars) < wanted and self.n_exemplars is not None:
            kind = "rows" if self.exemplars == "points" else "distinct rows"
            warn(
                f"The 'n_exemplars' parameter is {self.n_exemplars}, but the data hold only {len(exemplars)} "
                f"{kind}: {len(exemplars)} exemplars are used.",
                DataWarning,
            )
        return exemplars, own, {"n_exemplars_": len(exemplars), "_exemplar_inputs": exemplars, **fitted}

    def _affinities(
        self, inputs: Tensor, exemplars: Tensor, own: Tensor | None, perplexity: float, n_candidates: int
    ) -> Affinities:
        automatic = max(math.ceil(3 * perplexity), NOISE_NEIGHBORS if self.contrast == "noise" else 0)
        k = min(n_candidates, automatic) if self.n_neighbors is None else n_candidates
        indices = torch.empty((len(inputs), k), dtype=torch.int64)
        probabilities = torch.empty((len(inputs), k))
        bar = progress_bar(len(inputs), "neighbours", "row", verbose=bool(self.verbose))
        with bar:
            for rows in blocks(len(inputs), SEARCH_ROWS):
                exclude = None if own is None else own[rows]
                indices[rows], distances = nearest(inputs[rows], exemplars, k, exclude=exclude)
                probabilities[rows] = conditional_probabilities(distances, perplexity)
                bar.update(rows.stop - rows.start)
        return Affinities(indices, probabilities)

    def _finish(self, inputs: Tensor) -> None:
        refined = self.__dict__.pop("_refined_rows", None)
        if refined is None:
            self._exemplar_places = torch.from_numpy(places_by(self.network_, self._exemplar_inputs))
        forward = refined is None or (self.placement or self.placement_) == "forward"
        self.embedding_ = self._places(inputs) if forward else refined
        rows = self.exemplar_indices_
        self.exemplar_embedding_ = self._exemplar_places.numpy() if rows is None else self.embedding_[rows]

    def _places(self, inputs: Tensor) -> np.ndarray:
        check_parameters(self, "placement")
        if (self.placement or self.placement_) == "forward":
            return places_by(self.network_, inputs)
        # Evenly: of candidates that tie, those found may not hang on how many other rows there are.
        return evenly(lambda rows: among(rows, self._exemplar_inputs, self._exemplar_places), inputs).numpy()

    @property
    def exemplars_(self) -> np.ndarray:
        """The exemplars in the units of the data, shape (n_exemplars_, n_features_in_)."""
        check_is_fitted(self)
        restored: np.ndarray = self.preprocessing_.inverse(self._exemplar_inputs)
        return restored


def full_objective(
    estimator: ExemplarMap,
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
    estimator: ExemplarMap,
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


def sampled_objective(estimator: ExemplarMap, draw: Draws, device: torch.device) -> Loss:
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
    estimator: ExemplarMap, draw: Draws, own: Tensor, device: torch.device, network: nn.Module
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


@documented
class DtSEE(Deep, ExemplarMap):
    """Deep t-distributed stochastic exemplar-centered embedding (dt-SEE): the default choice.

    A deep network learns to keep each row's probabilities of neighbouring the exemplars. Halfway the exemplars are
    freed from the network and go to where the loss wants each of them, and the network learns these places. A new
    row is placed among its nearest exemplars, or by one pass through the network (see ``placement``).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tsee import DtSEE
    >>> X = load_digits().data
    >>> see = DtSEE(max_epochs=5, random_state=0).fit(X[:1500])
    >>> see.transform(X[1500:]).shape
    (297, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 10.0,
        exemplars: str = "points",
        n_exemplars: int | None = None,
        seeding: str = "k-means||",
        kmeans_iterations: int = 10,
        contrast: str = "sampled",
        exaggeration: float = 2.0,
        jitter: float | None = None,
        refinement: int = 200,
        placement: str | None = None,
        n_neighbors: int | None = None,
        n_noise: int = 100,
        noise_weight: float | str = "auto",
        hidden_layers: Sequence[int] = (512, 512, 512),
        normalization: str | None = "layer",
        activation: str = "relu",
        network: nn.Module | None = None,
        n_inputs: int | None = 50,
        spare_dimensions: int = 8,
        batch_size: int | None = None,
        max_epochs: int | None = None,
        learning_rate: float = 0.01,
        optimizer: str = "adam",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.exemplars = exemplars
        self.n_exemplars = n_exemplars
        self.seeding = seeding
        self.kmeans_iterations = kmeans_iterations
        self.contrast = contrast
        self.exaggeration = exaggeration
        self.jitter = jitter
        self.refinement = refinement
        self.placement = placement
        self.n_neighbors = n_neighbors
        self.n_noise = n_noise
        self.noise_weight = noise_weight
        self.hidden_layers = hidden_layers
        self.normalization = normalization
        self.activation = activation
        self.network = network
        self.n_inputs = n_inputs
        self.spare_dimensions = spare_dimensions
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.device = device
        self.random_state = random_state
        self.verbose = verbose


@documented
class HotSEE(HighOrder, ExemplarMap):
    """High-order t-distributed stochastic exemplar-centered embedding (hot-SEE).

    As `DtSEE`, with the shallow network of equation 7.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tsee import HotSEE
    >>> X = load_digits().data
    >>> see = HotSEE(max_epochs=5, random_state=0).fit(X[:1500])
    >>> see.transform(X[1500:]).shape
    (297, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 10.0,
        exemplars: str = "points",
        n_exemplars: int | None = None,
        seeding: str = "k-means||",
        kmeans_iterations: int = 10,
        contrast: str = "sampled",
        exaggeration: float = 2.0,
        jitter: float | None = None,
        refinement: int = 200,
        placement: str | None = None,
        n_neighbors: int | None = None,
        n_noise: int = 100,
        noise_weight: float | str = "auto",
        n_factors: int = 800,
        n_hidden: int = 400,
        order: int = 2,
        normalization: str | None = "layer",
        n_inputs: int | None = 50,
        spare_dimensions: int = 8,
        batch_size: int | None = None,
        max_epochs: int | None = None,
        learning_rate: float = 0.03,
        optimizer: str = "adam",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.exemplars = exemplars
        self.n_exemplars = n_exemplars
        self.seeding = seeding
        self.kmeans_iterations = kmeans_iterations
        self.contrast = contrast
        self.exaggeration = exaggeration
        self.jitter = jitter
        self.refinement = refinement
        self.placement = placement
        self.n_neighbors = n_neighbors
        self.n_noise = n_noise
        self.noise_weight = noise_weight
        self.n_factors = n_factors
        self.n_hidden = n_hidden
        self.order = order
        self.normalization = normalization
        self.n_inputs = n_inputs
        self.spare_dimensions = spare_dimensions
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.device = device
        self.random_state = random_state
        self.verbose = verbose
