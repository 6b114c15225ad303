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

from tsee.affinities import Affinities, conditional_probabilities
from tsee.data import blocks
from tsee.estimators.base import Deep, HighOrder, Objective, ParametricMap, places_by, resolve_perplexity
from tsee.estimators.losses import (
    SEARCH_ROWS,
    Draws,
    among,
    full_objective,
    noise_objective,
    refine,
    sampled_objective,
)
from tsee.estimators.parameters import check_parameters, documented
from tsee.exemplars import choose_centres, choose_points
from tsee.messages import DataWarning, warn
from tsee.neighbors import nearest
from tsee.preprocessing import evenly
from tsee.progress import progress_bar

__all__ = ["DtSEE", "HotSEE"]

AUTO_CENTRES = 2000
NOISE_NEIGHBORS = 100
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
