"""Maps as files. The file extension gives the format; the file is written completely or not at all."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError
from tsee.files.atomic import replacing
from tsee.files.errors import listed, obstacle, require, unwritable
from tsee.files.fields import encoded
from tsee.files.h5ad import put_obsm
from tsee.files.table import Table

__all__ = ["MapWriter", "can_write", "write_map"]

BLOCK_ROWS = 2**16
DELIMITERS = {".csv": ",", ".tsv": "\t"}
KNOWN = ".csv, .tsv (also .gz), .parquet, .npy, .npz and .h5ad"
# The map in an .npz file, and in obsm of an .h5ad file.
ARRAY, OBSM = "tsee", "X_tsee"


def write_map(
    path: str | PathLike[str], positions: Any, table: Table | None = None, *, columns: Sequence[str] | None = None
) -> None:
    """Write a map, with the identifiers and the label of its table.

    The file extension gives the format. Text and Parquet have a column for each identifier, for the label, and
    ``tsee0``, ``tsee1``; ``.npy`` has the positions only; ``.npz`` has them as ``tsee``, along with the other columns;
    ``.h5ad`` is a copy of the table's file with the positions as ``obsm["X_tsee"]``. An existing file is replaced at
    the very end, in one step: if writing fails or is killed, the old file is unchanged.

    Parameters
    ----------
    path : str or path
        The file to write.
    positions : array-like of shape (n_rows, n_components)
        The map.
    table : Table, optional
        The data that the map shows.
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
    positions = np.asarray(positions)
    with MapWriter(path, table, columns=columns) as writer:
        for start in range(0, len(positions), BLOCK_ROWS):
            writer.write(positions[start : start + BLOCK_ROWS])


class MapWriter:
    """Write a map in blocks of rows, in their order; see `write_map` for the formats.

    Use it with ``with``: the file gets its name when the block ends without an error. Text, Parquet, ``.npy`` and
    ``.h5ad`` keep only one block in memory; ``.npz`` keeps the whole map.

    Parameters
    ----------
    path : str or path
        The file to write.
    table : Table, optional
        The data that the map shows.
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
        self._columns = None if columns is None else [encoded(name) for name in columns]
        self._replacement = contextlib.ExitStack()
        self._sink: _Sink | None = None
        self._sink_class = _sink_class(self.path, table)
        if self.path.is_dir():
            raise DataFileError(f"{str(path)!r} is a folder: name a file to write the map to.")
        reason = obstacle(self.path.resolve())
        if reason is not None:  # reported before the work, not after it
            raise unwritable("The map", self.path, reason)

    def __enter__(self) -> MapWriter:
        return self

    def write(self, positions: Any) -> None:
        """Add the positions of the next rows."""
        positions = np.asarray(positions)
        if positions.ndim != 2 or positions.dtype.kind not in "biuf":
            raise ValueError(
                f"The 'positions' parameter must be numbers of shape (n_rows, n_components). Got an array of shape "
                f"{positions.shape} and type {positions.dtype} instead."
            )
        start, stop = self.rows, self.rows + len(positions)
        if self._table is not None and stop > len(self._table):
            raise ValueError(
                f"The map must have one row for each of the table's {len(self._table)}. Got {stop} or more."
            )
        kept = {} if self._table is None else _encodable(self._table.kept(start, stop), self.path)
        with self._reported():
            if self._sink is None:
                self._sink = self._open(positions, kept)
            self._sink.write(kept, positions)
        self.rows = stop

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            self._abandon(kind, error, trace)
            return
        try:
            with self._reported(), self._replacement:  # the file gets its name when this block ends
                self._check_complete()
                assert self._sink is not None
                self._sink.close()
        except BaseException as failure:
            self._abandon(type(failure), failure, failure.__traceback__)
            raise

    def _abandon(self, kind: Any, error: Any, trace: Any) -> None:
        """Close the unfinished file and remove it."""
        if self._sink is not None:
            with contextlib.suppress(Exception):
                self._sink.close()
        with contextlib.suppress(Exception):
            self._replacement.__exit__(kind, error, trace)

    def _open(self, positions: np.ndarray, kept: Mapping[str, np.ndarray]) -> _Sink:
        columns = self._columns or [f"tsee{component}" for component in range(positions.shape[1])]
        if len(columns) != positions.shape[1]:
            raise ValueError(
                f"The 'columns' parameter must name {positions.shape[1]} columns of the map. Got {columns!r} instead."
            )
        reserved = self._sink_class.reserved(columns)
        clash = [name for name in kept if name in reserved]
        if clash:
            raise DataFileError(
                f"{listed(clash)} would be in {str(self.path)!r} twice: drop it from the input, or give the map's "
                "columns other names."
            )
        folder = self.path.resolve().parent
        if not folder.is_dir():
            folder.mkdir(parents=True)
        temporary = self._replacement.enter_context(replacing(self.path))
        return self._sink_class(temporary, self.path, columns, positions.dtype, self._table)

    def _check_complete(self) -> None:
        if self._sink is None or (self._table is not None and self.rows != len(self._table)):
            wanted = "at least one row" if self._table is None else f"the table's {len(self._table)} rows"
            raise ValueError(f"The map must have {wanted}. Got {self.rows}.")

    @contextlib.contextmanager
    def _reported(self) -> Any:
        """Turn an error of the disk into a `DataFileError`."""
        try:
            yield
        except (OSError, RuntimeError) as error:  # h5py raises a RuntimeError if the disk is full
            raise unwritable("The map", self.path, error) from error


class _Sink(ABC):
    """An unfinished file of one format."""

    def __init__(self, path: Path, name: Path, columns: list[str], dtype: Any, table: Table | None):
        self.path, self.name, self.columns, self.dtype, self.table = path, name, columns, dtype, table

    @staticmethod
    def reserved(columns: Sequence[str]) -> Sequence[str]:
        """Names that no other column can have."""
        return columns

    @abstractmethod
    def write(self, kept: Mapping[str, np.ndarray], positions: np.ndarray) -> None:
        """Write the kept columns and the positions of the next rows."""

    @abstractmethod
    def close(self) -> None:
        """Finish the file."""


class _TextSink(_Sink):
    def __init__(self, *given: Any):
        super().__init__(*given)
        extensions = [extension.lower() for extension in self.name.suffixes]
        raw: Any = open(self.path, "wb")  # noqa: SIM115
        self._files = [raw]
        if extensions[-1] == ".gz":
            raw = gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0)
            self._files.insert(0, raw)
        self._text = io.TextIOWrapper(raw, encoding="utf-8", newline="")
        delimiter = next(DELIMITERS[name] for name in reversed(extensions) if name in DELIMITERS)
        self._writer = csv.writer(self._text, delimiter=delimiter, lineterminator="\n")
        self._has_header = False

    def write(self, kept: Mapping[str, np.ndarray], positions: np.ndarray) -> None:
        if not self._has_header:
            self._writer.writerow([*kept, *self.columns])
            self._has_header = True
        fields = [_fields(values) for values in kept.values()]
        self._writer.writerows(zip(*fields, *positions.T.astype(str).tolist(), strict=True))

    def close(self) -> None:
        self._text.close()
        for file in self._files:
            file.close()


class _NpySink(_Sink):
    def __init__(self, *given: Any):
        super().__init__(*given)
        self._file = open(self.path, "wb")  # noqa: SIM115
        self._rows = 0
        self._write_header()

    def _write_header(self) -> None:
        # numpy leaves room in the header for the number of rows to grow.
        kind = {"descr": np.lib.format.dtype_to_descr(np.dtype(self.dtype)), "fortran_order": False}
        np.lib.format.write_array_header_1_0(self._file, {**kind, "shape": (self._rows, len(self.columns))})

    def write(self, kept: Mapping[str, np.ndarray], positions: np.ndarray) -> None:
        self._file.write(np.ascontiguousarray(positions, dtype=self.dtype).data)
        self._rows += len(positions)

    def close(self) -> None:
        if not self._file.closed:
            self._file.seek(0)
            self._write_header()
            self._file.close()


class _NpzSink(_Sink):
    def __init__(self, *given: Any):
        super().__init__(*given)
        self._parts: dict[str, list[np.ndarray]] = {}

    @staticmethod
    def reserved(columns: Sequence[str]) -> Sequence[str]:
        return [ARRAY, "file"]  # the second is a parameter of numpy.savez

    def write(self, kept: Mapping[str, np.ndarray], positions: np.ndarray) -> None:
        for name, values in {**kept, ARRAY: positions}.items():
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

    def write(self, kept: Mapping[str, np.ndarray], positions: np.ndarray) -> None:
        import pyarrow as pa

        values = {**kept, **dict(zip(self.columns, positions.T, strict=True))}
        if self._writer is None:
            arrays = {name: _arrow_array(column) for name, column in values.items()}
            schema = pa.schema([(name, array.type) for name, array in arrays.items()])
            self._file = open(self.path, "wb")  # noqa: SIM115  # pyarrow takes no names that are not UTF-8
            self._writer = self._parquet.ParquetWriter(self._file, schema)
        schema = self._writer.schema
        self._writer.write_table(
            pa.table([_arrow_array(column, schema.field(name).type) for name, column in values.items()], schema=schema)
        )

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._file.close()


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

    def write(self, kept: Mapping[str, np.ndarray], positions: np.ndarray) -> None:
        self._dataset[self._rows : self._rows + len(positions)] = positions
        self._rows += len(positions)

    def close(self) -> None:
        self._file.close()


SINKS: dict[str, type[_Sink]] = {".npy": _NpySink, ".npz": _NpzSink, ".parquet": _ParquetSink, ".h5ad": _H5adSink}


def can_write(path: Path) -> bool:
    """Whether maps can be written to files with this extension."""
    return _is_text(path) or path.suffix.lower() in SINKS


def _is_text(path: Path) -> bool:
    extension = path.suffix.lower()
    return (path.with_suffix("").suffix.lower() if extension == ".gz" else extension) in DELIMITERS


def _sink_class(path: Path, table: Table | None) -> type[_Sink]:
    extension = path.suffix.lower()
    if _is_text(path):
        return _TextSink
    if extension == ".h5ad" and (table is None or table.kind != "h5ad"):
        raise DataFileError(
            f"{str(path)!r} would be a copy of an .h5ad input, but the input is not one: choose .csv or .parquet."
        )
    if extension not in SINKS:
        raise DataFileError(f"A map cannot be written to {str(path)!r}: choose one of the file extensions {KNOWN}.")
    if extension == ".parquet":
        require("pyarrow.parquet", "parquet", path)
    return SINKS[extension]


def _encodable(columns: Mapping[str, np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """Columns whose names and texts can be written."""
    checked: dict[str, np.ndarray] = {}
    for name, values in columns.items():
        if encoded(name) in checked:
            raise DataFileError(f"{encoded(name)!r} would be in {str(path)!r} twice: drop it from the input.")
        checked[encoded(name)] = values
        if values.dtype.kind in "OU":
            try:
                "".join(value for value in values.flat if isinstance(value, str)).encode()
            except UnicodeEncodeError:
                texts = [encoded(value) if isinstance(value, str) else value for value in values.tolist()]
                checked[encoded(name)] = np.array(texts, dtype=object)
    return checked


def _fields(values: np.ndarray) -> list[Any]:
    """Values as they are written in text: a missing one is empty."""
    if values.dtype.kind in "mMf":
        return ["" if value in ("nan", "NaT") else value for value in values.astype(str).tolist()]
    return ["" if value is None or value != value else value for value in values.tolist()]


def _arrow_array(values: np.ndarray, kind: Any = None) -> Any:
    import pyarrow as pa

    try:
        return pa.array(values, type=kind, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in values], type=pa.string())
