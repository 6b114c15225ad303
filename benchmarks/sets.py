"""The data sets of the benchmarks, by name, with their splits; what tsee has no loader for is read from TSEE_DATA."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tsee
from tsee.datasets import Split

__all__ = ["SETS", "load"]


def load(name: str) -> Split:
    """A data set: rows as float32, and labels, or None if it has none."""
    return SETS[name]()


def _folder() -> Path:
    folder = os.environ.get("TSEE_DATA")
    if not folder:
        raise SystemExit("Set TSEE_DATA to the folder of the data sets.")
    return Path(folder)


def _pixels(load: Callable[[], Split]) -> Callable[[], Split]:
    """Peers treat integers differently, so all get the same floats."""

    def scaled() -> Split:
        data = load()
        return Split(data.x_train / np.float32(255), data.y_train, data.x_test / np.float32(255), data.y_test)

    return scaled


def _split(name: str) -> Split:
    with np.load(_folder() / f"{name}.npz") as file:
        labels = [file.get(key) for key in ("y_train", "y_test")]
        return Split(file["x_train"].astype(np.float32), labels[0], file["x_test"].astype(np.float32), labels[1])


def _genomes() -> Split:
    """1000 Genomes has no split of its own: 450 random rows are held out."""
    with np.load(_folder() / "genomes.npz") as file:
        X, y = file["x"].astype(np.float32), file["y"]
    test, train = np.split(np.random.default_rng(0).permutation(len(X)), [450])
    return Split(X[train], y[train], X[test], y[test])


def _pbmc() -> Split:
    """The 50 principal components of 700 blood cells; nothing is held out."""
    import h5py

    with h5py.File(_folder() / "pbmc700.h5ad") as file:
        X = np.asarray(file["obsm"]["X_pca"], dtype=np.float32)
    return Split(X, None, X[:0], None)


SETS: dict[str, Callable[[], Split]] = {
    "mnist": _pixels(tsee.datasets.load_mnist),
    "fashion": _pixels(tsee.datasets.load_fashion),
    "words": lambda: _split("words"),
    "sentences": lambda: _split("sentences"),
    "mammoth": lambda: _split("mammoth"),
    "genomes": _genomes,
    "pbmc": _pbmc,
}
