"""Has a change made anything slower? Ratios against plain matrix products and scikit-learn, in two minutes.

    make bench-quick

Times vary on a shared machine; ratios within one run vary less. Compare them with a run of the previous commit, or with
benchmarks/results/quick.json, which ``--keep`` writes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import KMeans
from sklearn.neighbors import NearestNeighbors

import tsee
from tsee.exemplars import choose_centers
from tsee.neighbors import ExactIndex
from tsee.networks import DeepNetwork
from tsee.objectives import sampled_loss
from tsee.training.precision import has_bfloat16

RESULT = Path(__file__).parent / "results" / "quick.json"
LAYERS = (256, 256, 256)
BATCH, INPUTS = 1024, 50


def seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """Median seconds of a call, after a first call that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def clusters(n_rows: int, n_features: int) -> np.ndarray:
    random = np.random.default_rng(0)
    centers = 3 * random.normal(size=(30, n_features))
    return (centers[random.integers(30, size=n_rows)] + random.normal(size=(n_rows, n_features))).astype(np.float32)


def products(n_rows: int, widths: list[int], *, backward: bool, dtype: torch.dtype = torch.float32) -> float:
    """Seconds of a network's matrix products alone; ``backward`` includes the products of its gradient."""
    layers = [
        [torch.randn(*shape).to(dtype) for shape in ((n_rows, a), (b, a), (n_rows, b))]
        for a, b in itertools.pairwise(widths)
    ]

    def work() -> None:
        for i, (rows, weights, gradient) in enumerate(layers):
            rows @ weights.T
            if backward:
                gradient.T @ rows
                if i:  # the gradient of the data is not needed
                    gradient @ weights

    return seconds(work, 30)


def training_step() -> dict[str, float]:
    network = DeepNetwork(INPUTS, 10, hidden_layers=LAYERS)
    network.quick = has_bfloat16(torch.device("cpu"))  # as in a fit
    optimizer = torch.optim.Adam(network.parameters())
    rows = torch.randn(2 * BATCH, INPUTS)

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        Y = network(rows)
        sampled_loss(Y[:BATCH], Y[BATCH:], exaggeration=2.0).backward()
        optimizer.step()

    def evaluation() -> None:
        network.zero_grad(set_to_none=True)
        network(rows).sum().backward()

    whole, evaluated = seconds(step, 30), seconds(evaluation, 30)
    result = {}
    for dtype in (torch.float32, *([torch.bfloat16] if network.quick else [])):
        alone = products(2 * BATCH, [INPUTS, *LAYERS, 10], backward=True, dtype=dtype)
        kind = str(dtype).removeprefix("torch.")
        result[f"products of a step in {kind} / the step"] = alone / whole
        result[f"products of a step in {kind} / its network evaluations"] = alone / evaluated
    return result


def transform(see: tsee.DtSEE, X: np.ndarray) -> dict[str, float]:
    forward = products(len(X), [X.shape[1], INPUTS, *LAYERS, 2], backward=False)
    see.set_params(placement="forward")
    result = {
        "products of transform / transform, forward, 10,000 rows": forward / seconds(lambda: see.transform(X)),
        "one row, forward, ms": 1e3 * seconds(lambda: see.transform(X[:1]), 50),
    }
    see.set_params(placement="refined")
    result["one row, refined, ms"] = 1e3 * seconds(lambda: see.transform(X[:1]), 50)
    return result


def imports() -> dict[str, float]:
    def run(statement: str) -> float:
        return seconds(lambda: subprocess.run([sys.executable, "-c", statement], check=True), 5)

    return {"import tsee and its estimators / import torch": run("from tsee import DtSEE") / run("import torch")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="write the result to benchmarks/results/quick.json")
    arguments = parser.parse_args()
    X = clusters(30_000, INPUTS)
    rows = torch.from_numpy(X)
    result = imports() | training_step()
    theirs = seconds(
        lambda: NearestNeighbors(n_neighbors=30, algorithm="brute", n_jobs=-1).fit(X).kneighbors(X[:4096]), 3
    )
    result["nearest 30 of 30,000 / scikit-learn's"] = (
        seconds(lambda: ExactIndex(rows).query(rows[:4096], 30), 3) / theirs
    )
    generator = torch.Generator()
    theirs = seconds(lambda: KMeans(500, n_init=1, max_iter=10, random_state=0).fit(X), 1)
    ours = seconds(lambda: choose_centers(rows, 500, n_iterations=10, generator=generator.manual_seed(0)), 1)
    result["500 k-means centers / scikit-learn's"] = ours / theirs
    wide = clusters(30_000, 784)
    start = time.perf_counter()
    see = tsee.DtSEE(max_epochs=2, refinement=20, random_state=0).fit(wide[:20_000])
    result["a short fit of 20,000 rows of 784, s"] = time.perf_counter() - start
    result |= transform(see, wide[20_000:])
    result = {name: round(value, 3) for name, value in result.items()}
    for name, value in result.items():
        print(f"{value:10.3f}  {name}")
    if arguments.keep:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
