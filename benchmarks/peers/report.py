"""Write docs/benchmarks.md and its figures from the runs in benchmarks/results/peers.json."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, LogLocator, NullLocator

DOCS = Path(__file__).parents[2] / "docs"
NAMES = {
    "mnist": "MNIST",
    "fashion": "Fashion-MNIST",
    "words": "Word vectors",
    "sentences": "Sentence vectors",
    "mammoth": "A mammoth",
    "genomes": "1000 Genomes",
    "vocabulary": "A vocabulary of 336,479 word vectors",
}
# The held-out rows of each data set.
NEW_ROWS = {
    "mnist": 10_000,
    "fashion": 10_000,
    "words": 5000,
    "sentences": 5000,
    "mammoth": 1000,
    "genomes": 450,
    "vocabulary": 5000,
}
INK, OURS, THEIRS = "#333333", "#d1495b", "#5b7b9a"

INTRODUCTION = """# tsee and its peers

Each method ran with its defaults, and openTSNE with 50 principal components of more than 128 features, as its
documentation advises, on {cores} cores without a GPU, in its own process, one after the other. TorchDR trains a network
if it is given one ("encoder"); it got 256-256-256. `make bench` repeats the runs, which are kept in
[peers.json](../benchmarks/results/peers.json); `python benchmarks/peers/run.py report` only writes this page
and the README's table.

- An error is the error of k-NN on the map. A held-out row is compared with the training rows, a training row with the
  other training rows.
- The Quality Score is the share of a held-out row's 10 or 100 nearest training rows that are also among its nearest on
  the map.
{large_shape}- Memory is what a fit takes in addition to the data, the library and its imports.
- "Its network alone" is the network of the same default fit, used alone (`set_params(placement="forward")`). It learns
  less than the network of a fit with `placement="forward"`, of which [How good the maps are](results.md) has figures.
- A dash means that the method cannot do this, did not finish, or was not run.
- Every number is from one run on a shared machine. Times vary by a tenth, and sometimes by up to a half. Other
  processes ran at the lowest priority while PaCMAP and umap-learn fitted a million rows, and at normal priority for
  some minutes of ParamRepulsor on Fashion-MNIST.
"""

LARGE_SHAPE = """\
- The large shape of a map is measured on the training rows. The triplet accuracy is how often the map tells which of
  two rows is nearer to a third as the data do (0.5 by chance), and the same for the centroids of three classes. The
  correlations are of the distances between rows (Spearman), and of the logarithmic distance to a row's 15 nearest rows.
"""

Runs = dict[str, dict[str, Any]]


def write_report(kept: dict[str, Any]) -> None:
    runs: dict[str, Runs] = kept["runs"]
    (DOCS / "benchmarks").mkdir(exist_ok=True)
    growth = _growth_of(runs)
    for name in ("mnist", "fashion"):
        if name in runs:
            _error_against_time(runs[name], NAMES[name], DOCS / "benchmarks" / f"{name}.png")
    if growth:
        _growth_figure(growth, DOCS / "benchmarks" / "growth.png")
    (DOCS / "benchmarks.md").write_text(page(kept))


def _growth_of(runs: dict[str, Runs]) -> dict[int, Runs]:
    """The runs on synthetic cells, by the number of rows."""
    return {int(name.removeprefix("cells-")): found for name, found in runs.items() if name.startswith("cells-")}


def page(kept: dict[str, Any]) -> str:
    """The text of docs/benchmarks.md."""
    runs: dict[str, Runs] = kept["runs"]
    growth = _growth_of(runs)
    shown = any("triplet accuracy" in run for found in runs.values() for run in found.values())
    lines = [INTRODUCTION.format(cores=kept["machine"]["cores"], large_shape=LARGE_SHAPE if shown else "")]
    for name in NAMES:
        if name in runs:
            lines += [f"## {NAMES[name]}", "", *_table(runs[name], NEW_ROWS[name]), ""]
        if name in runs and name in ("mnist", "fashion"):
            lines += [f"![Error and time of a fit](benchmarks/{name}.png)", ""]
    if growth:
        lines += [
            "## More rows",
            "",
            "Synthetic single-cell-like data: 50 dimensions, 30 clusters of uneven size, each a short path of states.",
            "",
            *_growth(growth),
            "",
            "![Time and memory of a fit by the number of rows](benchmarks/growth.png)",
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def _table(runs: Runs, n_new: int) -> list[str]:
    columns: dict[str, Callable[[dict[str, Any]], str]] = {
        "fit": lambda run: _cell(run, "fit s", "{:.0f} s"),
        f"{n_new:,} new rows": lambda run: _cell(run, "transform s", "{:.2f} s"),
        "one new row": lambda run: _cell(run, "one row ms", "{:.1f} ms"),
        "memory": lambda run: _cell(run, "memory beyond the data MiB", "{:,.0f} MiB"),
        "1-NN / 5-NN error, held-out rows": lambda run: _pair(run, "1-NN error %", "5-NN error %"),
        "1-NN / 5-NN error, training rows": lambda run: _pair(run, "training 1-NN error %", "training 5-NN error %"),
        "Quality Score 10 / 100": lambda run: _pair(run, "Quality Score 10 %", "Quality Score 100 %"),
    }
    shape: dict[str, Callable[[dict[str, Any]], str]] = {
        "triplet accuracy, of rows / of centroids": lambda run: _two(run, "triplet accuracy", "centroid triplets"),
        "correlation of distances / of densities": lambda run: _two(run, "distance correlation", "density correlation"),
    }
    # Runs that were kept before these were measured do not have them.
    columns |= {name: of for name, of in shape.items() if any(of(run) != "-" for run in runs.values())}
    lines = ["| | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]
    for method, run in sorted(runs.items(), key=lambda item: not item[0].startswith("tsee")):  # ours first
        name = f"**{method}**" if method.startswith("tsee") else method
        if run.get("failed"):
            name += f" ({_shortened(run['failed'])})"
        lines.append(f"| {name} | " + " | ".join(of(run) for of in columns.values()) + " |")
        forward = {key.removeprefix("forward: "): value for key, value in run.items() if key.startswith("forward: ")}
        if forward:
            cells = (of(forward) for of in columns.values())
            lines.append("| &nbsp;&nbsp;its network alone | " + " | ".join(cells) + " |")
    return [*lines, "", *_transform_ratios(runs, n_new)]


def _transform_ratios(runs: Runs, n_new: int) -> list[str]:
    """The peers' time to place new rows, divided by the time of tsee."""
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
        f"Time to place {n_new:,} new rows, divided by the time of tsee's network alone (in parentheses: by the time",
        f"of tsee's default, which places a row among its nearest exemplars): {', '.join(ratios)}.",
    ]


def _shortened(text: str) -> str:
    return textwrap.shorten(text, 70, placeholder=" ...")


def _cell(run: dict[str, Any], key: str, form: str) -> str:
    return form.format(run[key]) if key in run else "-"


def _pair(run: dict[str, Any], first: str, second: str) -> str:
    return f"{run[first]:.1f} / {run[second]:.1f} %" if first in run else "-"


def _two(run: dict[str, Any], first: str, second: str) -> str:
    return " / ".join(f"{run[key]:.2f}" if key in run else "-" for key in (first, second)) if first in run else "-"


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
        "Each cell has the time of the fit, its memory, and the Quality Scores 10 and 100 of held-out rows.",
        f"The clusters are separate on every map: the largest error of 1-NN is {worst:.1f} %.",
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
    names = []
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
        name = "tsee" if method == "tsee" else method.removeprefix("tsee, ") if mine else method
        names.append((name, run["fit s"], error, color if mine else INK))
    ax.set_xscale("log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.margins(x=0.15, y=0.12)
    ax.set_ylim(0)
    ax.set_xlabel("seconds to fit (hollow: cannot place new rows; error of the training rows)", fontsize=9,
                  color=INK)  # fmt: skip
    ax.set_ylabel("error of 1-NN on the map, held-out rows, %", fontsize=9, color=INK)
    ax.set_title(f"{title}: lower is better, left is faster", fontsize=10, color=INK, loc="left")
    _name_points(ax, names)
    figure.savefig(path, dpi=160)


def _name_points(ax: Any, names: list[tuple[str, float, float, str]]) -> None:
    """Write a name below each point, or above it if another point or name is there."""
    ax.figure.draw_without_rendering()
    points = ax.transData.transform([(x, y) for _, x, y, _ in names])
    taken: list[Any] = []
    for (name, x, y, color), own in sorted(zip(names, points.tolist(), strict=True), key=lambda item: item[0][1]):
        for shift in (-15, 9, -27, 21):
            text = ax.annotate(name, (x, y), xytext=(0, shift), textcoords="offset points", ha="center", fontsize=8,
                               color=color)  # fmt: skip
            box = text.get_window_extent().padded(1)
            others = [point for point in points.tolist() if point != own]
            free = not any(box.overlaps(other) for other in taken) and not box.count_contains(others)
            if free or shift == 21:  # rather one name over another than none
                break
            text.remove()
        taken.append(box)


def _error(run: dict[str, Any]) -> float:
    """The error of held-out rows, or of training rows if the method cannot place held-out rows."""
    return float(run.get("1-NN error %", run["training 1-NN error %"]))


def _growth_figure(growth: dict[int, Runs], path: Path) -> None:
    figure, axes = _axes(9.0, 2)
    methods = list(dict.fromkeys(method for runs in growth.values() for method in runs))
    for ax, key, label in zip(
        axes, ("fit s", "memory beyond the data MiB"), ("Seconds to fit", "Memory of a fit, MiB"), strict=True
    ):
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
            axis.set_minor_locator(NullLocator())
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.xaxis.set_major_locator(FixedLocator(sorted(growth)))
        ax.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
        ax.set_xlabel("rows", fontsize=9, color=INK)
        ax.set_title(label, fontsize=10, color=INK, loc="left")
        ax.margins(x=0.25)
        _name_ends(ax, ends)
    figure.savefig(path, dpi=160)


def _name_ends(ax: Any, ends: dict[str, tuple[int, float]]) -> None:
    """Write a name at the end of each line; names at the same number of rows are at least a line of text apart."""
    low, high = (math.log(limit) for limit in ax.get_ylim())
    axes_height = 72 * 3.4  # in points, approximately
    last: dict[int, float] = {}
    for method, (n, value) in sorted(ends.items(), key=lambda item: item[1][1]):
        own = axes_height * (math.log(value) - low) / (high - low)
        last[n] = max(own, last.get(n, -math.inf) + 9)
        ax.annotate(method, (n, value), xytext=(6, last[n] - own), textcoords="offset points", fontsize=7.5,
                    va="center", color=OURS if method.startswith("tsee") else INK,
                    path_effects=[withStroke(linewidth=2.5, foreground="white")])  # fmt: skip
