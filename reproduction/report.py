"""The report: a Markdown page with figures that compares the paper's numbers with ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reproduction.claims import (
    DIFFERS,
    MISSING,
    NOT_RUN,
    PARTLY,
    SO_FAR,
    Cell,
    cells,
    collect_records,
    judge,
)
from reproduction.experiments import Catalog, Experiment, Table
from reproduction.faithful import last_fall
from reproduction.figures import draw
from reproduction.runner import is_short, read_result

__all__ = ["write_report"]

Records = dict[str, list[Table]]
PAGE = "reproduction.md"
PICTURES = "reproduction"
UNFINISHED = "More time may change this."


def write_report(catalog: Catalog, docs: Path) -> Path:
    """Write ``reproduction.md`` and its figures from the results that exist.

    The same results always give the same page.

    Parameters
    ----------
    catalog : Catalog
        The experiments; a run without a result is shown as a dash.
    docs : Path
        The folder to write to.

    Returns
    -------
    Path
        The page.
    """
    docs.mkdir(parents=True, exist_ok=True)
    recipe, faithful = (
        {name: collect_records(catalog, one, faithful=arm) for name, one in catalog.experiments.items()}
        for arm in (False, True)
    )
    lines = [*_head(catalog), *_summary(catalog, recipe, faithful)]
    for name, experiment in catalog.experiments.items():
        lines += _section(catalog, experiment, recipe[name], faithful[name], docs)
    page = docs / PAGE
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return page


def _head(catalog: Catalog) -> Iterator[str]:
    yield "# The paper, reproduced"
    yield ""
    yield "Every table and figure of [*Parametric t-Distributed Stochastic Exemplar-centered"
    yield "Embedding*](https://arxiv.org/abs/1710.05128), run twice: by the paper's own method, with its settings and"
    yield "no others (`DtSEE.paper()` and so on), and by tsee's recipe for the same losses. An error is the error of"
    yield "k-NN on the map: a held-out row takes the class of its nearest training rows on the map. Errors and scores"
    yield "are percentages."
    yield ""


def _counts(catalog: Catalog) -> Iterator[str]:
    """How many runs are done, and how."""
    for faithful, what in ((True, "the paper's method"), (False, "tsee's recipe")):
        arms = (one.faithful if faithful else one.runs for one in catalog.experiments.values())
        runs = {run.digest: run for arm in arms for run in arm}
        results = [result for run in runs.values() if (result := read_result(catalog, run)) is not None]
        spent = f", in {_duration(results)}, on {_machines(results)}" if results else ""
        yield f"- **{len(results)} of {len(runs)} runs of {what} are done**{spent}.{_cut_short(results)}"
    yield ""
    yield f"A number of a run that is not done is shown as {MISSING}."
    yield ""
    yield "`make reproduce` runs the experiments of the recipe that have no result yet and writes this page. `python -m"
    yield "reproduction all --paper` runs those of the paper's method: a run takes up to an hour, `--minutes` limits"
    yield "it, and the same command resumes a run that was stopped, and with more minutes one that its limit has ended."
    yield "`python -m reproduction report` only writes the page, from the files in `reproduction/results/`. The paper's"
    yield "numbers and claims are in `reproduction/experiments/`."
    yield ""


def _cut_short(results: list[Table]) -> str:
    """How many runs a time limit ended, and which limit."""
    limits = [result["training"]["limit"] for result in results if is_short(result)]
    if not limits:
        return ""
    low, high = f"{min(limits):g}", f"{max(limits):g}"
    span = low if low == high else f"{low} to {high}"
    return f" A time limit of {span} min of the processor ended {len(limits)} of them while the loss still fell."


def _still_falling(catalog: Catalog, experiment: Experiment) -> Iterator[str]:
    """How much the loss still fell of each run that a time limit ended."""
    parts = []
    for run in experiment.faithful:
        result = read_result(catalog, run)
        if result is None or not is_short(result):
            continue
        training = result["training"]
        fall = last_fall(training)
        shown = "" if fall is None else f", {100 * fall:.1f} %"
        parts.append(f"{catalog.label(experiment, run)}: {_count(training['steps'], 'batch', 'batches')}{shown}")
    if parts:
        yield "\\* A time limit ended these runs. The share is how far the loss of the last quarter of the time was"
        yield f"below that of the quarter before. {'; '.join(parts)}."
        yield ""


def _summary(catalog: Catalog, recipe: Records, faithful: Records) -> Iterator[str]:
    tolerance = catalog.common.get("report", {}).get("tolerance")
    yield "## Which of the paper's claims hold"
    yield ""
    yield "| claim | where | paper | the paper's method | does it hold? | tsee's recipe | does it hold? |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    reasons = []
    for name, experiment in catalog.experiments.items():
        for claim in experiment.config.get("claim", []):
            ours = judge(catalog, experiment, recipe[name], claim)
            theirs = judge(catalog, experiment, faithful[name], claim)
            judged = [(theirs, "why_paper", "the paper's method"), (ours, "why", "tsee's recipe")]
            if claim.get("arm") == "both":  # the two arms are the same
                theirs, judged = ours, [(ours, "why", "both")]
            link = f"[{experiment.config.get('paper', name)}](#{_anchor(_heading(experiment))})"
            own = claim.get("arm") == "tsee"  # the paper's method has no part in it
            shown = ["", ""] if own else [theirs.ours, theirs.word if theirs.word == NOT_RUN else f"**{theirs.word}**"]
            yield _row([claim["text"], link, ours.paper, *shown, ours.ours, f"**{ours.word}**"])
            for verdict, key, who in judged:
                short = UNFINISHED if verdict.word.endswith(SO_FAR) else None
                why = " ".join(text for text in (claim.get(key), short) if text)
                if verdict.word.startswith((DIFFERS, PARTLY)) and why:
                    reasons.append(f"- {claim['text']} ({who}: {verdict.ours}). {why}")
    yield ""
    if tolerance is not None:
        yield f"A number is *better* or *worse* if it differs by more than {tolerance:g} points. In the tables below,"
        yield "numbers that are better than the paper's are in bold."
    yield "*So far*: a time limit ended some of the runs while their loss still fell (their numbers have an asterisk,"
    yield "and below each table stands how much it fell), or some are not done: more time may change it. The runs of an"
    yield "experiment on the same data have the same limit. *Not run*: there are no results, or too few to judge by."
    yield ""
    yield from _counts(catalog)
    if reasons:
        yield "## What does not hold, and why"
        yield ""
        yield from reasons
        yield ""
    for key, title in (("open", "What the paper leaves open, and how it is run here"), ("differences", "What differs")):
        lines = catalog.common.get("report", {}).get(key, [])
        if lines:
            yield f"## {title}"
            yield ""
            yield from (f"- {line}" for line in lines)
            yield ""


def _section(
    catalog: Catalog, experiment: Experiment, records: list[Table], faithful: list[Table], docs: Path
) -> Iterator[str]:
    config = experiment.config
    yield f"## {_heading(experiment)}"
    yield ""
    if "about" in config:
        yield config["about"]
        yield ""
    for table in config.get("table", []):
        yield from _table(catalog, records, faithful, table)
    for figure in config.get("figure", []):
        caption = figure.get("title", config["title"])
        if draw(catalog, experiment, records, figure, docs / PICTURES):
            yield f"![{caption}]({PICTURES}/{figure['file']})"
            if "title" in figure:
                yield ""
                yield f"*{caption}*"
        else:
            yield f"{caption}: {MISSING}"
        yield ""
    for difference in config.get("differences", []):
        yield f"Difference from the paper: {difference[0].lower()}{difference[1:]}"
        yield ""
    yield from _provenance(catalog, experiment)


def _table(catalog: Catalog, records: list[Table], faithful: list[Table], table: Table) -> Iterator[str]:
    """The paper's row, if it has one, above those of its method and of ours; numbers that are better are in bold."""
    ((column, columns),) = table["columns"].items()
    arms = [(name, list(cells(of, table))) for name, of in (("its method", faithful), ("tsee", records))]
    asked = [any(cell.asked for _, line in lines for cell in line) for _, lines in arms]
    compared = bool(table.get("paper")) or all(asked)
    sign = -1 if table.get("higher_is_better") else 1
    tolerance = catalog.common.get("report", {}).get("tolerance", 0)

    def shown(cell: Cell) -> str:
        text = _number(cell.ours) + ("\\*" if cell.short else "")
        known = cell.paper is not None and cell.ours is not None
        better = known and sign * (cell.ours - cell.paper) < -tolerance  # type: ignore[operator]
        return f"**{text}**" if better else text

    names = [catalog.display(value) for value in columns]
    if not isinstance(columns[0], str):
        names[0] = f"{catalog.display(column)} {names[0]}"
    yield _row([table.get("title", ""), *([""] if compared else []), *names])
    yield _row(["---"] * (1 + compared) + ["---:"] * len(columns))
    for row, (values, line) in enumerate(arms[1][1]):
        label = ", ".join(catalog.display(value) for value in values)
        if any(cell.paper is not None for cell in line):
            yield _row([label, "paper", *(_number(cell.paper) for cell in line)])
            label = ""
        for name, lines in arms:
            ours = lines[row][1]
            if name == "tsee" or any(cell.asked for cell in ours):
                yield _row([label, *([name] if compared else []), *map(shown, ours)])
                label = ""
    yield ""


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _provenance(catalog: Catalog, experiment: Experiment) -> Iterator[str]:
    if experiment.faithful:
        found = [result for run in experiment.faithful if (result := read_result(catalog, run)) is not None]
        spent = f", {_duration(found)} on {_machines(found)}" if found else ""
        done = f"{len(found)} of {len(experiment.faithful)} runs{spent}.{_cut_short(found)}"
        yield f"`python -m reproduction {experiment.name} --paper`: {done}"
        yield ""
        yield from _still_falling(catalog, experiment)
    results = [(run, read_result(catalog, run)) for run in experiment.runs]
    known = [result for _, result in results if result is not None]
    warned = [(run, text) for run, result in results if result for text in result.get("warnings", [])]
    if warned:
        yield "Warnings:"
        yield ""
        yield from (f"- {catalog.label(experiment, run)}: {text}" for run, text in warned)
        yield ""
    spent = f", {_duration(known)} on {_machines(known)}" if known else ""
    yield f"`python -m reproduction {experiment.name}`: {len(known)} of {len(results)} runs{spent}."
    yield ""


def _heading(experiment: Experiment) -> str:
    paper = experiment.config.get("paper")
    return experiment.config["title"] + (f" ({paper})" if paper else "")


def _anchor(heading: str) -> str:
    """The link target that Markdown makes of a heading."""
    kept = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in " -")
    return kept.replace(" ", "-")


def _row(entries: list[str]) -> str:
    return "| " + " | ".join(entry.replace("|", "\\|") for entry in entries) + " |"


def _duration(results: list[Table]) -> str:
    minutes = round(sum(map(_minutes, results)))
    if minutes < 1:
        return "less than a minute"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _minutes(result: Table) -> float:
    """How long a run took; one that was resumed says how long it trained in all."""
    return max(sum(result["seconds"].values()) / 60, result.get("training", {}).get("minutes", 0.0))


def _count(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def _machines(results: list[Table]) -> str:
    """The machines of the results, each named once."""
    seen: dict[str, None] = {}
    for machine in (result["machine"] for result in results):
        threads = f"{machine['threads']} thread" + ("" if machine["threads"] == 1 else "s")
        seen[f"{machine['processor']} ({machine['cores']} cores, {threads}, torch {machine['torch']})"] = None
    return " and ".join(sorted(seen))
