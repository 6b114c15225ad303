"""Maps with labels, some of them unknown: the 5-NN error of held-out rows, beside umap-learn's.

    TSEE_DATA=folder python benchmarks/labels.py digits --peers .venv-peers/bin/python
    TSEE_DATA=folder python benchmarks/labels.py fashion --rows 20000 --peers .venv-peers/bin/python

Digits are split into five folds, and errors are over all of them; Fashion-MNIST has a test set. The labels of 0, 1, 10
and 100 % of the rows of fit are known, drawn at random and the same for both methods: eight times for each fold of
digits, since one draw says little of so few rows. For the judgment, all rows of fit have their labels. "shuffled" is a
fit with all labels in random order, judged by rows with labels in random order, too: chance is 90 %. tsee has
``supervised=1``, umap-learn its defaults and a seed. Each run of umap-learn is a process of its own, in the environment
of the peers (see benchmarks/peers/requirements.txt). Results go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

import tsee

RESULTS = Path(__file__).parent / "results"
SHARES = {"no labels": 0.0, "1 %": 0.01, "10 %": 0.1, "100 %": 1.0, "shuffled": 1.0}
# How often the known labels are drawn, if only some are known.
DRAWS = {"digits": 8, "fashion": 1}
# What is run for umap-learn; it imports nothing of tsee.
UMAP = """
import sys
sys.modules["tensorflow"] = None  # it is not needed, and takes long to import
import numpy as np
from umap import UMAP
with np.load(sys.argv[1]) as given:
    X, y, new = given["X"], given["y"], given["new"]
model = UMAP(random_state=0).fit(X, y if (y >= 0).any() else None)
np.savez(sys.argv[2], train=model.embedding_, test=model.transform(new))
"""


def folds(name: str, n_rows: int | None) -> list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Rows and labels of fit, and held-out rows and labels."""
    if name == "fashion":
        data = tsee.datasets.load_fashion()
        X, y = data.x_train[:n_rows] / np.float32(255), data.y_train[:n_rows]
        return [(X, y, data.x_test / np.float32(255), data.y_test)]
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    X, parts = X.astype(np.float32), np.array_split(np.random.default_rng(0).permutation(len(X)), 5)
    rest = [np.setdiff1d(np.arange(len(X)), part) for part in parts]
    return [(X[train], y[train], X[test], y[test]) for train, test in zip(rest, parts, strict=True)]


def known_labels(y: np.ndarray, share: float, draw: int) -> np.ndarray:
    """The labels, of which all but a share are -1."""
    y, known = y.astype(np.int64), np.random.default_rng(draw).permutation(len(y))[: round(share * len(y))]
    return np.where(np.isin(np.arange(len(y)), known), y, -1)


def tsee_map(X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Positions of the rows of fit and of new ones. Rows are placed among exemplars, so the network hardly learns."""
    see = tsee.DtSEE(supervised=float((y >= 0).any()), max_epochs=1, random_state=0).fit(X, y)
    return see.embedding_, see.transform(new)


def umap_map(python: str, X: np.ndarray, y: np.ndarray, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/given.npz", f"{folder}/found.npz"]
        np.savez(paths[0], X=X, y=y, new=new)
        subprocess.run([python, "-W", "ignore", "-c", UMAP, *paths], check=True, stderr=subprocess.DEVNULL)
        with np.load(paths[1]) as found:
            return found["train"], found["test"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=["digits", "fashion"])
    parser.add_argument("--peers", metavar="PYTHON", help="the interpreter that has umap-learn")
    parser.add_argument("--rows", type=int, help="only so many rows of Fashion-MNIST to fit")
    parser.add_argument("--only", choices=SHARES, action="append", help="some of the shares of known labels")
    arguments = parser.parse_args()
    path = RESULTS / f"labels-{arguments.data}.json"
    errors: dict[str, dict[str, float]] = json.loads(path.read_text())["5-NN error %"] if path.exists() else {}
    splits = folds(arguments.data, arguments.rows)
    for name in arguments.only or SHARES:
        wrong: dict[str, float] = {}
        start = time.perf_counter()
        n_draws = DRAWS[arguments.data] if 0 < SHARES[name] < 1 else 1
        for (X, y, new, truth), draw in itertools.product(splits, range(n_draws)):
            if name == "shuffled":
                generator = np.random.default_rng(0)
                y, truth = generator.permutation(y), generator.permutation(truth)
            given = known_labels(y, SHARES[name], draw)
            maps = {"tsee": tsee_map(X, given, new)}
            if arguments.peers:
                maps["umap-learn"] = umap_map(arguments.peers, X, given, new)
            for method, (train, test) in maps.items():
                found = tsee.metrics.knn_error(train, y, test, truth, k=5)[5]
                wrong[method] = wrong.get(method, 0.0) + found * len(truth)
        total = n_draws * sum(len(truth) for *_, truth in splits)
        errors[name] = errors.get(name, {}) | {method: round(100 * count / total, 2) for method, count in wrong.items()}
        print(f"{arguments.data}, {name}: {errors[name]} ({time.perf_counter() - start:.0f} s)", flush=True)
        rows = [len(splits[0][0]), len(splits[0][2])]
        result = {
            "data": arguments.data,
            "rows of fit and held out": rows,
            "folds": len(splits),
            "draws of known labels": DRAWS[arguments.data],
            "tsee": tsee.__version__,
            "torch": torch.__version__,
            "cores": os.cpu_count(),
            "5-NN error %": {name: errors[name] for name in SHARES if name in errors},
        }
        path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
