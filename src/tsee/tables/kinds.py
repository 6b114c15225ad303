"""What a column holds, recognized by its type and content, or as the user says."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from tsee.files.errors import listed
from tsee.files.identifiers import (
    FIRST_VALUES,
    MIN_ROWS,
    PART_ROWS,
    are_different_words,
    are_identifiers,
    is_suspect,
    named_like_identifier,
    named_like_numbering,
)
from tsee.tables.frames import Frame

__all__ = [
    "ASIDE_KINDS",
    "KINDS",
    "Choice",
    "check_columns",
    "kind_of",
    "parsed_date",
    "parsed_number",
    "recognized",
    "tags_of",
    "text_of",
]

KINDS = ("number", "boolean", "category", "date", "tags", "text", "drop")
# What is kept aside if it is recognized.
ASIDE_KINDS = ("identifier", "empty")
# A column of words is text, not categories, if it has more distinct values than this, and more than this share of the
# rows; or if its values are this long, in the mean.
MANY_WORDS, DISTINCT_SHARE, LONG_WORDS = 50, 0.5, 60
# A column holds numbers, dates or tags if this share of its values can be read as such.
MOST = 0.9
# Words are tags if this share of them has one of these marks between them, and tags occur twice in the mean.
TAGGED_SHARE, TAG_MARKS = 0.3, "|;"
# Longer words are cut.
MAX_WORD = 1000
BOOLEANS = {"true": True, "false": False, "yes": True, "no": False}
# Words that are identifiers by any name: UUIDs, and digests.
_DIGEST = re.compile(r"\{?[0-9a-f]{8}(-?[0-9a-f]{4}){3}-?[0-9a-f]{12}\}?|(0x)?([0-9a-f]{2}){8,64}", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([T ]\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?)?")
_OTHER_DATE = re.compile(r"(\d{1,2})([./])(\d{1,2})\2(\d{4})")


@dataclass(frozen=True)
class Choice:
    """What the user says of a column: its kind, or None to recognize it, and its weight."""

    kind: str | None = None
    weight: float = 1.0


def check_columns(columns: Any) -> dict[str, Choice]:
    """The ``columns`` parameter, checked: a kind, a weight or both, for each name.

    >>> check_columns({"zip": "category", "age": 2, "note": ("text", 0.5)})["note"]
    Choice(kind='text', weight=0.5)
    """
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise ValueError(f"The 'columns' parameter must be a dict from names to kinds or weights. Got {columns!r}.")
    return {str(name): _choice(str(name), value) for name, value in columns.items()}


def _choice(name: str, value: Any) -> Choice:
    parts = tuple(value) if isinstance(value, tuple | list) else (value,)
    kinds = [part for part in parts if isinstance(part, str)]
    weights = [part for part in parts if isinstance(part, Real) and not isinstance(part, bool)]
    if len(kinds) + len(weights) != len(parts) or len(kinds) > 1 or len(weights) > 1 or not parts:
        raise ValueError(
            f"The 'columns' parameter must give {name!r} a kind, a weight, or both. Got {value!r} instead."
        )
    if kinds and kinds[0] not in KINDS:
        raise ValueError(f"The kind of column {name!r} must be one of {listed(KINDS)}. Got {kinds[0]!r} instead.")
    weight = float(weights[0]) if weights else 1.0
    if not (np.isfinite(weight) and weight > 0):
        raise ValueError(f"The weight of column {name!r} must be above 0; drop a column by the kind 'drop'.")
    return Choice(kinds[0] if kinds else None, weight)


def recognized(name: str, values: np.ndarray, frame: Frame, aside: bool = True) -> str:
    """The kind of a column of a table by a sample of its values; no identifier unless it may be kept ``aside``."""

    def parts() -> Iterator[np.ndarray]:
        for start in range(0, frame.n_rows, PART_ROWS):
            yield frame.exact(start, min(frame.n_rows, start + PART_ROWS), name)

    known = frame.types.get(name, "")
    if aside and frame.named:  # a column of an array has no name that says what it is
        return kind_of(name, values, known, parts, frame.n_rows)
    return kind_of(None, values, known)


def kind_of(
    name: str | None,
    values: np.ndarray,
    known: str = "",
    parts: Callable[[], Iterable[np.ndarray]] | None = None,
    n_rows: int | None = None,
) -> str:
    """The kind of a column by a sample of its values; "identifier" and "empty" are kept aside.

    Parameters
    ----------
    name : str or None
        If None, it is no identifier.
    values : ndarray
        As in a block of a `Frame`.
    known : str
        "category", "date", "boolean" or "duration" if its type says so.
    parts : callable, optional
        Gives the values of all ``n_rows`` rows in parts, as `Frame.exact` does. They show whether it is an identifier,
        as far as the sample does not; by default ``values`` do.
    n_rows : int, optional
    """
    if values.dtype.kind == "f":
        there = values[np.isfinite(values)]
        if len(there) == 0:
            return "empty"
        if known in ("category", "boolean"):
            return known
        if known == "duration":
            return "number"
        return "identifier" if _identify(name, there, parts, n_rows) else "number"
    there = [value for value in values.tolist() if value is not None]
    if not there:
        return "empty"
    if known in KINDS:
        return known
    if all(isinstance(value, list | tuple | set | frozenset | np.ndarray) for value in there):
        return "tags"
    if all(isinstance(value, bool | np.bool_) for value in there):
        return "boolean"
    if all(isinstance(value, datetime.date | np.datetime64) for value in there):
        return "date"
    numbers = _share(there, parsed_number)
    if numbers == 1:
        return "identifier" if _identify(name, np.array(there, dtype=object), parts, n_rows) else "number"
    words = [text_of(value) for value in there]
    if _words_identify(name, words) and (parts is None or _all_differ(parts(), n_rows or 0)):
        return "identifier"
    return "number" if numbers >= MOST else _kind_of_words(words)


def _identify(
    name: str | None, numbers: np.ndarray, parts: Callable[[], Iterable[np.ndarray]] | None, n_rows: int | None
) -> bool:
    first = numbers[:FIRST_VALUES].tolist()
    if numbers.dtype.kind == "f":  # perhaps of integers that it has rounded
        first = list(map(int, first))
    if name is None or len(numbers) < 2 or not is_suspect(name, first):
        return False
    if parts is None:
        return are_identifiers(name, lambda: [numbers])
    return are_identifiers(name, lambda: map(_without_words, parts()), n_rows)


def _without_words(part: np.ndarray) -> np.ndarray:
    """Numbers, and none of the few words that may be among them."""
    if part.dtype.kind in "iuf":
        return part
    return np.array([value for value in part.tolist() if parsed_number(value) is not None], dtype=object)


def _all_differ(parts: Iterable[np.ndarray], n_rows: int) -> bool:
    return are_different_words((map(text_of, part.tolist()) for part in parts), n_rows)


def _kind_of_words(words: list[str]) -> str:
    distinct = set(words)
    if {word.lower() for word in distinct} <= set(BOOLEANS):
        return "boolean"
    if _share(words, parsed_date) >= MOST:
        return "date"
    tagged = [word for word in words if any(mark in word for mark in TAG_MARKS)]
    if len(tagged) >= TAGGED_SHARE * len(words):
        tags = [tag for word in words for tag in tags_of(word)]
        if len(tags) >= 2 * len(set(tags)):
            return "tags"
    long = sum(map(len, words)) > LONG_WORDS * len(words)
    many = len(distinct) > MANY_WORDS and len(distinct) > DISTINCT_SHARE * len(words)
    return "text" if many or (long and len(distinct) > 2) else "category"


def _words_identify(name: str | None, words: list[str]) -> bool:
    """Whether words are all different and identify the rows."""
    if name is None or not len(set(words)) == len(words) > 1:
        return False
    if {word.lower() for word in words} <= set(BOOLEANS):
        return False
    if named_like_identifier(name) or all(map(_DIGEST.fullmatch, words)):
        return True
    if not named_like_numbering(name) or len(words) < MIN_ROWS or _share(words, parsed_date) >= MOST:
        return False
    return all(" " not in word and re.search(r"\d", word) is not None for word in words)


def _share(values: list[Any], parse: Any) -> float:
    return sum(parse(value) is not None for value in values) / len(values)


def text_of(value: Any) -> str:
    """A value as a word; whole numbers without a point, so that 3, 3.0 and "3" are one category.

    >>> [text_of(value) for value in (3.0, 3, "3", True, 2.5)]
    ['3', '3', '3', 'true', '2.5']
    """
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, Real) and float(value).is_integer() and abs(float(value)) < 2**53:
        return str(int(float(value)))
    return " ".join(str(value).encode("utf-8", "replace").decode().split())[:MAX_WORD]


def parsed_number(value: Any) -> float | None:
    """A number, or a text that is one; None if it is neither."""
    try:
        number = float(value) if not isinstance(value, str) or "_" not in value else np.nan
    except (TypeError, ValueError):
        return None
    return number if np.isfinite(number) else None


def parsed_date(value: Any) -> float | None:
    """A date as days since 1970, in UTC if it has a zone; None if it is not one. Texts are ISO 8601, or 31.12.2026.

    >>> parsed_date("1970-01-02"), parsed_date("1970-01-02T12:00"), parsed_date("2.1.1970"), parsed_date("red")
    (1.0, 1.5, 1.0, None)
    """
    try:
        if isinstance(value, str):
            value = value.strip()
            if (found := _OTHER_DATE.fullmatch(value)) is not None:
                first, mark, second, year = found.groups()
                day, month = (first, second) if mark == "." else (second, first)
                value = datetime.date(int(year), int(month), int(day))
            elif _DATE.fullmatch(value) is not None:
                value = datetime.datetime.fromisoformat(value)
            else:
                return None
        if isinstance(value, datetime.datetime) and value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        if isinstance(value, datetime.date):
            value = np.datetime64(value, "us")
        if isinstance(value, np.datetime64):
            return float(value.astype("M8[us]").astype(np.int64)) / 86_400e6
        return None
    except (ValueError, OverflowError):
        return None


def tags_of(value: Any) -> list[str]:
    """The tags of a row: a list of them, or a text with ``|`` or ``;`` between them."""
    if isinstance(value, str):
        parts: Any = re.split("[" + re.escape(TAG_MARKS) + "]", value)
    else:
        parts = value if isinstance(value, list | tuple | set | frozenset | np.ndarray) else [value]
    return sorted({text_of(part) for part in parts if part is not None and text_of(part)})
