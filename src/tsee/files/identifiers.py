"""Which columns of a table identify its rows, and say nothing else of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from tsee.files.errors import listed
from tsee.files.fields import LARGEST_INTEGER, is_code, is_integer

__all__ = [
    "all_different",
    "are_identifiers",
    "is_suspect",
    "kept_aside",
    "named_like_identifier",
    "named_like_numbering",
    "whole_numbers",
]

_WORDS = "id|ids|idx|index|key|uid|uuid|guid|barcode|name|rowid|rownames|pid|ssn|isbn|iban|imei"
_IDENTIFIER = re.compile(
    rf"(?i:^(.*[_\-. ])?({_WORDS})$|^unnamed: 0(\.\d+)?$|^__index_level_\d+__$)|[a-z]I[dD]$",
)
# What is numbered. A measurement can have such a name, too, and so can an index of prices, and what is paid.
_NUMBERED = (
    "row|order|account|acct|record|entry|case|customer|client|user|member|subscriber|patient|person|subject|"
    "participant|student|employee|ticket|transaction|invoice|booking|receipt|phone|telephone|obs|observation"
)
_NUMBER = "no|nr|num|nbr|number|#"
_NUMBERING = re.compile(
    rf"(.*_)?({_NUMBERED})(_?({_NUMBER}))?|(id|seq|serial)_?({_NUMBER})|{_NUMBER}|.+_index|(.*[_\d])?[a-z]{{2,}}id"
)
# Numbers that are drawn from their range by chance would have so many pairs of equal ones, in the mean; that there is
# none is then no chance (exp(-10)). It takes 22 rows.
MANY_PAIRS = 10
# From so many rows and digits on, numbers of one length are codes, if they are named like a numbering.
MIN_ROWS, MIN_DIGITS = 20, 9
# Integers that float64 does not hold are identifiers unless they are spread over more than this, as amounts are.
MAX_SPREAD = 100
# Or unless they are times from 2000 to 2100: nanoseconds since 1970, and ticks of 100 ns since 1 or 1601.
TIMES = ((946_684_800e9, 4_102_444_800e9), (630_822_816e9, 662_380_416e9), (125_911_584e9, 157_469_184e9))


def named_like_identifier(name: str) -> bool:
    """Whether a column of this name may identify the rows.

    >>> [named_like_identifier(name) for name in ("id", "cell_id", "PassengerId", "paid", "width")]
    [True, True, True, False, False]
    """
    return _IDENTIFIER.search(name) is not None


def named_like_numbering(name: str) -> bool:
    """Whether a column of this name may number the rows, or hold codes of them.

    >>> [named_like_numbering(name) for name in ("Order", "invoiceNo", "row #", "USUBJID", "price index", "paid")]
    [True, True, True, True, True, True]
    >>> [named_like_numbering(name) for name in ("year", "rank", "atomic_number", "mid", "zip")]
    [False, False, False, False, False]
    """
    words = re.sub(r"[\-. ]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())).lower()
    return _NUMBERING.fullmatch(words) is not None


def is_suspect(name: str, values: Iterable[str] = ()) -> bool:
    """Whether it pays to look at all numbers of a column; ``values`` are the first of its fields."""
    long = any(len(field) >= 16 and is_code(field) for field in values)
    return long or named_like_identifier(name) or named_like_numbering(name)


def are_identifiers(name: str, parts: Callable[[], Iterable[Any]]) -> bool:
    """Whether numbers identify the rows: they are whole and all different, and one more sign says so.

    The sign is a name such as "id"; or a name such as "order" of numbers that lie too close to be different by chance,
    or have all the same number of digits, many of them; or they are integers of one size that float64 does not hold,
    and no times.

    Parameters
    ----------
    name : str
        The name of the column.
    parts : callable
        Gives the numbers in parts, from the first one on, as often as it is called. The first part that is not empty
        shows the sign.

    Examples
    --------
    >>> numbers = np.arange(100) + 20_240_000
    >>> [are_identifiers(name, lambda: [numbers]) for name in ("customer_id", "order", "year")]
    [True, True, False]
    """

    def numbers() -> Iterator[np.ndarray | None]:
        return (whole_numbers(part) for part in parts() if len(part))

    first = next(numbers(), None)
    if first is None or not _has_sign(name, first):
        return False
    found: Callable[[], Iterable[Any]] = numbers
    return all(part is not None for part in numbers()) and all_different(found)


def _has_sign(name: str, values: np.ndarray) -> bool:
    numbering = named_like_numbering(name)
    if named_like_identifier(name) and not numbering:
        return True
    n, sizes = len(values), np.abs(values.astype(np.float64))
    least, most = float(sizes.min()), float(sizes.max())
    if numbering and n * (n - 1) / 2 > MANY_PAIRS * (int(values.max()) - int(values.min()) + 1):
        return True
    if n < MIN_ROWS:
        return False
    if numbering and least >= 10 ** (MIN_DIGITS - 1) and np.floor(np.log10(least)) == np.floor(np.log10(most)):
        return True
    if most <= LARGEST_INTEGER or values.dtype.kind == "f" or any(a <= least and most <= b for a, b in TIMES):
        return False
    return bool(most <= MAX_SPREAD * np.quantile(sizes, 0.05))


def whole_numbers(values: Any) -> np.ndarray | None:
    """Numbers without gaps as integers of any size, or as floats that are whole; None if one is not whole.

    >>> whole_numbers(["007", 8]), whole_numbers([1.5, 2]), whole_numbers(["red"])
    (array([7, 8]), None, None)
    """
    values = np.asarray(values) if hasattr(values, "dtype") else np.array(values, dtype=object)
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind == "f":
        return values if bool((values % 1 == 0).all()) else None
    if not all(map(_is_whole, values.tolist())):
        return None
    found = [int(value) for value in values.tolist()]
    try:
        return np.array(found, dtype=np.int64)
    except OverflowError:
        return np.array(found, dtype=object)


def _is_whole(value: Any) -> bool:
    if isinstance(value, str):
        return is_integer(value)
    return isinstance(value, Real | Decimal) and not isinstance(value, bool) and bool(value % 1 == 0)


def all_different(parts: Callable[[], Iterable[np.ndarray]]) -> bool:
    """Whether values that come in parts are all different; an ascending column is not kept in memory."""
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


def kept_aside(names: Sequence[str]) -> str:
    """The sentence that says which columns were taken for identifiers, and how to keep them.

    >>> kept_aside(["id"])
    "Kept aside, an identifier: 'id' (to keep it: columns={'id': 1}, or --weight id=1)."
    """
    first = names[0]
    return f"Kept aside, an identifier: {listed(names)} (to keep it: columns={{{first!r}: 1}}, or --weight {first}=1)."
