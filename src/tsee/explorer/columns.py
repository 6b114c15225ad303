"""Columns of the map's rows as a page shows them: categories, numbers or texts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from tsee.explorer.packing import Arrays
from tsee.plots import MOST_CLASSES

__all__ = ["check_columns", "columns_of", "describe_column", "named_columns"]

# Up to this many different words are categories, which have colors; more are texts, which can be searched.
MAX_CATEGORIES = 1000
DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?Z?)?")
# Up to this many different words are categories even if there are few rows.
ALWAYS_CATEGORIES = 20


def named_columns(columns: Any) -> Any:
    """A DataFrame of polars or an Arrow table as a dictionary; anything else as it is."""
    if hasattr(columns, "column_names"):
        return {name: columns.column(name) for name in columns.column_names}
    if hasattr(columns, "get_columns"):
        return {column.name: column for column in columns.get_columns()}
    return columns


def check_columns(columns: Any, n_rows: int) -> dict[str, np.ndarray]:
    """Columns by name, each with one value per row."""
    if columns is None:
        return {}
    columns = named_columns(columns)
    if not hasattr(columns, "items"):
        raise TypeError(
            "The 'columns' parameter of a page must be a DataFrame or a dictionary of names and values. "
            f"Got {type(columns).__name__} instead."
        )
    checked: dict[str, np.ndarray] = {}
    for key, values in columns.items():
        name = str(key)
        if name in checked:
            raise ValueError(f"The 'columns' parameter of a page has two columns {name!r}: rename one.")
        values = values.detach().cpu().numpy() if hasattr(values, "detach") else np.asarray(values)
        if values.shape != (n_rows,):
            raise ValueError(
                f"Column {name!r} of the 'columns' parameter must have one value for each of {n_rows} rows. "
                f"Got shape {values.shape} instead."
            )
        checked[name] = values
    return checked


def describe_column(name: str, values: np.ndarray, key: str) -> tuple[dict[str, Any], Arrays]:
    """A column's description, and its arrays under names that begin with ``key``.

    Words, and up to 100 different whole numbers, are categories, like the classes of `tsee.plots.scatter`. Other
    numbers are amounts, and so are dates and whole numbers that all differ. Words that rarely repeat are texts.
    """
    if values.dtype.kind in "iuf":
        distinct = np.unique(values[np.isfinite(values)])
        all_differ = len(distinct) == len(values) > ALWAYS_CATEGORIES
        if len(distinct) > MOST_CLASSES or all_differ or bool((distinct % 1 != 0).any()):
            exact = _numbers(values, distinct)
            if exact is not None:
                return {"name": name, "kind": "number", "values": key}, {key: exact}
    dates = _dates(values)
    if dates is not None:
        return _describe_dates(name, dates, key)
    words = values.tolist()
    if values.dtype.kind == "m":
        words = [None if word == "NaT" else word for word in values.astype(str).tolist()]
    missing = [_is_missing(word) for word in words]
    distinct_words = {word for word, lost in zip(words, missing, strict=True) if not lost}
    if len(distinct_words) > min(MAX_CATEGORIES, max(ALWAYS_CATEGORIES, len(words) // 2)):
        return _texts(name, ["" if lost else str(word) for word, lost in zip(words, missing, strict=True)], key)
    order = sorted(distinct_words, key=str if len({type(word) for word in distinct_words}) > 1 else None)
    number = {word: code for code, word in enumerate(order)}
    # Rows without a value have the code after the last.
    codes = [len(order) if lost else number[word] for word, lost in zip(words, missing, strict=True)]
    dtype = np.uint8 if len(order) < 256 else np.uint16
    names = [f"{word:g}" if isinstance(word, float) else str(word) for word in order]
    return {"name": name, "kind": "category", "values": key, "names": names}, {key: np.array(codes, dtype)}


def _numbers(values: np.ndarray, distinct: np.ndarray) -> np.ndarray | None:
    """Amounts in single precision, whole numbers exactly; None if they are too large for JavaScript's numbers."""
    if (distinct % 1 != 0).any():
        return values.astype(np.float32)
    largest = max(abs(int(distinct[0])), abs(int(distinct[-1])))
    if largest > 2**53:
        return None
    return values.astype(np.int32 if largest < 2**31 and np.isfinite(values).all() else np.float64)


def _dates(values: np.ndarray) -> np.ndarray | None:
    """Dates as datetime64, or None: dates of numpy and pandas, and texts that are all dates such as 2026-01-31."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[ms]")
    words = values.tolist() if values.dtype.kind in "OUT" else []
    known = [word for word in words if not _is_missing(word) and word != ""]
    if not known or not all(isinstance(word, str) and DATE.fullmatch(word) for word in known):
        return None
    try:
        return np.array([_date(word) for word in words], "datetime64[ms]")
    except ValueError:  # such as February 30
        return None


def _date(word: Any) -> str:
    return "NaT" if _is_missing(word) or word == "" else str(word).removesuffix("Z").replace(" ", "T")


def _describe_dates(name: str, dates: np.ndarray, key: str) -> tuple[dict[str, Any], Arrays]:
    """Dates as milliseconds since 1970, with the time of day if any has one."""
    missing = np.isnat(dates)
    numbers = np.where(missing, np.nan, dates.astype(np.int64).astype(np.float64))
    whole_days = bool((numbers[~missing] % 86_400_000 == 0).all())
    return {"name": name, "kind": "number", "values": key, "date": "day" if whole_days else "time"}, {key: numbers}


def _is_missing(word: Any) -> bool:
    return word is None or (not isinstance(word, str) and str(word) in ("nan", "NaT", "<NA>"))


def _texts(name: str, words: list[str], key: str) -> tuple[dict[str, Any], Arrays]:
    """All texts as one text, and their lengths in the units of JavaScript's strings."""
    words = [word.encode("utf-8", "replace").decode() for word in words]  # lone surrogates cannot be encoded
    lengths = np.array([len(word.encode("utf-16-le")) // 2 for word in words], np.uint32)
    text = np.frombuffer("".join(words).encode(), np.uint8)
    return {"name": name, "kind": "text", "values": f"{key}.text", "lengths": f"{key}.lengths"}, {
        f"{key}.text": text,
        f"{key}.lengths": lengths,
    }


def columns_of(columns: Mapping[str, np.ndarray]) -> tuple[list[dict[str, Any]], Arrays]:
    """The descriptions and arrays of all columns."""
    described: list[dict[str, Any]] = []
    arrays: Arrays = {}
    for index, (name, values) in enumerate(columns.items()):
        description, own = describe_column(name, values, f"column{index}")
        described.append(description)
        arrays |= own
    return described, arrays
