"""Whatever a table comes as, as named columns that are read by slice."""

from __future__ import annotations

import datetime
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tsee.files import Table
from tsee.files.errors import listed
from tsee.files.mixed import MixedTable

__all__ = ["Frame", "as_frame", "gaps_of", "is_frame", "is_gap"]


class Frame:
    """A table: ``names``, ``n_rows``, and ``block(a, b)``, rows a to b of every column.

    A column of a block is an array of float64, with NaN for a gap, or of objects, with None for a gap. A duration is a
    number of seconds.

    Parameters
    ----------
    names : sequence of str
        All different.
    n_rows : int
    read : callable
        From two numbers of rows to a column each, by name.
    types : dict of str to str
        What is known of columns beyond their values: "category", "date", "boolean" or "duration", by name.
    named : bool
        Whether the names are names; otherwise they count the columns of an array.
    exact : callable, optional
        From two numbers of rows and a name to that column, whose integers are not rounded; ``read`` by default.
    """

    def __init__(
        self,
        names: Sequence[str],
        n_rows: int,
        read: Callable[[int, int], dict[str, Any]],
        types: dict[str, str] | None = None,
        *,
        named: bool = True,
        exact: Callable[[int, int, str], Any] | None = None,
    ) -> None:
        repeated = [name for name, count in Counter(names).items() if count > 1]
        if repeated:
            raise ValueError(f"X has several columns named {listed(repeated)}: rename them so that all names differ.")
        self.names, self.n_rows, self.types, self._read = list(names), int(n_rows), dict(types or {}), read
        self.named, self._exact = named, exact or (lambda start, stop, name: read(start, stop)[name])

    def renamed(self, names: Sequence[str]) -> Frame:
        """The same columns by other names, in their order."""
        return Frame(names, self.n_rows, lambda a, b: dict(zip(names, self._read(a, b).values(), strict=True)))

    def block(self, start: int, stop: int) -> dict[str, np.ndarray]:
        return {name: plain_column(values) for name, values in self._read(start, stop).items()}

    def exact(self, start: int, stop: int, name: str) -> np.ndarray:
        """The values of a column in rows ``start`` to ``stop``, without gaps; integers are not rounded."""
        values = np.asarray(self._exact(start, stop, name))
        if values.dtype.kind in "iu":
            return values
        return values[np.array([not is_gap(value) for value in values.tolist()], bool)]


def is_frame(X: Any) -> bool:
    """Whether ``X`` is a DataFrame of pandas or polars, an Arrow table, or an open file."""
    return isinstance(X, Table | Frame) or (hasattr(X, "columns") and hasattr(X, "shape") and len(X.shape) == 2)


def as_frame(X: Any, names: Sequence[str] | None = None) -> Frame:
    """A table by its columns. An array has the columns ``names``, or "0", "1" and so on."""
    if isinstance(X, Frame):
        return X
    if isinstance(X, MixedTable):
        return Frame(X.names, len(X), X.read, exact=X.exact)
    if isinstance(X, Table):
        return _of_file(X)
    if hasattr(X, "to_pandas") and hasattr(X, "schema"):  # polars, and Arrow tables
        names = [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]
        types = {name: _type_of(str(dtype)) for name, dtype in _schema(X)}
        column = X.column if hasattr(X, "column_names") else X.get_column
        whole = {name: _listed(column(name)) for name in names}
        return Frame(names, X.shape[0], lambda start, stop: {k: v[start:stop] for k, v in whole.items()}, types)
    if hasattr(X, "iloc") and is_frame(X):
        names = [str(name) for name in X.columns]
        types = {name: _type_of(str(dtype)) for name, dtype in zip(names, X.dtypes, strict=True)}

        def read(start: int, stop: int) -> dict[str, Any]:
            return {name: X.iloc[start:stop, place] for place, name in enumerate(names)}

        return Frame(names, X.shape[0], read, types)
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"Expected 2D array, got X of shape {array.shape} instead: pass rows and columns.")
    given = [str(place) for place in range(array.shape[1])] if names is None else list(names)
    if len(given) != array.shape[1]:
        raise ValueError(f"X has {array.shape[1]} columns, but the model was fitted with {len(given)}.")

    def read_array(start: int, stop: int) -> dict[str, Any]:
        return {name: array[start:stop, place] for place, name in enumerate(given)}

    return Frame(given, len(array), read_array, named=False)


def plain_column(values: Any) -> np.ndarray:
    """A column as float64 with NaN, or as objects with None for a gap."""
    if hasattr(values, "to_numpy") and hasattr(values, "iloc"):  # pandas, whose NA numpy does not know
        kind = getattr(values.dtype, "kind", "O")
        if kind in "iuf" and values.dtype != object:
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan))
        values = values.astype(object).to_numpy()
    values = np.asarray(values) if not isinstance(values, list) else _objects(values)
    if values.dtype.kind in "iuf":
        return values.astype(np.float64)
    if values.dtype.kind == "m":
        return values / np.timedelta64(1, "s")
    if values.dtype.kind == "M":
        values = _objects([None if np.isnat(value) else value for value in values.astype("M8[us]")])
    found = _objects([None if is_gap(value) else value for value in values.tolist()])
    durations = [isinstance(value, datetime.timedelta) for value in found.tolist() if value is not None]
    if durations and all(durations):
        found = _objects([None if value is None else value.total_seconds() for value in found.tolist()])
    kinds = {type(value) for value in found.tolist()} - {type(None)}
    if kinds <= {int, float, bool} and kinds & {int, float}:
        return np.array([math.nan if value is None else float(value) for value in found], np.float64)
    return found


def is_gap(value: Any) -> bool:
    """Whether a value says that there is none."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(value, str):
        return not value.strip()
    return isinstance(value, float | np.floating | np.datetime64) and bool(value != value)


def gaps_of(values: np.ndarray) -> np.ndarray:
    """Which values of a column are missing."""
    return (
        np.isnan(values) if values.dtype.kind == "f" else np.array([value is None for value in values.tolist()], bool)
    )


def _objects(values: Sequence[Any]) -> np.ndarray:
    """An array of objects, also of lists of one length."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found


def _listed(column: Any) -> Any:
    """A column of polars or Arrow."""
    values = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return _objects(values)


def _schema(X: Any) -> list[tuple[str, Any]]:
    if hasattr(X, "column_names"):
        return list(zip(X.column_names, X.schema.types, strict=True))
    return list(X.schema.items())


def _type_of(dtype: str) -> str:
    dtype = dtype.lower()
    if dtype.startswith(("category", "categorical", "enum", "dictionary")):
        return "category"
    if dtype.startswith(("date", "timestamp")):
        return "date"
    if dtype.startswith(("timedelta", "duration")):
        return "duration"
    return "boolean" if dtype.startswith("bool") else ""


def _of_file(table: Table) -> Frame:
    """The features and the other columns of a file."""
    numbers = list(table.feature_names or [str(place) for place in range(table.rows.shape[1])])
    others = table.other_columns

    def read(start: int, stop: int) -> dict[str, Any]:
        block = table.rows[start:stop]
        block = block.toarray() if hasattr(block, "toarray") else block
        found: dict[str, Any] = {name: block[:, place] for place, name in enumerate(numbers)}
        texts = others.block(start, stop)
        return found | {name: _objects([_read_text(value) for value in texts[name].tolist()]) for name in texts}

    return Frame([*numbers, *others], len(table.rows), read)


def _read_text(value: Any) -> Any:
    from tsee.files.fields import is_missing

    if isinstance(value, str):
        return None if is_missing(value) else value.strip()
    return value if not isinstance(value, datetime.datetime | datetime.date) else np.datetime64(value, "us")
