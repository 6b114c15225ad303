"""Running totals of a column of numbers: the same in whatever parts they come, and over all processes."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from tsee.files.fields import is_integer, is_number

__all__ = ["COMPARED", "Hashes", "Totals", "hashed_numbers", "hashed_words", "whole_numbers"]

# So many values are compared to see whether they are all different. Of more rows, it is a sample of as many, those with
# the smallest hashes: equal values are in it together, and in every process.
COMPARED = 2**20
_WORD = 2**64 - 1


@dataclass
class Totals:
    """What whole numbers are, all together: their number, their range, and how many have so many binary digits."""

    n: int = 0
    least: int = 0
    most: int = 0
    smallest: int = 0  # of their magnitudes
    are_floats: bool = False
    lengths: Counter[int] = field(default_factory=Counter)

    @classmethod
    def of(cls, numbers: np.ndarray) -> Totals:
        """Those of an array that is not empty."""
        least, most = int(numbers.min()), int(numbers.max())
        smallest = max(least, -most)
        if least < 0 < most:
            smallest = min(int(numbers[numbers >= 0].min()), -int(numbers[numbers < 0].max()))
        lengths, counts = np.unique(np.frexp(np.abs(numbers.astype(np.float64)))[1], return_counts=True)
        found = Counter(dict(zip(lengths.tolist(), counts.tolist(), strict=True)))
        return cls(len(numbers), least, most, smallest, numbers.dtype.kind == "f", found)

    def __add__(self, other: Totals) -> Totals:
        if not (self.n and other.n):
            return self if self.n else other
        return Totals(
            self.n + other.n,
            min(self.least, other.least),
            max(self.most, other.most),
            min(self.smallest, other.smallest),
            self.are_floats or other.are_floats,
            self.lengths + other.lengths,
        )

    def to_json(self) -> list[Any]:
        return [self.n, self.least, self.most, self.smallest, self.are_floats, list(self.lengths.items())]

    @classmethod
    def from_json(cls, entries: Sequence[Any]) -> Totals:
        n, least, most, smallest, are_floats, lengths = entries
        return cls(n, least, most, smallest, are_floats, Counter(dict(lengths)))


class Hashes:
    """The smallest hashes of a column of ``n_rows`` rows, as many as are compared; ``differ`` until two are equal."""

    def __init__(self, n_rows: int) -> None:
        self.differ, self._n_new = True, 0
        self._below = None if n_rows <= COMPARED else np.uint64(COMPARED * 2**64 // n_rows)
        self._kept, self._new = np.empty(0, np.uint64), list[np.ndarray]()

    def add(self, hashes: np.ndarray) -> None:
        """Take in the hashes of further rows."""
        self._new.append(hashes if self._below is None else hashes[hashes < self._below])
        self._n_new += len(self._new[-1])
        if self._n_new > max(2**16, len(self._kept)):
            self.finish()

    def finish(self) -> np.ndarray:
        """All hashes that are compared, in order."""
        self._kept = np.sort(np.concatenate([self._kept, *self._new]))
        self._new, self._n_new = [], 0
        self.differ = self.differ and not bool((self._kept[1:] == self._kept[:-1]).any())
        return self._kept


def hashed_numbers(numbers: np.ndarray) -> np.ndarray:
    """A hash of each whole number: different ones for different integers of int64, and for those of uint64."""
    if numbers.dtype.kind == "f":
        numbers = numbers.astype(np.float64)
        held = np.abs(numbers) < 2**63
        bits = np.where(held, np.where(held, numbers, 0).astype(np.int64), numbers.view(np.int64))
    elif numbers.dtype.kind == "O":
        bits = np.array([_bits(number) for number in numbers.tolist()], np.uint64)
    else:
        bits = numbers
    mixed = bits.astype(np.uint64)  # the last steps of SplitMix64
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def hashed_words(words: Iterable[str]) -> np.ndarray:
    """A hash of each word, the same in every process."""
    digests = b"".join(hashlib.blake2b(word.encode(), digest_size=8).digest() for word in words)
    return np.frombuffer(digests, np.uint64)


def _bits(number: int) -> int:
    return (number if -(2**63) <= number < 2**64 else hash(number)) & _WORD


def whole_numbers(values: Any) -> np.ndarray | None:
    """Numbers without gaps as integers of any size, or as floats that are whole; None if one is not whole.

    >>> whole_numbers(["007", 8]), whole_numbers([1.5, 2]), whole_numbers(["red"])
    (array([7, 8]), None, None)
    """
    values = np.asarray(values) if hasattr(values, "dtype") else np.array(values, dtype=object)
    if values.dtype.kind in "iu":
        return values
    if values.dtype.kind == "f":
        return values if bool(np.isfinite(values).all()) and bool((values % 1 == 0).all()) else None
    found = []
    for value in values.tolist():
        number = _whole(value)
        if number is None:
            return None
        found.append(number)
    try:
        return np.array(found, dtype=np.int64)
    except OverflowError:
        return np.array(found, dtype=object)


def _whole(value: Any) -> int | None:
    """A number or a text of one as an integer, if it is whole and no larger than a float can be."""
    text = isinstance(value, str)
    if isinstance(value, bool) or not (is_number(value) if text else isinstance(value, Real | Decimal)):
        return None
    try:
        number = float(value)
    except (OverflowError, ValueError):
        return None
    if not number.is_integer():  # nor infinite, nor missing
        return None
    if text:
        return int(value) if is_integer(value) else int(number)
    return int(value) if value == int(value) else None
