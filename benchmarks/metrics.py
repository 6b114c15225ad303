"""Maps of data that the Euclidean distance does not suit, by tsee and by umap-learn, in one thread each.

    python benchmarks/metrics.py --peers .venv-peers/bin/python

Sentence vectors (``sentences.npz`` in TSEE_DATA) are compared by the cosine, and binary fingerprints, which are made
here, by Jaccard. Both methods have their defaults, except for the metric and a seed, and run in their own process, one
after the other. Seconds are processor time, which other processes on the machine change less. The result goes to
benchmarks/results/metrics.json; docs/metrics.md shows it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

RESULT = Path(__file__).parent / "results" / "metrics.json"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
# Fingerprints: how many, of how many bits, in how many families, and how many are held out.
ROWS, BITS, FAMILIES, HELD_OUT = 22_000, 2048, 200, 2000
# Bits of a class of eight families, of a family and of each of its six series, and how likely a row has one of them;
# and how many bits a row has besides.
OF_CLASS, OF_FAMILY, OF_SERIES, SERIES, KEPT = 16, 14, 8, 6, 0.75
OF_ROW = (12, 30)


def fingerprints() -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """Rows in families of uneven size, as molecules around a scaffold: a few dozen of many bits, some common."""
    random = np.random.default_rng(0)
    weights = random.permutation(1 / (np.arange(BITS) + 10.0))
    weights /= weights.sum()

    def draw(size: int) -> np.ndarray:
        return random.choice(BITS, size, replace=False, p=weights)

    classes = [draw(OF_CLASS) for _ in range(FAMILIES // 8)]
    scaffolds = [np.concatenate([classes[i % len(classes)], draw(OF_FAMILY)]) for i in range(FAMILIES)]
    series = [[draw(OF_SERIES) for _ in range(SERIES)] for _ in range(FAMILIES)]
    families = random.choice(FAMILIES, ROWS, p=random.dirichlet(np.full(FAMILIES, 2.0)))
    rows = []
    for family in families:
        core = np.concatenate([scaffolds[family], series[family][random.integers(SERIES)]])
        kept = core[random.random(len(core)) < KEPT]
        rows.append(np.unique(np.concatenate([kept, draw(random.integers(*OF_ROW))])))
    ends = np.cumsum([0, *map(len, rows)])
    values = np.ones(ends[-1], dtype=np.float32)
    return scipy.sparse.csr_matrix((values, np.concatenate(rows), ends), shape=(ROWS, BITS)), families


def load(name: str) -> tuple[str, Any, np.ndarray, Any, np.ndarray]:
    """The metric of a data set, and its rows and labels to fit and to place."""
    if name == "fingerprints":
        X, y = fingerprints()
        return "jaccard", X[:-HELD_OUT], y[:-HELD_OUT], X[-HELD_OUT:], y[-HELD_OUT:]
    with np.load(Path(os.environ["TSEE_DATA"]) / "sentences.npz") as file:
        X, X_test = (file[part].astype(np.float32) for part in ("x_train", "x_test"))
        return "cosine", X, file["y_train"], X_test, file["y_test"]


def run(method: str, name: str, folder: Path) -> None:
    """Fit and place in this process, which may lack either library; positions and seconds go to the folder."""
    metric, X, _, X_test, _ = load(name)
    estimator: Any
    if method == "umap-learn":
        from umap import UMAP

        estimator = UMAP(metric=metric, random_state=0, n_jobs=1)
    else:
        from tsee import DtSEE

        estimator = DtSEE(metric=metric, random_state=0)
    start = time.process_time()
    Y = estimator.fit_transform(X)
    middle = time.process_time()
    Y_test = estimator.transform(X_test)
    seconds = {"fit s": middle - start, "transform s": time.process_time() - middle}
    np.savez(folder / "positions.npz", train=Y, test=Y_test)
    (folder / "seconds.json").write_text(json.dumps(seconds))


def judge(name: str, folder: Path) -> dict[str, float]:
    from tsee.metrics import knn_error, quality_score

    metric, X, y, X_test, y_test = load(name)
    result: dict[str, float] = json.loads((folder / "seconds.json").read_text())
    with np.load(folder / "positions.npz") as file:
        Y, Y_test = file["train"], file["test"]
    scores = quality_score(X, Y, X_test, Y_test, k=(10, 100), metric=metric)
    errors = knn_error(Y, y, Y_test, y_test, k=(1, 5))
    result |= {f"Quality Score {k} %": 100 * score for k, score in scores.items()}
    result |= {f"{k}-NN error %": 100 * error for k, error in errors.items()}
    return {key: round(value, 2) for key, value in result.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default=sys.executable, help="the Python that has umap-learn")
    parser.add_argument("--run", nargs=3, metavar=("METHOD", "DATA", "FOLDER"), help="one run, in this process")
    given = parser.parse_args()
    if given.run:
        return run(given.run[0], given.run[1], Path(given.run[2]))
    found: dict[str, Any] = {}
    for name in ("sentences", "fingerprints"):
        for method, python in (("tsee", sys.executable), ("umap-learn", given.peers)):
            with tempfile.TemporaryDirectory() as folder:
                one_thread = os.environ | dict.fromkeys(THREADS, "1")
                command = [python, __file__, "--run", method, name, folder]
                subprocess.run(command, check=True, env=one_thread)
                found.setdefault(name, {})[method] = judge(name, Path(folder))
            print(name, method, found[name][method], flush=True)
    RESULT.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
