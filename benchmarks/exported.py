"""A map of MNIST as ONNX files: their size, whether they place rows as `transform` does, and how fast.

    TSEE_DATA=folder python benchmarks/exported.py

The files place the 10,000 test rows in onnxruntime, all at once and one by one, in a process that imports neither torch
nor tsee, with as many threads as there are cores (or ``--threads``). The result goes to benchmarks/results/exported.json.
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
import torch
from sets import load

import tsee

RESULT = Path(__file__).parent / "results" / "exported.json"
ONE_BY_ONE = 200
REPEATS = 5
# Places rows and reports times and memory; nothing of tsee or torch is imported.
PLACE = """
import json, resource, sys, time
import numpy as np, onnxruntime
model, rows, positions, threads, one_by_one, repeats = sys.argv[1:]
X = np.load(rows)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(threads)
start = time.perf_counter()
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
told = {"opening s": time.perf_counter() - start}
place = lambda X: session.run(["positions"], {"rows": X})[0]
np.save(positions, place(X))
times = []
for _ in range(int(repeats)):
    start = time.perf_counter()
    place(X)
    times.append(time.perf_counter() - start)
told["all rows s"] = min(times)
times = []
for i in range(int(one_by_one)):
    start = time.perf_counter()
    place(X[i : i + 1])
    times.append(time.perf_counter() - start)
told["one row ms"] = 1000 * float(np.median(times))
told["memory beyond the data MiB"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
print(json.dumps(told))
"""


def measure(see: Any, X: np.ndarray, placement: str, threads: int, folder: Path) -> dict[str, float]:
    start = time.perf_counter()
    tsee.onnx.export(see, folder / "map.onnx", placement=placement)
    result = {"export s": time.perf_counter() - start, "MB": (folder / "map.onnx").stat().st_size / 1e6}
    np.save(folder / "rows.npy", X)
    given = [folder / "map.onnx", folder / "rows.npy", folder / "positions.npy", threads, ONE_BY_ONE, REPEATS]
    command = [sys.executable, "-c", PLACE, *map(str, given)]
    result |= json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    see.set_params(placement=placement).transform(X)
    start = time.perf_counter()
    expected = see.transform(X)
    result["all rows by transform s"] = time.perf_counter() - start
    extent = np.ptp(see.embedding_, axis=0).max()
    moved = np.abs(np.load(folder / "positions.npy") - expected).max(1) / extent
    result |= {"largest difference, of the extent": float(moved.max()), "rows beyond 1e-4": int((moved > 1e-4).sum())}
    return {name: float(f"{value:.3g}") for name, value in result.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    threads = parser.parse_args().threads
    torch.set_num_threads(threads)
    data = load("mnist")
    busy = os.getloadavg()[0]
    see = tsee.DtSEE(random_state=0, verbose=True).fit(data.x_train)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: measure(see, data.x_test, name, threads, Path(folder)) for name in ("refined", "forward")}
    result = {"threads": threads, "load before": round(busy, 1), "rows": len(data.x_test), "files": files}
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
