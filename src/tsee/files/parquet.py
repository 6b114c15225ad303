"""Parquet: a file or a folder of files, read one row group at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError, NotAMatrixError
from tsee.files.columns import OtherColumns, select
from tsee.files.errors import check_different, listed, reading, require
from tsee.files.fields import LARGEST_INTEGER
from tsee.files.identifiers import FIRST_VALUES, PART_ROWS, is_suspect
from tsee.files.rows import FileArray, Rows
from tsee.files.scratch import NumberSpill, Scratch
from tsee.files.stamps import Stamp
from tsee.files.table import Table

__all__ = ["holds_long", "open_parquet"]

# A row group is read whole, and the last few are kept in memory. If a group is larger than this, all rows are first
# unpacked, in small batches, into a temporary file.
GROUP_BYTES = 64 * 2**20
CACHE_BYTES = 256 * 2**20


def open_parquet(
    path: Path,
    files: Sequence[Path],
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    together: bool = False,
) -> Table:
    """A table of one or more Parquet files, joined in order."""
    require("pyarrow.parquet", "parquet", path)
    shards = _Shards(path, files)
    names = list(shards.schema.names)
    kinds = [_kind(type_) for type_ in shards.schema.types]
    wanted = {*(columns or ()), *drop, *([label] if label is not None else [])}
    nested = [name for name, kind in zip(names, kinds, strict=True) if kind == "nested" and name not in wanted]
    usable = [position for position, name in enumerate(names) if name not in nested]
    names, kinds = [names[position] for position in usable], [kinds[position] for position in usable]
    asked = columns
    if columns is not None:
        columns = _whole_lists(columns, names, kinds)
    chosen = select(
        names,
        [kind in ("integer", "number", "list") for kind in kinds],
        _suspected(shards, names, kinds),
        path=path,
        label=label,
        columns=columns,
        drop=drop,
    )
    if len(files) > 1:
        chosen.notes.append(f"{len(files)} files, in the order of their names.")
    if any("=" in part for file in files for part in file.relative_to(path).parts[:-1]):
        chosen.notes.append("Values in the names of folders ('name=value') are not read.")
    if nested:
        chosen.notes.append(f"Left out, nested: {listed(nested)}.")
    if len(shards) == 0:
        raise DataFileError(f"{str(path)!r} has no rows of data: is it the right file?")
    with reading(path, "a Parquet file"):
        chosen.settle(names, lambda position: _parts(shards, names[position]), len(shards), path, together=together)
        features = [shards.feature(names[position], kinds[position]) for position in chosen.features]
    scratch = Scratch()
    rows = ParquetRows(shards, features, scratch)
    if not set(asked or ()) <= set(names) and list(asked or ()) != rows.names:
        raise DataFileError(
            f"A list in a column of {str(path)!r} is used whole: choose {listed(columns or ())} instead."
        )
    if rows.unpacks:
        size = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize / 1e9
        chosen.notes.append(f"The row groups are large: a temporary copy of {size:.1f} GB is made when they are read.")
    return Table(
        rows=rows,
        source=path,
        kind="parquet",
        feature_names=rows.names,
        other_columns=OtherColumns(
            {names[position]: _Column(shards, names[position]) for position in chosen.others}, path
        ),
        label_name=label,
        label_column=None if label is None else _Column(shards, label),
        notes=chosen.notes,
        identifiers=chosen.identifiers,
        holds=[scratch],
    )


@dataclass
class _Feature:
    """A column of numbers, or of lists of ``width`` numbers."""

    name: str
    dtype: np.dtype[Any]
    width: int | None = None

    @property
    def names(self) -> list[str]:
        return [self.name] if self.width is None else [f"{self.name}[{position}]" for position in range(self.width)]


class _Shards:
    """The row groups of one or more files, and the first row of each."""

    def __init__(self, path: Path, files: Sequence[Path]):
        import pyarrow.parquet

        self.path = path
        self.groups: list[tuple[Path, int]] = []
        self._stamps = {file: Stamp(file) for file in files}
        sizes: list[int] = []
        self.schema: Any = None
        for file in files:
            with reading(file, "a Parquet file"):
                parquet = pyarrow.parquet.ParquetFile(_source(file))
                if self.schema is None:
                    self.schema = parquet.schema_arrow
                self._check_schema(file, files[0], parquet.schema_arrow)
                for group in range(parquet.num_row_groups):
                    self.groups.append((file, group))
                    sizes.append(parquet.metadata.row_group(group).num_rows)
                parquet.close()
        self.starts = np.cumsum([0, *sizes], dtype=np.int64)
        self._open: tuple[Path, Any] | None = None

    def __len__(self) -> int:
        return int(self.starts[-1])

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, int, int]]:
        """The row groups that a slice touches, with the first and last row of each that belong to it."""
        if start >= stop:
            return
        group = int(np.searchsorted(self.starts, start, side="right")) - 1
        while group < len(self.groups) and self.starts[group] < stop:
            first = int(self.starts[group])
            yield group, max(start, first) - first, min(stop, int(self.starts[group + 1])) - first
            group += 1

    def read(self, group: int, columns: Sequence[str]) -> Any:
        """Columns of a row group."""
        path, position = self.groups[group]
        with reading(path, "a Parquet file"), self._stamps[path].watch():
            return self._file(path).read_row_group(position, columns=list(columns))

    def batches(self, columns: Sequence[str], size: int) -> Iterator[Any]:
        """Columns of all rows, ``size`` at a time."""
        for path in dict.fromkeys(path for path, _ in self.groups):
            with reading(path, "a Parquet file"), self._stamps[path].watch():
                yield from self._file(path).iter_batches(batch_size=size, columns=list(columns))

    def feature(self, name: str, kind: str) -> _Feature:
        """A column as features."""
        type_ = self.schema.field(name).type
        if kind != "list":
            return _Feature(name, _numpy_dtype(type_))
        width = getattr(type_, "list_size", None)
        if width is None:
            first = next(group for group in range(len(self.groups)) if self.starts[group + 1] > self.starts[group])
            value = self.read(first, [name]).column(0)[0].as_py()
            width = 0 if value is None else len(value)
        return _Feature(name, _numpy_dtype(type_.value_type), width)

    def _file(self, path: Path) -> Any:
        import pyarrow.parquet

        if self._open is None or self._open[0] != path:
            # Without a buffer, a column would be read whole before its first batch.
            self._open = path, pyarrow.parquet.ParquetFile(_source(path), buffer_size=2**16, pre_buffer=False)
        return self._open[1]

    def _check_schema(self, file: Path, first: Path, schema: Any) -> None:
        check_different(schema.names, file)
        ours = dict(zip(self.schema.names, self.schema.types, strict=True))
        theirs = dict(zip(schema.names, schema.types, strict=True))
        absent = [name for name in ours if name not in theirs]
        other = [name for name in ours if name in theirs and theirs[name] != ours[name]]
        if absent or other:
            what = f"lacks {listed(absent)}" if absent else f"has a different type in {listed(other)}"
            raise DataFileError(
                f"{str(file)!r} {what}, unlike {str(first)!r}: the files of a folder must have the same columns."
            )


class ParquetRows(Rows):
    """Numeric columns of row groups; the groups that were read last are kept in memory."""

    def __init__(self, shards: _Shards, features: Sequence[_Feature], scratch: Scratch):
        names = [name for feature in features for name in feature.names]
        dtype = np.result_type(*(feature.dtype for feature in features))
        super().__init__((len(shards), len(names)), dtype, shards.path, names)
        self._shards, self._features, self._scratch = shards, list(features), scratch
        self._kept: OrderedDict[int, np.ndarray] = OrderedDict()
        self._row_bytes = max(1, self.shape[1]) * self.dtype.itemsize
        self._unpacked: FileArray | None = None
        longest = int(np.diff(shards.starts).max(initial=0))
        self.unpacks = longest * self._row_bytes > GROUP_BYTES
        self.span = 1 if self.unpacks else longest

    def _read(self, start: int, stop: int) -> np.ndarray:
        if self.unpacks:
            if self._unpacked is None:
                self._unpacked = self._unpack()
            return self._unpacked[start:stop]
        block = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        for group, first, last in self._shards.pieces(start, stop):
            offset = int(self._shards.starts[group]) - start
            block[offset + first : offset + last] = self._group(group)[first:last]
        return block

    def _group(self, group: int) -> np.ndarray:
        if group in self._kept:
            self._kept.move_to_end(group)
            return self._kept[group]
        table = self._shards.read(group, [feature.name for feature in self._features])
        self._kept[group] = self._numbers(table, int(self._shards.starts[group]))
        while len(self._kept) > 1 and sum(kept.nbytes for kept in self._kept.values()) > CACHE_BYTES:
            self._kept.popitem(last=False)
        return self._kept[group]

    def _unpack(self) -> FileArray:
        spill = NumberSpill(self._scratch, self.shape[1], self.dtype, widen=False)
        size = max(1, min(2**16, GROUP_BYTES // 8 // self._row_bytes))
        for batch in self._shards.batches([feature.name for feature in self._features], size):
            spill.append(self._numbers(batch, spill.rows))
        return spill.finish()

    def _numbers(self, table: Any, start: int) -> np.ndarray:
        block = np.empty((table.num_rows, self.shape[1]), dtype=self.dtype)
        position = 0
        for feature in self._features:
            column = table.column(feature.name)
            if hasattr(column, "combine_chunks"):
                column = column.combine_chunks()
                if hasattr(column, "chunks"):  # a chunked array without chunks
                    column = column.chunk(0) if column.num_chunks else None
            if column is None or len(column) == 0:
                continue
            self._check_no_null(column, feature, start)
            if feature.width is None:
                block[:, position] = _to_numpy(column)
                position += 1
            else:
                block[:, position : position + feature.width] = self._list_numbers(column, feature, start)
                position += feature.width
        return block

    def _list_numbers(self, column: Any, feature: _Feature, start: int) -> np.ndarray:
        assert feature.width is not None
        lengths = column.value_lengths().to_numpy(zero_copy_only=False) if hasattr(column, "value_lengths") else None
        if lengths is not None and (lengths != feature.width).any():
            row = int(np.argmax(lengths != feature.width))
            raise DataFileError(
                f"{self.source!r}, row {start + row}: the list in column {feature.name!r} has {lengths[row]} "
                f"values, but the first has {feature.width}: make all lists equally long, or drop the column."
            )
        values = column.flatten()
        if values.null_count:
            row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False))) // max(1, feature.width)
            raise self._missing(start + row, feature.name)
        return _to_numpy(values).reshape(len(column), feature.width)

    def _check_no_null(self, column: Any, feature: _Feature, start: int) -> None:
        if column.null_count:
            row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
            raise self._missing(start + row, feature.name)

    def _missing(self, row: int, name: str) -> DataFileError:
        return NotAMatrixError(
            f"{self.source!r}, row {row}, column {name!r}: the value is missing: fill it in, remove that row, or drop "
            "the column."
        )


class _Column:
    """One column that is not a feature, read by slice."""

    def __init__(self, shards: _Shards, name: str):
        self._shards, self._name = shards, name
        self._kept: tuple[int, np.ndarray] | None = None

    def __len__(self) -> int:
        return len(self._shards)

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        parts = [self._group(group)[first:last] for group, first, last in self._shards.pieces(start, stop)]
        return np.concatenate(parts) if parts else np.empty(0, dtype=object)

    def _group(self, group: int) -> np.ndarray:
        if self._kept is None or self._kept[0] != group:
            self._kept = group, self._shards.read(group, [self._name]).column(0).to_numpy()
        return self._kept[1]


def _source(path: Path) -> Any:
    """A file as pyarrow takes it: by its name, or open if the name is not UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return open(path, "rb")
    return path


def _kind(type_: Any) -> str:
    """The kind of a column: "integer", "number", "list", "nested" or "text"."""
    import pyarrow.types as types

    if types.is_integer(type_):
        return "integer"
    if types.is_floating(type_) or types.is_boolean(type_) or types.is_decimal(type_):
        return "number"
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        inner = type_.value_type
        return "list" if types.is_integer(inner) or types.is_floating(inner) else "nested"
    return "nested" if types.is_nested(type_) else "text"


def _numpy_dtype(type_: Any) -> np.dtype[Any]:
    import pyarrow.types as types

    return np.dtype(np.float64 if types.is_decimal(type_) else type_.to_pandas_dtype())


def _to_numpy(column: Any) -> np.ndarray:
    import pyarrow as pa

    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _suspected(shards: _Shards, names: Sequence[str], kinds: Sequence[str]) -> list[bool]:
    """Which columns are numbers that may be identifiers."""
    asked = [name for name in names if holds_long(shards.schema.field(name).type)]
    first: dict[str, list[Any]] = {name: [] for name in asked}
    for batch in shards.batches(asked, FIRST_VALUES) if asked else ():
        for name, values in batch.to_pydict().items():
            first[name] += values
        if len(first[asked[0]]) >= FIRST_VALUES:
            break
    return [
        kind in ("integer", "number") and is_suspect(name, first.get(name, ())[:FIRST_VALUES])
        for name, kind in zip(names, kinds, strict=True)
    ]


def holds_long(type_: Any) -> bool:
    """Whether a type has integers that float64 does not hold."""
    import pyarrow.types as types

    if types.is_decimal(type_):
        return bool(10 ** (type_.precision - type_.scale) > LARGEST_INTEGER)
    return bool(types.is_int64(type_) or types.is_uint64(type_))


def _parts(shards: _Shards, name: str) -> Iterator[np.ndarray]:
    """A column in parts; a gap is None or NaN."""
    for batch in shards.batches([name], PART_ROWS):
        yield batch.column(0).to_numpy(zero_copy_only=False)


def _whole_lists(columns: Sequence[str], names: Sequence[str], kinds: Sequence[str]) -> list[str]:
    """Names of columns, with the list 'vector' instead of its elements 'vector[0]', 'vector[1]', ..."""
    lists = {name for name, kind in zip(names, kinds, strict=True) if kind == "list"}
    whole = [base if (base := name.rpartition("[")[0]) in lists and name.endswith("]") else name for name in columns]
    return list(dict.fromkeys(whole))
