"""Write the README's table of peers from the runs in benchmarks/results/peers.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

README = Path(__file__).parents[2] / "README.md"
BEGIN, END = "<!-- peers -->\n", "<!-- /peers -->"
SHOWN = ("tsee", "openTSNE", "PaCMAP", "umap-learn", "ParametricUMAP", "ParamRepulsor")
HEADING = """\
| | fit | 10,000 new rows | 1-NN / 5-NN error | neighbors kept | distances |
| --- | --- | --- | --- | --- | --- |
"""


def write_readme(kept: dict[str, Any]) -> None:
    """Put the table between the two comments of the README."""
    before, rest = README.read_text().split(BEGIN)
    README.write_text(before + BEGIN + readme_table(kept["runs"]["mnist"]) + END + rest.split(END)[1])


def readme_table(runs: dict[str, dict[str, Any]]) -> str:
    """The runs on MNIST of tsee and of the methods that are known best or also learn a network."""
    lines = []
    for method in SHOWN:
        run = runs.get(method)
        if run is None:
            continue
        lines.append(_line(f"**{method}**" if method == "tsee" else method, run))
        forward = {key.removeprefix("forward: "): value for key, value in run.items() if key.startswith("forward: ")}
        if forward:
            lines.append(_line("its network alone", forward))
    return HEADING + "".join(lines)


def _line(name: str, run: dict[str, Any]) -> str:
    cells = [
        _cell(run, "{:,.0f} s", "fit s"),
        _cell(run, "{:.2f} s", "transform s"),
        _cell(run, "{:.1f} / {:.1f} %", "1-NN error %", "5-NN error %"),
        _cell(run, "{:.1f} %", "Quality Score 10 %"),
        _cell(run, "{:.2f}", "distance correlation"),
    ]
    return f"| {name} | {' | '.join(cells)} |\n"


def _cell(run: dict[str, Any], form: str, *keys: str) -> str:
    return form.format(*(run[key] for key in keys)) if all(key in run for key in keys) else "-"
