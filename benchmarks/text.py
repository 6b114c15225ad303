"""Maps of sparse TF-IDF rows, by tsee, umap-learn and openTSNE, in one thread each.

    python benchmarks/text.py --peers .venv-peers/bin/python --folder rows

The rows are docstrings of Python packages that are installed for tsee's tests, read from their files, at most 3,000 of
a package; the packages are the classes. tsee and umap-learn get the sparse matrix. openTSNE does not take sparse rows:
it gets 50 components of scikit-learn's TruncatedSVD, whose time counts. All have their defaults but for a seed. Each
runs in its own process, one after the other. Neighbors are judged in all columns. Seconds are processor time. The
result goes to benchmarks/results/text.json; docs/metrics.md shows it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

RESULT = Path(__file__).parent / "results" / "text.json"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
PACKAGES = ("numpy", "scipy", "sklearn", "pandas", "matplotlib", "polars", "dask", "anndata", "h5py", "PIL", "click")
PACKAGES += ("zarr", "ray", "networkx", "sympy")
# Docstrings of at least so many words, at most so many of a package and in all; packages with fewer are left out.
WORDS, OF_PACKAGE, ROWS, LEAST = 20, 3000, 22_000, 50
HELD_OUT = 2000
METHODS = ("tsee", "tsee, cosine", "umap-learn", "umap-learn, cosine", "openTSNE")
# Words that fewer docstrings have are no columns.
LEAST_DOCUMENTS = 5
COMPONENTS = 50


def docstrings(folder: Path) -> Iterator[str]:
    """The docstrings in the files of a package, without importing it."""
    for path in sorted(folder.rglob("*.py")):
        if "tests" in path.parts:
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module):
                yield ast.get_docstring(node) or ""


def collect() -> tuple[list[str], np.ndarray]:
    """Different docstrings of installed packages, in random order, and the number of each one's package."""
    random = np.random.default_rng(0)
    texts, labels = [], []
    seen: set[str] = set()
    for folder in sorted(Path(sysconfig.get_paths()["purelib"]).iterdir()):
        if folder.name not in PACKAGES:
            continue
        found = [text for text in docstrings(folder) if len(text.split()) >= WORDS]
        found = sorted({text for text in found if text not in seen})
        if len(found) >= LEAST:
            seen.update(found)
            chosen = random.permutation(len(found))[:OF_PACKAGE]
            texts += [found[i] for i in chosen]
            labels += [folder.name] * len(chosen)
    order = random.permutation(len(texts))[:ROWS]
    return [texts[i] for i in order], np.unique(labels, return_inverse=True)[1][order]


def prepare(folder: Path, n_rows: int) -> dict[str, int]:
    """Write the rows and their classes to a folder; the columns are known from the rows to fit."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = collect()
    model = TfidfVectorizer(min_df=LEAST_DOCUMENTS, stop_words="english", sublinear_tf=True, dtype=np.float32)
    train, test = model.fit_transform(texts[:-HELD_OUT]), model.transform(texts[-HELD_OUT:])
    known = np.diff(test.indptr) > 0, np.diff(train.indptr) > 0  # without any of the words there is no direction
    train, test = train[known[1]][:n_rows], test[known[0]]
    scipy.sparse.save_npz(folder / "train.npz", train)
    scipy.sparse.save_npz(folder / "test.npz", test)
    np.savez(folder / "labels.npz", train=labels[:-HELD_OUT][known[1]][:n_rows], test=labels[-HELD_OUT:][known[0]])
    return {"rows": train.shape[0], "held out": test.shape[0], "columns": train.shape[1],
            "values per row": round(train.nnz / train.shape[0]), "classes": len(np.unique(labels))}  # fmt: skip


def load(folder: Path) -> tuple[Any, Any]:
    return scipy.sparse.load_npz(folder / "train.npz"), scipy.sparse.load_npz(folder / "test.npz")


def run(method: str, folder: Path) -> None:
    """Fit and place in this process, which may lack the other libraries; positions and seconds go to the folder."""
    X, X_test = load(folder)
    estimator: Any
    metric = "cosine" if method.endswith("cosine") else "euclidean"
    if method.startswith("tsee"):
        from tsee import DtSEE

        estimator = DtSEE(metric=metric, random_state=0)
    elif method.startswith("umap-learn"):
        from umap import UMAP

        estimator = UMAP(metric=metric, random_state=0, n_jobs=1)
    else:
        from openTSNE.sklearn import TSNE
        from sklearn.decomposition import TruncatedSVD
        from sklearn.pipeline import make_pipeline

        estimator = make_pipeline(TruncatedSVD(COMPONENTS, random_state=0), TSNE(random_state=0, n_jobs=1))
    start = time.process_time()
    Y = estimator.fit_transform(X)
    middle = time.process_time()
    Y_test = estimator.transform(X_test)
    seconds = {"fit s": middle - start, "transform s": time.process_time() - middle}
    np.savez(folder / "positions.npz", train=np.asarray(Y), test=np.asarray(Y_test))
    (folder / "seconds.json").write_text(json.dumps(seconds))


def judge(folder: Path) -> dict[str, float]:
    from tsee.metrics import knn_error, quality_score

    X, X_test = load(folder)
    result: dict[str, float] = json.loads((folder / "seconds.json").read_text())
    with np.load(folder / "positions.npz") as file, np.load(folder / "labels.npz") as labels:
        Y, Y_test = file["train"], file["test"]
        errors = knn_error(Y, labels["train"], Y_test, labels["test"], k=(1, 5))
    scores = quality_score(X, Y, X_test, Y_test, k=(10, 100))
    result |= {f"Quality Score {k} %": 100 * score for k, score in scores.items()}
    result |= {f"{k}-NN error %": 100 * error for k, error in errors.items()}
    return {key: round(value, 2) for key, value in result.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", default=sys.executable, help="the Python that has umap-learn and openTSNE")
    parser.add_argument("--run", metavar="METHOD", help="one run, in this process")
    parser.add_argument("--folder", type=Path, required=True, help="where rows and positions are kept; made if missing")
    parser.add_argument("--rows", type=int, default=ROWS, help="fit at most so many rows")
    parser.add_argument("--only", nargs="*", metavar="METHOD", help="these methods; the others keep their results")
    given = parser.parse_args()
    if given.run:
        return run(given.run, given.folder)
    found: dict[str, Any] = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    if not (given.folder / "data.json").exists():
        given.folder.mkdir(parents=True, exist_ok=True)
        (given.folder / "data.json").write_text(json.dumps(prepare(given.folder, given.rows)))
    found["data"] = json.loads((given.folder / "data.json").read_text())
    print(found["data"], flush=True)
    for method in METHODS:
        if given.only and method not in given.only:
            continue
        python = sys.executable if method.startswith("tsee") else given.peers
        one_thread = os.environ | dict.fromkeys(THREADS, "1")
        command = [python, __file__, "--run", method, "--folder", str(given.folder)]
        subprocess.run(command, check=True, env=one_thread)
        found[method] = judge(given.folder)
        print(method, found[method], flush=True)
    RESULT.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
