"""A table as rows of numbers: its columns encoded side by side, gaps filled, and marked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsee.files.errors import listed
from tsee.files.rows import Rows
from tsee.tables.encoders import (
    CategoryEncoder,
    Encoder,
    NumberEncoder,
    TagsEncoder,
    UnreadableError,
    as_json,
    encoder_from_json,
    learn_encoder,
)
from tsee.tables.frames import Frame, as_frame, gaps_of
from tsee.tables.gaps import GapFiller, learn_gaps
from tsee.tables.kinds import Choice, recognized
from tsee.values import is_list_of, is_number, need

__all__ = ["Column", "EncodedRows", "TableEncoder", "learn_table", "sample_of"]

# Rows, evenly spaced, from which kinds and encoders are learned, in parts of this many. Categories, tags and gaps are
# counted in all rows.
SAMPLE_ROWS, SAMPLE_PART = 50_000, 500
# Rows that are encoded at a time.
BLOCK_ROWS = 4096
# The mark of a gap, in units of what the column varies by: the network sees it, and rows with the same gaps do not
# gather, as they would with a larger one.
GAP_MARK = 0.1
# What is kept aside without being told to.
ASIDE = {"identifier": "an identifier", "empty": "no values", "constant": "one value", "drop": "dropped"}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes
    ----------
    name : str
    encoder : Encoder
    weight : float
        The factor on its squared differences that the user has set.
    gaps : float
        The share of its values that were missing at fit.
    share : float
        How much of the squared distance of two random rows is its own.
    mark : float
        What marks a gap; 0 if there were none at fit.
    """

    name: str
    encoder: Encoder
    weight: float
    gaps: float
    share: float
    mark: float

    @property
    def kind(self) -> str:
        return str(type(self.encoder).kind)  # type: ignore[attr-defined]

    @property
    def width(self) -> int:
        """The numbers that a value becomes, with the mark of a gap."""
        return self.encoder.width + (self.mark > 0)


@dataclass(frozen=True, eq=False)
class TableEncoder:
    """Columns of a table as numbers. Learn one by `learn_table`.

    Attributes
    ----------
    columns : tuple of Column
    order : tuple of str
        The names of all columns of the table.
    named : bool
        Whether they are names; otherwise they count the columns of an array.
    aside : dict of str to str
        Columns that are not encoded, and why.
    filler : GapFiller
    """

    columns: tuple[Column, ...]
    order: tuple[str, ...]
    named: bool
    aside: dict[str, str]
    filler: GapFiller

    @property
    def width(self) -> int:
        """The numbers that a row becomes."""
        return sum(column.width for column in self.columns)

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def input_names(self) -> list[str]:
        """The names of the numbers of a row: "age", "color 1", "color 2", "age is missing"."""
        names = []
        for column in self.columns:
            width = column.encoder.width
            names += [column.name] if width == 1 else [f"{column.name} {place + 1}" for place in range(width)]
        return names + [f"{column.name} is missing" for column in self.columns if column.mark > 0]

    def check_names(self, frame: Frame) -> None:
        missing = [name for name in self.names if name not in frame.names]
        if missing:
            raise ValueError(f"X lacks columns that the model was fitted with: {listed(missing)}.")

    def encode(self, X: Any) -> np.ndarray:
        """A table as rows of numbers: (n, width), float32.

        Parameters
        ----------
        X : DataFrame, array, Frame or Table
            With at least the columns of the table that was learned; an array has them in their order.
        """
        rows: np.ndarray = EncodedRows(as_frame(X, self.order), self)[:]
        return rows

    def encode_block(self, frame: Frame, start: int, stop: int) -> np.ndarray:
        """Rows ``start`` to ``stop`` of a table that has the columns."""
        block = frame.block(start, stop)
        values = np.concatenate([_encoded(column, block[column.name], start) for column in self.columns], 1)
        marks = [
            column.mark * np.isnan(values[:, place])
            for place, column in zip(self._places(), self.columns, strict=True)
            if column.mark > 0
        ]
        return np.column_stack([self.filler(values), *marks]).astype(np.float32)

    def _places(self) -> list[int]:
        """Where the numbers of each column begin."""
        widths = [column.encoder.width for column in self.columns]
        return [sum(widths[:place]) for place in range(len(widths))]

    @property
    def identifiers(self) -> list[str]:
        """The columns that were taken for identifiers."""
        return [name for name, why in self.aside.items() if why == "identifier"]

    def lines(self) -> list[str]:
        """The columns and what becomes of them, as the lines of a table."""
        rows = [("column", "kind", "weight", "counts", "gaps", "as")]
        for column in self.columns:
            gaps = f"{column.gaps:.1%}" if column.gaps else ""
            told = (f"{column.weight:g}", f"{column.share:.1%}", gaps, column.encoder.describe())
            rows.append((column.name, column.kind, *told))
        rows += [(name, "aside", "", "", "", ASIDE.get(why, why)) for name, why in self.aside.items()]
        cut = [[cell if len(cell) <= 40 else cell[:37] + "..." for cell in row] for row in rows]
        widths = [max(len(row[place]) for row in cut) for place in range(6)]
        return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cut]

    def described(self) -> dict[str, Any]:
        """The same for a program: the columns that count, and why others were kept aside."""
        columns = [
            {
                "name": column.name,
                "kind": column.kind,
                "weight": column.weight,
                "share": column.share,
                "gaps": column.gaps,
                "as": column.encoder.describe(),
            }
            for column in self.columns
        ]
        return {"columns": columns, "aside": {name: ASIDE.get(why, why) for name, why in self.aside.items()}}

    def to_json(self) -> dict[str, Any]:
        """The encoders as JSON can hold them; `tensors` has the rest."""
        return {
            "columns": [
                {
                    "name": column.name,
                    "kind": column.kind,
                    "weight": column.weight,
                    "gaps": column.gaps,
                    "share": column.share,
                    "mark": column.mark,
                    "encoder": as_json(column.encoder),
                }
                for column in self.columns
            ],
            "order": list(self.order),
            "named": self.named,
            "aside": self.aside,
        }

    def tensors(self) -> dict[str, Tensor]:
        return {"table.mean": torch.from_numpy(self.filler.mean), "table.axes": torch.from_numpy(self.filler.axes)}

    @classmethod
    def from_json(cls, description: Any, tensors: dict[str, Tensor]) -> TableEncoder:
        """A table as `to_json` and `tensors` gave it. Raises ValueError, with a short reason, if it is none."""
        entries = {"columns", "order", "named", "aside"}
        need(isinstance(description, dict) and set(description) == entries, "'table' has other entries")
        columns, aside, order = description["columns"], description["aside"], description["order"]
        need(is_list_of(order, str) and len(set(order)) == len(order), "'order' must be different names")
        need(isinstance(description["named"], bool), "'named' must be true or false")
        need(isinstance(columns, list) and len(columns) > 0, "'table' must have columns")
        need(isinstance(aside, dict) and is_list_of([*aside, *aside.values()], str), "'aside' must be texts")
        read = tuple(_column_from_json(entries) for entries in columns)
        names = {column.name for column in read}
        need(
            len(names) == len(read) and names <= set(order), "the columns of 'table' must be different ones of 'order'"
        )
        width = sum(column.encoder.width for column in read)
        mean, axes = tensors.get("table.mean"), tensors.get("table.axes")
        for name, found, n_dimensions in (("table.mean", mean, 1), ("table.axes", axes, 2)):
            need(found is not None, f"it lacks {name!r}")
            assert found is not None
            shaped = found.ndim == n_dimensions and found.dtype == torch.float64 and found.shape[0] == width
            need(shaped and bool(torch.isfinite(found).all()), f"{name!r} does not fit the columns")
        assert mean is not None and axes is not None  # noqa: PT018
        filler = GapFiller(mean.numpy(), axes.numpy())
        return cls(read, tuple(order), description["named"], dict(aside), filler)


def _column_from_json(entries: Any) -> Column:
    names = {"name", "kind", "weight", "gaps", "share", "mark", "encoder"}
    need(isinstance(entries, dict) and set(entries) == names, "a column of 'table' has other entries")
    need(isinstance(entries["name"], str), "a column of 'table' must have a name")
    need(is_number(entries["weight"]) and entries["weight"] > 0, "the weight of a column must be above 0")
    for name in ("gaps", "share"):
        need(is_number(entries[name]) and 0 <= entries[name] <= 1, f"the {name!r} of a column must be from 0 to 1")
    encoder = encoder_from_json(entries["kind"], entries["encoder"])
    need(is_number(entries["mark"]) and entries["mark"] >= 0, "the mark of a column must not be below 0")
    return Column(entries["name"], encoder, *(float(entries[name]) for name in ("weight", "gaps", "share", "mark")))


class EncodedRows(Rows):
    """Rows of a table, encoded when they are read."""

    def __init__(self, frame: Frame, encoder: TableEncoder, source: Any = "X") -> None:
        encoder.check_names(frame)
        super().__init__((frame.n_rows, encoder.width), np.float32, source)
        self.frame, self.encoder = frame, encoder

    def _read(self, start: int, stop: int) -> np.ndarray:
        parts = [
            self.encoder.encode_block(self.frame, start + a, start + b) for a, b in _parts(stop - start, BLOCK_ROWS)
        ]
        return np.concatenate(parts) if parts else np.zeros((0, self.shape[1]), np.float32)


def learn_table(frame: Frame, choices: dict[str, Choice] | None = None) -> TableEncoder:
    """Learn how the columns of a table become numbers.

    If all of them are numbers, and nothing is chosen, they stay as they are but for their gaps.

    Parameters
    ----------
    frame : Frame
    choices : dict of str to Choice
        Kinds and weights of some of the columns.
    """
    choices = choices or {}
    unknown = [name for name in choices if name not in frame.names]
    if unknown:
        raise ValueError(
            f"The 'columns' parameter names {listed(unknown)}, which X does not have: it has {listed(frame.names)}."
        )
    sample = sample_of(frame)
    kinds = {
        name: choices.get(name, Choice()).kind or recognized(name, sample[name], frame, name not in choices)
        for name in frame.names
    }
    as_it_is = not choices and set(kinds.values()) <= {"number", "identifier", "empty"}
    columns, aside = [], {}
    for name, kind in kinds.items():
        values = sample[name]
        gaps = gaps_of(values)
        if kind in ASIDE or gaps.all():
            aside[name] = kind if kind in ASIDE else "empty"
            continue
        try:
            encoder = NumberEncoder.as_it_is(values) if as_it_is else learn_encoder(kind, values)
        except UnreadableError as error:
            raise _unreadable(name, kind, error.value, error.row if frame.n_rows <= SAMPLE_ROWS else None) from None
        if not as_it_is and _is_constant(encoder, values[~gaps]):
            aside[name] = "constant"
            continue
        columns.append(Column(name, encoder, choices.get(name, Choice()).weight, float(gaps.mean()), 0.0, 0.0))
    if frame.n_rows > SAMPLE_ROWS:
        columns = _counted(frame, columns)
    if not columns:
        why = ", ".join(f"{name!r} ({ASIDE[reason]})" for name, reason in list(aside.items())[:5])
        raise ValueError(f"X has no column that tells rows apart, only {why}: add columns that vary.")
    parts = [_encoded(column, sample[column.name], 0) for column in columns]
    spreads = [float(np.nanvar(part, 0).sum()) for part in parts]
    total = max(sum(spreads), 1e-300)
    finished = [
        replace(column, share=spread / total, mark=GAP_MARK * math.sqrt(spread) if column.gaps else 0.0)
        for column, spread in zip(columns, spreads, strict=True)
    ]
    return TableEncoder(tuple(finished), tuple(frame.names), frame.named, aside, learn_gaps(np.concatenate(parts, 1)))


def sample_of(frame: Frame) -> dict[str, np.ndarray]:
    """Columns of rows from all over the table, or of all rows."""
    n = frame.n_rows
    if n <= SAMPLE_ROWS:
        return frame.block(0, n)
    n_parts = SAMPLE_ROWS // SAMPLE_PART
    starts = [place * (n - SAMPLE_PART) // (n_parts - 1) for place in range(n_parts)]
    blocks = [frame.block(start, start + SAMPLE_PART) for start in starts]
    return {name: _joined([block[name] for block in blocks]) for name in frame.names}


def _counted(frame: Frame, columns: Sequence[Column]) -> list[Column]:
    """Columns whose categories, tags and gaps are counted in all rows, and not only in a sample of them."""
    gaps: Counter[str] = Counter()
    counts: dict[str, Counter[str]] = {column.name: Counter() for column in columns}
    for start, stop in _parts(frame.n_rows, BLOCK_ROWS):
        block = frame.block(start, stop)
        for column in columns:
            gaps[column.name] += int(gaps_of(block[column.name]).sum())
            if isinstance(column.encoder, CategoryEncoder | TagsEncoder):
                counts[column.name] += column.encoder.counted(block[column.name])
    found = []
    for column in columns:
        encoder, there = column.encoder, frame.n_rows - gaps[column.name]
        if isinstance(encoder, CategoryEncoder):
            encoder = CategoryEncoder.of_counts(counts[column.name])
        elif isinstance(encoder, TagsEncoder):
            encoder = TagsEncoder.of_counts(counts[column.name], there)
        found.append(replace(column, encoder=encoder, gaps=gaps[column.name] / frame.n_rows))
    return found


def _joined(parts: Sequence[np.ndarray]) -> np.ndarray:
    """Parts of a column: of numbers only if all are."""
    if len({part.dtype.kind for part in parts}) > 1:
        parts = [_as_objects(part) for part in parts]
    return np.concatenate(parts)


def _as_objects(part: np.ndarray) -> np.ndarray:
    if part.dtype.kind == "O":
        return part
    found = part.astype(object)
    found[np.isnan(part)] = None
    return found


def _is_constant(encoder: Encoder, values: np.ndarray) -> bool:
    encoded = encoder.encode(values)
    return bool((encoded == encoded[:1]).all())


def _encoded(column: Column, values: np.ndarray, start: int) -> np.ndarray:
    try:
        return math.sqrt(column.weight) * column.encoder.encode(values)
    except UnreadableError as error:
        raise _unreadable(column.name, column.kind, error.value, start + error.row) from None


def _unreadable(name: str, kind: str, value: Any, row: int | None = None) -> ValueError:
    where = "" if row is None else f" in row {row}"
    shown = repr(str(value)[:40])
    return ValueError(
        f"Column {name!r} of X holds {shown}{where}, which is no {kind}: correct it, or give the column another kind "
        "when you fit."
    )


def _parts(n: int, size: int) -> Iterator[tuple[int, int]]:
    for start in range(0, n, size):
        yield start, min(n, start + size)
