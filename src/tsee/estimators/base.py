"""What the four estimators share: from rows to a trained network, and from new rows to places."""

from __future__ import annotations

import copy
import json
from contextlib import closing, nullcontext
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from tsee.batches import MemoryStore, seed_of, steps_per_epoch
from tsee.checkpoint import Checkpoint, kept_seed
from tsee.data import blocks, check_rows
from tsee.distributed import all_max, all_offset, broadcast, rank
from tsee.estimators.fitting import (
    PLACED_ROWS,
    Objective,
    Plan,
    check_network,
    learn_in_stages,
    places_by,
    quick_layers,
    read_rows,
    resolve_batch_size,
    resolve_device,
    resolve_epochs,
)
from tsee.estimators.parameters import check_parameters
from tsee.exceptions import DataWarning, warn
from tsee.files.rows import Rows
from tsee.networks import DeepNetwork, FlatteningNetwork, HighOrderNetwork, folded
from tsee.preprocessing import Inputs, fit_preprocessing
from tsee.training import train

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Deep", "HighOrder", "ParametricMap"]


class ParametricMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer that places rows with a trained network; subclasses name the network and the loss."""

    # Automatic batches of an epoch, at the least, while these are not of fewer or more rows than are good.
    _n_batches: ClassVar[int]

    def _make_network(self, n_inputs: int, generator: torch.Generator) -> nn.Module:
        raise NotImplementedError

    def _make_objective(self, plan: Plan) -> Objective:
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map of ``X``.

        Parameters
        ----------
        X : array, DataFrame, tensor, sparse matrix or path, of shape (n_samples, n_features)
            Numbers of any dtype, in any unit: centering and a global scale are part of the model. Memory maps, arrays
            of h5py, zarr and dask, the rows of `tsee.files.open_table`, and paths to files that it can open are read
            by slice, and may be larger than memory: what training needs of them is then kept in a temporary file.
        y : ignored

        Returns
        -------
        self
        """
        check_parameters(self)
        device = resolve_device(self.device)
        checked = copy.copy(self)  # takes what is fitted until the fit is done
        X = check_rows(checked, X, reset=True)
        n_features = X.shape[1]
        if all_max(n_features) != n_features or -all_max(-n_features) != n_features:
            raise ValueError(f"X has {n_features} features in process {rank()}, and another number in another process.")
        if n_features < self.n_components:
            warn(
                f"X has {n_features} feature(s), fewer than the {self.n_components} dimensions of the map.", DataWarning
            )
        plan = self._plan(X, device)
        network = self._make_network(plan.inputs.shape[1], plan.generator).to(device)
        flattening = network if isinstance(network, FlatteningNetwork) else None
        n_outputs = self.n_components + (self.spare_dimensions if flattening else 0)
        check_network(network, plan.inputs[0:2].to(device), n_outputs)
        checkpoint = None
        if self.checkpoint is not None:
            checkpoint = Checkpoint(Path(self.checkpoint), self._identity(plan, n_features))
        state = checkpoint.read() if checkpoint is not None else None
        objective = self._make_objective(plan)
        verbose = bool(self.verbose) and rank() == 0
        store = read_rows(plan, objective, on_disk=isinstance(X, Rows), verbose=verbose)
        learn = partial(
            train,
            store=store,
            n_steps=plan.n_steps,
            learning_rate=self.learning_rate,
            optimizer=self.optimizer,
            generator=plan.draws,
            checkpoint=checkpoint,
            verbose=verbose,
        )
        # A network of the user's may draw from the global generators (dropout): they are lent and given back.
        lent = torch.random.fork_rng(devices=[device] if device.type == "cuda" else [])
        with checkpoint or nullcontext(), closing(store), lent:
            # A line search wants a smooth function: conjugate gradient has all digits.
            with quick_layers(network, device) if self.optimizer == "adam" else nullcontext():
                network, history, n_first, found = learn_in_stages(learn, network, objective, plan, state)
            checked.network_ = folded(network)
            checked.preprocessing_ = plan.inputs.preprocessing
            checked.history_ = {
                "loss": history.loss,
                "learning_rate": history.learning_rate,
                "refined": [epoch >= n_first for epoch in range(len(history.loss))],
            }
            checked.n_iter_ = len(history.loss)
            checked._n_features_out = self.n_components
            checked.__dict__.pop("embedding_", None)
            checked.__dict__.update(objective.fitted | found)
            kept = store.columns.get("inputs", plan.inputs) if isinstance(store, MemoryStore) else None
            checked._finish(X, plan.start, kept)
        if checkpoint is not None and history.complete:
            checkpoint.remove()
        # Fitted state is taken over only now: a fit that fails leaves the one before it whole.
        self.__dict__ = checked.__dict__
        return self

    def _plan(self, X: Any, device: torch.device) -> Plan:
        seed = None
        if self.random_state is None and self.checkpoint is not None:
            seed = kept_seed(Path(self.checkpoint))
        if seed is None:
            seed = int(check_random_state(self.random_state).randint(2**31))
        seed = int(broadcast(torch.tensor(seed)))
        generator = torch.Generator().manual_seed(seed)
        inputs = Inputs(X, fit_preprocessing(X, self.n_inputs, generator))
        start, n_rows = all_offset(len(inputs))
        automatic, n_steps = (
            steps_per_epoch(n_rows, resolve_batch_size(size, n_rows, self._n_batches))
            for size in (None, self.batch_size)
        )
        if all_max(n_steps - len(inputs) // 2) > 0 and n_rows > len(inputs):
            raise ValueError(f"A process has too few of the {n_rows} rows for the {n_steps} batches of an epoch.")
        draws = torch.Generator().manual_seed(seed_of(seed, rank()))
        n_epochs = resolve_epochs(self.max_epochs, n_steps, automatic)
        return Plan(inputs, start, n_rows, n_steps, n_epochs, device, seed, generator, draws)

    def _identity(self, plan: Plan, n_features: int) -> dict[str, Any]:
        """What a fit is of, so that its checkpoint is not taken for that of another."""
        aside = ("device", "verbose", "checkpoint", "placement", "random_state", "network")
        parameters = {name: value for name, value in self.get_params(deep=False).items() if name not in aside}
        about = {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
        scale = f"{plan.inputs.preprocessing.scale:.6g}"
        of_fit = {"estimator": type(self).__name__, "n_rows": plan.n_rows, "n_features": n_features}
        of_fit |= {"n_steps": plan.n_steps, "n_epochs": plan.n_epochs}
        identity = {**of_fit, "scale": scale, "seed": plan.seed, **about}
        # As JSON gives it back: numbers of numpy's become plain ones.
        return {name: json.loads(json.dumps(value, default=float)) for name, value in identity.items()}

    def _finish(self, X: Any, start: int, inputs: Tensor | Inputs | None) -> None:
        """What is left once the network is trained: the places of the rows, where their inputs are in memory."""
        if inputs is not None:
            parts = [self._places(inputs[rows]) for rows in blocks(len(inputs), PLACED_ROWS)]
            self.embedding_ = np.concatenate(parts)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Learn the map of ``X`` and return the places of its rows, the same as ``transform(X)`` gives.

        Parameters
        ----------
        X : array, DataFrame, tensor, sparse matrix or path, of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
        """
        self.fit(X)
        return self.embedding_.copy() if hasattr(self, "embedding_") else self.transform(X)

    def transform(self, X: Any) -> np.ndarray:
        """Place rows on the map.

        A row's place does not depend on the other rows.

        Parameters
        ----------
        X : array, DataFrame, tensor, sparse matrix or path, of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        places = np.empty((X.shape[0], self._n_features_out), dtype=np.float32)
        inputs = Inputs(X, self.preprocessing_)
        for rows in blocks(X.shape[0], PLACED_ROWS):
            with np.errstate(over="ignore"):  # told below, with the row
                block = inputs[rows]
            places[rows] = self._places(block)
        lost = np.flatnonzero(~np.isfinite(places).all(1))
        if len(lost):
            raise ValueError(f"Row {lost[0]} of X is too far from the data of fit to be placed: check its values.")
        return places

    def to_html(
        self,
        path: str | PathLike[str],
        X: Any = None,
        *,
        columns: Any = None,
        images: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write the map as one HTML file that opens offline, to look at and to drop new rows on.

        Parameters
        ----------
        path : str or path
            The file to write.
        X : array, DataFrame, tensor, sparse matrix or path, of shape (n_samples, n_features), optional
            The rows to show. By default those of ``fit``.
        columns : DataFrame or dict of str to array-like of shape (n_samples,), optional
            What is known of the rows; the first column colors the points at the start.
        images : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
            Pictures of the rows.
        title : str, optional
            The title.

        Returns
        -------
        Path
            The file.

        See Also
        --------
        tsee.explorer.write_map_page : does the work.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import load_digits
        >>> from tsee import DtSEE
        >>> digits = load_digits()
        >>> see = DtSEE(max_epochs=1, random_state=0).fit(digits.data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = see.to_html(f"{folder}/digits.html", columns={"digit": digits.target}, images=digits.images)
        ...     page.name
        'digits.html'
        """
        from tsee.explorer import write_map_page

        check_is_fitted(self)
        places = self.embedding_ if X is None else self.transform(X)
        return write_map_page(self, places, path, columns=columns, images=images, title=title)

    def plot(
        self,
        labels: Any = None,
        *,
        title: str | None = None,
        ax: Axes | None = None,
        path: str | PathLike[str] | None = None,
        point_size: float | None = None,
        legend: bool = True,
    ) -> Axes:
        """Draw ``embedding_``, the map of the rows of ``fit``, with `tsee.plots.scatter`.

        Parameters
        ----------
        labels : array-like of shape (n_samples,), optional
            What the points are colored by: classes or amounts.
        title : str, optional
            The title.
        ax : matplotlib Axes, optional
            Where to draw. Without it a figure is made, which ``pyplot`` does not know of.
        path : path, optional
            A file to write: PNG, SVG or PDF by its ending.
        point_size : float, optional
            The diameter of a point in 1/72 inch. Without it, it follows from the number of points.
        legend : bool, default True
            Whether to write the names of (up to 100) classes or draw the color bar.

        Returns
        -------
        Axes
            The axes drawn on.

        Examples
        --------
        >>> from tsee import DtSEE
        >>> from tsee.datasets import load_digits
        >>> digits = load_digits()
        >>> ax = DtSEE(max_epochs=1, random_state=0).fit(digits.x_train).plot(digits.y_train, title="Digits")
        >>> len(ax.texts), ax.get_title()
        (10, 'Digits')
        """
        from tsee.plots import scatter

        check_is_fitted(self)
        return scatter(self.embedding_, labels, title=title, ax=ax, path=path, point_size=point_size, legend=legend)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a folder of ``config.json`` and ``model.safetensors``.

        An existing model there is replaced whole or, should anything go wrong, left whole.

        Parameters
        ----------
        path : str or path
            The folder; `tsee.load` reads it back.
        """
        from tsee.persistence import save

        save(self, path)

    def _places(self, inputs: Tensor) -> np.ndarray:
        """The places of inputs that have passed the preprocessing."""
        return places_by(self.network_, inputs)

    def __getattr__(self, name: str) -> Any:
        if name == "embedding_" and "network_" in self.__dict__:
            raise AttributeError(
                "There is no 'embedding_': the rows of fit lie on disk and are many, so that their places are not "
                "kept. transform(X) gives them."
            )
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        return "network_" in self.__dict__

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


class Deep:
    """Estimators of a deep network, or of one that the user brings."""

    def _make_network(self: Any, n_inputs: int, generator: torch.Generator) -> nn.Module:
        if self.network is not None:
            return copy.deepcopy(self.network)  # fitting twice starts twice from the same weights
        network = DeepNetwork(
            n_inputs,
            self.n_components + self.spare_dimensions,
            self.hidden_layers,
            normalization=self.normalization,
            activation=self.activation,
            generator=generator,
        )
        return FlatteningNetwork(network, self.n_components)


class HighOrder:
    """Estimators of the shallow high-order network."""

    def _make_network(self: Any, n_inputs: int, generator: torch.Generator) -> nn.Module:
        network = HighOrderNetwork(
            n_inputs,
            self.n_components + self.spare_dimensions,
            self.n_factors,
            self.n_hidden,
            self.order,
            normalization=self.normalization,
            generator=generator,
        )
        return FlatteningNetwork(network, self.n_components)
