"""dt-SEE and hot-SEE: every point against the exemplars only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from tsee.data import blocks, check_rows, dense
from tsee.distributed import all_gather
from tsee.estimators.base import Deep, HighOrder, ParametricMap
from tsee.estimators.fitting import PLACED_ROWS, Objective, Plan, places_by, resolve_perplexity
from tsee.estimators.losses import PLACE_NEIGHBORS, Full, Neighborhoods, Noise, Own, Sampled, among
from tsee.estimators.parameters import check_parameters, documented
from tsee.exceptions import DataWarning, warn
from tsee.exemplars import choose_centers, choose_points, take, take_own
from tsee.neighbors import Candidates, candidates_of
from tsee.novelty import DistanceReference, exemplar_distances, sample_slices, subsample
from tsee.preprocessing import Inputs
from tsee.progress import progress_bar

__all__ = ["DtSEE", "HotSEE"]

# Of more rows than this, as many are the exemplars: a search among them takes as long as two epochs of training.
AUTO_POINTS = 2**16
# Of centers, the more, the fewer rows of other kinds does one stand for; all contrasts but one take longer for more.
AUTO_CENTERS, FEW_CENTERS = 8192, 2000
# k-means sees this many rows, or so many for each center: more would not move the centers.
CENTERD_ROWS, CENTERD_SHARE = 2**19, 64
NOISE_NEIGHBORS = 100
# Of fewer exemplars every pair are neighbors: nothing is left to hold them apart.
FEWEST = 10


class ExemplarMap(ParametricMap):
    """Keeps the probabilities of neighboring the exemplars (equations 8 to 12)."""

    _n_batches = 32
    # What `fast` has other than the defaults.
    _fast: ClassVar[dict[str, Any]] = {}

    @classmethod
    def fast(cls, **parameters: Any) -> Self:
        """The estimator with settings for speed: a smaller network, and half as long a refinement.

        The map loses little by it; what the network learns of the map, for ``placement="forward"``, loses more.

        Parameters
        ----------
        **parameters
            Others than the defaults, or than those for speed.

        Returns
        -------
        DtSEE or HotSEE

        Examples
        --------
        >>> from tsee import DtSEE
        >>> DtSEE.fast(random_state=0)
        DtSEE(hidden_layers=(128, 128, 128), random_state=0, refinement=100)
        """
        return cls(**{**cls._fast, **parameters})

    def _make_objective(self, plan: Plan) -> Objective:
        exemplars, own, fitted = self._choose(plan)
        n_candidates = len(exemplars) - (own is not None)
        form: Full | Noise | Sampled
        second = None
        if self.contrast == "full":
            perplexity = resolve_perplexity(self.perplexity, n_candidates, "exemplars")
            form = Full(exemplars, own, perplexity, plan.device)
        else:
            n_candidates = min(n_candidates, self.n_neighbors or n_candidates)
            perplexity = resolve_perplexity(self.perplexity, n_candidates, "exemplars (see n_neighbors)")
            automatic = max(math.ceil(3 * perplexity), NOISE_NEIGHBORS if self.contrast == "noise" else 0)
            k = min(n_candidates, automatic) if self.n_neighbors is None else n_candidates
            if self.contrast == "noise":
                form = Noise(self, Neighborhoods(exemplars, own, perplexity, k), plan)
            else:
                refined = bool(self.refinement) and own is not None and self.n_components == 2
                refined = refined and len(exemplars) >= FEWEST
                around = Neighborhoods(exemplars, own, perplexity, k, keep=refined)
                form = Sampled(self, around, plan)
                second = form.refine if refined else None
        fitted |= {"perplexity_": perplexity, "placement_": "forward"}
        return Objective(form.loss, form.columns, fitted, second)

    def _choose(self, plan: Plan) -> tuple[Tensor, Own | None, dict[str, Any]]:
        """The exemplars, which of them rows are themselves (None if they are no rows), and attributes."""
        inputs, n_rows, generator = plan.inputs, plan.n_rows, plan.generator
        own: Own | None = None
        if self.exemplars == "points":
            wanted = min(AUTO_POINTS, n_rows) if self.n_exemplars is None else self.n_exemplars
            chosen = choose_points(n_rows, wanted, generator)
            exemplars = take(inputs, chosen)
            fitted: dict[str, Any] = {"exemplar_indices_": chosen.numpy()}

            own = partial(_own, chosen, plan.start)
        else:
            automatic = AUTO_CENTERS if self.contrast == "sampled" else FEW_CENTERS
            wanted = min(automatic, max(2, n_rows // 2)) if self.n_exemplars is None else self.n_exemplars
            sample = choose_points(n_rows, max(CENTERD_ROWS, CENTERD_SHARE * wanted), generator) - plan.start
            sample = sample[(sample >= 0) & (sample < len(inputs))]
            with progress_bar(self.kmeans_iterations, "k-means", "update", verbose=bool(self.verbose)) as bar:
                centers = choose_centers(
                    take_own(inputs, sample),
                    wanted,
                    seeding=self.seeding,
                    n_iterations=self.kmeans_iterations,
                    generator=generator,
                    device=plan.device,
                    progress=lambda done: bar.update(),
                )
            exemplars, fitted = centers.positions, {"exemplar_indices_": None}
        if len(exemplars) < wanted and self.n_exemplars is not None:
            kind = "rows" if self.exemplars == "points" else "distinct rows"
            warn(
                f"The 'n_exemplars' parameter is {self.n_exemplars}, but the data hold only {len(exemplars)} "
                f"{kind}: {len(exemplars)} exemplars are used.",
                DataWarning,
            )
        return exemplars, own, {"n_exemplars_": len(exemplars), "_exemplar_inputs": exemplars, **fitted}

    def novelty(self, X: Any) -> np.ndarray:
        """How unlike the rows of ``fit`` other rows are: whether they belong on the map at all.

        Every row gets a place, also one of another kind than all that the map was made of. Its distance from its
        nearest exemplars, in all features, tells.

        Parameters
        ----------
        X : array, DataFrame, tensor, sparse matrix or path, of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float32
            The share of the rows of ``fit`` that lie nearer to their nearest exemplars: evenly from 0 to 1 for rows
            of the same kind, above 0.99 for one in a hundred of them, and 1 for a row farther out than all.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from tsee import DtSEE
        >>> X = load_digits().data
        >>> see = DtSEE(max_epochs=1, random_state=0).fit(X[:1500])
        >>> bool(see.novelty(X[1500:]).mean() < 0.7)
        True
        >>> see.novelty(np.random.default_rng(0).permuted(X[:3], axis=1))
        array([1., 1., 1.], dtype=float32)
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        candidates = self._candidates()
        shares = np.empty(X.shape[0], dtype=np.float32)
        for rows in blocks(X.shape[0], PLACED_ROWS):
            parts = (slice(rows.start + part.start, rows.start + part.stop) for part in blocks(rows.stop - rows.start))
            shares[rows] = self._reach.share_nearer(exemplar_distances(*self._inside_and_outside(X, parts), candidates))
        return shares

    def _inside_and_outside(self, X: Any, parts: Iterable[slice]) -> tuple[Tensor, Tensor]:
        """The inputs of rows, and the squared length of what these leave out."""
        inside, outside = [], []
        for rows in parts:
            block = dense(X, rows)
            inside.append(self.preprocessing_(block))
            outside.append(self.preprocessing_.outside(block, inside[-1]))
        return torch.cat(inside), torch.cat(outside)

    def _finish(self, X: Any, start: int, inputs: Tensor | Inputs | None) -> None:
        by_network = torch.from_numpy(places_by(self.network_, self._exemplar_inputs))
        refined = self.__dict__.setdefault("_exemplar_places", by_network)
        placement = self.placement or self.placement_
        chosen = None if self.exemplar_indices_ is None else torch.from_numpy(self.exemplar_indices_)
        if placement == "refined" and inputs is not None and chosen is not None:
            parts = blocks(len(inputs), PLACED_ROWS)
            self.embedding_ = np.concatenate(
                [self._own_places(inputs, _own(chosen, start, rows), rows) for rows in parts]
            )
        else:
            super()._finish(X, start, inputs)
        self.exemplar_embedding_ = (by_network if placement == "forward" else refined).numpy().copy()
        self._reach = self._reach_to(self._candidates(), chosen, X, start)
        few = Candidates(subsample(self._exemplar_inputs))
        self._reach_of_few = self._reach_to(few, None if chosen is None else subsample(chosen), X, start)

    def _own_places(self, inputs: Tensor | Inputs, own: Tensor, rows: slice) -> np.ndarray:
        """The places of rows of fit, of which those that are exemplars have theirs without a search."""
        places: np.ndarray = self._exemplar_places[own.clamp_min(0)].numpy()
        others = own < 0
        if others.any():
            places[others.numpy()] = self._places(inputs[rows][others])
        return places

    def _reach_to(self, candidates: Candidates, chosen: Tensor | None, X: Any, start: int) -> DistanceReference:
        """How far rows of fit are from exemplars; ``chosen`` says which rows these are themselves."""
        own = None
        if chosen is not None:
            own = torch.cat([_own(chosen, start, rows) for rows in sample_slices(X.shape[0])])
        usual = exemplar_distances(*self._inside_and_outside(X, sample_slices(X.shape[0])), candidates, own)
        return DistanceReference(all_gather(usual).sort().values)

    def _places(self, inputs: Tensor) -> np.ndarray:
        check_parameters(self, "placement")
        if (self.placement or self.placement_) == "forward":
            return places_by(self.network_, inputs)
        return among(inputs, self._candidates(), self._exemplar_places).numpy()

    def _candidates(self) -> Candidates:
        """The exemplars as they are searched, kept from one call to the next."""
        kept: Candidates | None = self.__dict__.get("_searched")
        if kept is None or kept.rows is not self._exemplar_inputs:
            kept = self._searched = candidates_of(self._exemplar_inputs, PLACE_NEIGHBORS)
        return kept

    @property
    def exemplars_(self) -> np.ndarray:
        """The exemplars in the units of the data, shape (n_exemplars_, n_features_in_)."""
        check_is_fitted(self)
        restored: np.ndarray = self.preprocessing_.inverse(self._exemplar_inputs)
        return restored


def _own(chosen: Tensor, start: int, rows: slice) -> Tensor:
    """For each row of a slice, its position among the rows that were chosen, in order, as exemplars; -1 for none.

    Those chosen are numbered over all processes, and the rows of this one begin at ``start``.
    """
    begin, end = start + rows.start, start + rows.stop
    first, last = torch.searchsorted(chosen, torch.tensor([begin, end])).tolist()
    own = torch.full((end - begin,), -1)
    own[chosen[first:last] - begin] = torch.arange(first, last)
    return own


@documented
class DtSEE(Deep, ExemplarMap):
    """Deep t-distributed stochastic exemplar-centered embedding (dt-SEE): the default choice.

    A deep network learns to keep each row's probabilities of neighboring the exemplars. Halfway the exemplars are
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

    _fast: ClassVar[dict[str, Any]] = {"hidden_layers": (128, 128, 128), "refinement": 100}

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
        exaggeration: float | None = None,
        jitter: float | None = None,
        refinement: int = 200,
        placement: str | None = None,
        n_neighbors: int | None = None,
        n_noise: int = 100,
        noise_weight: float | str = "auto",
        hidden_layers: Sequence[int] = (256, 256, 256),
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
        checkpoint: str | PathLike[str] | None = None,
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
        self.checkpoint = checkpoint
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

    _fast: ClassVar[dict[str, Any]] = {"n_factors": 400, "n_hidden": 200, "refinement": 100}

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
        exaggeration: float | None = None,
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
        checkpoint: str | PathLike[str] | None = None,
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
        self.checkpoint = checkpoint
        self.verbose = verbose
