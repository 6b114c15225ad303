"""Which columns of a table are features, which one is the label, and which are neither."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError, NotAMatrixError
from tsee.files.errors import check_known, listed, reading

__all__ = ["OtherColumns", "Selection", "all_different", "name_blanks", "named_like_identifier", "select"]

_WORDS = "id|ids|idx|index|key|uuid|guid|barcode|name|rowid|rownames"
_IDENTIFIER = re.compile(
    rf"(?i:^(.*[_\-. ])?({_WORDS})$|^unnamed: 0$|^__index_level_\d+__$)|[a-z]I[dD]$",
)


def named_like_identifier(name: str) -> bool:
    """Whether a column of this name may identify the rows.

    >>> [named_like_identifier(name) for name in ("id", "cell_id", "PassengerId", "paid", "width")]
    [True, True, True, False, False]
    """
    return _IDENTIFIER.search(name) is not None


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


def all_different(parts: Callable[[], Iterable[np.ndarray]]) -> bool:
    """Whether integers that come in parts are all different; an ascending column is not kept in memory."""
    last: Any = None
    for part in parts():
        if len(part) == 0:
            continue
        if not (part[1:] > part[:-1]).all() or (last is not None and not part[0] > last):
            break
        last = part[-1]
    else:
        return True
    values = np.concatenate(list(parts()))
    return len(np.unique(values)) == len(values)


@dataclass
class Selection:
    """Column numbers by role; `suspects` are features, unless their values are all different: then identifiers."""

    features: list[int]
    others: list[int]
    label: int | None
    suspects: list[int]
    explicit: bool
    notes: list[str] = field(default_factory=list)

    def settle(self, names: Sequence[str], different: Callable[[int], bool], path: Any) -> None:
        """Take identifiers out of the features, and note which columns are not features."""
        identifiers = [position for position in self.suspects if different(position)]
        if self.others:
            self.notes.append(f"Kept aside, not numeric: {listed(names[position] for position in self.others)}.")
        if identifiers:
            self.notes.append(f"Kept aside, an identifier: {listed(names[position] for position in identifiers)}.")
        self.others = sorted([*self.others, *identifiers])
        self.features = [position for position in self.features if position not in identifiers]
        if not self.features:
            raise NotAMatrixError(
                f"{str(path)!r} has no numeric column left to map (it has {listed(names)}): encode some as numbers."
            )


def select(
    names: Sequence[str],
    numeric: Sequence[bool],
    integer: Sequence[bool],
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
    suspects = [
        position
        for position in rest
        if integer[position] and named_like_identifier(names[position]) and position not in (chosen or ())
    ]
    others = [position for position in rest if not numeric[position]]
    used = {*features, *others, *suspects}
    left = [names[position] for position in rest if position not in used]
    notes = [f"Left out, not among the features: {listed(left)}."] if left else []
    return Selection(features, others, None if label is None else number[label], suspects, chosen is not None, notes)


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
