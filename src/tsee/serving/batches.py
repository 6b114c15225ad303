"""Placing rows in engines that process data in batches: Ray Data, Dask, Spark and others."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np

from tsee.fitted import FittedMap
from tsee.serving.placing import load_model
from tsee.tables import Frame, TableEncoder

__all__ = ["transform_batches"]

# A process that gets many batches loads a model once.
_MODELS: dict[tuple[Any, ...], FittedMap] = {}
_LOADING = threading.Lock()


class transform_batches:  # noqa: N801 - it is used like a function
    """A function that places the rows of a batch, for engines that map a function over batches.

    Only the absolute path of the model is sent to the workers: each process loads the model when it gets its first
    batch. In the result, the positions ``tsee0``, ``tsee1`` and so on replace the features; other columns are kept, and
    so are all columns of a table with words or gaps.

    Parameters
    ----------
    model : str or path
        The folder that ``save`` wrote, on a disk that all workers see.
    columns : sequence of str, optional
        The columns that are the features, in this order; it can be one column whose values are vectors. By default the
        columns that the model was fitted with, by name, or the only column of the batch.
    placement : {"refined", "forward"}, optional
        How rows are placed. By default as saved in the model.
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
        """Place the rows of a batch: a mapping of names to arrays, a DataFrame or a pyarrow Table; return the same."""
        if isinstance(batch, Mapping):
            return self._placed({str(name): np.asarray(values) for name, values in batch.items()})
        if hasattr(batch, "column_names") and hasattr(batch, "to_pandas"):  # a pyarrow Table
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
        fitted = self._load()
        if fitted.table is not None:
            return self._placed_table(fitted, fitted.table, batch)
        names = self._features(fitted, batch)
        rows = np.concatenate([_matrix(batch[name]) for name in names], axis=1)
        if len(rows) and rows.shape[1] != fitted.n_features:
            raise ValueError(
                f"The batch has {rows.shape[1]:,} features, but the model was fitted with {fitted.n_features:,}: "
                "choose them with the 'columns' parameter."
            )
        return self._with_positions(fitted, rows, {k: v for k, v in batch.items() if k not in set(names)})

    def _placed_table(
        self, fitted: FittedMap, table: TableEncoder, batch: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        """The columns of a table are kept: what they say is not what the map is of."""
        n_rows = len(next(iter(batch.values()))) if batch else 0
        frame = Frame(list(batch), n_rows, lambda start, stop: {k: v[start:stop] for k, v in batch.items()})
        return self._with_positions(fitted, table.encode(frame), dict(batch))

    def _with_positions(
        self, fitted: FittedMap, rows: np.ndarray, kept: dict[str, np.ndarray]
    ) -> dict[str, np.ndarray]:
        if len(rows) == 0:  # engines try a function on an empty batch to learn its columns
            positions, novelty = np.empty((0, fitted.n_components), dtype=np.float32), np.empty(0)
        else:
            positions = fitted.place(rows)
            novelty = fitted.novelty(rows) if self.novelty else np.empty(0)
        kept |= {f"tsee{i}": column for i, column in enumerate(positions.T)}
        return {**kept, "novelty": novelty} if self.novelty else kept

    def _features(self, fitted: FittedMap, batch: dict[str, np.ndarray]) -> Sequence[str]:
        names = self.columns or fitted.feature_names
        if names is None:
            if len(batch) != 1:
                raise ValueError(
                    f"The model does not know the names of its features, and the batch has {len(batch)} columns: name "
                    "the features with the 'columns' parameter."
                )
            return list(batch)
        missing = [name for name in names if name not in batch]
        if missing:
            raise ValueError(
                f"The batch has no column {missing[0]!r}, which is a feature of the model: add it, or name "
                "the features with the 'columns' parameter."
            )
        return names

    def _load(self) -> FittedMap:
        key = (self.model, self.placement, self.device)
        with _LOADING:
            if key not in _MODELS:
                _MODELS[key] = load_model(self.model, placement=self.placement, device=self.device)
        return _MODELS[key]


def _matrix(values: np.ndarray) -> np.ndarray:
    """A column of numbers, or of vectors (which pandas keeps as objects), as a matrix."""
    if values.dtype == object and len(values):
        values = np.stack([np.asarray(value) for value in values])
    return values[:, None] if values.ndim == 1 else values.reshape(len(values), math.prod(values.shape[1:]))
