"""Maps as files, in the family of the ending; the file is there whole or not at all."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import shutil
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError
from tsee.files.errors import listed, obstacle, require
from tsee.files.h5ad import put_obsm
from tsee.files.replacing import beside, put_in_place
from tsee.files.table import Table

__all__ = ["MapWriter", "can_write", "write_map"]

BLOCK_ROWS = 2**16
DELIMITERS = {".csv": ",", ".tsv": "\t"}
KNOWN = ".csv, .tsv (also .gz), .parquet, .npy, .npz and .h5ad"
# The map in an .npz file, and in obsm of an .h5ad file.
ARRAY, OBSM = "tsee", "X_tsee"


def write_map(
    path: str | PathLike[str], places: Any, table: Table | None = None, *, columns: Sequence[str] | None = None
) -> None:
    """Write a map, beside the identifiers and the label of the table that it was made of.

    The ending says the format. Text and Parquet have a column for each identifier, for the label, and ``tsee0``,
    ``tsee1``; ``.npy`` has the places alone; ``.npz`` has them as ``tsee`` beside the other columns; ``.h5ad`` is a
    copy of the table's file with the places as ``obsm["X_tsee"]``. A file that was there is replaced at the very
    end, in one step: if writing fails or is killed, it is what it was.

    Parameters
    ----------
    path : str or path
        The file to write.
    places : array-like of shape (n_rows, n_components)
        The map.
    table : Table, optional
        What the map was made of.
    columns : sequence of str, optional
        Names of the columns of the map. By default ``tsee0``, ``tsee1`` and so on.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tsee.files import open_table, write_map
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("id,kind,width,height\\n7,rose,1.5,2\\n8,lily,0.5,3\\n")
    ...     with open_table(path, label="kind") as table:
    ...         write_map(Path(folder) / "map.csv", [[0.5, 1.0], [2.0, -1.0]], table)
    ...     print((Path(folder) / "map.csv").read_text())
    id,kind,tsee0,tsee1
    7,rose,0.5,1.0
    8,lily,2.0,-1.0
    """
    places = np.asarray(places)
    with MapWriter(path, table, columns=columns) as writer:
        for start in range(0, len(places), BLOCK_ROWS):
            writer.write(places[start : start + BLOCK_ROWS])


class MapWriter:
    """Write a map in blocks of rows, in their order; see `write_map` for the formats.

    Use it with ``with``: the file is there, under its name, when the block ends without an error. Text, Parquet,
    ``.npy`` and ``.h5ad`` hold no more than a block; ``.npz`` holds the map.

    Parameters
    ----------
    path : str or path
        The file to write.
    table : Table, optional
        What the map is made of.
    columns : sequence of str, optional
        Names of the columns of the map.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from tsee.files import MapWriter
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with MapWriter(f"{folder}/map.npy") as writer:
    ...         for block in range(3):
    ...             writer.write(np.full((2, 2), block, dtype=np.float32))
    ...     np.load(f"{folder}/map.npy")[:, 0]
    array([0., 0., 1., 1., 2., 2.], dtype=float32)
    """

    def __init__(
        self, path: str | PathLike[str], table: Table | None = None, *, columns: Sequence[str] | None = None
    ) -> None:
        self.path = Path(path)
        self.rows = 0
        self._table = table
        self._columns = None if columns is None else list(columns)
        self._target = self.path.resolve()  # what a link points to is replaced, not the link
        self._temporary = beside(self._target)
        self._sink: _Sink | None = None
        self._make = _sink_class(self.path, table)
        if self._target.is_dir():
            raise DataFileError(f"{str(path)!r} is a folder: name a file to write the map to.")
        reason = obstacle(self._target)
        if reason is not None:  # said before the work, not after it
            raise self._unwritable(reason)

    def __enter__(self) -> MapWriter:
        return self

    def write(self, places: Any) -> None:
        """Add the places of the next rows."""
        places = np.asarray(places)
        if places.ndim != 2 or places.dtype.kind not in "biuf":
            raise ValueError(
                f"The 'places' parameter must be numbers of shape (n_rows, n_components). Got an array of shape "
                f"{places.shape} and type {places.dtype} instead."
            )
        start, stop = self.rows, self.rows + len(places)
        if self._table is not None and stop > len(self._table):
            raise ValueError(
                f"The map must have one row for each of the table's {len(self._table)}. Got {stop} or more."
            )
        kept = {} if self._table is None else self._table.kept(start, stop)
        with self._telling():
            if self._sink is None:
                self._sink = self._open(places, kept)
            self._sink.write(kept, places)
        self.rows = stop

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            if self._sink is not None:
                with contextlib.suppress(Exception):
                    self._sink.close()
            with contextlib.suppress(OSError):
                self._temporary.unlink()

    def _open(self, places: np.ndarray, kept: Mapping[str, np.ndarray]) -> _Sink:
        columns = self._columns or [f"tsee{place}" for place in range(places.shape[1])]
        if len(columns) != places.shape[1]:
            raise ValueError(
                f"The 'columns' parameter must name {places.shape[1]} columns of the map. Got {columns!r} instead."
            )
        reserved = self._make.reserved(columns)
        clash = [name for name in kept if name in reserved]
        if clash:
            raise DataFileError(
                f"{listed(clash)} would stand twice in {str(self.path)!r}: drop it from the input, or name the map's "
                "columns otherwise."
            )
        if not self._target.parent.is_dir():
            self._target.parent.mkdir(parents=True)
        return self._make(self._temporary, self.path, columns, places.dtype, self._table)

    def _finish(self) -> None:
        if self._sink is None or (self._table is not None and self.rows != len(self._table)):
            wanted = "at least one row" if self._table is None else f"the table's {len(self._table)} rows"
            raise ValueError(f"The map must have {wanted}. Got {self.rows}.")
        with self._telling():
            self._sink.close()
            put_in_place(self._temporary, self._target)

    @contextlib.contextmanager
    def _telling(self) -> Any:
        try:
            yield
        except (OSError, RuntimeError) as error:  # the latter is what h5py says of a full disk
            reason = getattr(error, "strerror", None) or str(error).splitlines()[0]
            raise self._unwritable(reason) from error

    def _unwritable(self, reason: str) -> DataFileError:
        return DataFileError(
            f"The map cannot be written to {str(self.path)!r} ({reason}), and what was there is as it was: "
            "choose a place that you may write to, with room on its disk."
        )


class _Sink:
    """A file of one format in the making."""

    def __init__(self, path: Path, name: Path, columns: list[str], dtype: Any, table: Table | None):
        self.path, self.name, self.columns, self.dtype, self.table = path, name, columns, dtype, table

    @staticmethod
    def reserved(columns: Sequence[str]) -> Sequence[str]:
        """Names that the map itself takes."""
        return columns

    def write(self, kept: Mapping[str, np.ndarray], places: np.ndarray) -> None:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError


class _TextSink(_Sink):
    def __init__(self, *given: Any):
        super().__init__(*given)
        endings = [ending.lower() for ending in self.name.suffixes]
        raw: Any = open(self.path, "wb")  # noqa: SIM115
        self._files = [raw]
        if endings[-1] == ".gz":
            raw = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
            self._files.insert(0, raw)
        self._text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        delimiter = next(DELIMITERS[ending] for ending in reversed(endings) if ending in DELIMITERS)
        self._writer = csv.writer(self._text, delimiter=delimiter, lineterminator="\n")
        self._begun = False

    def write(self, kept: Mapping[str, np.ndarray], places: np.ndarray) -> None:
        if not self._begun:
            self._writer.writerow([*kept, *self.columns])
            self._begun = True
        fields = [_fields(values) for values in kept.values()]
        self._writer.writerows(zip(*fields, *places.T.astype(str).tolist(), strict=True))

    def close(self) -> None:
        self._text.close()
        for file in self._files:
            file.close()


class _NpySink(_Sink):
    def __init__(self, *given: Any):
        super().__init__(*given)
        self._file = open(self.path, "wb")  # noqa: SIM115
        self._rows = 0
        self._head()

    def _head(self) -> None:
        # numpy leaves room in the header for the number of rows to grow.
        np.lib.format.write_array_header_1_0(
            self._file,
            {
                "descr": np.lib.format.dtype_to_descr(np.dtype(self.dtype)),
                "fortran_order": False,
                "shape": (self._rows, len(self.columns)),
            },
        )

    def write(self, kept: Mapping[str, np.ndarray], places: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(places, dtype=self.dtype).data)
        self._rows += len(places)

    def close(self) -> None:
        if not self._file.closed:
            self._file.seek(0)
            self._head()
            self._file.close()


class _NpzSink(_Sink):
    def __init__(self, *given: Any):
        super().__init__(*given)
        self._parts: dict[str, list[np.ndarray]] = {}

    @staticmethod
    def reserved(columns: Sequence[str]) -> Sequence[str]:
        return [ARRAY, "file"]  # the second is a parameter of numpy.savez

    def write(self, kept: Mapping[str, np.ndarray], places: np.ndarray) -> None:
        for name, values in {**kept, ARRAY: places}.items():
            self._parts.setdefault(name, []).append(values)

    def close(self) -> None:
        parts, self._parts = self._parts, {}
        if not parts:
            return
        arrays: dict[str, Any] = {name: np.concatenate(values) for name, values in parts.items()}
        for name, values in arrays.items():
            if values.dtype.kind == "O":  # objects would be pickled
                arrays[name] = np.array(_fields(values), dtype=str)
        with open(self.path, "wb") as file:
            np.savez(file, **arrays)


class _ParquetSink(_Sink):
    def __init__(self, *given: Any):
        super().__init__(*given)
        self._writer: Any = None
        self._parquet = require("pyarrow.parquet", "parquet", self.name)

    def write(self, kept: Mapping[str, np.ndarray], places: np.ndarray) -> None:
        import pyarrow as pa

        values = {**kept, **dict(zip(self.columns, places.T, strict=True))}
        if self._writer is None:
            arrays = {name: _arrow_array(column) for name, column in values.items()}
            schema = pa.schema([(name, array.type) for name, array in arrays.items()])
            self._writer = self._parquet.ParquetWriter(self.path, schema)
        schema = self._writer.schema
        self._writer.write_table(
            pa.table([_arrow_array(column, schema.field(name).type) for name, column in values.items()], schema=schema)
        )

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _H5adSink(_Sink):
    def __init__(self, *given: Any):
        super().__init__(*given)
        assert self.table is not None
        shutil.copyfile(self.table.source, self.path)
        self._file, self._dataset = put_obsm(self.path, OBSM, len(self.table), len(self.columns))
        self._rows = 0

    @staticmethod
    def reserved(columns: Sequence[str]) -> Sequence[str]:
        return ()

    def write(self, kept: Mapping[str, np.ndarray], places: np.ndarray) -> None:
        self._dataset[self._rows : self._rows + len(places)] = places
        self._rows += len(places)

    def close(self) -> None:
        self._file.close()


SINKS: dict[str, type[_Sink]] = {".npy": _NpySink, ".npz": _NpzSink, ".parquet": _ParquetSink, ".h5ad": _H5adSink}


def can_write(path: Path) -> bool:
    """Whether a map can have a file of this ending."""
    return _is_text(path) or path.suffix.lower() in SINKS


def _is_text(path: Path) -> bool:
    ending = path.suffix.lower()
    return (path.with_suffix("").suffix.lower() if ending == ".gz" else ending) in DELIMITERS


def _sink_class(path: Path, table: Table | None) -> type[_Sink]:
    ending = path.suffix.lower()
    if _is_text(path):
        return _TextSink
    if ending == ".h5ad" and (table is None or table.kind != "h5ad"):
        raise DataFileError(
            f"{str(path)!r} would be a copy of an .h5ad input, and there is none: choose .csv or .parquet."
        )
    if ending not in SINKS:
        raise DataFileError(f"A map cannot be written to {str(path)!r}: choose one of the endings {KNOWN}.")
    if ending == ".parquet":
        require("pyarrow.parquet", "parquet", path)
    return SINKS[ending]


def _fields(values: np.ndarray) -> list[Any]:
    """Values as text has them: a missing one is empty."""
    if values.dtype.kind in "mMf":
        return ["" if value in ("nan", "NaT") else value for value in values.astype(str).tolist()]
    return ["" if value is None or value != value else value for value in values.tolist()]


def _arrow_array(values: np.ndarray, kind: Any = None) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values, type=kind, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values], type=pa.string())
