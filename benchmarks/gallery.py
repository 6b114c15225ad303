"""The pictures of docs/gallery.md: a map of each data set with the defaults, including its held-out rows.

    TSEE_DATA=folder python benchmarks/gallery.py

The pictures and the page of the digits go to docs/gallery/, their errors to benchmarks/results/gallery.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from sets import load

import tsee

ROOT = Path(__file__).parents[1]
FASHION = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"]
GALLERY: dict[str, tuple[str, Any]] = {
    "digits": ("1,797 handwritten digits of 8 x 8 pixels", tsee.datasets.load_digits),
    "mnist": ("MNIST: 70,000 handwritten digits", tsee.datasets.load_mnist),
    "fashion": ("Fashion-MNIST: 70,000 pieces of clothing", tsee.datasets.load_fashion),
    "coil100": ("COIL-100: 100 objects on a turntable", tsee.datasets.load_coil100),
    "mammoth": ("A mammoth: 10,000 points on its skeleton", lambda: load("mammoth")),
}


def show(name: str, folder: Path) -> dict[str, Any]:
    title, load = GALLERY[name]
    data = load()
    see = tsee.DtSEE(random_state=0, verbose=True)
    start = time.perf_counter()
    Y = see.fit_transform(data.x_train)
    seconds = time.perf_counter() - start
    Y_new = see.transform(data.x_test)
    if data.y_train is None:  # points in space, colored by their height
        heights = np.concatenate([data.x_train, data.x_test])[:, 1]
        tsee.plots.scatter(np.concatenate([Y, Y_new]), heights, title=title, path=folder / f"{name}.png", legend=False)
        scores = tsee.metrics.quality_score(data.x_train, Y, data.x_test, Y_new, k=(10, 100))
        return {"fit s": round(seconds, 1)} | {f"Quality Score {k} %": round(100 * s, 2) for k, s in scores.items()}
    labels = np.concatenate([data.y_train, data.y_test])
    if name == "fashion":
        labels = np.array(FASHION)[labels]
    tsee.plots.scatter(np.concatenate([Y, Y_new]), labels, title=title, path=folder / f"{name}.png")
    if name == "digits":
        pictures = data.x_train.reshape(-1, 8, 8)
        see.to_html(folder / "digits.html", columns={"digit": data.y_train}, images=pictures, title="Digits")
    errors = tsee.metrics.knn_error(Y, data.y_train, Y_new, data.y_test, k=(1, 5))
    return {"fit s": round(seconds, 1)} | {f"{k}-NN error %": round(100 * error, 2) for k, error in errors.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", metavar="{" + ",".join(GALLERY) + "}", help="data sets; by default all")
    names = parser.parse_args().data or list(GALLERY)
    folder, path = ROOT / "docs" / "gallery", ROOT / "benchmarks" / "results" / "gallery.json"
    folder.mkdir(exist_ok=True)
    results = json.loads(path.read_text()) if path.exists() else {}
    for name in names:
        results[name] = show(name, folder)
        print(name, results[name], flush=True)
        path.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
