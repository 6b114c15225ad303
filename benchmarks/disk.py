"""Data larger than memory: peak memory as the data grow, throughput, rows sorted by class, and ten million rows.

    python benchmarks/disk.py memory --folder /big/disk   # a file four times as large as the limit on the process
    python benchmarks/disk.py throughput --folder /big/disk   # compared with the same rows in memory
    TSEE_DATA=folder python benchmarks/disk.py sorted
    python benchmarks/disk.py many --folder /big/disk   # ten million synthetic cells: time, memory, Quality Score

Results go to benchmarks/results/disk-*.json. Every fit runs in its own process, so that each has its own peak memory.
The limit is on the address space (`ulimit -v`); importing torch takes more than half of it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

RESULTS = Path(__file__).parent / "results"
GIB = 2**30
FEATURES = 2048
PLACEMENTS = ("refined", "forward")
# Of the held-out rows, the Quality Score uses only this many.
SCORED_ROWS = 2000


def write_rows(path: Path, n_rows: int) -> None:
    """Write clusters of uneven size in many dimensions, as float32 and in blocks; the rows are sorted by cluster."""
    random = np.random.default_rng(0)
    centers = random.normal(size=(40, FEATURES)).astype(np.float32)
    shares = random.dirichlet(np.full(len(centers), 2.0))
    owner = np.sort(random.choice(len(centers), n_rows, p=shares))
    spread = random.normal(size=(20, FEATURES)).astype(np.float32)
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n_rows, FEATURES))
    for start in range(0, n_rows, 8192):
        mine = owner[start : start + 8192]
        noise = random.normal(size=(len(mine), len(spread))).astype(np.float32)
        rows[start : start + len(mine)] = centers[mine] + noise @ spread
    rows.flush()


def fit(settings: dict[str, Any]) -> dict[str, Any]:
    """Fit in this process, under a limit if one is set, and return the time and memory that it took."""
    if settings.get("limit"):
        resource.setrlimit(resource.RLIMIT_AS, (settings["limit"], settings["limit"]))
    import tsee
    from tsee import batches

    for name, value in settings.get("constants", {}).items():
        setattr(batches, name, value)
    see = tsee.DtSEE(random_state=0, **settings["parameters"])
    X: Any = settings["file"]
    imported = _peak()
    if settings.get("in_memory"):
        X = np.load(X)
    start = time.perf_counter()
    see.fit(X)
    result = {"fit s": round(time.perf_counter() - start, 1), "peak MiB": _peak(), "peak of imports MiB": imported}
    if settings.get("test"):
        start = time.perf_counter()
        Y = {"train": see.transform(settings["file"]), "test": see.transform(settings["test"])}
        labels = {part: np.load(settings["labels"][part]) for part in Y}
        result["transform s"] = round(time.perf_counter() - start, 1)
        errors = tsee.metrics.knn_error(Y["train"], labels["train"], Y["test"], labels["test"])
        result["error %"] = {str(k): round(100 * error, 2) for k, error in errors.items()}
    return result


def _peak() -> int:
    """The peak memory of this process, in MiB. (``ru_maxrss`` would start with the memory of the parent.)"""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) // 1024


def fit_in_own_process(**settings: Any) -> dict[str, Any]:
    """Call `fit` in a new process."""
    # Otherwise each thread would get its own arena, 64 MB of address space.
    environment = {**os.environ, "MALLOC_ARENA_MAX": "2"}
    command = [sys.executable, __file__, "fit", json.dumps(settings)]
    output = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    print(json.dumps({key: value for key, value in settings.items() if key != "labels"}), "->", result, flush=True)
    return result


def memory(folder: Path, rows: int, limit: float, epochs: int) -> dict[str, Any]:
    runs = {}
    for n_rows in (rows // 4, rows):
        path = folder / f"rows-{n_rows}.npy"
        write_rows(path, n_rows)
        run = fit_in_own_process(file=str(path), parameters={"max_epochs": epochs}, limit=int(limit * GIB))
        runs[str(n_rows)] = {"file GiB": round(path.stat().st_size / GIB, 2), **run}
        path.unlink()
    small, large = (run["peak MiB"] for run in runs.values())
    return {"limit GiB": limit, "epochs": epochs, "rows": runs, "peak at 4n / peak at n": round(large / small, 3)}


def throughput(folder: Path, rows: int, epochs: int) -> dict[str, Any]:
    path = folder / "rows.npy"
    write_rows(path, rows)
    # Placed by the network: a fit in memory keeps the positions of its rows, and refining them would take a search that
    # a fit from disk does not make.
    parameters = {"max_epochs": epochs, "placement": "forward"}
    # The fit in memory is repeated at the end, to show how much the speed of the machine changes in the meantime.
    runs = [
        fit_in_own_process(file=str(path), parameters=parameters, in_memory=in_memory, constants=constants)
        for in_memory, constants in ((True, {}), (False, {"MEMORY": 0}), (True, {}))
    ]
    path.unlink()
    names = ["in memory", "from a warm file, kept on disk", "in memory, again"]
    ratio = (runs[0]["fit s"] + runs[2]["fit s"]) / 2 / runs[1]["fit s"]
    return {"rows": rows, "epochs": epochs, "runs": dict(zip(names, runs, strict=True)), "throughput": round(ratio, 3)}


def sorted_by_class(folder: Path, epochs: int | None) -> dict[str, Any]:
    """MNIST in its own order in memory, and sorted by class from disk in buckets of 4,096 rows."""
    import tsee

    data = tsee.datasets.load_mnist()
    order = np.argsort(data.y_train, kind="stable")
    runs = {}
    for name, chosen in (("as published, in memory", np.arange(len(order))), ("sorted by class, on disk", order)):
        files = {"file": data.x_train[chosen], "test": data.x_test}
        labels = {"train": data.y_train[chosen], "test": data.y_test}
        for part, values in files.items():
            np.save(folder / f"{part}.npy", values)
        for part, values in labels.items():
            np.save(folder / f"{part}-labels.npy", values)
        on_disk = name.endswith("disk")
        runs[name] = fit_in_own_process(
            **{part: str(folder / f"{part}.npy") for part in files},
            labels={part: str(folder / f"{part}-labels.npy") for part in labels},
            parameters={"max_epochs": epochs},
            in_memory=not on_disk,
            constants={"MEMORY": 0, "BUCKET_ROWS": 4096} if on_disk else {},
        )
    return {"epochs": epochs or "default", "runs": runs}


def many(folder: Path, rows: int) -> dict[str, Any]:
    """Ten million cells in a file: a fit, and the positions of all rows by both placements."""
    paths = {"train": folder / "cells.npy", "test": folder / "new.npy"}
    in_own_process(write_cells, rows, *paths.values())
    result = in_own_process(fit_many, str(paths["train"]), str(paths["test"]), str(folder))
    for placement in PLACEMENTS:
        scores = in_own_process(
            quality, *paths.values(), folder / f"{placement}-train.npy", folder / f"{placement}.npy"
        )
        result[placement] |= scores
    return {"rows": rows, **result}


def in_own_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function of this module in a new process, so that its memory does not count in another."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        result = pool.submit(work, *arguments).result()
    print(f"{work.__name__}:", result, flush=True)
    return result


def write_cells(n_rows: int, train: Path, test: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parent / "peers"))
    from run import NEW_ROWS, cells

    X, _ = cells(n_rows + NEW_ROWS)
    np.save(train, X[:n_rows])
    np.save(test, X[n_rows:])


def fit_many(train: str, test: str, folder: str) -> dict[str, Any]:
    import tsee

    see = tsee.DtSEE(random_state=0, verbose=1)
    memory = AnonymousMemory()
    start = time.perf_counter()
    see.fit(train)
    result: dict[str, Any] = {
        "fit s": round(time.perf_counter() - start, 1),
        "exemplars": see.n_exemplars_,
        "memory beyond the file, MiB": memory.beyond(),
    }
    X, Z = np.load(train, mmap_mode="r"), np.load(test)
    for placement in PLACEMENTS:
        see.set_params(placement=placement)
        memory = AnonymousMemory()
        start = time.perf_counter()
        np.save(f"{folder}/{placement}-train.npy", see.transform(X))
        seconds = time.perf_counter() - start
        result[placement] = {
            "us per row": round(1e6 * seconds / len(X), 1),
            "memory of placing, MiB": memory.beyond(),
        }
        np.save(f"{folder}/{placement}.npy", see.transform(Z))
    return result


def quality(*paths: Path) -> dict[str, float]:
    import tsee

    X, Z, Y, W = (np.load(path, mmap_mode="r") for path in paths)
    scores = tsee.metrics.quality_score(X, Y, Z[:SCORED_ROWS], W[:SCORED_ROWS], k=(10, 100))
    return {f"Quality Score {k} %": round(100 * score, 2) for k, score in scores.items()}


class AnonymousMemory:
    """How much memory this process takes beyond what it has now; pages of files do not count."""

    def __init__(self) -> None:
        self.start = self.peak = self.now()
        self.done = threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()

    @staticmethod
    def now() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("RssAnon:")[2].split()[0]) // 1024

    def watch(self) -> None:
        while not self.done.wait(0.1):
            self.peak = max(self.peak, self.now())

    def beyond(self) -> int:
        self.done.set()
        self.thread.join()
        return self.peak - self.start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["memory", "throughput", "sorted", "many", "fit"])
    parser.add_argument("settings", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help="a folder with enough space for the files")
    parser.add_argument("--rows", type=int, help="default: 1,048,576, and 10,000,000 of many")
    parser.add_argument("--limit", type=float, default=2.0, help="limit on the address space, in GiB")
    parser.add_argument("--epochs", type=int, default=None)
    arguments = parser.parse_args()
    if arguments.what == "fit":
        print(json.dumps(fit(json.loads(arguments.settings))))
        return
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        os.environ["TMPDIR"] = folder
        if arguments.what == "memory":
            result = memory(Path(folder), arguments.rows or 2**20, arguments.limit, arguments.epochs or 2)
        elif arguments.what == "throughput":
            result = throughput(Path(folder), min(arguments.rows or 2**18, 2**18), arguments.epochs or 5)
        elif arguments.what == "many":
            result = many(Path(folder), arguments.rows or 10_000_000)
        else:
            result = sorted_by_class(Path(folder), arguments.epochs)
    result = {"machine": {"processor": platform.machine(), "cores": os.cpu_count()}, **result}
    print(json.dumps(result, indent=2))
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"disk-{arguments.what}.json").write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
