"""CSV and TSV: read once, in blocks; numbers and text are unpacked into temporary files."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import itertools
import math
import operator
import re
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError, NotAMatrixError
from tsee.files.columns import OtherColumns, Selection, name_blanks, select
from tsee.files.errors import check_different, listed, reading
from tsee.files.fields import decimal_marks, is_missing, is_number, mostly_numbers, pointed
from tsee.files.identifiers import FIRST_VALUES, in_parts, is_suspect
from tsee.files.rows import ArrayRows, FileArray, all_finite
from tsee.files.scratch import NumberSpill, Scratch, TextColumn, TextSpill
from tsee.files.stamps import Stamp
from tsee.files.table import Table
from tsee.files.tallies import whole_numbers

__all__ = ["open_text"]

# Fields in a block, and in the first block, which decides the types of the columns and has `FIRST_VALUES` rows or more.
BLOCK_FIELDS = 2**17
FIRST_FIELDS = 2**18
# From this size on it pays to import pyarrow, if it is installed.
ARROW_BYTES = 2**20
ARROW_BLOCK = 2**20


def open_text(
    path: Path,
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    together: bool = False,
) -> Table:
    """A table of a CSV or TSV file, which may be compressed with gzip."""
    stamp = Stamp(path)
    with (
        reading(path, "a text of separated values"),
        stamp.watch(),
        contextlib.closing(_PlainFile(path)) as file,
    ):
        first = file.block(max(FIRST_FIELDS, FIRST_VALUES * len(file.names)))
        if not first.rows:
            raise DataFileError(f"{str(path)!r} has no rows of data: is it the right file?")
        fields = [[row[position] for row in first.rows] for position in range(len(file.names))]
        numeric = [
            name in (columns or ()) or mostly_numbers(values, file.decimal)
            for name, values in zip(file.names, fields, strict=True)
        ]
        suspected = [
            number
            and is_suspect(name, values[:FIRST_VALUES])
            and whole_numbers([pointed(value, file.decimal) for value in values]) is not None
            for name, number, values in zip(file.names, numeric, fields, strict=True)
        ]
        chosen = select(file.names, numeric, suspected, path=path, label=label, columns=columns, drop=drop)
        if file.decimal == ",":
            chosen.notes.append("The numbers are read with decimal commas.")
        elif file.mixed and (commas := [i for i in chosen.others if mostly_numbers(fields[i], ",")]):
            chosen.notes.append(
                "Not read as numbers, because the file mixes decimal commas and decimal points: "
                f"{listed(file.names[position] for position in commas)}."
            )
        # The fast parser reads files without errors; for others, the plain parser reports what is wrong and where.
        fast = path.stat().st_size >= ARROW_BYTES and not file.begins_blank
        parsed = _parse(_arrow_blocks(file, chosen), chosen, file.decimal) if fast else None
        parsed = parsed or _parse(_plain_blocks(file, first, chosen), chosen, file.decimal)
    assert parsed is not None
    return _table(path, file, chosen, parsed, label, together)


@dataclass
class _Block:
    """Rows of fields as in the file; `start` counts the rows before them, `lines` has the first line of each row."""

    start: int
    rows: list[list[str]]
    lines: list[int]
    underscores: bool = False


@dataclass
class _Parsed:
    numbers: FileArray
    positions: list[int]
    texts: dict[int, TextColumn]
    scratch: Scratch


class _PlainFile:
    """The file, read by Python's csv module: the reference parser, which knows rows and lines."""

    def __init__(self, path: Path):
        self.path = path
        with open(path, "rb") as file:
            self.gzip = file.read(2) == b"\x1f\x8b"
        self._text = io.TextIOWrapper(self.binary(), encoding="utf-8-sig", newline="")
        self._underscores = False
        head = next((line for line in self._text if line.strip()), "")
        self.delimiter = _delimiter(head, path)
        self._text.seek(0)
        self._reader = csv.reader(
            self._lines(), delimiter=self.delimiter, skipinitialspace=self.delimiter == " ", strict=True
        )
        self._start = 0
        self._pending: deque[tuple[list[str], int]] = deque(itertools.islice(self._read_records(), 1))
        header, line = self._pending[0] if self._pending else ([], 1)
        self.begins_blank = line > 1
        self._pending.extend(itertools.islice(self._read_records(), _n_rows(FIRST_FIELDS, header)))
        # If commas do not separate the fields, they can be decimal commas.
        marks = decimal_marks(record for record, _ in self._pending) if self.delimiter != "," else set()
        self.decimal = "," if marks == {","} else "."
        self.mixed = len(marks) > 1
        self.headless = _is_data(header, self.decimal)
        if self.headless:
            self.names = [f"column{position + 1}" for position in range(len(header))]
        else:
            next(self._records(), None)
            # NumPy's savetxt begins a header with "#".
            header = [name.lstrip("#") if position == 0 else name for position, name in enumerate(header)]
            check_different([name.strip() for name in header if name.strip()], path, where=" in the header")
            self.names = name_blanks(header)

    def _lines(self) -> Iterator[str]:
        for line in self._text:
            if "_" in line:  # Python reads 1_000 as a number
                self._underscores = True
            yield line

    def _records(self) -> Iterator[tuple[list[str], int]]:
        while self._pending:
            yield self._pending.popleft()
        yield from self._read_records()

    def _read_records(self) -> Iterator[tuple[list[str], int]]:
        while True:
            line = self._reader.line_num + 1
            try:
                record = next(self._reader, None)
            except csv.Error as error:
                raise DataFileError(
                    f"{str(self.path)!r}, line {line}: {error}. Is a quote not closed? Correct that line."
                ) from error
            if record is None:
                return
            if record:  # empty lines do not count
                yield record, line

    def binary(self) -> Any:
        """The content from the beginning, uncompressed."""
        return gzip.open(self.path) if self.gzip else open(self.path, "rb")

    def close(self) -> None:
        self._text.close()

    def block(self, fields: int) -> _Block:
        """The next rows; at the end of the file, no rows."""
        block = _Block(self._start, [], [])
        width = len(self.names)
        for record, line in itertools.islice(self._records(), _n_rows(fields, self.names)):
            if len(record) != width:
                raise DataFileError(
                    f"{str(self.path)!r}, row {block.start + len(block.rows)} (line {line}) has {len(record)} "
                    f"fields where the {'first row' if self.headless else 'header'} has {width}: is a separator or a "
                    "quote missing? Correct that line."
                )
            block.rows.append(record)
            block.lines.append(line)
        self._start += len(block.rows)
        block.underscores, self._underscores = self._underscores, False
        return block


def _plain_blocks(
    file: _PlainFile, first: _Block, chosen: Selection
) -> Iterator[tuple[np.ndarray, dict[int, list[str]]]]:
    numbers, texts = _stored(chosen)
    block = first
    while block.rows:
        yield (
            _numbers(file, block, numbers),
            {position: [row[position] for row in block.rows] for position in texts},
        )
        block = file.block(BLOCK_FIELDS)


def _arrow_blocks(file: _PlainFile, chosen: Selection) -> Iterator[tuple[np.ndarray, dict[int, list[str]]] | None]:
    """The same blocks by pyarrow, many times faster; None if it is not installed or refuses the file."""
    try:
        import pyarrow as pa
        import pyarrow.csv
    except ImportError:
        yield None
        return
    numbers, texts = _stored(chosen)
    names = [str(position) for position in range(len(file.names))]
    try:
        source = _CountingFile(file.binary())
        reader = pa.csv.open_csv(
            pa.PythonFile(source, mode="r"),
            pa.csv.ReadOptions(
                use_threads=False,  # otherwise it reads many blocks ahead
                block_size=ARROW_BLOCK,
                column_names=names,
                skip_rows_after_names=0 if file.headless else 1,
            ),
            pa.csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
            pa.csv.ConvertOptions(
                include_columns=[str(position) for position in dict.fromkeys([*numbers, *texts])],
                column_types={str(position): pa.float64() for position in numbers}
                | {str(position): pa.string() for position in texts},
                decimal_point=file.decimal,
                null_values=[],  # an empty field is then an error, which the plain parser reports
            ),
        )
        for batch in reader:
            block = np.empty((batch.num_rows, len(numbers)))
            for index, position in enumerate(numbers):
                block[:, index] = batch.column(str(position)).cast(pa.float64()).to_numpy(zero_copy_only=False)
            if not all_finite(block):
                break
            yield block, {position: batch.column(str(position)).to_pylist() for position in texts}
        else:
            if source.quotes % 2 == 0:  # after a quote that is not closed, pyarrow reads the rest as one long text
                return
    except (pa.ArrowException, OSError, ValueError, EOFError, zlib.error):
        pass
    yield None


class _CountingFile:
    """A binary file that counts the quotes that are read from it."""

    def __init__(self, file: Any):
        self._file, self.quotes = file, 0

    def read(self, size: int = -1) -> bytes:
        content: bytes = self._file.read(size)
        self.quotes += content.count(b'"')
        return content

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def close(self) -> None:
        self._file.close()


def _stored(chosen: Selection) -> tuple[list[int], list[int]]:
    """The numbers of the columns that are stored as numbers, and of the columns that are stored as text."""
    numbers = list(dict.fromkeys([*chosen.features, *([] if chosen.explicit else chosen.suspects)]))
    label = [] if chosen.label is None else [chosen.label]
    return numbers, list(dict.fromkeys([*chosen.others, *chosen.suspects, *label]))


def _n_rows(fields: int, row: Sequence[str]) -> int:
    """The number of rows like this one with that many fields."""
    return max(1, fields // max(1, len(row)))


def _parse(
    blocks: Iterator[tuple[np.ndarray, dict[int, list[str]]] | None], chosen: Selection, decimal: str
) -> _Parsed | None:
    positions, texts = _stored(chosen)
    scratch = Scratch()
    numbers = NumberSpill(scratch, len(positions))
    spills = {position: TextSpill(scratch, decimal) for position in texts}
    with contextlib.ExitStack() as files:  # also if the file turns out not to be a matrix
        files.callback(numbers.close)
        for spill in spills.values():
            files.callback(spill.close)
        for item in blocks:
            if item is None:
                break
            block, values = item
            numbers.append(block)
            for position, spill in spills.items():
                spill.append(values[position])
        else:
            columns = {position: spill.finish() for position, spill in spills.items()}
            return _Parsed(numbers.finish(), positions, columns, scratch)
    scratch.close()
    return None


def _table(
    path: Path, file: _PlainFile, chosen: Selection, parsed: _Parsed, label: str | None, together: bool
) -> Table:
    if file.headless:
        chosen.notes.append(f"There is no header: the columns are called {file.names[0]!r} to {file.names[-1]!r}.")
    n_rows = len(parsed.numbers)
    chosen.settle(file.names, lambda position: in_parts(parsed.texts[position]), n_rows, path, together=together)
    names = [file.names[position] for position in chosen.features]
    stored = {position: index for index, position in enumerate(parsed.positions)}
    return Table(
        rows=ArrayRows(parsed.numbers, path, names, [stored[position] for position in chosen.features], parsed.scratch),
        feature_names=names,
        other_columns=OtherColumns({file.names[position]: parsed.texts[position] for position in chosen.others}, path),
        label_name=label,
        label_column=None if chosen.label is None else parsed.texts[chosen.label],
        notes=chosen.notes,
        identifiers=chosen.identifiers,
        source=path,
        kind="text",
        holds=[parsed.scratch],
    )


def _numbers(file: _PlainFile, block: _Block, positions: list[int]) -> np.ndarray:
    """The numeric columns of a block; a field that is not a number is reported."""
    shape = (len(block.rows), len(positions))
    if not positions:
        return np.empty(shape)
    take = operator.itemgetter(*positions)
    fields = map(take, block.rows) if len(positions) == 1 else itertools.chain.from_iterable(map(take, block.rows))
    if file.decimal == ",":
        fields = map(pointed, fields)
    try:
        values = np.fromiter(map(float, fields), np.float64, count=shape[0] * shape[1])
    except ValueError:
        values = np.full(1, np.nan)
    if block.underscores or not all_finite(values):
        _check_fields(file, block, positions)
    return values.reshape(shape)


def _check_fields(file: _PlainFile, block: _Block, positions: list[int]) -> None:
    for index, (row, line) in enumerate(zip(block.rows, block.lines, strict=True)):
        for position in positions:
            value = row[position]
            number = is_number(value, file.decimal)
            if number and math.isfinite(float(pointed(value, file.decimal))):
                continue
            where = f"{str(file.path)!r}, row {block.start + index} (line {line}), column {file.names[position]!r}"
            if is_missing(value):
                what = f" ({value.strip()!r})" if value.strip() else ""
                raise NotAMatrixError(
                    f"{where}: the value is missing{what}: fill it in, remove that row, or drop the column."
                )
            advice = "correct it, or drop the column."
            if file.mixed and is_number(value, ","):
                advice = "the file mixes decimal commas and decimal points. Write all numbers with a point."
            elif file.decimal == "," and is_number(value):
                advice = "the file has decimal commas. Write this one with a comma, too."
            raise NotAMatrixError(f"{where}: {value[:40]!r} is not a {'finite ' if number else ''}number: {advice}")


def _is_data(record: list[str], decimal: str) -> bool:
    """Whether a first row is data and not a header: all are numbers, and do not just count the columns."""
    if not record or not all(is_number(field, decimal) for field in record):
        return False
    counted = [[str(number) for number in range(first, first + len(record))] for first in (0, 1)]
    return len(record) == 1 or [field.strip() for field in record] not in counted


def _delimiter(line: str, path: Path) -> str:
    """The most frequent separator in the first line."""
    if "\0" in line:
        raise DataFileError(f"{str(path)!r} is not a text of separated values: check what kind of file it is.")
    if any(extension.lower() in (".tsv", ".tab") for extension in path.suffixes):
        return "\t"
    bare = re.sub(r'"[^"]*"', "", line)
    for mark in ("|", ";", "\t"):
        # In a first line of numbers with decimal commas, commas can be more frequent than the separator.
        if mark in bare and all(is_number(field, ",") for field in line.split(mark)):
            return mark
    count, best = max((bare.count(mark), mark) for mark in ("|", ";", "\t", ","))
    if not count and path.suffixes[:1] in ([".txt"], [".data"]) and " " in bare.strip():
        return " "  # as NumPy's savetxt writes
    return best if count else ","
