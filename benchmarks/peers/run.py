"""Run tsee and its peers on the same rows and cores, one after the other, each in its own process.

    make bench                                            # everything, and the report: a few hours
    python benchmarks/peers/run.py mnist --method tsee --method PaCMAP --peers .venv-peers/bin/python
    python benchmarks/peers/run.py report                 # docs/benchmarks.md and its figures

Each run is kept in benchmarks/results/peers.json, and is repeated only with ``--again``. MNIST and Fashion are read
from TSEE_DATA or downloaded, vocabulary (word vectors) by npm, other data from TSEE_DATA; ``cells-N`` is N rows of
synthetic single-cell-like data.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tsee

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import sets  # noqa: E402 - beside this folder

RESULT = HERE.parent / "results" / "peers.json"
OURS = ["tsee", "tsee, fast"]
PEERS = [
    "PaCMAP",
    "umap-learn",
    "openTSNE",
    "ParametricUMAP",
    "ParamRepulsor",
    "TorchDR UMAP",
    "TorchDR UMAP, encoder",
    "scikit-learn TSNE",
]
DATA = [
    *("mnist", "fashion", "words", "sentences", "mammoth", "genomes", "vocabulary"),
    *("cells-10000", "cells-100000", "cells-1000000"),
]
NEW_ROWS = 10_000
LIMIT_SECONDS = 3600
# The Quality Score compares a held-out row with all training rows: on large data it uses only this many held-out rows.
SCORED_ROWS = 2000
LARGE_ROWS = 100_000


def cells(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Clusters of uneven size and shape in 50 dimensions, each along a short path of states, like types of cells."""
    random = np.random.default_rng(0)
    shares = np.sort(random.dirichlet(np.full(30, 0.7)))
    kinds = random.choice(len(shares), n_rows, p=shares)
    centers = 3 * random.normal(size=(len(shares), 50))
    directions = 1.5 * random.normal(size=(len(shares), 50))
    spread = random.uniform(0.5, 1.2, size=len(shares))
    rows = np.empty((n_rows, 50), dtype=np.float32)
    for start in range(0, n_rows, 65_536):
        mine = kinds[start : start + 65_536]
        along = random.uniform(-1, 1, size=(len(mine), 1))
        noise = spread[mine, None] * random.normal(size=(len(mine), 50))
        rows[start : start + len(mine)] = centers[mine] + along * directions[mine] + noise
    return rows, kinds


def load(name: str) -> tsee.datasets.Split:
    if name.startswith("cells-"):
        n = int(name.removeprefix("cells-"))
        rows, kinds = cells(n + NEW_ROWS)
        return tsee.datasets.Split(rows[:n], kinds[:n], rows[n:], kinds[n:])
    return sets.load(name)


def run(method: str, name: str, data: tsee.datasets.Split, interpreter: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/train.npy", data.x_train)
        np.save(f"{folder}/test.npy", data.x_test)
        command = [interpreter, str(HERE / "methods.py"), method, folder]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
            output, failure = done.stdout, done.stderr.strip().splitlines()[-1:] if done.returncode else None
        except subprocess.TimeoutExpired as stopped:
            output, failure = (stopped.stdout or b"").decode(), [f"stopped after {LIMIT_SECONDS} s"]
        lines = [line for line in output.splitlines() if line.startswith("{")]
        result: dict[str, Any] = json.loads(lines[-1]) if lines else {}
        result = {key: round(value, 3) for key, value in result.items()}
        if failure:
            result["failed"] = failure[0]
        train, test = (Path(folder) / f"positions-{part}.npy" for part in ("train", "test"))
        if train.exists():
            result |= judge(data, np.load(train), np.load(test) if test.exists() else None)
        forward = [Path(folder) / f"forward-{part}.npy" for part in ("train", "test")]
        if forward[0].exists() and data.y_train is not None:
            errors = tsee.metrics.knn_error(
                np.load(forward[0]), data.y_train, np.load(forward[1]), data.y_test, k=(1, 5)
            )
            result |= {f"forward: {k}-NN error %": round(100 * error, 2) for k, error in errors.items()}
    return result


def judge(data: tsee.datasets.Split, Y: np.ndarray, Y_test: np.ndarray | None) -> dict[str, float]:
    """Errors of the training rows, each compared with the others, and of the held-out rows if they have positions.

    The large shape is the shape of the map itself: it is measured on the training rows, which every method can place.
    """
    result = {
        "triplet accuracy": round(tsee.metrics.triplet_accuracy(data.x_train, Y), 4),
        "distance correlation": round(tsee.metrics.distance_correlation(data.x_train, Y), 4),
        "density correlation": round(tsee.metrics.density_correlation(data.x_train, Y), 4),
    }
    if data.y_train is not None:
        left_out = tsee.metrics.knn_error(Y, data.y_train, k=(1, 5))
        result |= {f"training {k}-NN error %": round(100 * error, 2) for k, error in left_out.items()}
        result["centroid triplets"] = round(tsee.metrics.centroid_scores(data.x_train, Y, data.y_train).triplets, 4)
    if Y_test is not None:
        scored = slice(0, SCORED_ROWS if len(Y) > LARGE_ROWS else None)
        scores = tsee.metrics.quality_score(data.x_train, Y, data.x_test[scored], Y_test[scored], k=(10, 100))
        result |= {f"Quality Score {k} %": round(100 * score, 2) for k, score in scores.items()}
    if Y_test is not None and data.y_train is not None:
        errors = tsee.metrics.knn_error(Y, data.y_train, Y_test, data.y_test, k=(1, 5))
        result |= {f"{k}-NN error %": round(100 * error, 2) for k, error in errors.items()}
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+", choices=[*DATA, "all", "report"])
    parser.add_argument("--method", action="append", choices=[*OURS, *PEERS])
    parser.add_argument("--peers", default=".venv-peers/bin/python", help="the Python of the peers' environment")
    parser.add_argument("--again", action="store_true", help="repeat runs that are kept")
    arguments = parser.parse_args()
    if arguments.data == ["report"]:
        from readme import write_readme
        from report import write_report

        write_report(json.loads(RESULT.read_text()))
        write_readme(json.loads(RESULT.read_text()))
        return
    kept = json.loads(RESULT.read_text()) if RESULT.exists() else {"runs": {}}
    kept["machine"] = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    for name in DATA if "all" in arguments.data else arguments.data:
        data = load(name)
        runs = kept["runs"].setdefault(name, {})
        for method in arguments.method or [*OURS, *PEERS]:
            if method in runs and not arguments.again:
                continue
            print(f"{time.strftime('%H:%M:%S')} {method} on {name}", flush=True)
            ours = method in OURS
            runs[method] = run(method, name, data, sys.executable if ours else arguments.peers)
            print("   ", runs[method], flush=True)
            RESULT.write_text(json.dumps(kept, indent=2) + "\n")


if __name__ == "__main__":
    main()
