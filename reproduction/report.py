"""The report: a Markdown page with figures that compares the paper's numbers with ours."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reproduction.claims import MISSING, cells, collect_records, judge
from reproduction.experiments import Catalog, Experiment, Table
from reproduction.figures import draw
from reproduction.runner import read_result

__all__ = ["write_report"]

PAGE = "reproduction.md"
PICTURES = "reproduction"


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
    records = {name: collect_records(catalog, experiment) for name, experiment in catalog.experiments.items()}
    lines = [*_head(catalog), *_summary(catalog, records)]
    for name, experiment in catalog.experiments.items():
        lines += _section(catalog, experiment, records[name], docs)
    page = docs / PAGE
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return page


def _head(catalog: Catalog) -> Iterator[str]:
    runs = {run.digest: run for experiment in catalog.experiments.values() for run in experiment.runs}
    results = [result for run in runs.values() if (result := read_result(catalog, run)) is not None]
    yield "# The paper, reproduced"
    yield ""
    yield "Every table and figure of [*Parametric t-Distributed Stochastic Exemplar-centered"
    yield "Embedding*](https://arxiv.org/abs/1710.05128), run with tsee. An error is the error of k-NN on the map: a"
    yield "held-out row takes the class of its nearest training rows on the map. Errors and scores are percentages."
    yield ""
    yield f"**{len(results)} of {len(runs)} runs are done**" + (
        f", in {_duration(results)}, on {_machines(results)}." if results else "."
    )
    if len(results) < len(runs):
        yield f"A missing number is shown as {MISSING}."
    yield ""
    yield "`make reproduce` runs the experiments that have no result yet and writes this page. `python -m"
    yield "reproduction report` only writes the page, from the files in `reproduction/results/`. The paper's numbers"
    yield "and claims are in `reproduction/experiments/`."
    yield ""


def _summary(catalog: Catalog, records: dict[str, list[Table]]) -> Iterator[str]:
    tolerance = catalog.common.get("report", {}).get("tolerance")
    yield "## Where tsee agrees with the paper, and where it does not"
    yield ""
    yield "| claim | where | paper | tsee | verdict |"
    yield "| --- | --- | --- | --- | --- |"
    for name, experiment in catalog.experiments.items():
        for claim in experiment.config.get("claim", []):
            verdict = judge(catalog, experiment, records[name], claim)
            link = f"[{experiment.config.get('paper', name)}](#{_anchor(_heading(experiment))})"
            yield f"| {claim['text']} | {link} | {verdict.paper} | {verdict.ours} | **{verdict.word}** |"
    yield ""
    if tolerance is not None:
        yield f"A number is *better* or *worse* if it differs by more than {tolerance:g} points. In the tables below,"
        yield "numbers of tsee that are better than the paper's are in bold."
        yield ""
    differences = catalog.common.get("report", {}).get("differences", [])
    if differences:
        yield "## Differences from the paper"
        yield ""
        yield from (f"- {difference}" for difference in differences)
        yield ""


def _section(catalog: Catalog, experiment: Experiment, records: list[Table], docs: Path) -> Iterator[str]:
    config = experiment.config
    yield f"## {_heading(experiment)}"
    yield ""
    if "about" in config:
        yield config["about"]
        yield ""
    for table in config.get("table", []):
        yield from _table(catalog, records, table)
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


def _table(catalog: Catalog, records: list[Table], table: Table) -> Iterator[str]:
    """The paper's row, if it has one, above ours; our numbers are in bold if they are better."""
    ((column, columns),) = table["columns"].items()
    compared = bool(table.get("paper"))
    sign = -1 if table.get("higher_is_better") else 1
    tolerance = catalog.common.get("report", {}).get("tolerance", 0)
    names = [catalog.display(value) for value in columns]
    if not isinstance(columns[0], str):
        names[0] = f"{catalog.display(column)} {names[0]}"
    yield _row([table.get("title", ""), *([""] if compared else []), *names])
    yield _row(["---"] * (1 + compared) + ["---:"] * len(columns))
    for values, line in cells(records, table):
        label = ", ".join(catalog.display(value) for value in values)
        if any(cell.paper is not None for cell in line):
            yield _row([label, "paper", *(_number(cell.paper) for cell in line)])
            label = ""
        ours = []
        for cell in line:
            known = cell.paper is not None and cell.ours is not None
            better = known and sign * (cell.ours - cell.paper) < -tolerance  # type: ignore[operator]
            ours.append(f"**{_number(cell.ours)}**" if better else _number(cell.ours))
        yield _row([label, *(["tsee"] if compared else []), *ours])
    yield ""


def _number(value: float | None) -> str:
    return MISSING if value is None else f"{value:.2f}"


def _provenance(catalog: Catalog, experiment: Experiment) -> Iterator[str]:
    results = [(run, read_result(catalog, run)) for run in experiment.runs]
    done = [result for _, result in results if result is not None]
    warned = [(run, text) for run, result in results if result for text in result.get("warnings", [])]
    if warned:
        yield "Warnings:"
        yield ""
        yield from (f"- {catalog.label(experiment, run)}: {text}" for run, text in warned)
        yield ""
    spent = f", {_duration(done)} on {_machines(done)}" if done else ""
    yield f"`python -m reproduction {experiment.name}`: {len(done)} of {len(results)} runs{spent}."
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
    minutes = round(sum(sum(result["seconds"].values()) for result in results) / 60)
    if minutes < 1:
        return "less than a minute"
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{minutes} min"


def _machines(results: list[Table]) -> str:
    """The machines of the results, each named once."""
    seen: dict[str, None] = {}
    for machine in (result["machine"] for result in results):
        threads = f"{machine['threads']} thread" + ("" if machine["threads"] == 1 else "s")
        seen[f"{machine['processor']} ({machine['cores']} cores, {threads}, torch {machine['torch']})"] = None
    return " and ".join(sorted(seen))
