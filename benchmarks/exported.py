"""A map of MNIST as ONNX files: their size, whether they place rows as `transform` does, and how fast.

    TSEE_DATA=folder python benchmarks/exported.py

The files place the 10,000 test rows in onnxruntime, all at once and one by one, in a process that imports neither torch
nor tsee, with as many threads as there are cores (or ``--threads``). Seconds of the CPU are summed over threads; on a
machine that others use too, they vary less than seconds of the clock. The result goes to
benchmarks/results/exported.json.
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
# Places rows and reports times and memory; nothing of tsee or torch is imported.
PLACE = """
import json, statistics, sys, time
import numpy as np, onnxruntime

def seconds(work):
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - cpu

def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024

model, rows, positions, threads = sys.argv[1:]
X = np.load(rows)
before = peak()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = int(threads)
start = time.perf_counter()
session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
told = {"opening s": time.perf_counter() - start}
place = lambda X: session.run(["positions"], {"rows": X})[0]
np.save(positions, place(X))
told["memory beyond the data MiB"] = peak() - before
told["all rows s"], told["all rows, CPU s"] = map(min, zip(*(seconds(lambda: place(X)) for _ in range(5))))
told["one row ms"] = 1000 * statistics.median(seconds(lambda: place(X[i : i + 1]))[0] for i in range(200))
print(json.dumps(told))
"""


def measure(see: Any, X: np.ndarray, placement: str, threads: int, folder: Path) -> dict[str, float]:
    start = time.perf_counter()
    tsee.onnx.export(see, folder / "map.onnx", placement=placement)
    result = {"export s": time.perf_counter() - start, "MB": (folder / "map.onnx").stat().st_size / 1e6}
    np.save(folder / "rows.npy", X)
    given = [folder / "map.onnx", folder / "rows.npy", folder / "positions.npy", threads]
    command = [sys.executable, "-c", PLACE, *map(str, given)]
    result |= json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    see.set_params(placement=placement).transform(X)
    start, busy = time.perf_counter(), time.process_time()
    expected = see.transform(X)
    result["transform s"], result["transform, CPU s"] = time.perf_counter() - start, time.process_time() - busy
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
    others = os.getloadavg()[0]
    see = tsee.DtSEE(random_state=0, verbose=True).fit(data.x_train)
    with tempfile.TemporaryDirectory() as folder:
        files = {name: measure(see, data.x_test, name, threads, Path(folder)) for name in ("refined", "forward")}
    result = {"threads": threads, "load before": round(others, 1), "rows": len(data.x_test), "files": files}
    RESULT.write_text(json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
