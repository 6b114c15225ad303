"""Neighbors kept and distances kept, against `global_weight`.

    TSEE_DATA=folder python benchmarks/dial.py

1000 Genomes and all 70,000 rows of MNIST, the latter as 50 principal components, as the paper "DREAMS" measures them:
recall of 10 neighbors, and Spearman's correlation of distances, of the rows of the map; and the same for held-out rows
of a fit without them. The network is trained for one epoch only: rows are placed among the exemplars. Results go to
benchmarks/results/dial.json, the curve to docs/benchmarks/dial.png.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from sets import load
from sklearn.decomposition import PCA

import tsee

ROOT = Path(__file__).parents[1]
WEIGHTS = {"genomes": (0.0, 0.1, 0.25, 0.4, 0.45, 0.5, 0.6, 0.75, 0.9), "mnist": (0.0, 0.25, 0.4, 0.45, 0.5, 0.75)}
PUBLISHED = {
    "genomes": {"DREAMS": (0.359, 0.773), "DREAMS-MDS": (0.353, 0.812), "openTSNE": (0.361, 0.577)},
    "mnist": {"DREAMS": (0.341, 0.420), "DREAMS-MDS": (0.340, 0.458), "openTSNE": (0.392, 0.357)},
}
# Where their names stand, in points from theirs, and how they are aligned.
LABELS = {"DREAMS": ((-6, -3), "right"), "DREAMS-MDS": ((0, -13), "center"), "openTSNE": ((7, 1), "left")}
TITLES = {"genomes": "1000 Genomes", "mnist": "MNIST"}
SAMPLE = 10_000


def judge(*rows: np.ndarray) -> dict[str, float]:
    """Of the rows of a map (X, Y), or of held-out rows placed on it (X, Y, X_test, Y_test)."""
    return {
        "recall of 10": round(tsee.metrics.quality_score(*rows, k=(10,))[10], 4),
        "distance correlation": round(tsee.metrics.distance_correlation(*rows), 4),
    }


def measure(name: str, weight: float) -> dict[str, Any]:
    data = load(name)
    X = np.concatenate([data.x_train, data.x_test])
    if name == "mnist":
        X = PCA(50, random_state=0).fit_transform(X).astype(np.float32)
    see = tsee.DtSEE(random_state=0, global_weight=weight, max_epochs=1, verbose=True)
    result = {"rows of the map": judge(X, see.fit_transform(X))}
    X, X_test = X[: len(data.x_train)], X[len(data.x_train) :]
    Y = see.fit_transform(X)
    return result | {"held-out rows": judge(X, Y, X_test, see.transform(X_test))}


def draw(results: dict[str, Any], path: Path) -> None:
    figure = Figure(figsize=(4.5 * len(results), 4), layout="constrained")
    for i, (name, curve) in enumerate(results.items()):
        ax = figure.add_subplot(1, len(results), i + 1)
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(color="#e6e6e6", linewidth=0.6)
        ax.set_axisbelow(True)
        for part, style in (("rows of the map", "-"), ("held-out rows", "--")):
            points = [(run[part]["distance correlation"], run[part]["recall of 10"]) for run in curve.values()]
            ax.plot(*zip(*points, strict=True), style, marker="o", markersize=4, color="#d1495b", label=f"tsee, {part}")
        for weight, run in curve.items():
            if weight == "0.4":  # next to 0.45
                continue
            ax.annotate(
                weight,
                (run["rows of the map"]["distance correlation"], run["rows of the map"]["recall of 10"]),
                xytext=(4, 5),
                textcoords="offset points",
                fontsize=7.5,
                color="#333333",
            )
        for method, (recall, correlation) in PUBLISHED[name].items():
            ax.scatter(correlation, recall, s=26, color="#5b7b9a", zorder=3)
            ax.annotate(
                method,
                (correlation, recall),
                xytext=LABELS[method][0],
                textcoords="offset points",
                ha=LABELS[method][1],
                fontsize=7.5,
                color="#5b7b9a",
            )
        ax.set_title(TITLES[name], fontsize=10, loc="left")
        ax.set_xlabel("correlation of distances", fontsize=9)
        ax.set_ylabel("share of the 10 nearest neighbors kept", fontsize=9)
        ax.margins(0.12)
        ax.legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", metavar="{genomes,mnist}", help="data sets; by default both")
    path = ROOT / "benchmarks" / "results" / "dial.json"
    results: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for name in parser.parse_args().data or list(PUBLISHED):
        results[name] = {}
        for weight in WEIGHTS[name]:
            results[name][f"{weight:g}"] = measure(name, weight)
            print(name, weight, results[name][f"{weight:g}"], flush=True)
            path.write_text(json.dumps(results, indent=2) + "\n")
    draw(results, ROOT / "docs" / "benchmarks" / "dial.png")


if __name__ == "__main__":
    main()
