"""Which columns of a table are features, which one is the label, and which are neither."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError, NotAMatrixError
from tsee.files.errors import check_known, listed, reading
from tsee.files.identifiers import identifiers_of, kept_aside

__all__ = ["OtherColumns", "Selection", "name_blanks", "select"]


def name_blanks(header: Sequence[str]) -> list[str]:
    """The names in a header, with a name for each column that has none. No other column has that name.

    >>> name_blanks(["", "a", "column4", " "])
    ['index', 'a', 'column4', 'column4.1']
    """
    names: list[str] = []
    given = {name.strip() for name in header}
    taken: set[str] = set()
    for position, raw in enumerate(header):
        name = raw.strip()
        if not name:
            name = "index" if position == 0 and "index" not in given else f"column{position + 1}"
        base, count = name, 0
        while name in taken:
            count += 1
            name = f"{base}.{count}"
        taken.add(name)
        names.append(name)
    return names


@dataclass
class Selection:
    """Column numbers by role; `suspects` are features, unless all their values say that they are identifiers."""

    features: list[int]
    others: list[int]
    label: int | None
    suspects: list[int]
    explicit: bool
    left: list[int]
    notes: list[str] = field(default_factory=list)
    identifiers: list[str] = field(default_factory=list)

    def settle(
        self,
        names: Sequence[str],
        parts: Callable[[int], Iterable[Any]],
        n_rows: int,
        path: Any,
        *,
        together: bool = False,
    ) -> None:
        """Take identifiers out of the features, and note which columns are not features.

        ``parts`` gives the numbers of a column in parts. With ``together``, the file is the share of one process, and
        all shares are judged as one table: a collective.
        """
        number = {name: position for position, name in enumerate(names)}
        self.identifiers = identifiers_of(
            [names[position] for position in sorted({*self.features, *self.suspects})],
            [names[position] for position in self.suspects],
            lambda name: parts(number[name]),
            n_rows,
            together=together,
        )
        if not (self.explicit or self.others or self.label is not None) and len(self.identifiers) == len(self.features):
            self.identifiers = []  # there is nothing else
        identifiers = [number[name] for name in self.identifiers]
        left = [*self.left, *(set(self.suspects).difference(identifiers) if self.explicit else ())]
        if left:
            self.notes.insert(0, f"Left out, not among the features: {listed(names[i] for i in sorted(left))}.")
        if self.others:
            self.notes.append(f"Kept aside, not numeric: {listed(names[position] for position in self.others)}.")
        if identifiers:
            self.notes.append(kept_aside(self.identifiers))
        self.others = sorted([*self.others, *identifiers])
        self.features = [position for position in self.features if position not in identifiers]
        if not self.features:
            raise NotAMatrixError(
                f"{str(path)!r} has no numeric column left to map (it has {listed(names)}): encode some as numbers."
            )


def select(
    names: Sequence[str],
    numeric: Sequence[bool],
    suspected: Sequence[bool],
    *,
    path: Any,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> Selection:
    """Assign roles to the columns, by the user's choice and by their types."""
    check_known([*([] if label is None else [label]), *(columns or ()), *drop], names, path)
    number = {name: position for position, name in enumerate(names)}
    for name in columns or ():
        if list(columns or ()).count(name) > 1:
            raise DataFileError(f"Column {name!r} of {str(path)!r} is chosen twice: name it once.")
        if name == label or name in drop:
            raise DataFileError(
                f"Column {name!r} of {str(path)!r} is chosen as a feature and also "
                f"{'the label' if name == label else 'dropped'}: choose one of the two."
            )
        if not numeric[number[name]]:
            raise NotAMatrixError(
                f"Column {name!r} of {str(path)!r} is chosen as a feature but is not numeric: encode it as numbers, "
                "or leave it out."
            )
    out = {number[name] for name in drop} | ({number[label]} if label is not None else set())
    rest = [position for position in range(len(names)) if position not in out]
    chosen = None if columns is None else [number[name] for name in columns]
    features = [position for position in rest if numeric[position]] if chosen is None else chosen
    suspects = [position for position in rest if suspected[position] and position not in (chosen or ())]
    others = [position for position in rest if not numeric[position]]
    used = {*features, *others, *suspects}
    left = [position for position in rest if position not in used]
    return Selection(features, others, None if label is None else number[label], suspects, chosen is not None, left)


class OtherColumns(Mapping[str, np.ndarray]):
    """Columns that are not features, by name, in the order of the file; each is read when it is needed.

    ``block(a, b)`` gives rows a to b of all of them, and keeps nothing else in memory.
    """

    def __init__(self, columns: Mapping[str, Any] | None = None, source: Any = None):
        self._columns, self._source = dict(columns or {}), source
        self._read: dict[str, np.ndarray] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._read:
            column = self._columns[name]
            with reading(self._source, "what it was when it was opened"):
                self._read[name] = column[:]
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"<other columns: {listed(self)}>"

    def block(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Rows ``start`` to ``stop`` of every column."""
        with reading(self._source, "what it was when it was opened"):
            return {name: column[start:stop] for name, column in self._columns.items()}
