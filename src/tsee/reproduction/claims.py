"""What the results say: values by cell, and whether a claim of the paper holds.

A record is one number of one run: the run's settings, what the number is keyed by, and the number as ``value``,
which is None where the run is missing.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tsee.reproduction.experiments import MEASURES, Book, Experiment, Table, matches
from tsee.reproduction.runner import SPEED_QUANTITIES, read_result

__all__ = ["Cell", "Verdict", "cells", "expected", "judge", "records", "value_at"]

MISSING = "–"


class Verdict(NamedTuple):
    """What became of a claim: the paper's side, ours, and one word."""

    paper: str
    ours: str
    word: str


class Cell(NamedTuple):
    """A place in a table: what it is keyed by, the paper's number and ours, each if there is one."""

    keys: Table
    paper: float | None
    ours: float | None


def records(book: Book, experiment: Experiment) -> list[Table]:
    """Every number that the experiment asks for, there or not."""
    found = []
    for run in experiment.runs:
        result = read_result(book, run)
        for measure in experiment.measures:
            for keys in expected(measure, book.wanted[run.digest][measure]):
                value: Any = None if result is None else result["metrics"][measure]["values"]
                for key in keys.values():
                    value = None if value is None else value[str(key)]
                found.append({**run.settings, "measure": measure, **keys, "value": value})
    return found


def expected(measure: str, options: Table) -> Iterator[Table]:
    """What each number of a measure is keyed by."""
    values: Table = {
        "part": ["test", "train"],
        "k": options.get("k", []),
        "statistic": ["mean", "sd"],
        "quantity": SPEED_QUANTITIES,
    }
    keys = MEASURES[measure]
    if keys:
        for chosen in itertools.product(*(values[key] for key in keys)):
            yield dict(zip(keys, chosen, strict=True))


def value_at(found: list[Table], where: Table) -> float | None:
    """The mean over seeds of the one cell that ``where`` describes, or None."""
    chosen = [record for record in found if matches(where, record)]
    kinds = {json.dumps({k: v for k, v in record.items() if k not in ("seed", "value")}) for record in chosen}
    if len(kinds) > 1:
        raise ValueError(f"The cell {where} is not one cell: {len(kinds)} different runs or numbers match it.")
    values = [record["value"] for record in chosen if record["value"] is not None]
    return statistics.fmean(values) if values else None


def cells(found: list[Table], table: Table) -> Iterator[tuple[tuple[Any, ...], list[Cell]]]:
    """The rows of a table of the config: what each is keyed by, which the paper's rows join by a space, and cells."""
    ((column, columns),) = table["columns"].items()
    for values in itertools.product(*table["rows"].values()):
        row = dict(zip(table["rows"], values, strict=True))
        paper = table.get("paper", {}).get(" ".join(map(str, values)), [None] * len(columns))
        line = []
        for value, number in zip(columns, paper, strict=True):
            keys = {**table.get("where", {}), **row, column: value}
            line.append(Cell(keys, number, value_at(found, {"measure": table["measure"], **keys})))
        yield values, line


def judge(book: Book, experiment: Experiment, found: list[Table], claim: Table) -> Verdict:
    """Check a claim of the config by the kind of check it names."""
    if claim["check"] not in CHECKS:
        raise ValueError(
            f"{experiment.name} has a claim of the kind {claim['check']!r}, and there are {', '.join(CHECKS)}."
        )
    sides = [
        [record for record in found if matches({"measure": claim["measure"], **claim[side]}, record)]
        for side in ("where", "than")
        if side in claim and "measure" in claim
    ]
    if not sides:
        sides = [found]
    present = [[record for record in side if record["value"] is not None] for side in sides]
    if not all(present):
        return Verdict(str(claim.get("paper", "")), MISSING, MISSING)
    verdict = CHECKS[claim["check"]](book, experiment, claim, present)
    if present == sides or verdict.word == MISSING:
        return verdict
    # How far values lie apart says nothing before all of them are there.
    whole = claim["check"] in ("range", "steadier")
    return verdict._replace(word=MISSING if whole else f"{verdict.word}, so far")


Sides = list[list[Table]]


def _below(book: Book, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    values = [record["value"] for record in sides[0]]
    return Verdict(f"below {claim['limit']:g}", _span(values), _agree(max(values) < claim["limit"]))


def _range(book: Book, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """The values lie at least so far apart, or at most."""
    values = [record["value"] for record in sides[0]]
    spread = max(values) - min(values)
    holds = claim.get("at_least", spread) <= spread <= claim.get("at_most", spread)
    return Verdict(claim.get("paper", ""), _span(values), _agree(holds))


def _steadier(book: Book, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """The values of each method on one side lie nearer together than those of any on the other."""
    spans: list[dict[str, list[float]]] = [{}, {}]
    for span, side in zip(spans, sides, strict=True):
        for record in side:
            span.setdefault(record["method"], []).append(record["value"])
    widest = max(max(values) - min(values) for values in spans[0].values())
    narrowest = min(max(values) - min(values) for values in spans[1].values())
    parts = [f"{book.display(method)} {_span(values)}" for span in spans for method, values in span.items()]
    return Verdict("no numbers", "; ".join(parts), _agree(widest < narrowest))


def _better(book: Book, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """Each value on one side is better than each on the other that it is comparable with."""
    sign = -1 if claim.get("higher_is_better") else 1
    wins, total = 0, 0
    for ours, theirs in _pairs(claim, sides):
        wins += max(sign * a for a in ours) < min(sign * b for b in theirs)
        total += 1
    return Verdict("everywhere", f"in {wins} of {total} comparisons", _share(wins, total))


def _near(book: Book, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """The two sides differ by less than so many points."""
    gaps = [statistics.fmean(ours) - statistics.fmean(theirs) for ours, theirs in _pairs(claim, sides)]
    names = [" ".join(book.display(value) for value in key) for key in _groups(claim, sides)]
    text = ", ".join(f"{name} {_signed(gap)}" for name, gap in zip(names, gaps, strict=True))
    return Verdict(
        f"less than {claim['within']:g}", text, _share(sum(abs(g) < claim["within"] for g in gaps), len(gaps))
    )


def _ratio(book: Book, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    value = statistics.fmean(record["value"] for record in sides[0])
    gap = value - claim["paper"]
    word = "agree" if abs(gap) <= claim["within"] else "better" if gap > 0 else "not"
    return Verdict(f"{claim['paper']:g}", f"{value:.2f}", word)


def _cells(book: Book, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """The paper's cells one by one: better, within the tolerance, worse."""
    tolerance = book.common["report"]["tolerance"]
    better = within = worse = missing = 0
    for table in experiment.config.get("table", []):
        sign = -1 if table.get("higher_is_better") else 1
        for _, line in cells(sides[0], table):
            for cell in line:
                if cell.paper is None or not matches(claim.get("where", {}), cell.keys):
                    continue
                if cell.ours is None:
                    missing += 1
                    continue
                gap = sign * (cell.ours - cell.paper)
                better += gap < -tolerance
                within += abs(gap) <= tolerance
                worse += gap > tolerance
    total = better + within + worse
    if not total:
        return Verdict("", MISSING, MISSING)
    text = f"{better} better, {within} within {tolerance:g}, {worse} worse"
    if worse:
        word = "in part" if better or within else "not"
    else:
        word = "better" if 2 * better > total else "agree"
    return Verdict(_count(total + missing, "cell"), text, word)


CHECKS: dict[str, Callable[[Book, Experiment, Table, Sides], Verdict]] = {
    "below": _below,
    "range": _range,
    "steadier": _steadier,
    "better": _better,
    "near": _near,
    "ratio": _ratio,
    "cells": _cells,
}


def _groups(claim: Table, sides: Sides) -> list[tuple[Any, ...]]:
    """The values of the ``by`` keys that both sides have."""
    seen = [list(dict.fromkeys(tuple(record[key] for key in claim["by"]) for record in side)) for side in sides]
    return [group for group in seen[0] if group in seen[1]]


def _pairs(claim: Table, sides: Sides) -> Iterator[tuple[list[float], list[float]]]:
    for group in _groups(claim, sides):
        ours, theirs = (
            [record["value"] for record in side if tuple(record[key] for key in claim["by"]) == group] for side in sides
        )
        yield ours, theirs


def _agree(holds: bool) -> str:
    return "agree" if holds else "not"


def _share(part: int, total: int) -> str:
    return MISSING if not total else "agree" if part == total else "in part" if part else "not"


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
