"""Names of parts of the map, coarse and fine: the words or values that set the rows of a part apart."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.ndimage
import scipy.sparse

__all__ = ["describe_topics", "parts_of"]

# The map is a grid of this many cells per side, on which the density of points is blurred.
CELLS = 256
# The blur of each level in cells: each level has about four times as many parts as the one before.
BLURS = (14.0, 7.0, 3.5, 1.75)
# A part is named if it has at least this many points, and this share of all points, at the coarsest level.
MIN_POINTS, MIN_SHARE = 8, 0.01
# A word stands for a part if it is in this share of its rows at least, and this many times as frequent as around it.
MIN_FREQUENT, MIN_LIFT = 0.12, 2.0
MIN_COUNT = 3
# A value of a column stands for a part if most rows have it.
MIN_COMMON = 0.6
# Words are counted in at most this many rows, and at most this many letters of each.
MAX_TEXTS, MAX_LETTERS = 50_000, 2_000
MAX_WORDS = 20_000
# Names of parts by level, so that none is too crowded to be read.
MAX_NAMES = (30, 80, 200, 400)
WORD = re.compile(r"[^\W\d_][\w'’-]*[\w]", re.UNICODE)


@dataclass
class Tokens:
    """What can be counted of the rows: words of a text, or values of a column."""

    column: int
    names: list[str]
    table: scipy.sparse.csr_matrix  # (rows, names), 1 where a row has it
    least: float  # the share of a part's rows that must have it
    most: int  # how many of them are a name
    counted: np.ndarray | None = None  # which rows were counted, if not all
    texts: list[str] | None = None  # names, of which one can stand for a part


def describe_topics(
    positions: np.ndarray, columns: dict[str, np.ndarray], described: list[dict[str, Any]]
) -> list[Any]:
    """Names of parts of the map as ``[level, x, y, count, name, column]``, x and y in shares of the map's extent.

    Parameters
    ----------
    positions : ndarray of shape (n, 2)
        In shares of the longer side of the map, from 0 to 1.
    columns : dict of str to ndarray of shape (n,)
    described : list of dict
        The columns as `tsee.explorer.columns.describe_column` describes them.
    """
    known = [
        tokens
        for index, (values, description) in enumerate(zip(columns.values(), described, strict=True))
        if (tokens := _tokens(index, values, description)) is not None
    ]
    if not known:
        return []
    topics: list[Any] = []
    parents: np.ndarray = np.zeros(len(positions), np.int64)
    said: dict[int, set[str]] = {}  # the names of a part and of the parts that it is in
    for level, blur in enumerate(BLURS):
        parts, n_parts = parts_of(positions, blur)
        least = max(MIN_POINTS, MIN_SHARE * len(positions) / 4**level)
        counts = np.bincount(parts, minlength=n_parts)
        above = _parents(parts, parents, n_parts)
        names: dict[int, set[str]] = {}
        for part in np.argsort(-counts, kind="stable")[: MAX_NAMES[level]].tolist():
            before = said.get(int(above[part]), set())
            names[part] = before
            if counts[part] < least:
                continue
            here = parts == part
            around = np.flatnonzero((parents == above[part]) & ~here)
            if len(around) < counts[part] / 4:  # the coarser part is hardly more than this one
                around = np.flatnonzero(~here)
            rows = np.flatnonzero(here)
            center = positions[rows] - np.median(positions[rows], axis=0)
            central = rows[np.square(center).sum(1).argsort(kind="stable")]
            for tokens in known:
                name = _name(tokens, rows, around, central, before, level)
                if name is not None:
                    x, y = positions[central[: max(1, len(central) // 4)]].mean(0).round(4).tolist()
                    topics.append([level, x, y, int(counts[part]), name, tokens.column])
                    names[part] = names[part] | set(name.split(", "))
        parents, said = parts, names
    return topics


def parts_of(positions: np.ndarray, blur: float) -> tuple[np.ndarray, int]:
    """The hill of the blurred density that each point is on: (n,), and how many hills there are.

    From each cell one goes to the densest of its neighbors, until there is none that is denser.
    """
    cells = np.clip((positions * CELLS).astype(np.int64), 0, CELLS - 1)
    pad = int(3 * blur)
    side = CELLS + 2 * pad
    flat = (cells[:, 1] + pad) * side + cells[:, 0] + pad
    density = np.bincount(flat, minlength=side * side).reshape(side, side).astype(np.float64)
    density = scipy.ndimage.gaussian_filter(density, blur, mode="constant")
    best, target = density.copy(), np.arange(side * side).reshape(side, side)
    for down in (-1, 0, 1):
        for right in (-1, 0, 1):
            moved = np.roll(density, (-down, -right), (0, 1))
            denser = moved > best
            best[denser] = moved[denser]
            target[denser] = np.roll(np.arange(side * side).reshape(side, side), (-down, -right), (0, 1))[denser]
    top = target.ravel()
    while not np.array_equal(top, top[top]):
        top = top[top]
    hills, parts = np.unique(top[flat], return_inverse=True)
    return parts.reshape(-1), len(hills)


def _parents(parts: np.ndarray, coarser: np.ndarray, n_parts: int) -> np.ndarray:
    """The coarser part that most points of each part are in."""
    table = scipy.sparse.coo_matrix((np.ones(len(parts)), (parts, coarser)), (n_parts, int(coarser.max()) + 1))
    return np.asarray(table.tocsr().argmax(1)).ravel()


def _tokens(index: int, values: np.ndarray, description: dict[str, Any]) -> Tokens | None:
    if description["kind"] == "category" and len(description["names"]) > 1:
        return _values(index, values, description)
    return _words(index, values) if description["kind"] == "text" else None


def _values(index: int, values: np.ndarray, description: dict[str, Any]) -> Tokens:
    """Each row has the value of its column."""
    code = {name: i for i, name in enumerate(description["names"])}
    codes = [code.get(f"{value:g}" if isinstance(value, float) else str(value), -1) for value in values.tolist()]
    rows = np.flatnonzero(np.array(codes) >= 0)
    table = scipy.sparse.coo_matrix((np.ones(len(rows)), (rows, np.array(codes)[rows])), (len(values), len(code)))
    bare = any(not re.search(r"[^\W\d_]{2}", name) for name in description["names"])
    names = [f"{description['name']} {name}" if bare else name for name in description["names"]]
    return Tokens(index, names, table.tocsr(), MIN_COMMON, 1)


def _words(index: int, values: np.ndarray) -> Tokens | None:
    """Each row has the words of its text."""
    n_rows = len(values)
    texts = ["" if value is None or value != value else str(value) for value in values.tolist()]
    chosen = np.arange(n_rows)
    if n_rows > MAX_TEXTS:
        chosen = np.sort(np.random.default_rng(0).choice(n_rows, MAX_TEXTS, replace=False))
    sets = [set(WORD.findall(texts[row][:MAX_LETTERS].lower())) for row in chosen.tolist()]
    counts = Counter(word for words in sets for word in words if len(word) > 2)
    most = 0.5 * len(chosen)
    vocabulary = [word for word, count in counts.most_common(MAX_WORDS) if 3 <= count <= most]
    number = {word: i for i, word in enumerate(vocabulary)}
    pairs = [
        (row, number[word]) for row, own in zip(chosen.tolist(), sets, strict=True) for word in own if word in number
    ]
    rows, codes = np.array(pairs, np.int64).reshape(-1, 2).T
    table = scipy.sparse.coo_matrix((np.ones(len(rows)), (rows, codes)), (n_rows, len(vocabulary))).tocsr()
    counted = np.zeros(n_rows, bool)
    counted[chosen] = True
    short = float(np.median([len(texts[row].split()) for row in chosen.tolist()])) <= 3
    return Tokens(index, vocabulary, table, MIN_FREQUENT, 2, counted, texts if short else None)


def _name(
    tokens: Tokens, rows: np.ndarray, around: np.ndarray, central: np.ndarray, before: set[str], level: int
) -> str | None:
    """The tokens that are most frequent in some rows compared with those around them; None if there are none."""
    if tokens.counted is not None:
        rows, around = rows[tokens.counted[rows]], around[tokens.counted[around]]
    if tokens.names and len(rows) and len(around):
        here, outside = (np.asarray(tokens.table[part].sum(0)).ravel() for part in (rows, around))
        share, other = here / len(rows), outside / len(around)
        lift = share / (other + 1 / (len(rows) + len(around)))
        good = (share >= tokens.least) & (lift >= MIN_LIFT) & (here >= MIN_COUNT)
        score = np.where(good, share * np.log(lift, where=good, out=np.zeros_like(lift)), 0)
        order = np.argsort(-score, kind="stable")[:6].tolist()
        best = [tokens.names[i] for i in order if score[i] > 0 and tokens.names[i] not in before]
        if best:
            return ", ".join(best[: tokens.most])
    if tokens.texts is not None and level > 0:
        for row in central[:5].tolist():  # a text that stands for the others, as a town for its surroundings
            text = " ".join(tokens.texts[row].split())
            if text and text not in before:
                return text if len(text) <= 32 else text[:31] + "…"
    return None
