"""Held-out error, Quality Score, large shape and time of maps, measured through the public API.

    TSEE_DATA=folder python benchmarks/maps.py mnist --method DtSEE --method HotSEE --seeds 1

Each data set has its own split; nothing is tuned on the held-out rows. For a training error, each row is compared
with the other rows. Parameters have their defaults; ``--set batch_size=100`` changes one. Results go to
benchmarks/results/.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import platform
import statistics
import time
from pathlib import Path
from typing import Any

import torch

import tsee

LOADERS = {
    "mnist": tsee.datasets.load_mnist,
    "fashion": tsee.datasets.load_fashion,
    "coil100": tsee.datasets.load_coil100,
    "digits": tsee.datasets.load_digits,
}
RESULTS = Path(__file__).parent / "results"


def measure(method: str, parameters: dict[str, Any], data: tsee.datasets.Split, seed: int) -> dict[str, Any]:
    see = getattr(tsee, method)(random_state=seed, verbose=True, **parameters)
    start = time.perf_counter()
    Y_train = see.fit_transform(data.x_train)
    run: dict[str, Any] = {"seed": seed, "fit s": round(time.perf_counter() - start, 1)}
    run |= judge(see, data, Y_train)
    if hasattr(see, "placement") and (see.placement or see.placement_) == "refined":
        see.set_params(placement="forward")
        run |= {f"forward: {name}": value for name, value in judge(see, data, see.transform(data.x_train)).items()}
    return run


def judge(see: Any, data: tsee.datasets.Split, Y_train: Any) -> dict[str, float]:
    start = time.perf_counter()
    Y_test = see.transform(data.x_test)
    seconds = time.perf_counter() - start
    errors = tsee.metrics.knn_error(Y_train, data.y_train, Y_test, data.y_test, k=(1, 5, 10))
    train_errors = tsee.metrics.knn_error(Y_train, data.y_train, k=(1, 5))
    pairs = (data.x_train, Y_train, data.x_test, Y_test)
    scores = tsee.metrics.quality_score(*pairs, k=(10, 100))
    centroids = tsee.metrics.centroid_scores(data.x_train, Y_train, data.y_train, data.x_test, Y_test, data.y_test)
    return {
        **{f"{k}-NN error %": round(100 * error, 2) for k, error in errors.items()},
        **{f"training {k}-NN error %": round(100 * error, 2) for k, error in train_errors.items()},
        **{f"Quality Score {k} %": round(100 * score, 2) for k, score in scores.items()},
        "triplet accuracy": round(tsee.metrics.triplet_accuracy(*pairs), 4),
        "distance correlation": round(tsee.metrics.distance_correlation(*pairs), 4),
        "density correlation": round(tsee.metrics.density_correlation(*pairs), 4),
        "centroid triplets": round(centroids.triplets, 4),
        "transform s": round(seconds, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", choices=LOADERS)
    parser.add_argument("--method", action="append", choices=["DtSEE", "HotSEE", "PtSNE", "HotSNE"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter and its value, written as in Python",
    )
    arguments = parser.parse_args()
    parameters = {name: ast.literal_eval(value) for name, value in (item.split("=", 1) for item in arguments.set)}
    data = LOADERS[arguments.data]()
    for method in arguments.method or ["DtSEE", "HotSEE"]:
        runs = []
        for seed in range(arguments.seeds):
            runs.append(measure(method, parameters, data, seed))
            print(f"{method} on {arguments.data}:", ", ".join(f"{k} {v:g}" for k, v in runs[-1].items()), flush=True)
        median = {key: statistics.median(run[key] for run in runs) for key in runs[0] if key != "seed"}
        print(f"{method} on {arguments.data}, median:", ", ".join(f"{k} {v:g}" for k, v in median.items()), flush=True)
        result = {
            "data": arguments.data,
            "rows": [len(data.x_train), len(data.x_test)],
            "method": method,
            "parameters": parameters or "defaults",
            "tsee": tsee.__version__,
            "torch": torch.__version__,
            "machine": {"processor": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads()},
            "median": median,
            "runs": runs,
        }
        RESULTS.mkdir(exist_ok=True)
        name = "-".join(["maps", arguments.data, method.lower(), *(item.replace("=", "-") for item in arguments.set)])
        path = RESULTS / f"{name.replace(chr(34), '').replace(chr(39), '')}.json"
        path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
