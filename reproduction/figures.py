"""The report's figures, in the colors of `tsee.plots`."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from reproduction.claims import value_at
from reproduction.experiments import Catalog, Experiment, Run, Table, matches
from reproduction.runner import read_result
from tsee.plots import COLORS, scatter
from tsee.plots.canvas import GRAY, INK
from tsee.plots.lines import Line, draw_lines, name_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw"]

# Warm colors for the pairwise methods, cool ones for the exemplar methods; circles for deep networks, squares for
# high-order ones.
STYLES = {
    "pt-sne": (COLORS[1], "o"),
    "hot-sne": (COLORS[3], "s"),
    "dt-see": (COLORS[0], "o"),
    "hot-see": (COLORS[8], "s"),
}
DPI = 150


def draw(catalog: Catalog, experiment: Experiment, records: list[Table], figure: Table, folder: Path) -> bool:
    """Write a figure of the config to its file. Return False, and write nothing, if no run of it is done."""
    kinds = {"lines": _lines, "maps": _maps}
    if figure["kind"] not in kinds:
        raise ValueError(f"A figure of {experiment.name} has the kind {figure['kind']!r}; it must be lines or maps.")
    try:
        import matplotlib.figure
    except ImportError as error:
        raise ImportError('The report needs matplotlib: pip install "tsee[plot]"') from error
    picture = kinds[figure["kind"]](catalog, experiment, records, figure, matplotlib.figure.Figure)
    if picture is None:
        return False
    _save(picture, folder / figure["file"])
    return True


def _lines(catalog: Catalog, experiment: Experiment, records: list[Table], figure: Table, make: Any) -> Figure | None:
    """A panel for each data set, with a line for each method, named at its end."""
    where = {"measure": figure["measure"], **figure.get("where", {})}
    if not any(record["value"] is not None and matches(where, record) for record in records):
        return None
    panels = figure["panels"]
    picture: Figure = make(figsize=(4.9 * len(panels) + (0.9 if len(panels) == 1 else 0.2), 3.5))
    picture.set_layout_engine("constrained", wspace=0.07, w_pad=0.06, h_pad=0.06)
    axes = picture.subplots(1, len(panels), squeeze=False)[0]
    for ax, panel in zip(axes, panels, strict=True):
        here = [record for record in records if matches({**where, **panel}, record)]
        names = list(dict.fromkeys(record[figure["lines"]] for record in here))
        lines = []
        for name in names:
            x = sorted({record[figure["x"]] for record in here if record[figure["lines"]] == name})
            y = [value_at(here, {figure["lines"]: name, figure["x"]: value}) for value in x]
            points = [(a, b) for a, b in zip(x, y, strict=True) if b is not None]
            if points:
                color, marker = STYLES.get(name, (INK, "o"))
                lines.append(Line(points, catalog.display(name), color, marker))
        for name, points in figure.get("paper", {}).items():
            lines.append(Line(points, f"{catalog.display(name)}, paper", GRAY, dashed=True))
        draw_lines(ax, lines)
        _dress(ax, catalog, figure, panel, sorted({record[figure["x"]] for record in here}))
        name_ends(ax, lines)
    axes[0].set_ylabel("error of 1-NN on the map, %", color=INK)
    return picture


def _dress(ax: Axes, catalog: Catalog, figure: Table, panel: Table, ticks: list[float]) -> None:
    ax.set_title(", ".join(catalog.display(value) for value in panel.values()), loc="left", fontsize=12, color=INK)
    ax.set_xlabel(str(figure["x"]).replace("_", " "), color=INK)
    ax.set_xscale("log")
    ax.minorticks_off()
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_ylim(0, max(1.0, ax.get_ylim()[1]))
    ax.tick_params(axis="x", labelsize=8)


def _maps(catalog: Catalog, experiment: Experiment, records: list[Table], figure: Table, make: Any) -> Figure | None:
    """A panel for each map, with its settings and its error in the title."""
    panels = [(panel, _only_run(experiment, panel)) for panel in figure["panels"]]
    results = [read_result(catalog, run) for _, run in panels]
    if not any(results):
        return None
    columns = figure.get("columns", 2)
    rows = -(-len(panels) // columns)
    picture: Figure = make(figsize=(4.5 * columns, 4.75 * rows))
    picture.subplots_adjust(0.01, 0.01, 0.99, 1 - 0.4 / (4.75 * rows), 0.04, 0.1)
    axes = picture.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    for ax, (panel, run), result in zip(axes, panels, results, strict=False):
        ax.set_axis_off()
        title = f"{catalog.display(run.settings['method'])}, " + ", ".join(
            f"{catalog.display(key)} {catalog.display(run.settings[key])}" for key in ("batch_size", "perplexity")
        )
        if result is None:
            ax.text(0.5, 0.5, "not run yet", transform=ax.transAxes, ha="center", color=GRAY)
        else:
            with np.load(catalog.results / result["metrics"]["map"]["file"], allow_pickle=False) as arrays:
                positions, labels = arrays["Y"], arrays["labels"]
            classes = figure.get("classes")
            names = labels if classes is None else np.array([classes[str(label)] for label in labels.tolist()])
            scatter(positions, names, ax=ax, point_size=1.6)
            error = value_at(records, {"measure": "knn", "part": "test", "k": 1, **panel})
            title += "" if error is None else f"\n1-NN error {error:.1f} %"
        name, _, rest = title.partition("\n")
        ax.set_title(name, fontsize=11.5, color=INK, loc="left", pad=6, x=0.02)
        ax.set_title(rest, fontsize=10, color=GRAY, loc="right", pad=6, x=0.98)
    return picture


def _only_run(experiment: Experiment, panel: Table) -> Run:
    runs = [run for run in experiment.runs if matches(panel, run.settings)]
    if len(runs) != 1:
        raise ValueError(f"The panel {panel} of {experiment.name} must match one run, but it matches {len(runs)}.")
    return runs[0]


def _save(picture: Figure, path: Path) -> None:
    """Write a PNG of 256 colors: a third of the size, no visible loss, and the same bytes each time."""
    from PIL import Image

    content = io.BytesIO()
    picture.savefig(content, format="png", dpi=DPI, facecolor="white")
    with Image.open(content) as image:
        small = image.convert("RGB").quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
        path.parent.mkdir(parents=True, exist_ok=True)
        small.save(path, optimize=True)
