"""The demonstration: maps of the bundled digits, and their errors on held-out digits."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tsee.datasets import load_digits
from tsee.estimators import DtSEE, HotSEE
from tsee.metrics import knn_error, quality_score

__all__ = ["run_demo"]

SEEDS = (0, 1, 2)


def run_demo(folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """Fit DtSEE and HotSEE with their defaults to two thirds of the digits, and evaluate the maps on the rest.

    Parameters
    ----------
    folder : Path
        Folder for the digits as two CSV files, and for the model, the picture and the page of the first DtSEE fit.
    say : callable
        Called with each line of the report.

    Returns
    -------
    dict
        The same report for a program: the fits with their measures, and the paths of what was written.
    """
    digits = load_digits()
    folder.mkdir(parents=True, exist_ok=True)
    _write_csv(folder / "digits.csv", digits.x_train, digits.y_train)
    _write_csv(folder / "new.csv", digits.x_test, digits.y_test)
    say(f"Digits: {len(digits.x_train):,} rows to learn from, {len(digits.x_test):,} held out, default parameters.")
    say("")
    fits: list[dict[str, Any]] = []
    say(f"{'':14}{'1-NN error':>12}{'5-NN error':>12}{'Quality Score':>15}{'fit':>9}")
    for cls in (DtSEE, HotSEE):
        rows = []
        for seed in SEEDS:
            see = cls(random_state=seed)
            start = time.perf_counter()
            Y_train = see.fit_transform(digits.x_train)
            seconds = time.perf_counter() - start
            Y_test = see.transform(digits.x_test)
            error = knn_error(Y_train, digits.y_train, Y_test, digits.y_test, k=(1, 5))
            score = quality_score(digits.x_train, Y_train, digits.x_test, Y_test, k=10)[10]
            rows.append((error[1], error[5], score, seconds))
            say(_line(f"{cls.__name__} seed {seed}", rows[-1]))
            measures = {"knn_error": error, "quality_score": {10: score}, "seconds": round(seconds, 3)}
            fits.append({"method": cls.__name__, "seed": seed, **measures})
            if cls is DtSEE and seed == SEEDS[0]:
                see.save(folder / "model")
                images = digits.x_train.reshape(-1, 8, 8)
                columns = {"digit": digits.y_train}
                see.to_html(folder / "digits.html", columns=columns, images=images, title="Handwritten digits")
                picture = _draw(
                    folder / "digits.png",
                    np.concatenate([Y_train, Y_test]),
                    np.concatenate([digits.y_train, digits.y_test]),
                    title=f"Digits: {len(Y_train):,} learned, {len(Y_test):,} placed by DtSEE",
                )
        say(_line(f"{cls.__name__} median", tuple(statistics.median(column) for column in zip(*rows, strict=True))))
        say("")
    say("Errors and scores are of held-out digits. The Quality Score is the share of a digit's 10 nearest training")
    say("digits that are also among its 10 nearest on the map.")
    say(f"The model: {folder / 'model'}   The picture: {picture}   The page: {folder / 'digits.html'}")
    say(f"The digits, to try the other commands on: {folder / 'digits.csv'} and, held out, {folder / 'new.csv'}")
    return {
        "fits": fits,
        "model": folder / "model",
        "picture": picture if picture == str(folder / "digits.png") else None,
        "page": folder / "digits.html",
        "data": folder / "digits.csv",
        "held_out": folder / "new.csv",
    }


def _line(name: str, row: tuple[float, ...]) -> str:
    first, fifth, score, seconds = row
    return f"{name:14}{first:>12.1%}{fifth:>12.1%}{score:>15.1%}{seconds:>7.1f} s"


def _write_csv(path: Path, X: np.ndarray, digits: np.ndarray) -> None:
    names = [*(f"pixel{i}" for i in range(X.shape[1])), "digit"]
    np.savetxt(path, np.c_[X, digits], fmt="%g", delimiter=",", header=",".join(names), comments="")


def _draw(path: Path, Y: np.ndarray, labels: np.ndarray, title: str) -> str:
    """Draw the map and return the path of the picture, or say how to install matplotlib if it is missing."""
    from tsee.plots import scatter

    try:
        scatter(Y, labels, path=path, title=title)
    except ImportError as error:
        return f"none ({error})"
    return str(path)
