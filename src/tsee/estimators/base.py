"""The scikit-learn interface of a fitted map, shared by the four estimators."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
import scipy.sparse
import torch
from torch import Tensor, nn

from tsee.batches import MEMORY, MemoryStore
from tsee.data import check_rows
from tsee.distributed import all_agree, watched_peers
from tsee.estimators.checks import check_parameters, shared_facts
from tsee.estimators.networks import check_network
from tsee.estimators.parameters import NOT_LEARNED, NOT_SAVED, PARAMETERS, Parameter
from tsee.estimators.properties import FittedProperties
from tsee.estimators.showing import Shown
from tsee.estimators.starting import map_digest, starting_map
from tsee.exceptions import DataWarning, ModelError, warn
from tsee.exemplars import Exemplars
from tsee.files.rows import Rows
from tsee.fitted import FittedMap, place_rows
from tsee.labels import Labels, read_labels
from tsee.layout import Guide
from tsee.metric import PRECOMPUTED, check_square
from tsee.neighbors import GivenNeighbors
from tsee.networks import folded
from tsee.objectives import Keeper, Objective
from tsee.persistence import save_model
from tsee.preprocessing import Inputs, fit_preprocessing
from tsee.progress import say
from tsee.scikit import (
    BaseEstimator,
    Tags,
    TransformerMixin,
    check_is_fitted,
    check_random_state,
)
from tsee.tables import EncodedRows, TableEncoder, check_columns, encode_new, table_of
from tsee.training.checkpoint import Checkpoint, data_digest, digest_of_all, saved_seed
from tsee.training.kept import KeptNeighbors
from tsee.training.plan import Plan, resolve_device
from tsee.training.reading import TakenRows, read_batches
from tsee.training.stages import Session, Stage, Train, run_stages

__all__ = ["ParametricMap"]

# Encoded rows of a table are kept in memory up to this many numbers.
MAX_TABLE_NUMBERS = 2**28


class ParametricMap(Shown, FittedProperties, TransformerMixin, BaseEstimator, ABC):
    """A transformer that places rows with a trained network; subclasses name the network and the objective."""

    # The smallest number of automatic batches per epoch, unless their sizes would be out of bounds.
    _n_batches: ClassVar[int]
    # What its parameters are.
    _described: ClassVar[Mapping[str, Parameter]] = PARAMETERS

    n_components: int
    metric: str
    n_inputs: int | Literal["auto"] | None
    standardize: bool
    spare_dimensions: int
    batch_size: int | None
    max_epochs: int | None
    learning_rate: float
    optimizer: str
    device: str | torch.device
    random_state: int | np.random.RandomState | None
    checkpoint: str | PathLike[str] | None
    columns: Mapping[str, Any] | None
    missing: Literal["allow", "error"]
    verbose: bool

    # Where the state of the last fit was kept, until the model is saved.
    _checkpoint: Checkpoint | None = None

    n_features_in_: int
    feature_names_in_: np.ndarray

    @abstractmethod
    def _make_network(self, n_inputs: int, generator: torch.Generator) -> nn.Module:
        """The network before its training."""

    def _n_seen(self, n_inputs: int) -> int:
        """How many numbers of a row the network is trained on."""
        return n_inputs

    def _on_inputs(self, network: nn.Module, objective: Objective) -> nn.Module:
        """The trained network as a function of all inputs."""
        return network

    def _start_network(self, inputs: Inputs, plan: Plan) -> nn.Module:
        network = self._make_network(self._n_seen(inputs.shape[1]), plan.generator).to(plan.device)
        check_network(network, inputs[0:2].to(plan.device), self.n_components)
        return network

    def _choose_exemplars(self, inputs: Inputs, plan: Plan, given: GivenNeighbors | None) -> Exemplars | None:
        return None

    def _learners(self, exemplars: Exemplars | None, plan: Plan) -> Tensor | None:
        """The exemplars from which the network of this process learns, if it learns from nothing else."""
        return None

    @abstractmethod
    def _make_objective(
        self,
        exemplars: Exemplars | None,
        plan: Plan,
        n_own_rows: int,
        labels: Labels | None,
        learners: Tensor | None = None,
        keeper: Keeper | None = None,
    ) -> Objective:
        """The loss, and what it needs of the rows."""

    def _guide(self, rows: Any, names: tuple[str, ...] | None, exemplars: Exemplars | None) -> Guide | None:
        """Where exemplars are on the map that this one starts from, if there is one."""
        return None

    def _stages(self, objective: Objective, plan: Plan, guide: Guide | None) -> Sequence[Stage]:
        return [Train(objective, plan.n_epochs)]

    def _fit(self, X: Any, y: Any, neighbors: Any = None) -> Self:
        check_parameters(self)
        with watched_peers():
            # Set only at the end: a fit that fails leaves the previous one unchanged.
            return self._adopt(self._learned(X, y, neighbors))

    def _learned(self, X: Any, y: Any, neighbors: Any) -> FittedMap:
        """The map of ``X``, whose neighbors may be given. A collective."""
        rows, names, table = self._check_data(X)
        plan = self._plan(rows.shape[0])
        weight = float(getattr(self, "supervised", 0))
        labels = read_labels(y, rows.shape[0], weight) if weight else None
        all_agree({"whether neighbors are given": neighbors is not None})
        given = None
        if neighbors is not None:
            given = GivenNeighbors.checked(neighbors, rows.shape[0], plan.n_rows, first=plan.start)
        preprocessing = fit_preprocessing(
            rows,
            self.n_inputs,
            plan.generator,
            standardize=bool(self.standardize),
            names=names,
            metric=self.metric,
            balanced=table is not None,
        )
        inputs = Inputs(rows, preprocessing)
        say(f"{preprocessing.describe()} are the inputs.", verbose=plan.verbose)
        network = self._start_network(inputs, plan)
        checkpoint = self._open_checkpoint(plan, rows, preprocessing.mean, labels, given)
        resumed = None if checkpoint is None else checkpoint.read()
        # One that does not see the folder would start over, and take other steps than the others.
        found = None if resumed is None else (resumed.stage, resumed.run.epoch, resumed.run.step)
        all_agree({"the state (stage, epoch and step) in the folder of the checkpoint": found})
        exemplars = self._choose_exemplars(inputs, plan, given)
        guide = self._guide(rows, names, exemplars)
        learners = self._learners(exemplars, plan)
        lesson = plan if learners is None else self._lesson(plan, len(learners))
        keeper = None if checkpoint is None else KeptNeighbors(checkpoint)
        with checkpoint or nullcontext():
            objective = self._make_objective(exemplars, lesson, rows.shape[0], labels, learners, keeper)
        if learners is None or exemplars is None:
            store = read_batches(inputs, objective, plan, on_disk=isinstance(rows, Rows))
        else:
            store = read_batches(TakenRows(exemplars.inputs[learners]), objective, lesson, on_disk=False)
        fitted = FittedMap(
            method=type(self).__name__,
            n_components=int(self.n_components),
            n_features=int(rows.shape[1]),
            feature_names=names,
            preprocessing=preprocessing,
            network=network,
            perplexity=objective.perplexity,
            exemplars=exemplars,
            table=table,
            row_counts=(plan.n_rows,),
        )
        with checkpoint or nullcontext(), closing(store):
            session = Session(lesson, store, checkpoint, resumed)
            fitted = run_stages(self._stages(objective, lesson, guide), fitted, session)
            fitted = replace(fitted, network=folded(self._on_inputs(fitted.network, objective)))
            kept: Any = None
            if learners is not None:
                few = 4 * inputs.shape[0] * inputs.shape[1] <= MEMORY
                kept = inputs if few or not isinstance(rows, Rows) else None
            elif isinstance(store, MemoryStore):
                kept = store.columns.get("inputs", inputs)
                kept = kept if kept.shape[1] == inputs.shape[1] else inputs  # of rows that were projected
            fitted = fitted.calibrated(rows, plan.start, kept, self._placement)
        if checkpoint is not None:
            checkpoint.finish(complete=fitted.history.complete)
        self._checkpoint = checkpoint  # `save` removes its state
        return fitted

    def _check_data(self, X: Any) -> tuple[Any, tuple[str, ...] | None, TableEncoder | None]:
        """The rows of ``fit``, checked, the names of their features, and how a table was encoded. A collective."""
        encoded = None
        if self.metric != PRECOMPUTED:
            encoded = table_of(X, check_columns(self.columns), self.missing)
        if encoded is not None:
            return self._check_table(encoded)
        holder = copy.copy(self)  # takes the number and names of features until the fit is done
        for name in [name for name in vars(holder) if name.endswith("_")]:
            delattr(holder, name)
        rows = check_rows(holder, X, reset=True, distances=self.metric == PRECOMPUTED)
        if self.metric == PRECOMPUTED:
            check_square(rows.shape, sparse=scipy.sparse.issparse(rows[0:1]))
        n_features = rows.shape[1]
        known = getattr(holder, "feature_names_in_", None)
        names = None if known is None else tuple(str(name) for name in known)
        all_agree(shared_facts(self, n_features, names))
        if n_features < self.n_components:
            warn(
                f"X has {n_features} feature(s), fewer than the {self.n_components} dimensions of the map.", DataWarning
            )
        return rows, names, None

    def _check_table(self, rows: EncodedRows) -> tuple[Any, tuple[str, ...], TableEncoder]:
        """The rows of a table, in memory unless they are very many."""
        encoder = rows.encoder
        if self.metric != "euclidean":
            raise ValueError(
                f"The 'metric' parameter of {type(self).__name__} must be \"euclidean\" for a table with words or "
                f"gaps. Got {self.metric!r} instead."
            )
        for line in encoder.lines():
            say(line, verbose=bool(self.verbose))
        few = rows.shape[0] * rows.shape[1] <= MAX_TABLE_NUMBERS
        return rows[:] if few else rows, tuple(encoder.input_names()), encoder

    def _plan(self, n_own_rows: int) -> Plan:
        drawn_before = self.random_state is None and self.checkpoint is not None
        seed = saved_seed(Path(str(self.checkpoint))) if drawn_before else None
        if seed is None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        return self._plan_of(n_own_rows, seed)

    def _lesson(self, plan: Plan, n_learners: int) -> Plan:
        """The plan for the rows that the network learns from, where they are fewer than all. A collective."""
        return replace(self._plan_of(n_learners, plan.seed), generator=plan.generator, draws=plan.draws)

    def _plan_of(self, n_own_rows: int, seed: int) -> Plan:
        return Plan.make(
            n_own_rows,
            seed=seed,
            device=resolve_device(self.device),
            batch_size=self.batch_size,
            n_batches=self._n_batches,
            max_epochs=self.max_epochs,
            optimizer=self.optimizer,
            learning_rate=self.learning_rate,
            verbose=bool(self.verbose),
        )

    def _open_checkpoint(
        self, plan: Plan, rows: Any, mean: np.ndarray, labels: Labels | None, given: GivenNeighbors | None
    ) -> Checkpoint | None:
        if self.checkpoint is None:
            return None
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_LEARNED}
        facts = {"estimator": type(self).__name__, "n_features": rows.shape[1], "data": data_digest(rows, mean)}
        if labels is not None:
            facts["labels"] = labels.digest()
        if given is not None:
            facts["neighbors"] = digest_of_all(given.digest())
        if (other := starting_map(getattr(self, "start", None), self.n_components)) is not None:
            facts["start"] = map_digest(other)
        return Checkpoint(Path(self.checkpoint), plan.identity() | facts | parameters)

    def _adopt(self, fitted: FittedMap) -> Self:
        """Become the estimator of a fitted map."""
        table = fitted.table
        self.n_features_in_ = fitted.n_features if table is None else len(table.order)
        names = fitted.feature_names if table is None else (table.order if table.named else None)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self.map_ = fitted
        return self

    def _first_positions(self, X: Any) -> np.ndarray:
        """The positions of the rows of ``fit``."""
        embedding = self.map_.embedding
        return self.transform(X) if embedding is None else embedding.copy()

    def transform(self, X: Any) -> np.ndarray:
        """Place rows on the map.

        A row's position does not depend on the other rows.

        Parameters
        ----------
        X : array, DataFrame, Arrow table, tensor, sparse matrix or path, of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32

        Examples
        --------
        >>> import numpy as np
        >>> from tsee import PtSNE
        >>> X = np.random.default_rng(0).normal(size=(90, 4))
        >>> see = PtSNE(max_epochs=1, random_state=0).fit(X)
        >>> bool((see.transform(X)[:5] == see.transform(X[:5])).all())
        True
        """
        check_is_fitted(self)
        return place_rows(self.map_, self._check_new(X), self._placement)

    def _check_new(self, X: Any) -> Any:
        """Rows to place, checked and, if the map is of a table, encoded."""
        table = self.map_.table
        if table is None:
            return check_rows(self, X, reset=False)
        return encode_new(table, X, self.missing)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a folder of ``config.json`` and ``model.safetensors``.

        An existing model there is replaced completely or, if anything goes wrong, left as it was. Once the model is
        safe, the state of its fit is removed from the folder ``checkpoint``, if it has one.

        Parameters
        ----------
        path : str or path
            The folder; `tsee.load` reads it back.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import tsee
        >>> X = np.random.default_rng(0).normal(size=(90, 4))
        >>> see = tsee.DtSEE(max_epochs=1, random_state=0).fit(X)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     see.save(f"{folder}/model")
        ...     bool((tsee.load(f"{folder}/model").transform(X) == see.transform(X)).all())
        True
        """
        from tsee.estimators import ESTIMATORS

        check_is_fitted(self)
        if type(self) is not ESTIMATORS.get(type(self).__name__):
            raise ModelError(
                f"A {type(self).__name__} cannot be saved, since load() would not know it: only "
                f"{', '.join(ESTIMATORS)} themselves can be."
            )
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in NOT_SAVED}
        save_model(self.map_, parameters, path)
        if self._checkpoint is not None:
            self._checkpoint.remove()

    @property
    def _placement(self) -> str | None:
        """The ``placement`` parameter, checked; None for methods that have none."""
        if "placement" not in self.get_params(deep=False):
            return None
        check_parameters(self, "placement")
        placement: str | None = getattr(self, "placement", None)
        return placement

    def __sklearn_is_fitted__(self) -> bool:
        return "map_" in vars(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.metric != PRECOMPUTED
        tags.input_tags.pairwise = tags.input_tags.positive_only = self.metric == PRECOMPUTED
        tags.input_tags.allow_nan = self.missing == "allow"
        tags.input_tags.categorical = tags.input_tags.string = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags
