"""docs/benchmarks.md and its figures, from the runs in benchmarks/results/peers.json."""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter

DOCS = Path(__file__).parents[2] / "docs"
PARTS = Path(__file__).parents[1] / "results" / "growth.json"
NAMES = {"mnist": "MNIST", "fashion": "Fashion-MNIST"}
INK, OURS, THEIRS = "#333333", "#d1495b", "#5b7b9a"

INTRODUCTION = """# tsee and its peers

Each method with its defaults on {cores} cores without a GPU, in a process of its own, one after the other
(`make bench`; the runs are in [peers.json](../benchmarks/results/peers.json), of which `python
benchmarks/peers/run.py report` makes this page). Errors are those of k-NN on the map: of held-out rows by the
training rows, and of training rows, each left out. The Quality Score is the share of a held-out row's 10 or 100
nearest neighbors that are its nearest on the map too. Memory is what a fit takes beyond the data, the library
and its imports. A dash: the method has no such thing, did not come so far, or was not run. One run each, over three
days: times vary by a tenth, and with the hour by up to a half. While PaCMAP and umap-learn fitted a million rows, other
work of the lowest priority ran on what they left idle; beside ParamPaCMAP on Fashion-MNIST ran tests for some minutes.
"""

Runs = dict[str, dict[str, Any]]


def write_report(kept: dict[str, Any]) -> None:
    runs: dict[str, Runs] = kept["runs"]
    (DOCS / "benchmarks").mkdir(exist_ok=True)
    lines = [INTRODUCTION.format(cores=kept["machine"]["cores"])]
    for name in ("mnist", "fashion"):
        if name in runs:
            lines += [f"## {NAMES[name]}", "", *_table(runs[name]), ""]
            _error_against_time(runs[name], NAMES[name], DOCS / "benchmarks" / f"{name}.png")
            lines += [f"![Error against the time of a fit](benchmarks/{name}.png)", ""]
    growth = {int(name.removeprefix("cells-")): found for name, found in runs.items() if name.startswith("cells-")}
    if growth:
        lines += [
            "## How they grow",
            "",
            "Synthetic single-cell-like data: 50 dimensions, 30 clusters of uneven size, each a short path of states.",
            "",
            *_growth(growth),
            "",
            "![Time and memory of a fit against the number of rows](benchmarks/growth.png)",
            "",
        ]
        _growth_figure(growth, DOCS / "benchmarks" / "growth.png")
    if PARTS.exists():
        lines += _parts(json.loads(PARTS.read_text()))
    (DOCS / "benchmarks.md").write_text("\n".join(lines).rstrip() + "\n")


def _table(runs: Runs) -> list[str]:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "fit": lambda run: _cell(run, "fit s", "{:.0f} s"),
        "10,000 new rows": lambda run: _cell(run, "transform s", "{:.2f} s"),
        "one new row": lambda run: _cell(run, "one row ms", "{:.1f} ms"),
        "memory": lambda run: _cell(run, "memory beyond the data MiB", "{:,.0f} MiB"),
        "1-NN / 5-NN error, held out": lambda run: _pair(run, "1-NN error %", "5-NN error %"),
        "training rows, left out": lambda run: _pair(run, "training 1-NN error %", "training 5-NN error %"),
        "Quality Score 10 / 100": lambda run: _pair(run, "Quality Score 10 %", "Quality Score 100 %"),
    }
    lines = ["| | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]
    for method, run in sorted(runs.items(), key=lambda item: not item[0].startswith("tsee")):  # ours first
        name = f"**{method}**" if method.startswith("tsee") else method
        if run.get("failed"):
            name += f" ({_shortened(run['failed'])})"
        lines.append(f"| {name} | " + " | ".join(of(run) for of in columns.values()) + " |")
        forward = {key.removeprefix("forward: "): value for key, value in run.items() if key.startswith("forward: ")}
        if forward:
            cells = (of(forward) for of in columns.values())
            lines.append('| &nbsp;&nbsp;the same, `placement="forward"` | ' + " | ".join(cells) + " |")
    return [*lines, "", *_times_faster(runs), ""]


def _times_faster(runs: Runs) -> list[str]:
    """How many times as long the peers take to place new rows."""
    ours = runs.get("tsee", {})
    peers = {method: run["transform s"] for method, run in runs.items()
             if "transform s" in run and not method.startswith("tsee")}  # fmt: skip
    if "forward: transform s" not in ours or not peers:
        return []
    ratios = [
        f"{method} {seconds / ours['forward: transform s']:,.0f} ({seconds / ours['transform s']:.1f})"
        for method, seconds in peers.items()
    ]
    return [
        "The time of 10,000 new rows over that of tsee's network alone (in brackets: over that of tsee's default,",
        f"which places a row among its nearest): {', '.join(ratios)}.",
    ]


def _shortened(text: str) -> str:
    return textwrap.shorten(text, 70, placeholder=" ...")


def _cell(run: dict[str, Any], key: str, form: str) -> str:
    return form.format(run[key]) if key in run else "-"


def _pair(run: dict[str, Any], first: str, second: str) -> str:
    return f"{run[first]:.1f} / {run[second]:.1f} %" if first in run else "-"


def _growth(growth: dict[int, Runs]) -> list[str]:
    methods = list(dict.fromkeys(method for runs in growth.values() for method in runs))
    lines = ["| | " + " | ".join(f"{n:,} rows" for n in growth) + " |", "| --- " * (len(growth) + 1) + "|"]
    for method in methods:
        cells = []
        for runs in growth.values():
            run = runs.get(method, {})
            if "fit s" not in run:
                cells.append(_shortened(run.get("failed", "-")))
                continue
            scores = _pair(run, "Quality Score 10 %", "Quality Score 100 %")
            cells.append(f"{run['fit s']:.0f} s, {run['memory beyond the data MiB']:,.0f} MiB, {scores}")
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    worst = max(run.get("1-NN error %", 0.0) for runs in growth.values() for run in runs.values())
    return [
        *lines,
        "",
        "Time of the fit, its memory beyond the data, and the Quality Scores at 10 and 100 of held-out rows. The",
        f"clusters lie apart on every map: the error of 1-NN is {worst:.1f} % at the most.",
    ]


def _parts(found: dict[str, Any]) -> list[str]:
    """Where the time of tsee's own fits goes."""
    sizes = found["sizes"]
    rows = {
        "the whole fit": lambda run: f"{run['seconds']:.0f} s",
        "exemplars and affinities": lambda run: (
            f"{run['exemplars and affinities, s']:.1f} s, {100 * run['share of exemplars and affinities']:.0f} %"
        ),
        "training": lambda run: (
            f"{run['training, s']:.0f} s, {run['training, us a row and epoch']:.1f} us a row and epoch"
        ),
        "refinement of the exemplars": lambda run: f"{run['refinement of the exemplars, s']:.1f} s",
        "the whole fit, a row and epoch": lambda run: f"{run['the whole fit, us a row and epoch']:.0f} us",
        "memory beyond the data": lambda run: f"{run['memory beyond the data, MiB']:,.0f} MiB",
    }
    lines = ["| | " + " | ".join(f"{int(n):,} rows" for n in sizes) + " |", "| --- " * (len(sizes) + 1) + "|"]
    lines += [f"| {name} | " + " | ".join(cell(run) for run in sizes.values()) + " |" for name, cell in rows.items()]
    return [
        "## Where the time of a fit goes",
        "",
        f"The same data, `DtSEE` with {found['epochs']} epochs and batches of {found['batch']:,} at every size",
        "(`python benchmarks/growth.py`,",
        "[results](../benchmarks/results/growth.json)), the smaller sizes before and after the largest, their means.",
        "",
        *lines,
        "",
        f"From the second size to the third each row adds {found['memory, bytes a row more']} bytes to the memory;",
        "the rest hangs on the exemplars, at most 65,536: their neighbors, the search among them, the refinement.",
    ]


def _axes(width: float = 6.4, columns: int = 1) -> tuple[Figure, list[Any]]:
    figure = Figure(figsize=(width, 4.2), layout="constrained")
    axes = [figure.add_subplot(1, columns, i + 1) for i in range(columns)]
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.tick_params(colors=INK, labelsize=8)
        ax.grid(color="#e6e6e6", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes


def _error_against_time(runs: Runs, title: str, path: Path) -> None:
    figure, (ax,) = _axes(7.2)
    found = {method: run for method, run in runs.items() if "fit s" in run}
    ours = sorted((run["fit s"], run["1-NN error %"]) for method, run in found.items() if method.startswith("tsee"))
    ax.plot(*zip(*ours, strict=True), color=OURS, linewidth=1.2, alpha=0.6, zorder=2)
    for method, run in found.items():
        held_out = "1-NN error %" in run
        error = _error(run)
        mine = method.startswith("tsee")
        color = OURS if mine else THEIRS
        ax.scatter(
            run["fit s"],
            error,
            s=46 if mine else 32,
            facecolor=color if held_out else "white",
            edgecolor=color,
            zorder=3,
        )
        # Ours lie on a line near the bottom: their names go below it, each on a line of its own. Those of others go to
        # the right, or below where they would run into another.
        name = "tsee (default)" if method == "tsee" else method.removeprefix("tsee, ")
        crowded = any(
            1 < other["fit s"] / run["fit s"] < 3 and abs(_error(other) - error) < 1 for other in found.values()
        )
        ax.annotate(
            name,
            (run["fit s"], error),
            xytext=(0, -16 - 12 * ours.index((run["fit s"], error))) if mine else (0, -14) if crowded else (6, 4),
            textcoords="offset points",
            ha="center" if mine or crowded else "left",
            fontsize=7.5 if mine else 8,
            color=OURS if mine else INK,
        )
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.margins(x=0.15, y=0.12)
    ax.set_ylim(0)
    ax.set_xlabel("seconds to fit (hollow: no place for new rows; error of the training rows, left out)", fontsize=9,
                  color=INK)  # fmt: skip
    ax.set_ylabel("error of 1-NN on the map, held-out rows, %", fontsize=9, color=INK)
    ax.set_title(f"{title}: better is lower, faster is left", fontsize=10, color=INK, loc="left")
    figure.savefig(path, dpi=160)


def _error(run: dict[str, Any]) -> float:
    """Of held-out rows, or where there are no places for them, of training rows, left out."""
    return float(run.get("1-NN error %", run["training 1-NN error %"]))


def _growth_figure(growth: dict[int, Runs], path: Path) -> None:
    figure, axes = _axes(9.0, 2)
    methods = list(dict.fromkeys(method for runs in growth.values() for method in runs))
    for ax, key, label in zip(axes, ("fit s", "memory beyond the data MiB"), ("Seconds", "MiB"), strict=True):
        ends = {}
        for method in methods:
            points = [(n, runs[method][key]) for n, runs in sorted(growth.items()) if key in runs.get(method, {})]
            if not points:
                continue
            ours = method.startswith("tsee")
            ax.plot(*zip(*points, strict=True), marker="o", markersize=4, linewidth=1.8 if ours else 1.1,
                    color=OURS if ours else THEIRS, alpha=1.0 if ours else 0.8)  # fmt: skip
            ends[method] = points[-1]
        ax.set_xscale("log")
        ax.set_yscale("log")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:,g}")
            axis.set_minor_formatter(NullFormatter())
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_locator(FixedLocator(sorted(growth)))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        ax.set_xlabel("rows", fontsize=9, color=INK)
        ax.set_title(f"{label} of a fit", fontsize=10, color=INK, loc="left")
        ax.margins(x=0.25)
        _name_ends(ax, ends)
    figure.savefig(path, dpi=160)


def _name_ends(ax: Any, ends: dict[str, tuple[int, float]]) -> None:
    """A name at the end of each line, those at the same number of rows at least a line of text apart."""
    low, high = (math.log(limit) for limit in ax.get_ylim())
    points_high = 72 * 3.4  # of the axes, nearly
    last: dict[int, float] = {}
    for method, (n, value) in sorted(ends.items(), key=lambda item: item[1][1]):
        own = points_high * (math.log(value) - low) / (high - low)
        last[n] = max(own, last.get(n, -math.inf) + 9)
        ax.annotate(method, (n, value), xytext=(6, last[n] - own), textcoords="offset points", fontsize=7.5,
                    va="center", color=OURS if method.startswith("tsee") else INK,
                    path_effects=[withStroke(linewidth=2.5, foreground="white")])  # fmt: skip
