r"""The encoders of columns: one class for each kind, learned from a sample of values, written as JSON.

Two random rows are apart by about 2 in the square of each column, so that columns count alike, whatever their units: a
number has variance 1. A category is 1 in its own dimension and 0 in the others, so that two random rows differ by
:math:`2 (1 - \sum_c p_c^2)`: a column that is nearly always the same tells little, and counts little.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from typing import Any, ClassVar, Protocol

import numpy as np

from tsee.tables.frames import gaps_of
from tsee.tables.kinds import BOOLEANS, parsed_date, parsed_number, tags_of, text_of
from tsee.tables.scales import balance, squashed
from tsee.values import is_list_of, is_number, need

__all__ = ["ENCODERS", "Encoder", "NumberEncoder", "UnreadableError", "as_json", "encoder_from_json", "learn_encoder"]

# The most frequent categories, or tags, have a dimension each; all others share one.
MAX_CATEGORIES, MAX_TAGS = 256, 128
# So many categories, with the rare ones, are known; any other counts as never seen.
MAX_RARE = 2**16
# Numbers of a text: counts of its character n-grams by their hashes.
TEXT_DIMENSIONS, N_GRAMS = 64, (2, 3, 4)
YEAR, DAY = 365.2425, 1.0
# A period counts if dates span this many of it.
PERIODS = 2.0
# Names and texts in a file longer than this are no categories.
MAX_LENGTH = 10_000
SURROGATES = re.compile("[\ud800-\udfff]")


class UnreadableError(ValueError):
    """A value that a column of its kind cannot hold.

    Parameters
    ----------
    row : int
        Its row in the block.
    value : object
    """

    def __init__(self, row: int, value: Any):
        super().__init__(row, value)
        self.row, self.value = row, value


class Encoder(Protocol):
    """A learned encoder of one column."""

    @property
    def width(self) -> int:
        """The numbers that a value becomes."""
        ...

    def encode(self, values: np.ndarray) -> np.ndarray:
        """Values as numbers, (n, width); NaN in a row where the value is missing."""
        ...

    def describe(self) -> str:
        """What it does, for the user."""
        ...


@dataclass(frozen=True)
class NumberEncoder:
    """A number less its median, over its usual spread; far ones count by their logarithm.

    In a table of numbers only, which may have units in common, it is less its median and nothing else: a spread of 0.
    """

    kind: ClassVar[str] = "number"
    center: float
    spread: float
    unit: float

    @classmethod
    def learn(cls, values: np.ndarray) -> NumberEncoder:
        return cls(*balance(_there(_numbers(values))))

    @classmethod
    def as_it_is(cls, values: np.ndarray) -> NumberEncoder:
        return cls(float(np.median(_there(_numbers(values)))), 0.0, 1.0)

    @property
    def width(self) -> int:
        return 1

    def encode(self, values: np.ndarray) -> np.ndarray:
        numbers = _numbers(values)
        if not self.spread:
            return numbers[:, None] - self.center
        return squashed(numbers, self.center, self.spread)[:, None] / self.unit

    def describe(self) -> str:
        return f"{self.center:.4g} ± {self.spread:.4g}" if self.spread else "as it is"

    def check(self) -> None:
        need(all(map(is_number, (self.center, self.spread, self.unit))), "a column of numbers must have numbers")
        need(self.spread >= 0 and self.unit > 0, "the spread of a column must not be below 0")


@dataclass(frozen=True)
class BooleanEncoder:
    """True or false: apart by 2 in the square, as two categories are."""

    kind: ClassVar[str] = "boolean"

    @classmethod
    def learn(cls, values: np.ndarray) -> BooleanEncoder:
        return cls()

    @property
    def width(self) -> int:
        return 1

    def encode(self, values: np.ndarray) -> np.ndarray:
        return math.sqrt(2) * _each(values, _boolean)[:, None]

    def describe(self) -> str:
        return "true or false"

    def check(self) -> None:
        pass


@dataclass(frozen=True)
class CategoryEncoder:
    """A dimension for each category, one for the rare ones together, and one for those never seen at fit."""

    kind: ClassVar[str] = "category"
    categories: list[str]
    rare: list[str]

    @classmethod
    def learn(cls, values: np.ndarray) -> CategoryEncoder:
        return cls.of_counts(cls.counted(values))

    @staticmethod
    def counted(values: np.ndarray) -> Counter[str]:
        """How often there is each category."""
        return Counter(text_of(value) for value in values.tolist() if not _is_gap(value))

    @classmethod
    def of_counts(cls, counts: Counter[str]) -> CategoryEncoder:
        ordered = _by_frequency(counts)
        return cls(ordered[:MAX_CATEGORIES], ordered[MAX_CATEGORIES:MAX_RARE])

    @property
    def width(self) -> int:
        return len(self.categories) + bool(self.rare) + 1

    def encode(self, values: np.ndarray) -> np.ndarray:
        places = {name: place for place, name in enumerate(self.categories)}
        places |= dict.fromkeys(self.rare, len(self.categories))
        encoded = np.zeros((len(values), self.width))
        for row, value in enumerate(values.tolist()):
            if _is_gap(value):
                encoded[row] = np.nan
            else:
                encoded[row, places.get(text_of(value), self.width - 1)] = 1
        return encoded

    def describe(self) -> str:
        shown = ", ".join(self.categories[:3])
        n = len(self.categories) + len(self.rare)
        return f"{n:,} {'category' if n == 1 else 'categories'}: {shown}{', ...' if n > 3 else ''}"

    def check(self) -> None:
        _check_names(self.categories, MAX_CATEGORIES, self.rare)


@dataclass(frozen=True)
class DateEncoder:
    """A time in days; also the time of the year and of the day, if the dates span several of them."""

    kind: ClassVar[str] = "date"
    time: list[float]
    periods: list[float]

    @classmethod
    def learn(cls, values: np.ndarray) -> DateEncoder:
        days = _there(_each(values, parsed_date))
        span = float(days.max() - days.min())
        hours = bool((np.abs(days - np.round(days)) > 1e-6).any())
        periods = [YEAR] if span >= PERIODS * YEAR else []
        periods += [DAY] if hours and span >= PERIODS * DAY else []
        # From the first one: days since 1970 are so many that a span of seconds would pass for rounding.
        first = float(days.min())
        center, spread, unit = balance(days - first)
        return cls([first + center, spread, unit], periods)

    @property
    def width(self) -> int:
        return 1 + 2 * len(self.periods)

    def encode(self, values: np.ndarray) -> np.ndarray:
        days = _each(values, parsed_date)
        center, spread, unit = self.time
        parts = [squashed(days, center, spread) / unit]
        for period in self.periods:  # on a circle, two random rows are apart by 2 in the square, too
            angle = 2 * math.pi * days / period
            parts += [np.cos(angle), np.sin(angle)]
        return np.stack(parts, 1) / math.sqrt(1 + len(self.periods))

    def describe(self) -> str:
        middle = np.datetime64(0, "s") + np.timedelta64(round(self.time[0] * 86_400), "s")
        names = {YEAR: "the time of the year", DAY: "the time of the day"}
        return " and ".join([f"around {str(middle)[:10]}", *(names[period] for period in self.periods)])

    def check(self) -> None:
        need(is_list(self.time, is_number) and len(self.time) == 3, "a column of dates must have three numbers")
        need(self.time[1] > 0 and self.time[2] > 0, "the spread of a column must be above 0")
        need(is_list(self.periods, lambda period: period in (YEAR, DAY)), "a column of dates has other periods")


@dataclass(frozen=True)
class TagsEncoder:
    """A dimension for each tag, weighted by how rare it is; all tags of a row together have length 1."""

    kind: ClassVar[str] = "tags"
    categories: list[str]
    weights: list[float]

    @classmethod
    def learn(cls, values: np.ndarray) -> TagsEncoder:
        return cls.of_counts(cls.counted(values), int((~gaps_of(values)).sum()))

    @staticmethod
    def counted(values: np.ndarray) -> Counter[str]:
        """How many rows have each tag."""
        return Counter(tag for value in values.tolist() if not _is_gap(value) for tag in tags_of(value))

    @classmethod
    def of_counts(cls, counts: Counter[str], n_rows: int) -> TagsEncoder:
        """From the rows that have each tag, and all rows that have tags."""
        ordered = _by_frequency(counts)[:MAX_TAGS]
        return cls(ordered, [math.log((1 + n_rows) / (1 + counts[tag])) + 1 for tag in ordered])

    @property
    def width(self) -> int:
        return len(self.categories) + 1

    def encode(self, values: np.ndarray) -> np.ndarray:
        places = {name: place for place, name in enumerate(self.categories)}
        encoded = np.zeros((len(values), self.width))
        for row, value in enumerate(values.tolist()):
            if _is_gap(value):
                encoded[row] = np.nan
                continue
            for tag in tags_of(value):
                place = places.get(tag, self.width - 1)
                encoded[row, place] = self.weights[place] if place < len(self.weights) else 1
        return encoded / np.maximum(np.linalg.norm(encoded, axis=1, keepdims=True), 1e-12)

    def describe(self) -> str:
        shown = ", ".join(self.categories[:3])
        return f"{len(self.categories):,} tags: {shown}{', ...' if len(self.categories) > 3 else ''}"

    def check(self) -> None:
        _check_names(self.categories, MAX_TAGS, [])
        need(is_list(self.weights, lambda w: is_number(w) and w > 0), "tags must have weights above 0")
        need(len(self.weights) == len(self.categories), "tags must have a weight each")


@dataclass(frozen=True)
class TextEncoder:
    """Counts of the character n-grams of a text by their hashes, of length 1: like spellings lie near each other."""

    kind: ClassVar[str] = "text"

    @classmethod
    def learn(cls, values: np.ndarray) -> TextEncoder:
        return cls()

    @property
    def width(self) -> int:
        return TEXT_DIMENSIONS

    def encode(self, values: np.ndarray) -> np.ndarray:
        encoded, known = np.zeros((len(values), TEXT_DIMENSIONS)), dict[str, tuple[int, float]]()
        for row, value in enumerate(values.tolist()):
            if _is_gap(value):
                encoded[row] = np.nan
                continue
            text = f" {' '.join(text_of(value).lower().split())} "
            for size in N_GRAMS:
                for start in range(max(0, len(text) - size + 1)):
                    gram = text[start : start + size]
                    place, sign = known.get(gram) or known.setdefault(gram, _hashed(gram))
                    encoded[row, place] += sign
        return encoded / np.maximum(np.linalg.norm(encoded, axis=1, keepdims=True), 1e-12)

    def describe(self) -> str:
        return f"{TEXT_DIMENSIONS} counts of character n-grams"

    def check(self) -> None:
        pass


ENCODERS: dict[str, Any] = {
    encoder.kind: encoder
    for encoder in (NumberEncoder, BooleanEncoder, CategoryEncoder, DateEncoder, TagsEncoder, TextEncoder)
}


def learn_encoder(kind: str, values: np.ndarray) -> Encoder:
    """The encoder of a column by its values, at least one of which is no gap."""
    encoder: Encoder = ENCODERS[kind].learn(values)
    return encoder


def encoder_from_json(kind: Any, entries: Any) -> Encoder:
    """An encoder as `dataclasses.asdict` gave it. Raises ValueError with a short reason if it is none."""
    need(isinstance(kind, str) and kind in ENCODERS, "a column has a kind that this version of tsee does not know")
    cls = ENCODERS[kind]
    need(
        isinstance(entries, dict) and set(entries) == {field.name for field in fields(cls)},
        f"a {kind} has other entries",
    )
    encoder = cls(**entries)
    encoder.check()
    read: Encoder = encoder
    return read


def is_list(values: Any, accepts: Callable[[Any], bool]) -> bool:
    return isinstance(values, list) and all(map(accepts, values))


def _check_names(names: Any, most: int, rare: Any) -> None:
    need(is_list_of(names, str) and is_list_of(rare, str), "categories must be a list of texts")
    need(len(names) <= most, "a column has more categories than it can have")
    need(len({*names, *rare}) == len(names) + len(rare), "the categories of a column must differ")
    need(
        all(len(name) < MAX_LENGTH and not SURROGATES.search(name) for name in [*names, *rare]), "a category is no text"
    )


def _there(values: np.ndarray) -> np.ndarray:
    return values[np.isfinite(values)]


def _numbers(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind != "f":
        return _each(values, parsed_number)
    if np.isinf(values).any():
        row = int(np.flatnonzero(np.isinf(values))[0])
        raise UnreadableError(row, values[row])
    return values


def _each(values: np.ndarray, parse: Callable[[Any], float | None]) -> np.ndarray:
    """Every value as a number, and gaps as NaN; a value that is none is reported."""
    found = np.full(len(values), np.nan)
    for row, value in enumerate(values.tolist()):
        if _is_gap(value):
            continue
        number = parse(value)
        if number is None:
            raise UnreadableError(row, value)
        found[row] = number
    return found


def _boolean(value: Any) -> float | None:
    known = BOOLEANS.get(text_of(value).lower())
    if known is None and text_of(value) in ("0", "1"):
        known = text_of(value) == "1"
    return None if known is None else float(known)


def _by_frequency(counts: Counter[str]) -> list[str]:
    return [name for name, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and value != value)


def _hashed(gram: str) -> tuple[int, float]:
    number = int.from_bytes(hashlib.blake2b(gram.encode("utf-8", "replace"), digest_size=8).digest(), "little")
    return number % TEXT_DIMENSIONS, 1.0 if number >> 63 else -1.0


def as_json(encoder: Encoder) -> dict[str, Any]:
    """The entries of an encoder, which JSON can hold."""
    return asdict(encoder)  # type: ignore[call-overload]
