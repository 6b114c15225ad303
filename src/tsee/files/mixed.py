"""Text and Parquet files with words, dates and gaps: all columns as they are, read by slice."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import shutil
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tsee.exceptions import DataFileError, NotAMatrixError
from tsee.files.columns import OtherColumns
from tsee.files.errors import check_known, reading, require
from tsee.files.fields import LARGEST_INTEGER, is_code, is_missing, is_number, pointed
from tsee.files.opening import _kind
from tsee.files.parquet import _Shards, holds_long
from tsee.files.rows import Rows
from tsee.files.scratch import Scratch, writing
from tsee.files.stamps import Stamp
from tsee.files.table import Table
from tsee.files.text import BLOCK_FIELDS, FIRST_FIELDS, _n_rows, _PlainFile

__all__ = ["Content", "MixedTable", "has_gaps", "open_mixed"]

# It is remembered where every so many rows of a text begin.
STEP_ROWS = 1024


class Content(Protocol):
    """All columns of a file: ``names``, ``n_rows``, and slices of some of them."""

    names: list[str]
    n_rows: int

    def read(self, start: int, stop: int, names: Sequence[str], plain: Sequence[str] = ()) -> dict[str, np.ndarray]:
        """Rows ``start`` to ``stop`` of columns: float64 with NaN if it is of numbers, or else objects with None.

        The columns ``plain`` are objects, too.
        """
        ...

    def is_numeric(self, name: str) -> bool:
        """Whether a column is of numbers, and gaps."""
        ...

    def is_whole(self, name: str) -> bool:
        """Whether a column is of integers that float64 holds, and has no gaps."""
        ...

    def is_coded(self, name: str) -> bool:
        """Whether a column is of numbers of which float64 would lose a part: a label or identifier, not an amount."""
        ...


class _NoRows(Rows):
    """Rows that are not encoded yet: one column, so that a `Table` takes them."""

    def __init__(self, n_rows: int, source: Any) -> None:
        super().__init__((n_rows, 1), np.float32, source)

    def _read(self, start: int, stop: int) -> np.ndarray:
        return np.zeros((stop - start, 1), np.float32)


class MixedTable(Table):
    """A table of columns as they are: ``content`` reads the columns ``names``; the label is not among them.

    ``refused`` says why the file is not a matrix of numbers, if it was tried as one.
    """

    content: Content
    names: list[str]
    refused: NotAMatrixError | None = None

    def read(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Rows ``start`` to ``stop`` of all columns."""
        return self.content.read(start, stop, self.names)

    def exact(self, start: int, stop: int, name: str) -> np.ndarray:
        """Rows ``start`` to ``stop`` of a column; its integers are not rounded."""
        return _as_it_is(self.content, start, stop, [name])[name]

    def write_beside(self, encoded: Sequence[str]) -> None:
        """Make its other columns, which go with the map, those that are not numbers or not encoded."""
        beside = [name for name in self.names if not self.content.is_numeric(name) or name not in encoded]
        self.other_columns = _Beside(self.content, beside, self.source)


class _Beside(OtherColumns):
    """Columns as they are written beside a map."""

    def __init__(self, content: Content, names: Sequence[str], source: Any) -> None:
        super().__init__({name: _Column(content, name, written=True) for name in names}, source)
        self._content = content

    def block(self, start: int, stop: int) -> dict[str, np.ndarray]:
        with reading(self._source, "what it was when it was opened"):
            return _written(self._content, start, stop, list(self))


class _Column:
    """One column, read by slice: as it is, or as it is written beside a map."""

    def __init__(self, content: Content, name: str, *, written: bool = False) -> None:
        self._content, self._name = content, name
        self._read: Callable[..., dict[str, np.ndarray]] = _written if written else _as_it_is

    def __len__(self) -> int:
        return self._content.n_rows

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        return self._read(self._content, start, stop, [self._name])[self._name]


def _as_it_is(content: Content, start: int, stop: int, names: Sequence[str]) -> dict[str, np.ndarray]:
    return content.read(start, stop, names, [name for name in names if content.is_coded(name)])


def _written(content: Content, start: int, stop: int, names: Sequence[str]) -> dict[str, np.ndarray]:
    found = _as_it_is(content, start, stop, names)
    for name, values in found.items():
        if values.dtype.kind == "O":
            found[name] = np.array(["" if value is None else str(value) for value in values.tolist()], dtype=object)
        elif content.is_whole(name):
            found[name] = values.astype(np.int64)
    return found


def has_gaps(table: Table) -> bool:
    """Whether a value of the features of an opened Parquet file is missing; other files say so as they are opened."""
    if table.kind != "parquet":
        return False
    try:
        for start in range(0, len(table), 2**16):
            _ = table.rows[start : start + 2**16]
    except DataFileError:
        return True
    return False


def open_mixed(
    path: Path,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    key: str | None = None,
) -> MixedTable:
    """A text or Parquet file with all its columns, read by slice.

    Parameters
    ----------
    path : path
    label, columns, drop, key
        As in `open_table`; ``columns`` are all that are kept.
    """
    kind, files = _kind(path)
    if kind not in ("text", "parquet") or key is not None:
        raise DataFileError(f"{str(path)!r} is no table with names: fill its gaps in, or write it as CSV or Parquet.")
    scratch = Scratch()
    content: Content = _TextContent(path, scratch) if kind == "text" else _ParquetContent(path, files)
    check_known([*([] if label is None else [label]), *(columns or ()), *drop], content.names, path)
    names = list(columns) if columns is not None else [name for name in content.names if name != label]
    table = MixedTable(
        rows=_NoRows(content.n_rows, path),
        source=path,
        kind=kind,
        feature_names=None,
        other_columns=OtherColumns(),
        label_name=label,
        label_column=None if label is None else _Column(content, label),
        holds=[scratch],
    )
    table.content, table.names = content, [name for name in names if name not in drop]
    return table


@dataclass
class _Seen:
    """What the fields of a column are, as far as they were read."""

    n_fields: int = 0
    n_missing: int = 0
    n_numbers: int = 0
    n_integers: int = 0
    n_codes: int = 0

    def add(self, fields: Sequence[str], decimal: str) -> None:
        if decimal == "." and self.n_numbers + self.n_missing < self.n_fields:
            return  # there are words among them, and nothing else matters
        self.n_fields += len(fields)
        for field, count in Counter(fields).items():
            if is_missing(field):
                self.n_missing += count
            elif is_number(field, decimal):
                self.n_numbers += count
                number = float(pointed(field, decimal))
                self.n_integers += count * (number.is_integer() and abs(number) <= LARGEST_INTEGER)
                self.n_codes += count * is_code(field)

    @property
    def is_numeric(self) -> bool:
        return 0 < self.n_numbers == self.n_fields - self.n_missing

    @property
    def has_commas(self) -> bool:
        """Whether most are numbers, so that the commas in them mark decimals, if the file's commas do."""
        return self.n_numbers > 0 and 2 * self.n_numbers > self.n_fields - self.n_missing


class _IndexedFile(_PlainFile):
    """A text file, of which it is remembered where rows begin."""

    def __init__(self, path: Path, scratch: Scratch) -> None:
        self.plain = path
        self.starts, self.n_records, self._bytes = array("q"), 0, 0
        with open(path, "rb") as file:
            compressed = file.read(2) == b"\x1f\x8b"
        if compressed:  # rows cannot be found again in what is compressed
            self.plain = scratch.path("text")
            with gzip.open(path) as source, open(self.plain, "wb") as target, writing(self.plain):
                shutil.copyfileobj(source, target)
        with open(self.plain, "rb") as file:
            self._bytes = 3 if file.read(3) == b"\xef\xbb\xbf" else 0
        super().__init__(path)

    def binary(self) -> Any:
        return open(self.plain, "rb")

    def _lines(self) -> Iterator[str]:
        for line in super()._lines():
            self._bytes += len(line.encode())
            yield line

    def _read_records(self) -> Iterator[tuple[list[str], int]]:
        records = super()._read_records()
        while True:
            start = self._bytes
            record = next(records, None)
            if record is None:
                return
            if self.n_records % STEP_ROWS == 0:
                self.starts.append(start)
            self.n_records += 1
            yield record


class _TextContent:
    """The columns of a text: read once to see what they are, then a slice at a time, each where it begins."""

    def __init__(self, path: Path, scratch: Scratch) -> None:
        self._path, self._keep, self._stamp = path, scratch, Stamp(path)
        with (
            reading(path, "a text of separated values"),
            self._stamp.watch(),
            contextlib.closing(_IndexedFile(path, scratch)) as file,
        ):
            self.names = file.names
            self._seen = {name: _Seen() for name in self.names}
            block, self.n_rows = file.block(FIRST_FIELDS), 0
            while block.rows:
                self.n_rows += len(block.rows)
                for seen, fields in zip(self._seen.values(), zip(*block.rows, strict=True), strict=True):
                    seen.add(fields, file.decimal)
                block = file.block(BLOCK_FIELDS)
            self._plain, self._starts, self._header = file.plain, file.starts, int(not file.headless)
            self._delimiter, self._decimal = file.delimiter, file.decimal

    def is_numeric(self, name: str) -> bool:
        return self._seen[name].is_numeric

    def is_whole(self, name: str) -> bool:
        seen = self._seen[name]
        return 0 < seen.n_integers == seen.n_fields

    def is_coded(self, name: str) -> bool:
        return self._seen[name].is_numeric and self._seen[name].n_codes > 0

    def read(self, start: int, stop: int, names: Sequence[str], plain: Sequence[str] = ()) -> dict[str, np.ndarray]:
        places = {name: place for place, name in enumerate(self.names)}
        parts: dict[str, list[np.ndarray]] = {name: [self._typed(name, [], name in plain)] for name in names}
        with reading(self._path, "a text of separated values"), self._stamp.watch():
            for rows in self._rows(start, stop):
                for name, found in parts.items():
                    found.append(self._typed(name, [row[places[name]] for row in rows], name in plain))
        return {name: np.concatenate(found) for name, found in parts.items()}

    def _rows(self, start: int, stop: int) -> Iterator[list[list[str]]]:
        if start >= stop:
            return
        first = start + self._header
        with open(self._plain, "rb") as binary:
            binary.seek(self._starts[first // STEP_ROWS])
            lines = io.TextIOWrapper(binary, encoding="utf-8", newline="")
            reader = csv.reader(lines, delimiter=self._delimiter, skipinitialspace=self._delimiter == " ", strict=True)
            records = (record for record in reader if record)  # empty lines do not count
            left, skipped = stop - start, first % STEP_ROWS
            wanted = itertools.islice(records, skipped, skipped + left)
            while rows := list(itertools.islice(wanted, _n_rows(BLOCK_FIELDS, self.names))):
                yield rows

    def _typed(self, name: str, fields: Sequence[str], plain: bool) -> np.ndarray:
        seen, decimal = self._seen[name], self._decimal
        if seen.is_numeric and not plain and decimal == ".":
            with contextlib.suppress(ValueError):  # there are gaps
                return np.array(list(map(float, fields)))
        if seen.is_numeric and not plain:
            return np.array([np.nan if is_missing(field) else float(pointed(field, decimal)) for field in fields])
        if decimal == "," and seen.has_commas and not plain:
            fields = [field.replace(",", ".", 1) for field in fields]
        words = {field: None if is_missing(field) else field.strip() for field in set(fields)}
        return _objects([words[field] for field in fields])


class _ParquetContent:
    """The columns of Parquet files, read a row group at a time."""

    def __init__(self, path: Path, files: Sequence[Path]) -> None:
        require("pyarrow.parquet", "parquet", path)
        self._path, self._shards = path, _Shards(path, files)
        self.names, self.n_rows = list(self._shards.schema.names), len(self._shards)
        self._kept: tuple[int, Any] | None = None
        self._whole: dict[str, bool] = {}
        self._coded: dict[str, bool] = {}

    def is_numeric(self, name: str) -> bool:
        import pyarrow.types as types

        type_ = self._shards.schema.field(name).type
        return bool(types.is_integer(type_) or types.is_floating(type_) or types.is_decimal(type_))

    def is_whole(self, name: str) -> bool:
        if name not in self._whole:
            values = (_numbers(batch.column(0)) for batch in self._shards.batches([name], 2**16))
            self._whole[name] = all(
                bool(((part % 1 == 0) & (np.abs(part) <= LARGEST_INTEGER)).all()) for part in values
            )
        return self._whole[name]

    def is_coded(self, name: str) -> bool:
        if not holds_long(self._shards.schema.field(name).type):
            return False
        if name not in self._coded:
            values = (_numbers(batch.column(0)) for batch in self._shards.batches([name], 2**16))
            self._coded[name] = any(bool((np.abs(part) > LARGEST_INTEGER).any()) for part in values)
        return self._coded[name]

    def read(self, start: int, stop: int, names: Sequence[str], plain: Sequence[str] = ()) -> dict[str, np.ndarray]:
        numeric = {name for name in names if self.is_numeric(name) and name not in plain}
        parts = {name: [np.empty(0, np.float64 if name in numeric else object)] for name in names}
        for group, first, last in self._shards.pieces(start, stop):
            table = self._group(group).slice(first, last - first)
            for name, found in parts.items():
                values = table.column(name)
                found.append(_numbers(values) if name in numeric else _objects(values.to_pylist()))
        return {name: np.concatenate(found) for name, found in parts.items()}

    def _group(self, group: int) -> Any:
        if self._kept is None or self._kept[0] != group:
            self._kept = None  # not two at once
            self._kept = group, self._shards.read(group, self.names)
        return self._kept[1]


def _numbers(values: Any) -> np.ndarray:
    """A column or a part of one as float64, with NaN for a gap."""
    import pyarrow as pa

    return np.asarray(values.cast(pa.float64(), safe=False).to_pandas().to_numpy(dtype=np.float64))


def _objects(values: Sequence[Any]) -> np.ndarray:
    """An array of objects, also of lists of one length."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found
