"""The report: the paper's numbers beside ours, as a page of Markdown with pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tsee.reproduction.claims import MISSING, cells, judge, records
from tsee.reproduction.experiments import Book, Experiment, Table
from tsee.reproduction.figures import draw
from tsee.reproduction.runner import read_result

__all__ = ["write_report"]

PAGE = "reproduction.md"
PICTURES = "reproduction"


def write_report(book: Book, docs: Path) -> Path:
    """Write ``reproduction.md`` and its pictures from the results there are: the same page for the same results.

    Parameters
    ----------
    book : Book
        The experiments; runs without a result show as a dash.
    docs : Path
        The folder to write to.

    Returns
    -------
    Path
        The page.
    """
    docs.mkdir(parents=True, exist_ok=True)
    found = {name: records(book, experiment) for name, experiment in book.experiments.items()}
    lines = [*_head(book), *_summary(book, found)]
    for name, experiment in book.experiments.items():
        lines += _section(book, experiment, found[name], docs)
    page = docs / PAGE
    page.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")
    return page


def _head(book: Book) -> Iterator[str]:
    runs = {run.digest: run for experiment in book.experiments.values() for run in experiment.runs}
    results = [result for run in runs.values() if (result := read_result(book, run)) is not None]
    yield "# The paper, reproduced"
    yield ""
    yield "Every table and figure of [*Parametric t-Distributed Stochastic Exemplar-centered"
    yield "Embedding*](https://arxiv.org/abs/1710.05128), run with tsee. Errors are those of k-NN on the map: a"
    yield "held-out row takes the class of its nearest training rows in the plane. Errors and scores are in per cent."
    yield ""
    yield f"**{len(results)} of {len(runs)} runs are done**" + (
        f", in {_duration(results)}, on {_machines(results)}." if results else "."
    )
    if len(results) < len(runs):
        yield f"What is missing shows as {MISSING}."
    yield ""
    yield "This page is written by `tsee reproduce report` from the files in `reproduction/results/`, and the paper's"
    yield "numbers and claims stand in `reproduction/experiments/`."
    yield ""


def _summary(book: Book, found: dict[str, list[Table]]) -> Iterator[str]:
    tolerance = book.common.get("report", {}).get("tolerance")
    yield "## Where we agree with the paper, where we do better, where we do not"
    yield ""
    yield "| the paper says | in | paper | tsee | verdict |"
    yield "| --- | --- | --- | --- | --- |"
    for name, experiment in book.experiments.items():
        for claim in experiment.config.get("claim", []):
            verdict = judge(book, experiment, found[name], claim)
            place = f"[{experiment.config.get('paper', name)}](#{_anchor(_heading(experiment))})"
            yield f"| {claim['text']} | {place} | {verdict.paper} | {verdict.ours} | **{verdict.word}** |"
    yield ""
    if tolerance is not None:
        yield f"A number is *better* or *worse* if it is so by more than {tolerance:g} points. Below, ours are in bold"
        yield "where they are better than the paper's."
        yield ""
    differences = book.common.get("report", {}).get("differences", [])
    if differences:
        yield "## What is not as in the paper"
        yield ""
        yield from (f"- {difference}" for difference in differences)
        yield ""


def _section(book: Book, experiment: Experiment, found: list[Table], docs: Path) -> Iterator[str]:
    config = experiment.config
    yield f"## {_heading(experiment)}"
    yield ""
    if "about" in config:
        yield config["about"]
        yield ""
    for table in config.get("table", []):
        yield from _table(book, found, table)
    for figure in config.get("figure", []):
        caption = figure.get("title", config["title"])
        if draw(book, experiment, found, figure, docs / PICTURES):
            yield f"![{caption}]({PICTURES}/{figure['file']})"
            if "title" in figure:
                yield ""
                yield f"*{caption}*"
        else:
            yield f"{caption}: {MISSING}"
        yield ""
    for difference in config.get("differences", []):
        yield f"Not as in the paper: {difference[0].lower()}{difference[1:]}"
        yield ""
    yield from _made_by(book, experiment)


def _table(book: Book, found: list[Table], table: Table) -> Iterator[str]:
    """A row of ours below each of the paper's, in bold where it is better; ours alone where the paper has none."""
    ((column, columns),) = table["columns"].items()
    compared = bool(table.get("paper"))
    sign = -1 if table.get("higher_is_better") else 1
    tolerance = book.common.get("report", {}).get("tolerance", 0)
    names = [book.display(value) for value in columns]
    if not isinstance(columns[0], str):
        names[0] = f"{book.display(column)} {names[0]}"
    yield _row([table.get("title", ""), *([""] if compared else []), *names])
    yield _row(["---"] * (1 + compared) + ["---:"] * len(columns))
    for values, line in cells(found, table):
        label = ", ".join(book.display(value) for value in values)
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


def _made_by(book: Book, experiment: Experiment) -> Iterator[str]:
    results = [(run, read_result(book, run)) for run in experiment.runs]
    done = [result for _, result in results if result is not None]
    warned = [(run, text) for run, result in results if result for text in result.get("warnings", [])]
    if warned:
        yield "Warnings:"
        yield ""
        yield from (f"- {book.label(experiment, run)}: {text}" for run, text in warned)
        yield ""
    spent = f", {_duration(done)} on {_machines(done)}" if done else ""
    yield f"`tsee reproduce {experiment.name}`: {len(done)} of {len(results)} runs{spent}."
    yield ""


def _heading(experiment: Experiment) -> str:
    paper = experiment.config.get("paper")
    return experiment.config["title"] + (f" ({paper})" if paper else "")


def _anchor(heading: str) -> str:
    """As Markdown readers make one of a heading."""
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
    """The machines that the results name, each once."""
    seen: dict[str, None] = {}
    for machine in (result["machine"] for result in results):
        threads = f"{machine['threads']} thread" + ("" if machine["threads"] == 1 else "s")
        seen[f"{machine['processor']} ({machine['cores']} cores, {threads}, torch {machine['torch']})"] = None
    return " and ".join(sorted(seen))
