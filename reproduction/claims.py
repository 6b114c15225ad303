"""Numbers for the tables, and verdicts on the paper's claims.

A record is one number of one run: the run's settings, the keys of the number, and the number itself as ``value``,
which is None if the run has no result. ``short`` says whether a time limit ended the run while its loss still fell.
"""

from __future__ import annotations

import itertools
import json
import statistics
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from reproduction.experiments import MEASURES, Catalog, Experiment, Table, matches
from reproduction.runner import SPEED_QUANTITIES, is_short, read_result

__all__ = ["NOT_RUN", "Cell", "Verdict", "cells", "collect_records", "judge", "number_keys", "value_at"]

MISSING = "–"
AGREES, BETTER, PARTLY, DIFFERS = "holds", "better", "holds in part", "does not hold"
NOT_RUN, SO_FAR = "not run", "so far"


class Verdict(NamedTuple):
    """A claim checked: the paper's value, ours, and a word or two."""

    paper: str
    ours: str
    word: str


class Cell(NamedTuple):
    """One cell of a table: its keys, the paper's number and ours; a number that is missing is None.

    ``asked`` says whether there is such a run, done or not, and ``short`` whether a time limit ended it.
    """

    keys: Table
    paper: float | None
    ours: float | None
    asked: bool = True
    short: bool = False


def collect_records(catalog: Catalog, experiment: Experiment, *, faithful: bool = False) -> list[Table]:
    """A record for every number that the experiment asks for, whether its run is done or not.

    The runs are by tsee's recipe, or by the paper's own method (``faithful``).
    """
    records = []
    for run in experiment.faithful if faithful else experiment.runs:
        result = read_result(catalog, run)
        short = result is not None and is_short(result)
        for measure in experiment.measures:
            for keys in number_keys(measure, catalog.wanted[run.digest][measure]):
                value: Any = None if result is None else result["metrics"][measure]["values"]
                for key in keys.values():
                    value = None if value is None else value[str(key)]
                records.append({**run.settings, "measure": measure, **keys, "value": value, "short": short})
    return records


def number_keys(measure: str, options: Table) -> Iterator[Table]:
    """The keys of each number of a measure."""
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


def value_at(records: list[Table], where: Table) -> float | None:
    """The mean over seeds of the one cell that ``where`` describes, or None if no run is done."""
    chosen = [record for record in records if matches(where, record)]
    kinds = {json.dumps({k: v for k, v in record.items() if k not in ("seed", "short", "value")}) for record in chosen}
    if len(kinds) > 1:
        raise ValueError(f"{where} must describe one cell, but {len(kinds)} different runs or numbers match it.")
    values = [record["value"] for record in chosen if record["value"] is not None]
    return statistics.fmean(values) if values else None


def cells(records: list[Table], table: Table) -> Iterator[tuple[tuple[Any, ...], list[Cell]]]:
    """The rows of a table of the config: the keys of each row, which the config joins by a space, and its cells."""
    ((column, columns),) = table["columns"].items()
    for values in itertools.product(*table["rows"].values()):
        row = dict(zip(table["rows"], values, strict=True))
        paper = table.get("paper", {}).get(" ".join(map(str, values)), [None] * len(columns))
        line = []
        for value, number in zip(columns, paper, strict=True):
            keys = {**table.get("where", {}), **row, column: value}
            where = {"measure": table["measure"], **keys}
            here = [record for record in records if matches(where, record)]
            short = any(record.get("short") for record in here)
            line.append(Cell(keys, number, value_at(here, where), bool(here), short))
        yield values, line


def judge(catalog: Catalog, experiment: Experiment, records: list[Table], claim: Table) -> Verdict:
    """Check a claim of the config with the check that it names."""
    if claim["check"] not in CHECKS:
        raise ValueError(
            f"A claim of {experiment.name} has the check {claim['check']!r}; it must be one of {', '.join(CHECKS)}."
        )
    sides = [
        [record for record in records if matches({"measure": claim["measure"], **claim[side]}, record)]
        for side in ("where", "than")
        if side in claim and "measure" in claim
    ]
    if not sides:
        sides = [records]
    present = [[record for record in side if record["value"] is not None] for side in sides]
    if not all(present):
        return Verdict(str(claim.get("paper", "")), MISSING, NOT_RUN)
    verdict = CHECKS[claim["check"]](catalog, experiment, claim, present)
    if verdict.word == MISSING:
        return verdict._replace(word=NOT_RUN)
    # A spread says nothing until all values are known; two spreads can be compared if the same are known of both.
    if present != sides and (claim["check"] == "range" or (claim["check"] == "steadier" and not _alike(present))):
        return verdict._replace(word=NOT_RUN)
    short = any(record.get("short") for side in present for record in side)
    return verdict._replace(word=f"{verdict.word} {SO_FAR}") if short or present != sides else verdict


Sides = list[list[Table]]


def _alike(sides: Sides) -> bool:
    """Whether all methods are known for the same data, batch sizes and perplexities."""
    known: dict[str, set[tuple[Any, ...]]] = {}
    for record in itertools.chain.from_iterable(sides):
        keys = tuple(record.get(key) for key in ("data", "batch_size", "perplexity"))
        known.setdefault(record["method"], set()).add(keys)
    first, *others = known.values()
    return all(other == first for other in others)


def _below(catalog: Catalog, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    values = [record["value"] for record in sides[0]]
    return Verdict(f"below {claim['limit']:g}", _span(values), _agree(max(values) < claim["limit"]))


def _range(catalog: Catalog, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """The spread of the values is at least ``at_least`` and at most ``at_most``."""
    values = [record["value"] for record in sides[0]]
    if len(values) < 2:
        return Verdict(claim.get("paper", ""), MISSING, MISSING)
    spread = max(values) - min(values)
    holds = claim.get("at_least", spread) <= spread <= claim.get("at_most", spread)
    return Verdict(claim.get("paper", ""), _span(values), _agree(holds))


def _steadier(catalog: Catalog, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """Every method of the first side has a smaller spread than every method of the second."""
    spans: list[dict[str, list[float]]] = [{}, {}]
    for span, side in zip(spans, sides, strict=True):
        for record in side:
            span.setdefault(record["method"], []).append(record["value"])
    if any(len(values) < 2 for span in spans for values in span.values()):
        return Verdict("no numbers", MISSING, MISSING)
    widest = max(max(values) - min(values) for values in spans[0].values())
    narrowest = min(max(values) - min(values) for values in spans[1].values())
    parts = [f"{catalog.display(method)} {_span(values)}" for span in spans for method, values in span.items()]
    return Verdict("no numbers", "; ".join(parts), _agree(widest < narrowest))


def _better(catalog: Catalog, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """In each group, every value of the first side is better than every value of the second."""
    sign = -1 if claim.get("higher_is_better") else 1
    wins, total = 0, 0
    for ours, theirs in _pairs(claim, sides):
        wins += max(sign * a for a in ours) < min(sign * b for b in theirs)
        total += 1
    return Verdict("everywhere", f"in {wins} of {total} comparisons", _share(wins, total))


def _near(catalog: Catalog, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """In each group, the means of the two sides differ by less than ``within`` points."""
    differences = [statistics.fmean(ours) - statistics.fmean(theirs) for ours, theirs in _pairs(claim, sides)]
    names = [" ".join(catalog.display(value) for value in key) for key in _groups(claim, sides)]
    text = ", ".join(f"{name} {_signed(value)}" for name, value in zip(names, differences, strict=True))
    near = sum(abs(value) < claim["within"] for value in differences)
    return Verdict(f"less than {claim['within']:g}", text, _share(near, len(differences)))


def _ratio(catalog: Catalog, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    value = statistics.fmean(record["value"] for record in sides[0])
    difference = value - claim["paper"]
    word = AGREES if abs(difference) <= claim["within"] else BETTER if difference > 0 else DIFFERS
    return Verdict(f"{claim['paper']:g}", f"{value:.2f}", word)


def _cells(catalog: Catalog, experiment: Experiment, claim: Table, sides: Sides) -> Verdict:
    """Each of the paper's cells: better, within the tolerance, or worse."""
    tolerance = catalog.common["report"]["tolerance"]
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
                difference = sign * (cell.ours - cell.paper)
                better += difference < -tolerance
                within += abs(difference) <= tolerance
                worse += difference > tolerance
    total = better + within + worse
    if not total:
        return Verdict("", MISSING, MISSING)
    text = f"{better} better, {within} within {tolerance:g}, {worse} worse"
    if worse:
        word = PARTLY if better or within else DIFFERS
    else:
        word = BETTER if 2 * better > total else AGREES
    return Verdict(_count(total + missing, "cell"), text, word)


CHECKS: dict[str, Callable[[Catalog, Experiment, Table, Sides], Verdict]] = {
    "below": _below,
    "range": _range,
    "steadier": _steadier,
    "better": _better,
    "near": _near,
    "ratio": _ratio,
    "cells": _cells,
}


def _groups(claim: Table, sides: Sides) -> list[tuple[Any, ...]]:
    """The values of the ``by`` keys that occur on both sides."""
    seen = [list(dict.fromkeys(tuple(record[key] for key in claim["by"]) for record in side)) for side in sides]
    return [group for group in seen[0] if group in seen[1]]


def _pairs(claim: Table, sides: Sides) -> Iterator[tuple[list[float], list[float]]]:
    for group in _groups(claim, sides):
        ours, theirs = (
            [record["value"] for record in side if tuple(record[key] for key in claim["by"]) == group] for side in sides
        )
        yield ours, theirs


def _agree(holds: bool) -> str:
    return AGREES if holds else DIFFERS


def _share(part: int, total: int) -> str:
    return MISSING if not total else AGREES if part == total else PARTLY if part else DIFFERS


def _span(values: list[float]) -> str:
    low, high = f"{min(values):.1f}", f"{max(values):.1f}"
    return low if low == high else f"{low} to {high}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
