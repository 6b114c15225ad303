"""A fitted map: everything that placing a row, judging its novelty, saving and showing the map need."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

import tsee.threads  # noqa: F401 - forked processes are safe from here on
from tsee.data import blocks, check_matrix
from tsee.distributed import all_gather
from tsee.exceptions import ModelError, RowError
from tsee.exemplars import Exemplars
from tsee.metric import PRECOMPUTED, metric_of
from tsee.networks import DeepNetwork, HighOrderNetwork, NoNetwork
from tsee.placement.forward import forward_positions
from tsee.placement.novelty import NoveltyReference, exemplar_distances, sample_slices, share_nearer, subsample
from tsee.placement.refined import refined_positions
from tsee.preprocessing import Inputs, Preprocessing
from tsee.scikit import check_is_fitted
from tsee.tables import TableEncoder, is_frame
from tsee.versions import History, Update, counted_rows

__all__ = ["FittedMap", "History", "Placement", "fitted_map", "place_rows"]

Placement: TypeAlias = Literal["refined", "forward"]

PLACEMENTS = ("refined", "forward")
# The methods, and whether each has exemplars.
METHODS = {"DtSEE": True, "HotSEE": True, "PtSNE": False, "HotSNE": False}
NETWORKS: dict[str, Any] = {cls.__name__: cls for cls in (DeepNetwork, HighOrderNetwork, NoNetwork)}
# Rows that are placed together, at least, and at most the values of the inputs of those that are.
PLACED_ROWS, PLACED_VALUES = 2**14, 2**24


@dataclass(frozen=True, eq=False)
class FittedMap:
    """Everything a fitted map is. An estimator keeps it as ``map_``.

    Attributes
    ----------
    method : str
        The estimator that made it: "DtSEE", "HotSEE", "PtSNE" or "HotSNE".
    n_components, n_features : int
        The dimensions of the map and of the data.
    feature_names : tuple of str or None
        The names of the features, if ``fit`` was given names.
    preprocessing : Preprocessing
        From rows to the network's inputs.
    network : torch.nn.Module
        From inputs to positions.
    perplexity : float
        The perplexity that took effect.
    exemplars : Exemplars or None
        The exemplars and their positions; None for the pairwise methods.
    placement : {"refined", "forward"}
        How rows are placed unless told otherwise.
    novelty_reference : NoveltyReference or None
        How far the rows of ``fit`` are from their exemplars.
    embedding : ndarray of shape (n_samples, n_components), float32, or None
        The positions of the rows of ``fit``, if they were kept.
    history : History
        How training went.
    table : TableEncoder or None
        How a table with words or gaps becomes rows of numbers, which are then the features.
    row_counts : tuple of int
        The rows of each version of the map: of ``fit``, then of each update. Exemplars are numbered over all of them.
    updates : tuple of Update
        What each update did.
    loadings : str or None
        A checksum of the PCA that made the rows, if it is known: it must have made new rows, too.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tsee import DtSEE
    >>> X = load_digits().data
    >>> fitted = DtSEE(max_epochs=1, random_state=0).fit(X).map_
    >>> fitted.method, fitted.placement, fitted.n_features
    ('DtSEE', 'refined', 64)
    >>> fitted.place(X[:5], how="forward").shape
    (5, 2)
    """

    method: str
    n_components: int
    n_features: int
    feature_names: tuple[str, ...] | None
    preprocessing: Preprocessing
    network: nn.Module
    perplexity: float
    exemplars: Exemplars | None = None
    placement: Placement = "forward"
    novelty_reference: NoveltyReference | None = None
    embedding: np.ndarray | None = None
    history: History = field(default_factory=History)
    table: TableEncoder | None = None
    row_counts: tuple[int, ...] = ()
    updates: tuple[Update, ...] = ()
    loadings: str | None = None

    def __sklearn_clone__(self) -> FittedMap:  # it never changes, and a parameter may be one
        return self

    def place(self, X: Any, how: str | None = None) -> np.ndarray:
        """The positions of rows on the map; each is independent of the other rows.

        Parameters
        ----------
        X : array, DataFrame, tensor, CSR matrix or Rows, of shape (n, n_features)
            Rows of the map's features: by name if both have names, else in their order. If the map is of a table: a
            table with its columns, or rows that ``table`` has encoded.
        how : {"refined", "forward"}, optional
            Among the nearest exemplars, or by one pass through the network. By default ``placement``.

        Returns
        -------
        ndarray of shape (n, n_components), float32
        """
        return place_rows(self, self._check(X), how)

    def place_inputs(self, inputs: Tensor, how: str | None = None) -> Tensor:
        """The positions of rows that have passed the preprocessing: (n, n_components)."""
        if self.resolve_placement(how) == "forward":
            return forward_positions(self.network, inputs)
        exemplars = self._known_exemplars("refined placement")
        assert exemplars.positions is not None
        return refined_positions(inputs, exemplars.index, exemplars.positions)

    def novelty(self, X: Any) -> np.ndarray:
        """How unlike the rows of ``fit`` other rows are, from 0 to 1.

        Parameters
        ----------
        X : array, DataFrame, tensor, CSR matrix or Rows, of shape (n, n_features)
            As in `place`.

        Returns
        -------
        ndarray of shape (n,), float32
            The share of the rows of ``fit`` that are nearer to their nearest exemplars.

        Examples
        --------
        >>> from tsee import DtSEE
        >>> X = np.random.default_rng(0).normal(size=(90, 4))
        >>> DtSEE(max_epochs=1, random_state=0).fit(X).map_.novelty(X[:1] + 100)
        array([1.], dtype=float32)
        """
        exemplars = self._known_exemplars("novelty")
        assert self.novelty_reference is not None
        X = self._check(X)
        shares = np.empty(X.shape[0], dtype=np.float32)
        for rows in blocks(X.shape[0], PLACED_ROWS):
            parts = (slice(rows.start + part.start, rows.start + part.stop) for part in blocks(rows.stop - rows.start))
            distances = exemplar_distances(*self.preprocessing.inside_and_outside(X, parts), exemplars.index)
            shares[rows] = share_nearer(self.novelty_reference.distances, distances).numpy()
        return shares

    def resolve_placement(self, how: str | None) -> Placement:
        """The placement that takes effect if ``how`` is requested; None leaves it to the map."""
        if how is None:
            return self.placement
        if how not in PLACEMENTS:
            raise ValueError(f'The placement must be "refined", "forward" or None. Got {how!r} instead.')
        if how == "refined":
            self._known_exemplars("refined placement")
            return "refined"
        return "forward"

    def placed_by(self, how: str | None) -> FittedMap:
        """The same map, placing rows by ``how`` unless told otherwise; None leaves it as it is."""
        placement = self.resolve_placement(how)
        return self if placement == self.placement else replace(self, placement=placement)

    def exemplar_positions(self, how: str | None = None) -> Tensor:
        """The positions of the exemplars as ``how`` gives them: (z, n_components)."""
        exemplars = self._known_exemplars("a position of exemplars")
        if self.resolve_placement(how) == "forward" or exemplars.positions is None:
            return forward_positions(self.network, exemplars.inputs)
        return exemplars.positions

    def calibrated(
        self, X: Any, start: int, inputs: Tensor | Inputs | None, how: str | None, near: Tensor | None = None
    ) -> FittedMap:
        """The map after training, with positions of exemplars and rows, and a reference for novelty. A collective.

        Parameters
        ----------
        X : array, CSR matrix or Rows
            The rows of ``fit`` of this process.
        start : int
            The number of the first of them, over all processes.
        inputs : Tensor, Inputs or None
            Their inputs if they are in memory; without them no positions of rows are kept.
        how : {"refined", "forward"} or None
            How the rows are placed.
        near : Tensor of shape (z,), optional
            How far exemplars are from others, as `exemplar_distances` takes it.
        """
        fitted = self
        if fitted.exemplars is not None and fitted.exemplars.positions is None:
            positions = forward_positions(fitted.network, fitted.exemplars.inputs).clone()  # no inference tensor
            fitted = replace(fitted, exemplars=fitted.exemplars.replaced(positions=positions))
        embedding = None
        if inputs is not None:
            all_exemplars = fitted.exemplars is not None and len(fitted.exemplars.inputs) >= len(inputs)
            size = PLACED_ROWS if all_exemplars else fitted._placed_together(how)
            parts = [fitted._place_fitted(inputs, rows, start, how) for rows in blocks(len(inputs), size)]
            embedding = np.concatenate(parts)
        reference = None
        if (exemplars := fitted.exemplars) is not None:
            reference = fitted._novelty_reference(X, start, exemplars, near)
            fitted = replace(fitted, exemplars=exemplars.replaced(neighbors=None))  # no longer needed
        return replace(fitted, embedding=embedding, novelty_reference=reference)

    def to_tensors(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """The map as a description that JSON can hold, and named tensors; `from_tensors` restores it."""
        preprocessing, exemplars = self.preprocessing, self.exemplars
        kind = type(self.network).__name__
        ours = NETWORKS.get(kind) is type(self.network)
        if not ours and kind in NETWORKS:
            kind = f"{type(self.network).__module__}.{kind}"
        description = {
            "method": self.method,
            "n_components": self.n_components,
            "n_features": self.n_features,
            "feature_names": None if self.feature_names is None else list(self.feature_names),
            "network": {"kind": kind, "config": self.network.config if ours else None},
            "scale": preprocessing.scale,
            "metric": preprocessing.metric,
            "length": preprocessing.length,
            "perplexity": self.perplexity,
            "placement": self.placement,
            "history": self.history.described(),
            "row_counts": list(self.row_counts),
            "updates": [update.described() for update in self.updates],
            "loadings": self.loadings,
        }
        if self.table is not None:
            description["table"] = self.table.to_json()
        tensors = {f"network.{name}": value for name, value in self.network.state_dict().items()}
        for name in ("mean", "spread", "basis", "margin"):
            if (values := getattr(preprocessing, name)) is not None:
                tensors[f"preprocessing.{name}"] = torch.from_numpy(values)
        if self.table is not None:
            tensors |= self.table.tensors()
        if self.embedding is not None:
            tensors["embedding"] = torch.from_numpy(self.embedding)
        if exemplars is not None and exemplars.positions is not None and self.novelty_reference is not None:
            tensors["exemplars.inputs"] = exemplars.inputs
            tensors["exemplars.positions"] = exemplars.positions
            tensors["novelty.distances"] = self.novelty_reference.distances
            tensors["novelty.subsample_distances"] = self.novelty_reference.subsample_distances
            if exemplars.indices is not None:
                tensors["exemplars.indices"] = exemplars.indices
        # Copies: the exemplars may share memory with the data.
        return description, {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}

    @classmethod
    def from_tensors(
        cls,
        description: dict[str, Any],
        tensors: dict[str, Tensor],
        *,
        network: nn.Module | None = None,
        device: torch.device | str = "cpu",
    ) -> FittedMap:
        """A map from what `to_tensors` gave.

        Parameters
        ----------
        description, tensors : dict
        network : torch.nn.Module, optional
            Needed if the user supplied the network: a module of the same shape, which is copied and whose weights are
            replaced.
        device : str or torch.device
            Where to put the network.
        """
        kind = description["network"]["kind"]
        if network is not None:
            loaded = copy.deepcopy(network)
        elif kind in NETWORKS:
            loaded = NETWORKS[kind](**description["network"]["config"])
        else:
            raise ModelError(
                f"The model was fitted with a network of your own ({kind}): give such a module as "
                "tsee.load(path, network=...), and its weights will be filled in."
            )
        prefix = "network."
        loaded.load_state_dict({name[len(prefix) :]: t for name, t in tensors.items() if name.startswith(prefix)})
        arrays = {name: t.numpy() for name, t in tensors.items() if name.startswith("preprocessing.")}
        metric = description.get("metric", "euclidean")  # a model that was saved before there was a choice
        exemplars = reference = None
        if "exemplars.inputs" in tensors:
            inputs, positions = tensors["exemplars.inputs"], tensors["exemplars.positions"]
            exemplars = Exemplars(inputs, tensors.get("exemplars.indices"), positions, metric_of(metric))
            reference = NoveltyReference(tensors["novelty.distances"], tensors["novelty.subsample_distances"])
        names = description["feature_names"]
        counts = description.get("row_counts", [counted_rows(tensors)])  # a model from before there were updates
        return cls(
            method=description["method"],
            n_components=int(description["n_components"]),
            n_features=int(description["n_features"]),
            feature_names=None if names is None else tuple(names),
            preprocessing=Preprocessing(
                mean=arrays["preprocessing.mean"],
                scale=float(description["scale"]),
                basis=arrays.get("preprocessing.basis"),
                spread=arrays.get("preprocessing.spread"),
                metric=metric,
                length=description.get("length"),
                margin=arrays.get("preprocessing.margin"),
            ),
            network=loaded.to(device).eval(),
            perplexity=float(description["perplexity"]),
            exemplars=exemplars,
            placement=description["placement"],
            table=TableEncoder.from_json(description["table"], tensors) if "table" in description else None,
            novelty_reference=reference,
            embedding=tensors["embedding"].numpy() if "embedding" in tensors else None,
            history=History.restored(description["history"]),
            row_counts=tuple(counts),
            updates=tuple(Update(**update) for update in description.get("updates", [])),
            loadings=description.get("loadings"),
        )

    def _check(self, X: Any) -> Any:
        if self.table is not None and is_frame(X):
            X = self.table.encode(X)
        return check_matrix(X, self.n_features, self.feature_names)

    def _known_exemplars(self, what: str) -> Exemplars:
        if self.exemplars is None:
            raise ModelError(f"{self.method} has no exemplars, which {what} needs: fit DtSEE or HotSEE instead.")
        return self.exemplars

    def _placed_together(self, how: str | None) -> int:
        """How many rows are placed together: the more, the faster the search among very many exemplars."""
        if self.exemplars is None or self.resolve_placement(how) == "forward":
            return PLACED_ROWS
        most = PLACED_VALUES // self.preprocessing.n_inputs
        return max(PLACED_ROWS, min(self.exemplars.index.sought_together, most) // PLACED_ROWS * PLACED_ROWS)

    def _place_fitted(self, inputs: Tensor | Inputs, rows: slice, start: int, how: str | None) -> np.ndarray:
        """The positions of rows of ``fit``; exemplars have theirs without a search."""
        exemplars = self.exemplars
        own = None if exemplars is None else exemplars.own(rows, start)
        if exemplars is None or exemplars.positions is None or own is None or self.resolve_placement(how) == "forward":
            return self.place_inputs(inputs[rows], how).numpy()
        positions: np.ndarray = exemplars.positions[own.clamp_min(0)].numpy()
        if (others := own < 0).any():
            positions[others.numpy()] = self.place_inputs(inputs[rows][others], how).numpy()
        return positions

    def _novelty_reference(self, X: Any, start: int, exemplars: Exemplars, near: Tensor | None) -> NoveltyReference:
        """How far a sample of the rows of ``fit`` of all processes are from all exemplars, and from a part of them."""
        indices = None if exemplars.indices is None else subsample(exemplars.indices)
        fewer = Exemplars(subsample(exemplars.inputs), indices, metric=exemplars.metric)
        if self.preprocessing.metric == PRECOMPUTED:  # rows are distances from all of them
            fewer = exemplars
        inputs, outside = self.preprocessing.inside_and_outside(X, sample_slices(X.shape[0]))

        def distances(among: Exemplars, near: Tensor | None = None) -> Tensor:
            parts = [among.own(rows, start) for rows in sample_slices(X.shape[0])]
            own = None if among.indices is None else torch.cat([part for part in parts if part is not None])
            return all_gather(exemplar_distances(inputs, outside, among.index, own, near)).sort().values

        return NoveltyReference(distances(exemplars, near), distances(fewer))


def fitted_map(model: Any) -> FittedMap:
    """The map of a fitted estimator, with the estimator's ``placement`` applied; or a `FittedMap` itself."""
    if isinstance(model, FittedMap):
        return model
    check_is_fitted(model)
    fitted: FittedMap = model.map_
    return fitted.placed_by(getattr(model, "placement", None))


def place_rows(fitted: FittedMap, X: Any, how: str | None) -> np.ndarray:
    """What `FittedMap.place` returns, for rows that have been checked."""
    positions = np.empty((X.shape[0], fitted.n_components), dtype=np.float32)
    inputs = Inputs(X, fitted.preprocessing)
    for rows in blocks(X.shape[0], fitted._placed_together(how)):
        with np.errstate(over="ignore"):  # reported below, with the row
            block = inputs[rows]
        positions[rows] = fitted.place_inputs(block, how).numpy()
    lost = np.flatnonzero(~np.isfinite(positions).all(1))
    if len(lost):
        raise RowError(int(lost[0]), "is too far from the data of fit to be placed: check its values.")
    return positions
