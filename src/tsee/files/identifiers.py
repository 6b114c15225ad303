"""Which columns of a table identify its rows, and say nothing else of them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from numbers import Integral
from typing import Any

import numpy as np

from tsee.files.errors import listed
from tsee.files.fields import LARGEST_INTEGER, is_integer
from tsee.files.tallies import COMPARED, Hashes, Totals, hashed_numbers, hashed_words, whole_numbers

__all__ = [
    "FIRST_VALUES",
    "advised",
    "are_different_words",
    "are_identifiers",
    "identifiers_of",
    "in_parts",
    "is_suspect",
    "kept_aside",
    "named_like_identifier",
    "named_like_numbering",
    "options_to_keep",
    "to_keep",
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
    rf"(.*_)?({_NUMBERED})(_?({_NUMBER}))?|(id|seq|serial)_?({_NUMBER})|{_NUMBER}|.+_index|(.*[_\d])?(?!(uu|gu|row)id$)[a-z]{{2,}}id"
)
# Numbers that are drawn from their range by chance would have so many pairs of equal ones, in the mean; that there is
# none is then no chance (exp(-10)). It takes 22 rows.
MANY_PAIRS = 10
# From so many rows and digits on, numbers of one length are codes, if they are named like a numbering.
MIN_ROWS, MIN_DIGITS = 20, 9
# Integers that float64 does not hold are identifiers unless more than a twentieth of them have fewer binary digits than
# the largest, by more than this: amounts are spread that far.
SPREAD_DIGITS = 6
# Whether there are such integers is seen from so many values.
FIRST_VALUES = 64
# Values that are looked at together.
PART_ROWS = 2**16
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
    >>> [named_like_numbering(name) for name in ("year", "rank", "atomic_number", "mid", "zip", "uuid")]
    [False, False, False, False, False, False]
    """
    words = re.sub(r"[\-. ]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name.strip())).lower()
    return _NUMBERING.fullmatch(words) is not None


def is_suspect(name: str, values: Iterable[Any] = ()) -> bool:
    """Whether it pays to look at all numbers of a column: by its name, or by the first of its ``values``."""
    return named_like_identifier(name) or named_like_numbering(name) or any(map(_is_long, values))


def _is_long(value: Any) -> bool:
    """Whether a value, a decimal or a text, is an integer that float64 does not hold."""
    if isinstance(value, str):
        return 16 <= len(value) <= 300 and is_integer(value) and abs(int(value)) > LARGEST_INTEGER
    if isinstance(value, Decimal):
        whole = value.is_finite() and value == value.to_integral_value()
        return whole and value.copy_abs() > LARGEST_INTEGER  # abs() would round
    return isinstance(value, Integral) and abs(int(value)) > LARGEST_INTEGER


def identifiers_of(
    names: Sequence[str],
    suspects: Iterable[str],
    parts: Callable[[str], Iterable[Any]],
    n_rows: int,
    *,
    together: bool = False,
) -> list[str]:
    """The columns that identify the rows.

    Parameters
    ----------
    names : sequence of str
        The columns.
    suspects : iterable of str
        Those that `is_suspect` suspects.
    parts : callable
        Gives the numbers of a column in parts.
    n_rows : int
    together : bool
        Whether each process has a share of the rows. This is then a collective, and all rows are judged as one table.
    """
    found = set(suspects)
    if together:
        from tsee.distributed import all_agree, all_sum, all_told

        facts = {f"the name of column {column} of X": name for column, name in enumerate(names)}
        all_agree({"the number of features of X": len(names)} | facts)
        found.intersection_update(*all_told(sorted(found)))
        n_rows = all_sum(n_rows)

    def identify(name: str) -> bool:
        return are_identifiers(name, lambda: parts(name), n_rows, together=together)

    return [name for name in names if name in found and identify(name)]


def are_identifiers(
    name: str, parts: Callable[[], Iterable[Any]], n_rows: int | None = None, *, together: bool = False
) -> bool:
    """Whether numbers identify the rows: they are whole and all different, and one more sign says so.

    The sign is a name such as "id"; or a name such as "order" of numbers that lie too close to be different by chance,
    or have all the same number of digits, many of them; or they are integers of one size that float64 does not hold,
    and no times. In what parts the numbers come does not matter.

    Parameters
    ----------
    name : str
        The name of the column.
    parts : callable
        Gives the numbers in parts.
    n_rows : int, optional
        The number of rows, over all processes. They are counted by default.
    together : bool
        Whether the numbers of all processes are judged together, which is a collective.

    Examples
    --------
    >>> numbers = np.arange(100) + 20_240_000
    >>> [are_identifiers(name, lambda: [numbers]) for name in ("customer_id", "order", "year")]
    [True, True, False]
    """
    totals, hashes = Totals(), Hashes(sum(map(len, parts())) if n_rows is None else n_rows)
    whole = True
    for part in parts():
        numbers = whole_numbers(part)
        whole = numbers is not None
        if numbers is None or not hashes.differ:
            break
        if len(numbers):
            totals += Totals.of(numbers)
            hashes.add(hashed_numbers(numbers))
    compared = hashes.finish()
    possible = whole and hashes.differ
    if together:
        from tsee.distributed import all_told

        told = all_told([possible, totals.to_json()])
        possible = all(one for one, _ in told)
        totals = sum((Totals.from_json(one) for _, one in told), Totals())
    if not possible or totals.n == 0 or not _has_sign(name, totals):
        return False
    return not together or _are_different_in_all(compared)


def _are_different_in_all(hashes: np.ndarray) -> bool:
    """Whether no process has a hash that another one has. A collective."""
    import torch

    from tsee.distributed import all_gather

    everyone = all_gather(torch.from_numpy(hashes.view(np.int64)))
    return len(everyone.unique()) == len(everyone)


def _has_sign(name: str, totals: Totals) -> bool:
    numbering = named_like_numbering(name)
    if named_like_identifier(name) and not numbering:
        return True
    n, largest = totals.n, max(abs(totals.least), abs(totals.most))
    pairs = min(n, COMPARED) * (n - 1) / 2  # of which an equal one would have been seen
    if numbering and pairs > MANY_PAIRS * (totals.most - totals.least + 1):
        return True
    if n < MIN_ROWS:
        return False
    digits = len(str(largest))
    if numbering and digits >= MIN_DIGITS and len(str(totals.smallest)) == digits:
        return True
    are_times = any(start <= totals.smallest and largest <= stop for start, stop in TIMES)
    if largest <= LARGEST_INTEGER or totals.are_floats or are_times:
        return False
    longest = max(totals.lengths)
    smaller = sum(count for length, count in totals.lengths.items() if length < longest - SPREAD_DIGITS)
    return 20 * smaller <= n


def are_different_words(parts: Iterable[Iterable[str]], n_rows: int) -> bool:
    """Whether words that come in parts are all different, of ``n_rows`` rows."""
    hashes = Hashes(n_rows)
    for part in parts:
        hashes.add(hashed_words(part))
        if not hashes.differ:
            break
    hashes.finish()
    return hashes.differ


def in_parts(values: Any) -> Iterable[Any]:
    """A column in parts, each of them read when it is needed."""
    return (values[start : start + PART_ROWS] for start in range(0, len(values), PART_ROWS))


def kept_aside(names: Sequence[str]) -> str:
    """The sentence that says which columns were taken for identifiers.

    >>> kept_aside(["id"])
    "Kept aside, an identifier: 'id'."
    """
    return f"Kept aside, an identifier: {listed(names)}."


def advised(notes: Sequence[str], names: Sequence[str], advice: Callable[[Sequence[str]], str]) -> list[str]:
    """Notes on a file, with the ``advice`` on its identifiers directly after the sentence that they were kept aside.

    >>> advised(["Kept aside, an identifier: 'id'.", "2 files."], ["id"], to_keep)
    ["Kept aside, an identifier: 'id'.", "To keep it: columns={'id': 1}.", '2 files.']
    """
    if not names:
        return list(notes)
    after = notes.index(kept_aside(names)) + 1
    return [*notes[:after], advice(names), *notes[after:]]


def to_keep(names: Sequence[str]) -> str:
    """The sentence that says how ``fit`` keeps identifiers.

    >>> to_keep(["Order", "PID"])
    "To keep them: columns={'Order': 1, 'PID': 1}."
    """
    return f"To keep {_them(names)}: columns={dict.fromkeys(names, 1)}."


def options_to_keep(names: Sequence[str]) -> str:
    """The same for the command.

    >>> options_to_keep(["row #"])
    "To keep it: --weight 'row #=1'."
    """
    options = [f"--weight {shlex.quote(name + '=1')}" for name in names]
    return f"To keep {_them(names)}: {' '.join(options)}."


def _them(names: Sequence[str]) -> str:
    return "it" if len(names) == 1 else "them"
