"""The fields of a text of separated values: which are numbers, and whether a point or a comma marks their decimals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence

__all__ = [
    "LARGEST_INTEGER",
    "decimal_marks",
    "encoded",
    "is_code",
    "is_integer",
    "is_missing",
    "is_number",
    "mostly_numbers",
    "pointed",
]

MISSING = ("", "na", "n/a", "nan", "null", "none", "#n/a", "<na>", "?", "-nan")
# Up to here, float64 holds all integers.
LARGEST_INTEGER = 2**53
_INTEGER = re.compile(r"\s*[-+]?\d+\s*")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+(e[-+]?\d+)?\s*", re.IGNORECASE)


def decimal_marks(records: Iterable[Sequence[str]]) -> set[str]:
    """The marks, a comma or a point, in those fields that are numbers with decimals.

    >>> sorted(decimal_marks([["1,5", "2", "1,5 m"], ["1.2.2026", "-,5e3", ""]]))
    [',']
    """
    marks = set()
    for record in records:
        for field in record:
            if "," in field:
                if "," not in marks and _DECIMAL_COMMA.fullmatch(field):
                    marks.add(",")
            elif "." in field and "." not in marks and is_number(field):
                marks.add(".")
    return marks


def pointed(field: str, decimal: str = ",") -> str:
    """A field with a decimal point instead of a decimal comma.

    In a file with decimal commas, 1.234 could mean 1234, so it is not a number.

    >>> [pointed(field) for field in ("1,5", "3", "1.234")]
    ['1.5', '3', 'ambiguous']
    """
    if decimal == ".":
        return field
    return "ambiguous" if "." in field else field.replace(",", ".", 1)


def encoded(text: str) -> str:
    """A text with "?" for lone surrogates, which no file in UTF-8 can hold.

    >>> encoded("caf\\udce9")
    'caf?'
    """
    return text.encode("utf-8", "replace").decode()


def is_number(field: str, decimal: str = ".") -> bool:
    """Whether a field is a number; infinity is one, NaN is not.

    >>> is_number("1,5", ","), is_number("1,5"), is_number("1_000")  # Python reads 1_000 as a number
    (True, False, False)
    """
    try:
        return not math.isnan(float(pointed(field, decimal))) and "_" not in field
    except ValueError:
        return False


def is_missing(field: str) -> bool:
    """Whether a field says that there is no value."""
    return field.strip().lower() in MISSING


def is_integer(field: str) -> bool:
    """Whether a field is an integer."""
    return _INTEGER.fullmatch(field) is not None


def is_code(field: str) -> bool:
    """Whether a field is an integer of which its number as float64 would lose a part.

    >>> [is_code(field) for field in ("0", "7", "00", "007", "-12", "673265518589308905")]
    [False, False, True, True, False, True]
    """
    digits = field.strip().lstrip("+-")
    padded = digits[:1] == "0" and len(digits) > 1
    return is_integer(field) and (padded or len(digits) > 16 or int(digits) > LARGEST_INTEGER)


def mostly_numbers(fields: Sequence[str], decimal: str = ".") -> bool:
    """Whether more than half of the fields are numbers, not counting missing ones."""
    numbers = sum(is_number(field, decimal) for field in fields)
    return numbers > 0 and 2 * numbers > len(fields) - sum(map(is_missing, fields))
