"""Held-out error, Quality Score and time of maps made with default parameters, through the public API.

    TSEE_DATA=folder python benchmarks/maps.py mnist --method DtSEE --method HotSEE --seeds 1

The data sets' own splits are used; nothing is tuned on the held-out rows. Results go to benchmarks/results/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path

import torch

import tsee

LOADERS = {
    "mnist": tsee.datasets.load_mnist,
    "fashion": tsee.datasets.load_fashion,
    "coil100": tsee.datasets.load_coil100,
    "digits": tsee.datasets.load_digits,
}
RESULTS = Path(__file__).parent / "results"


def measure(method: str, data: tsee.datasets.Split, seed: int) -> dict[str, float]:
    see = getattr(tsee, method)(random_state=seed, verbose=True)
    start = time.perf_counter()
    Y_train = see.fit_transform(data.x_train)
    fitted = time.perf_counter()
    Y_test = see.transform(data.x_test)
    placed = time.perf_counter()
    errors = tsee.metrics.knn_error(Y_train, data.y_train, Y_test, data.y_test, k=(1, 5, 10))
    scores = tsee.metrics.quality_score(data.x_train, Y_train, data.x_test, Y_test, k=(10, 100))
    return {
        "seed": seed,
        **{f"{k}-NN error %": round(100 * error, 2) for k, error in errors.items()},
        **{f"Quality Score {k} %": round(100 * score, 2) for k, score in scores.items()},
        "fit s": round(fitted - start, 1),
        "transform s": round(placed - fitted, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=LOADERS)
    parser.add_argument("--method", action="append", choices=["DtSEE", "HotSEE", "PtSNE", "HotSNE"])
    parser.add_argument("--seeds", type=int, default=3)
    arguments = parser.parse_args()
    data = LOADERS[arguments.data]()
    for method in arguments.method or ["DtSEE", "HotSEE"]:
        runs = []
        for seed in range(arguments.seeds):
            runs.append(measure(method, data, seed))
            print(f"{method} on {arguments.data}:", ", ".join(f"{k} {v:g}" for k, v in runs[-1].items()), flush=True)
        median = {key: statistics.median(run[key] for run in runs) for key in runs[0] if key != "seed"}
        print(f"{method} on {arguments.data}, median:", ", ".join(f"{k} {v:g}" for k, v in median.items()), flush=True)
        result = {
            "data": arguments.data,
            "rows": [len(data.x_train), len(data.x_test)],
            "method": method,
            "parameters": "defaults",
            "tsee": tsee.__version__,
            "torch": torch.__version__,
            "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads()},
            "median": median,
            "runs": runs,
        }
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"maps-{arguments.data}-{method.lower()}.json"
        path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
