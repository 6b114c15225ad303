"""Text and Parquet files with words, dates and gaps: all columns in memory, as they are."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError, NotAMatrixError
from tsee.files.columns import OtherColumns
from tsee.files.errors import check_known, reading
from tsee.files.fields import is_missing, is_number, mostly_numbers, pointed
from tsee.files.opening import _kind
from tsee.files.rows import Rows
from tsee.files.table import Table
from tsee.files.text import BLOCK_FIELDS, FIRST_FIELDS, _PlainFile

__all__ = ["MixedTable", "has_gaps", "open_mixed"]


class _NoRows(Rows):
    """Rows that are not encoded yet: one column, so that a `Table` takes them."""

    def __init__(self, n_rows: int, source: Any) -> None:
        super().__init__((n_rows, 1), np.float32, source)

    def _read(self, start: int, stop: int) -> np.ndarray:
        return np.zeros((stop - start, 1), np.float32)


class MixedTable(Table):
    """A table whose columns are in memory: ``mixed`` has them by name; the label is not among them.

    ``refused`` says why the file is not a matrix of numbers, if it was tried as one.
    """

    mixed: dict[str, np.ndarray]
    refused: NotAMatrixError | None = None


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
    """A text or Parquet file with all its columns in memory: numbers as float64 with NaN, others as objects with None.

    Parameters
    ----------
    path : path
    label, columns, drop, key
        As those of `open_table`; ``columns`` are all that are kept.
    """
    kind, files = _kind(path)
    if kind not in ("text", "parquet") or key is not None:
        raise DataFileError(f"{str(path)!r} is no table with names: fill its gaps in, or write it as CSV or Parquet.")
    found = _text_columns(path) if kind == "text" else _parquet_columns(path, files)
    check_known([*([] if label is None else [label]), *(columns or ()), *drop], list(found), path)
    labels = None if label is None else found.pop(label)
    used = {name: found[name] for name in (columns if columns is not None else found) if name not in drop}
    n_rows = len(next(iter(found.values()))) if found else 0
    table = MixedTable(
        rows=_NoRows(n_rows, path),
        source=path,
        kind=kind,
        feature_names=None,
        other_columns=OtherColumns(),
        label_name=label,
        label_column=labels,
    )
    table.mixed = used
    return table


def _text_columns(path: Path) -> dict[str, np.ndarray]:
    with reading(path, "a text of separated values"), contextlib.closing(_PlainFile(path)) as file:
        fields: list[list[str]] = [[] for _ in file.names]
        for rows in _blocks(file):
            for column, values in zip(fields, zip(*rows, strict=True), strict=True):
                column.extend(values)
        return {name: _typed(values, file.decimal) for name, values in zip(file.names, fields, strict=True)}


def _blocks(file: _PlainFile) -> Iterator[list[list[str]]]:
    block = file.block(FIRST_FIELDS)
    while block.rows:
        yield block.rows
        block = file.block(BLOCK_FIELDS)


def _typed(fields: list[str], decimal: str) -> np.ndarray:
    """Fields as numbers with NaN if all that are there are numbers, otherwise as text with None."""
    there = [None if is_missing(field) else field for field in fields]
    if any(there) and all(field is None or is_number(field, decimal) for field in there):
        return np.array([np.nan if field is None else float(pointed(field, decimal)) for field in there])
    if decimal == "," and mostly_numbers(fields, decimal):
        there = [field if field is None else field.replace(",", ".", 1) for field in there]
    return _objects([field if field is None else field.strip() for field in there])


def _parquet_columns(path: Path, files: Sequence[Path]) -> dict[str, np.ndarray]:
    import pyarrow as pa
    import pyarrow.parquet

    with reading(path, "a Parquet file"):
        parts = [pyarrow.parquet.read_table(file, partitioning=None) for file in files]
        whole = pa.concat_tables(parts)
    columns = {}
    for name in whole.column_names:
        values = whole.column(name)
        if pa.types.is_integer(values.type) or pa.types.is_floating(values.type) or pa.types.is_decimal(values.type):
            columns[name] = values.cast(pa.float64()).to_pandas().to_numpy(dtype=np.float64)
            continue
        columns[name] = _objects(values.to_pylist())
    return columns


def _objects(values: Sequence[Any]) -> np.ndarray:
    """An array of objects, also of lists of one length."""
    found = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        found[place] = value
    return found
