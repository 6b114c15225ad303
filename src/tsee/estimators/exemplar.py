"""What dt-SEE and hot-SEE share: every row against the exemplars only."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import torch
from torch import Tensor, nn

from tsee.batches import steps_per_epoch
from tsee.estimators.automatic import (
    LAYOUT_EXAGGERATION,
    PERPLEXITY,
    falling_perplexity,
    layout_neighbors,
    n_places,
    n_points,
    n_seen,
    projection_of,
)
from tsee.estimators.base import ParametricMap
from tsee.estimators.paper import PaperSettings
from tsee.estimators.properties import ExemplarProperties
from tsee.estimators.starting import LEAST_WEIGHT, Started
from tsee.estimators.updating import Updated
from tsee.exceptions import DataWarning, warn
from tsee.exemplars import Exemplars, choose_centers, choose_points, take, take_own
from tsee.growing.lesson import share_of
from tsee.labels import Labels
from tsee.layout import Guide
from tsee.metric import PRECOMPUTED, check_distances, compares_features, metric_of
from tsee.neighbors import GivenIndex, GivenNeighbors
from tsee.networks import NoNetwork, put_before
from tsee.objectives import Full, Keeper, Neighborhoods, Noise, Objective, Sampled
from tsee.placement.given import given_positions
from tsee.preprocessing import Inputs, Preprocessing
from tsee.progress import progress_bar
from tsee.scikit import check_is_fitted
from tsee.training.plan import AUTO_STEPS, FEWEST_EPOCHS, MAX_EPOCHS, Plan, resolve_batch_size, resolve_perplexity
from tsee.training.stages import MANY_EXEMPLARS, Distill, LayOut, Stage, is_dense

__all__ = ["ExemplarMap"]

# With more centers, each one stands for fewer rows of other kinds. The full and the noise form take longer, though.
AUTO_CENTERS, AUTO_CENTERS_OF_SLOW_FORMS = 8192, 2000
# k-means sees this many rows, or this many per center: more would not move the centers.
KMEANS_ROWS, KMEANS_ROWS_PER_CENTER = 2**19, 64
NOISE_NEIGHBORS = 100
# With fewer exemplars all of them are neighbors of each other: nothing is left to hold them apart.
MIN_REFINED = 10
# The most perplexity per given neighbor, of which there are often few. More would make near ones no nearer than others.
GIVEN_SHARE = 2 / 3
# The factor on the attraction where the network learns from exemplars drawn for its rows.
POINTS_EXAGGERATION, CENTERS_EXAGGERATION = 2.0, 1.0
# How often a network that only comes second sees each of very many rows.
SECOND_EPOCHS = 4
# Steps that such a network gains from, if there are not too many epochs in them. More rows add little.
PLACES_STEPS = 2700


class ExemplarMap(PaperSettings, Updated, Started, ExemplarProperties, ParametricMap):
    """Keeps the probabilities of neighboring the exemplars (equations 8 to 12)."""

    _n_batches = 32
    # What `fast` sets.
    _fast: ClassVar[dict[str, Any]] = {}

    perplexity: float
    exemplars: Literal["points", "centers"]
    n_exemplars: int | None
    seeding: Literal["k-means||", "random"]
    kmeans_iterations: int
    contrast: Literal["sampled", "full", "noise"]
    exaggeration: float | None
    jitter: float | None
    refinement: int
    global_weight: float
    supervised: float
    max_memory: float | None
    start: Any
    placement: Literal["refined", "forward"] | None
    n_neighbors: int | None
    n_noise: int
    noise_weight: float | Literal["auto"]

    @classmethod
    def fast(cls, **parameters: Any) -> Self:
        """The estimator with settings for speed: a smaller network, and a shorter layout.

        The map loses little by it; the network's own positions (``placement="forward"``) lose more.

        Parameters
        ----------
        **parameters
            Other parameters; they override the settings for speed.

        Returns
        -------
        DtSEE or HotSEE

        Examples
        --------
        >>> from tsee import DtSEE
        >>> DtSEE.fast(random_state=0)
        DtSEE(hidden_layers=(128, 128, 128), random_state=0, refinement=200)
        """
        return cls(**{**cls._fast, **parameters})

    def fit(self, X: Any, y: Any = None, *, neighbors: Any = None) -> Self:
        """Learn the map of ``X``.

        Parameters
        ----------
        X : array, DataFrame, Arrow table, tensor, sparse matrix or path, of shape (n_samples, n_features)
            Numbers of any dtype, or a table with words, dates or gaps (see ``columns``). The unit that all features
            share does not matter; features in different units count by their variance, unless ``standardize=True``.
            Memory maps, arrays of h5py, zarr and dask, the rows of `tsee.files.open_table`, and paths to files that it
            can open are read by slice, and may be larger than memory: what training needs of them is then kept in a
            temporary file. With ``metric="precomputed"``, a square matrix of distances.
        y : array, list, tensor or Series of shape (n_samples,), optional
            Labels, if ``supervised`` is above 0; ignored otherwise. Whole numbers, text and booleans are classes, other
            numbers are numbers. Some may be unknown: NaN, None, empty text, and -1 among classes.
        neighbors : sparse matrix of shape (n_samples, n_samples), or pair of arrays of shape (n_samples, k), optional
            The neighbors of the rows, if you know them: a sparse matrix of distances, as
            ``sklearn.neighbors.kneighbors_graph(X, k, mode="distance")`` and scanpy (``adata.obsp["distances"]``) make
            it, or a pair (indices, distances), as PyNNDescent has it. They need no order; a row itself does not count,
            and an index of -1 stands for no neighbor. The layout keeps these neighbors, of all rows: every row is an
            exemplar. The network, the large shape of the data and the placement of other rows still depend on ``X``.
            ``perplexity_`` is at most two thirds of the usual number of neighbors; 1.5 times the perplexity is enough.

        Returns
        -------
        self

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from sklearn.neighbors import kneighbors_graph
        >>> from tsee import DtSEE
        >>> X = load_digits().data
        >>> graph = kneighbors_graph(X, 60, mode="distance", metric="canberra")
        >>> DtSEE(max_epochs=1, random_state=0).fit(X, neighbors=graph).perplexity_
        36.0
        """
        return self._fit(X, y, neighbors)

    def fit_transform(self, X: Any, y: Any = None, *, neighbors: Any = None) -> np.ndarray:
        """Learn the map of ``X`` and return the positions of its rows.

        Without given neighbors, ``transform(X)`` gives the same positions.

        Parameters
        ----------
        X, y, neighbors
            As in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32

        Examples
        --------
        >>> import numpy as np
        >>> from tsee import DtSEE
        >>> X = np.random.default_rng(0).normal(size=(90, 4))
        >>> DtSEE(max_epochs=1, random_state=0).fit_transform(X).shape
        (90, 2)
        """
        return self._fit(X, y, neighbors)._first_positions(X)

    def transform(self, X: Any, *, neighbors: Any = None) -> np.ndarray:
        """Place rows on the map.

        A row's position does not depend on the other rows.

        Parameters
        ----------
        X : array, DataFrame, Arrow table, tensor, sparse matrix or path, of shape (n_samples, n_features)
            With ``metric="precomputed"``, the distances of each row from all rows of ``fit``.
        neighbors : sparse matrix of shape (n_samples, n_fitted), or pair of arrays of shape (n_samples, k), optional
            The neighbors of the rows among the n_fitted rows of ``fit``, as in ``fit``. The rows are placed among these
            neighbors, up to 20 of them, and not by ``X``. Every row of ``fit`` must be an exemplar.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32

        Examples
        --------
        >>> import numpy as np
        >>> from tsee import DtSEE
        >>> X = np.random.default_rng(0).normal(size=(90, 4))
        >>> see = DtSEE(max_epochs=1, random_state=0).fit(X[:80])
        >>> see.transform(X[80:]).shape
        (10, 2)
        """
        if neighbors is None:
            return super().transform(X)
        check_is_fitted(self)
        n_rows = self._check_new(X).shape[0]
        return given_positions(self._fitted_exemplars, neighbors, n_rows, sum(self.map_.row_counts)).numpy()

    def _start_network(self, inputs: Inputs, plan: Plan) -> nn.Module:
        return NoNetwork() if self.metric == PRECOMPUTED else super()._start_network(inputs, plan)

    def _choose_exemplars(self, inputs: Inputs, plan: Plan, given: GivenNeighbors | None) -> Exemplars:
        if given is not None or self.metric == PRECOMPUTED:
            return self._every_row(inputs, plan, given)
        if self.exemplars == "points":
            wanted = self._most_points(plan.n_rows, inputs.shape[1], plan)
            indices = choose_points(plan.n_rows, wanted, plan.generator)
            exemplars = Exemplars(take(inputs, indices), indices, metric=metric_of(self.metric))
        else:
            automatic = AUTO_CENTERS if self.contrast == "sampled" else AUTO_CENTERS_OF_SLOW_FORMS
            wanted = min(automatic, max(2, plan.n_rows // 2)) if self.n_exemplars is None else self.n_exemplars
            exemplars = Exemplars(self._centers(inputs, plan, wanted))
        if len(exemplars) < wanted and self.n_exemplars is not None:
            kind = "rows" if self.exemplars == "points" else "distinct rows"
            warn(
                f"The 'n_exemplars' parameter is {self.n_exemplars}, but the data hold only {len(exemplars)} "
                f"{kind}: {len(exemplars)} exemplars are used.",
                DataWarning,
            )
        return exemplars

    def _most_points(self, n_rows: int, n_inputs: int, plan: Plan) -> int:
        """How many points the exemplars of so many rows may be."""
        if self.n_exemplars is not None:
            return int(self.n_exemplars)
        return n_points(
            n_rows,
            n_inputs,
            perplexity=self.perplexity,
            n_neighbors=self.n_neighbors,
            max_memory=self.max_memory,
            verbose=plan.verbose,
        )

    def _every_row(self, inputs: Inputs, plan: Plan, given: GivenNeighbors | None) -> Exemplars:
        """All rows as exemplars, with the neighbors that were given."""
        what = f'metric="{PRECOMPUTED}"' if given is None else "given neighbors"
        for name, fits, must_be in (
            ("exemplars", self.exemplars == "points", '"points"'),
            ("n_exemplars", self.n_exemplars is None or self.n_exemplars >= plan.n_rows, "None"),
            ("contrast", self.contrast != "full", '"sampled" or "noise"'),
        ):
            if not fits:
                raise ValueError(
                    f"The {name!r} parameter of {type(self).__name__} must be {must_be} with {what}, for which every "
                    f"row is an exemplar and has a few neighbors. Got {getattr(self, name)!r} instead."
                )
        if given is None and plan.n_rows < MIN_REFINED:
            raise ValueError(f"X must have at least {MIN_REFINED} rows with {what}. Got {plan.n_rows} instead.")
        indices = torch.arange(plan.n_rows)
        rows, metric = take(inputs, indices), metric_of(self.metric)
        if given is None:
            check_distances(rows)
            return Exemplars(rows, indices, metric=metric)
        return Exemplars(rows, indices, metric=metric, neighbors=GivenIndex(rows, metric, given, plan.start))

    def _centers(self, inputs: Inputs, plan: Plan, wanted: int) -> Tensor:
        n_sampled = max(KMEANS_ROWS, KMEANS_ROWS_PER_CENTER * wanted)
        sample = choose_points(plan.n_rows, n_sampled, plan.generator) - plan.start
        sample = sample[(sample >= 0) & (sample < len(inputs))]
        with progress_bar(self.kmeans_iterations, "k-means", "update", verbose=plan.verbose) as bar:
            centers = choose_centers(
                take_own(inputs, sample),
                wanted,
                seeding=self.seeding,
                n_iterations=self.kmeans_iterations,
                generator=plan.generator,
                device=plan.device,
                progress=lambda done: bar.update(),
            )
        return centers.positions

    def _learners(self, exemplars: Exemplars | None, plan: Plan) -> Tensor | None:
        """This process's share of the exemplars, where these are fewer than the rows but enough to learn a layout."""
        assert exemplars is not None
        enough = MANY_EXEMPLARS <= len(exemplars) < plan.n_rows
        if not enough or not self._is_refined(exemplars) or self.placement == "forward":
            return None
        return torch.arange(len(exemplars))[share_of(len(exemplars))]

    def _make_objective(
        self,
        exemplars: Exemplars | None,
        plan: Plan,
        n_own_rows: int,
        labels: Labels | None,
        learners: Tensor | None = None,
        keeper: Keeper | None = None,
    ) -> Objective:
        assert exemplars is not None
        n_candidates = len(exemplars) - (exemplars.indices is not None)
        if self.contrast == "full":
            perplexity = resolve_perplexity(self.perplexity, n_candidates, "exemplars", PERPLEXITY)
            return Full(exemplars, plan.start, perplexity, plan.device)
        kind, share = "exemplars (see n_neighbors)", 1 / 3
        if exemplars.neighbors is not None:
            n_candidates, kind, share = exemplars.neighbors.usual_count, "given neighbors", GIVEN_SHARE
        n_candidates = min(n_candidates, self.n_neighbors or n_candidates)
        perplexity = resolve_perplexity(self.perplexity, n_candidates, kind, PERPLEXITY, share=share)
        refined = self._is_refined(exemplars)
        if refined:
            perplexity = falling_perplexity(perplexity, len(exemplars))
        automatic = layout_neighbors(perplexity, len(exemplars)) if refined else math.ceil(3 * perplexity)
        automatic = max(automatic, NOISE_NEIGHBORS if self.contrast == "noise" else 0)
        k = min(n_candidates, automatic) if self.n_neighbors is None else n_candidates
        projection = self._projection(exemplars)
        neighborhoods = Neighborhoods(
            exemplars,
            plan.start,
            perplexity,
            k,
            remember=refined,
            projection=projection,
            labels=labels,
            learners=learners,
            keeper=keeper,
            verbose=plan.verbose,
        )
        if self.contrast == "noise":
            return Noise(neighborhoods, self.n_noise, self.noise_weight, plan.device, plan.draws)
        automatic_exaggeration = CENTERS_EXAGGERATION if exemplars.indices is None else POINTS_EXAGGERATION
        return Sampled(
            neighborhoods,
            n_rows=plan.n_rows,
            n_epochs=self._distilled(exemplars, plan)[0] if refined else plan.n_epochs,
            jitter=self.jitter,
            exaggeration=automatic_exaggeration if self.exaggeration is None else self.exaggeration,
            device=plan.device,
            generator=plan.draws,
        )

    def _perplexity_among(self, n_candidates: int) -> tuple[float, int]:
        """The perplexity of a layout in which a row has so many candidates, and the neighbors of a row."""
        n_exemplars = n_candidates + 1
        n_candidates = min(n_candidates, self.n_neighbors or n_candidates)
        perplexity = resolve_perplexity(self.perplexity, n_candidates, "exemplars (see n_neighbors)", PERPLEXITY)
        perplexity = falling_perplexity(perplexity, n_exemplars)
        automatic = min(n_candidates, layout_neighbors(perplexity, n_exemplars))
        return perplexity, automatic if self.n_neighbors is None else n_candidates

    def _n_seen(self, n_inputs: int) -> int:
        # The full form compares rows with all exemplars in every batch, so it keeps all their inputs. The offset of a
        # projection goes into the bias of a hidden layer.
        ours = getattr(self, "network", None) is None and len(getattr(self, "hidden_layers", (1,))) > 0
        projected = compares_features(self.metric) and self.metric != PRECOMPUTED and ours and self.contrast != "full"
        return n_seen(n_inputs) if projected else n_inputs

    def _projection(self, exemplars: Exemplars) -> Preprocessing | None:
        """Principal components that the network is trained on, where more numbers are compared than it needs."""
        n_inputs = exemplars.inputs.shape[1]
        return None if self._n_seen(n_inputs) == n_inputs else projection_of(exemplars)

    def _on_inputs(self, network: nn.Module, objective: Objective) -> nn.Module:
        projection = objective.neighborhoods.projection if isinstance(objective, Sampled | Noise) else None
        if projection is not None:
            assert projection.basis is not None
            weight = torch.from_numpy(projection.basis).double() / projection.scale
            put_before(network, weight, -torch.from_numpy(projection.mean) @ weight)
        return network

    def _is_refined(self, exemplars: Exemplars) -> bool:
        wanted = bool(self.refinement) and self.contrast == "sampled"
        return wanted and exemplars.indices is not None and len(exemplars) >= MIN_REFINED

    def _stages(self, objective: Objective, plan: Plan, guide: Guide | None) -> Sequence[Stage]:
        if not isinstance(objective, Sampled) or not self._is_refined(objective.neighborhoods.exemplars):
            return super()._stages(objective, plan, guide)
        weight = max(float(self.global_weight), 0 if guide is None else LEAST_WEIGHT)
        layout = LayOut(
            objective,
            n_iterations=self.refinement,
            pull=weight / (1 - weight) if weight < 1 else math.inf,
            exaggeration=LAYOUT_EXAGGERATION if self.exaggeration is None else self.exaggeration,
            guide=guide,
        )
        if self.metric == PRECOMPUTED:  # there is no network
            return [layout]
        return [layout, Distill(objective, *self._distilled(objective.neighborhoods.exemplars, plan))]

    def _distilled(self, exemplars: Exemplars, plan: Plan) -> tuple[int, int]:
        """Epochs in which the network learns a layout, and the places it chooses among: 0 if it is the user's own."""
        sparse = self.placement is None and not is_dense(plan.n_rows, len(exemplars))
        alone = self.placement == "forward" or sparse
        automatic = steps_per_epoch(plan.n_rows, resolve_batch_size(None, plan.n_rows, self._n_batches))
        if not alone or getattr(self, "network", None) is not None:
            enough = max(SECOND_EPOCHS, math.ceil(AUTO_STEPS / min(plan.n_steps, automatic)))
            return plan.n_epochs if self.max_epochs is not None else min(plan.n_epochs, enough), 0
        enough = math.ceil(PLACES_STEPS / min(plan.n_steps, automatic))
        n_epochs = min(MAX_EPOCHS, max(FEWEST_EPOCHS, enough)) if self.max_epochs is None else plan.n_epochs
        return n_epochs, n_places(len(exemplars))
