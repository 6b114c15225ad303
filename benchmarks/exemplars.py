"""Exemplars of MNIST: tsee's scalable k-means++ and updates, compared with scikit-learn's KMeans.

    TSEE_DATA=folder/with/mnist.npz python benchmarks/exemplars.py

Both get the same rows (pixels, and their first 50 principal components), the same number of centers and the same
number of updates. scikit-learn is timed on float32, as tsee is, and on float64, for which its seeding is faster; the
ratios are to the faster of the two. The result goes to benchmarks/results/exemplars.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn
import torch
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from tsee.exemplars import choose_centers

RESULT = Path(__file__).parent / "results" / "exemplars.json"


def timed(find_inertia: Callable[[], float]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    inertia = find_inertia()
    return {
        "inertia": inertia,
        "seconds": time.perf_counter() - wall,
        "cpu_seconds": time.process_time() - cpu,
    }


def compare(X: np.ndarray, n_exemplars: int, n_iterations: int, seed: int) -> dict[str, dict[str, float]]:
    def own() -> float:
        generator = torch.Generator().manual_seed(seed)
        rows = torch.from_numpy(X)
        return choose_centers(rows, n_exemplars, n_iterations=n_iterations, generator=generator).inertia

    def peer(rows: np.ndarray) -> float:
        model = KMeans(n_exemplars, init="k-means++", n_init=1, max_iter=n_iterations, tol=0, random_state=seed)
        return float(model.fit(rows).inertia_)

    return {
        "tsee": timed(own),
        "scikit-learn, float32": timed(lambda: peer(X)),
        "scikit-learn, float64": timed(lambda: peer(X.astype(np.float64))),
    }


def with_ratios(runs: dict[str, dict[str, float]]) -> dict[str, object]:
    own = runs["tsee"]
    faster = min((name for name in runs if name != "tsee"), key=lambda name: runs[name]["seconds"])
    ratios = {f"{key}_ratio": own[key] / runs[faster][key] for key in ("inertia", "seconds", "cpu_seconds")}
    return {"runs": runs, "compared_with": faster, **ratios}


def main() -> None:
    parser = argparse.ArgumentParser(description="Exemplars of MNIST by tsee and by scikit-learn.")
    parser.add_argument("--n-exemplars", type=int, default=2000)
    parser.add_argument("--n-iterations", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    arguments = parser.parse_args()
    if "TSEE_DATA" not in os.environ:
        print("Skipped: set TSEE_DATA to the folder that has mnist.npz.")
        return

    pixels = np.load(Path(os.environ["TSEE_DATA"]) / "mnist.npz")["x_train"]
    X = pixels.reshape(len(pixels), -1).astype(np.float32) / 255
    components = PCA(50, svd_solver="randomized", random_state=0).fit_transform(X)
    warnings.simplefilter("ignore", ConvergenceWarning)
    torch.set_num_threads(arguments.threads)

    results = {}
    print(f"{'rows':<12}{'':<24}{'inertia':>12}{'seconds':>10}{'CPU s':>10}")
    with threadpool_limits(arguments.threads):
        for rows in (components, X):
            name = " x ".join(str(side) for side in rows.shape)
            runs = compare(rows, arguments.n_exemplars, arguments.n_iterations, arguments.seed)
            result = results[name] = with_ratios(runs)
            for who, run in runs.items():
                print(f"{name:<12}{who:<24}{run['inertia']:>12.0f}{run['seconds']:>10.1f}{run['cpu_seconds']:>10.1f}")
            print(
                f"{name:<12}{'ratio to the faster':<24}{result['inertia_ratio']:>12.4f}"
                f"{result['seconds_ratio']:>10.3f}{result['cpu_seconds_ratio']:>10.3f}",
                flush=True,
            )
    report = {
        "settings": vars(arguments),
        "versions": {"torch": torch.__version__, "scikit-learn": sklearn.__version__},
        "machine": {"processor": platform.machine(), "cores": os.cpu_count()},
        "results": results,
    }
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
