"""Placing rows in the engines that hand data out in batches: Ray Data, Dask, Spark and the like."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from tsee.data import without_names
from tsee.estimators.loading import load

__all__ = ["transform_batches"]

# A process that is handed many batches loads a model once.
_MODELS: dict[tuple[Any, ...], Any] = {}
_LOADING = threading.Lock()


class transform_batches:  # noqa: N801 - it is called as a function is
    """A function that places the rows of a batch, for engines that map a function over batches.

    What is sent to the workers is the path of the model alone, made absolute: each process loads the model when it
    meets its first batch. The batch comes back with the places in ``tsee0``, ``tsee1`` and so on, in place of its
    features, beside its other columns.

    Parameters
    ----------
    model : str or path
        The folder that ``save`` wrote, at a place that all workers see.
    columns : sequence of str, optional
        The columns that are the features, in this order. One column whose values are vectors will do. By default
        those that the model was fitted with, by name; or the batch's only column.
    placement : {"refined", "forward"}, optional
        As the estimator's parameter of that name.
    novelty : bool
        Add a column ``novelty``.
    device : str
        Where the network runs.

    Examples
    --------
    With Ray Data ``dataset.map_batches(tsee.transform_batches("model"))``, with Dask
    ``frame.map_partitions(tsee.transform_batches("model"))``; by hand:

    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> import tsee
    >>> digits = load_digits(as_frame=True)
    >>> see = tsee.DtSEE(max_epochs=1, random_state=0).fit(digits.data)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     see.save(f"{folder}/model")
    ...     place = tsee.transform_batches(f"{folder}/model")
    ...     place(digits.frame[:100]).columns.tolist()
    ['target', 'tsee0', 'tsee1']
    """

    def __init__(
        self,
        model: str | PathLike[str],
        *,
        columns: Sequence[str] | None = None,
        placement: str | None = None,
        novelty: bool = False,
        device: str = "auto",
    ) -> None:
        if isinstance(columns, str):
            columns = [columns]
        self.model = os.path.abspath(model)  # workers may be in other folders
        self.columns = None if columns is None else list(columns)
        self.placement, self.novelty, self.device = placement, novelty, device
        self.__name__ = "transform_batches"  # engines show the name of what they map

    def __repr__(self) -> str:
        return f"transform_batches({self.model!r})"

    def __call__(self, batch: Any) -> Any:
        """Place the rows of a batch: a mapping of names to arrays, a DataFrame or a table of pyarrow, as it returns."""
        if isinstance(batch, Mapping):
            return self._placed({str(name): np.asarray(values) for name, values in batch.items()})
        if hasattr(batch, "column_names") and hasattr(batch, "to_pandas"):  # a table of pyarrow
            import pyarrow as pa

            return pa.Table.from_pandas(self(batch.to_pandas()), preserve_index=False)
        if hasattr(batch, "columns") and hasattr(batch, "assign"):
            columns = self._placed({str(name): batch[name].to_numpy() for name in batch.columns})
            return type(batch)(columns, index=batch.index)
        raise TypeError(
            f"A batch must be a mapping of names to arrays, a DataFrame or a pyarrow Table. Got a "
            f"{type(batch).__name__} instead."
        )

    def _placed(self, batch: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        model = self._load()
        names = self._features(model, batch)
        rows = np.concatenate([_matrix(batch[name]) for name in names], axis=1)
        if len(rows) and rows.shape[1] != model.n_features_in_:
            raise ValueError(
                f"The batch has {rows.shape[1]:,} features where the model was fitted with {model.n_features_in_:,}: "
                "choose them by the 'columns' parameter."
            )
        kept = {name: values for name, values in batch.items() if name not in set(names)}
        if len(rows) == 0:  # engines try a function on an empty batch to learn its columns
            places, novelty = np.empty((0, model._n_features_out), dtype=np.float32), np.empty(0)
        else:
            places = without_names(model.transform, rows)
            novelty = without_names(model.novelty, rows) if self.novelty else np.empty(0)
        kept |= {f"tsee{i}": column for i, column in enumerate(places.T)}
        return {**kept, "novelty": novelty} if self.novelty else kept

    def _features(self, model: Any, batch: dict[str, np.ndarray]) -> list[str]:
        known = getattr(model, "feature_names_in_", None)
        names = self.columns or (None if known is None else [str(name) for name in known])
        if names is None:
            if len(batch) != 1:
                raise ValueError(
                    f"The model knows no names of features, and the batch has {len(batch)} columns: name those that "
                    "are the features by the 'columns' parameter."
                )
            return list(batch)
        missing = [name for name in names if name not in batch]
        if missing:
            raise ValueError(f"The batch has no column {missing[0]!r}, which is a feature of the model.")
        return names

    def _load(self) -> Any:
        key = (self.model, self.placement, self.device)
        with _LOADING:
            if key not in _MODELS:
                model = load(self.model, device=self.device)
                if self.placement is not None:
                    model.set_params(placement=self.placement)
                _MODELS[key] = model
        return _MODELS[key]


def _matrix(values: np.ndarray) -> np.ndarray:
    """A column as a matrix: of numbers, or of vectors, which pandas keeps as objects."""
    if values.dtype == object and len(values):
        values = np.stack([np.asarray(value) for value in values])
    return values[:, None] if values.ndim == 1 else values.reshape(len(values), math.prod(values.shape[1:]))
