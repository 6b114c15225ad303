"""The cost model of docs/scaling.md, compared with the time of one and two processes on this machine.

    python benchmarks/scaling.py                       # the parts of a step and of a round of k-means, and whole fits
    TSEE_DATA=folder python benchmarks/scaling.py map  # the map of MNIST by one process and by two
    python benchmarks/scaling.py stages                # the stages of a fit of 200,000 synthetic cells

Every process has one thread, so that two processes share the two cores of one machine. Results go to
benchmarks/results/scaling*.json.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

RESULTS = Path(__file__).parent / "results"
ROWS, FEATURES, BATCH, CENTERS = 40_000, 50, 1024, 1000
STAGES_ROWS = 200_000


def clusters(n_rows: int) -> np.ndarray:
    random = np.random.default_rng(0)
    centers = 4 * random.normal(size=(30, FEATURES))
    return (centers[random.integers(30, size=n_rows)] + random.normal(size=(n_rows, FEATURES))).astype(np.float32)


def timed(work: Any, repeats: int) -> float:
    """Median seconds of a call, after a first call that is not counted."""
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def parts(share: np.ndarray, n_processes: int) -> dict[str, float]:
    """Each part of the cost model by itself: evaluations with their gradient, comparisons, updates, and all-reduces."""
    from tsee.networks import DeepNetwork
    from tsee.objectives import log_normalizer
    from tsee.training.precision import has_bfloat16

    network = DeepNetwork(FEATURES, 10, hidden_layers=(256, 256, 256))
    network.quick = has_bfloat16(torch.device("cpu"))  # as in a fit
    rows = torch.from_numpy(share[: 2 * BATCH // n_processes])

    def evaluate() -> None:
        network.zero_grad()
        network(rows).square().mean().backward()

    weights = sum(p.numel() for p in network.parameters())
    optimizer = torch.optim.Adam(network.parameters())
    ours, everyone = torch.randn(BATCH // n_processes, 10, requires_grad=True), torch.randn(BATCH, 10)
    result = {
        "weights": weights,
        "us per evaluation": 1e6 * timed(evaluate, 15) / len(rows),
        "ms per comparison of all pairs": 1e3 * timed(lambda: log_normalizer(ours, everyone).backward(), 15),
        "ms per update of the weights": 1e3 * timed(optimizer.step, 15),
    }
    if n_processes > 1:
        for name, n_numbers in {"a number": 1, "the positions": BATCH * 10, "the gradient": weights}.items():
            message = torch.zeros(n_numbers)
            result[f"ms per sum of {name}"] = 1e3 * timed(lambda message=message: dist.all_reduce(message), 30)
    return result


def steps_and_rounds(share: np.ndarray) -> dict[str, float]:
    """The time of a training step and of a round of k-means, from runs that differ only in their number."""
    import tsee
    from tsee.exemplars import choose_centers

    def seconds(**parameters: Any) -> float:
        # Few exemplars, so that most of a fit is training.
        see = tsee.DtSEE(
            exemplars="centers",
            n_exemplars=CENTERS,
            batch_size=BATCH,
            random_state=0,
            kmeans_iterations=1,
            **parameters,
        )
        start = time.perf_counter()
        see.fit(share)
        return time.perf_counter() - start

    n_steps = -(-ROWS // BATCH)
    step = (seconds(max_epochs=13) - seconds(max_epochs=1)) / (12 * n_steps)

    def centers(n_rounds: int) -> None:
        generator = torch.Generator().manual_seed(0)
        rows = torch.from_numpy(share)
        choose_centers(rows, CENTERS, seeding="random", n_iterations=n_rounds, generator=generator)

    rounds = (timed(lambda: centers(9), 3) - timed(lambda: centers(1), 3)) / 8
    return {"ms per step": 1e3 * step, "ms per round of k-means": 1e3 * rounds}


def in_group(rank: int, n_processes: int, port: int, work: str, queue: Any) -> None:
    torch.set_num_threads(1)
    if n_processes > 1:
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        dist.init_process_group("gloo", rank=rank, world_size=n_processes, timeout=timedelta(minutes=30))
    result = {"map": mnist_map, "stages": stages, "parts": measure}[work](rank, n_processes)
    if rank == 0:
        queue.put(result)
    if n_processes > 1:
        dist.destroy_process_group()


def measure(rank: int, n_processes: int) -> dict[str, float]:
    share = clusters(ROWS)[rank * ROWS // n_processes : (rank + 1) * ROWS // n_processes]
    result = {**parts(share, n_processes), **steps_and_rounds(share)}
    return {name: round(value, 3) for name, value in result.items()}


def mnist_map(rank: int, n_processes: int) -> dict[str, Any]:
    import tsee

    data = tsee.datasets.load_mnist()
    see = tsee.DtSEE(random_state=0)
    start = time.perf_counter()
    see.fit(data.x_train[rank::n_processes])
    seconds = time.perf_counter() - start
    result: dict[str, Any] = {}
    if rank == 0:
        result = {"fit s": round(seconds, 1)}
        for placement in ("refined", "forward"):
            see.set_params(placement=placement)
            Y_train, Y_test = see.transform(data.x_train), see.transform(data.x_test)
            errors = tsee.metrics.knn_error(Y_train, data.y_train, Y_test, data.y_test, k=(1, 5))
            result[placement] = {f"{k}-NN error %": round(100 * error, 2) for k, error in errors.items()}
    return result


def stages(rank: int, n_processes: int) -> dict[str, Any]:
    """The seconds of each stage of a default fit, and how good its map is."""
    sys.path.insert(0, str(Path(__file__).parent / "peers"))
    from run import cells

    import tsee
    from tsee.estimators import base
    from tsee.objectives.neighborhoods import Neighborhoods
    from tsee.training import stages as of_fit

    spent: dict[str, float] = {}

    def clocked(owner: Any, method: str, name: str) -> None:
        function = getattr(owner, method)

        def work(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            result = function(*args, **kwargs)
            spent[name] = round(spent.get(name, 0.0) + time.perf_counter() - start, 1)
            return result

        setattr(owner, method, work)

    clocked(base, "fit_preprocessing", "preprocessing, s")
    clocked(Neighborhoods, "_search", "neighbors, s")
    clocked(of_fit, "large_shape", "large shape, s")
    clocked(of_fit, "lay_out", "layout, s")
    clocked(of_fit.Distill, "run", "network, s")
    X, _ = cells(STAGES_ROWS + 2000)
    rows = X[:STAGES_ROWS]
    see = tsee.DtSEE(random_state=0)
    start = time.perf_counter()
    see.fit(rows[rank * STAGES_ROWS // n_processes : (rank + 1) * STAGES_ROWS // n_processes])
    spent["fit, s"] = round(time.perf_counter() - start, 1)
    if rank:
        return spent
    scores = tsee.metrics.quality_score(
        rows, see.transform(rows), X[STAGES_ROWS:], see.transform(X[STAGES_ROWS:]), k=(10, 100)
    )
    return spent | {f"Quality Score {k} %": round(100 * score, 2) for k, score in scores.items()}


def model(measured: dict[str, float], n_processes: int) -> float:
    """Milliseconds per step that the cost model predicts from the parts."""
    evaluations = 2 * BATCH / n_processes * measured["us per evaluation"] / 1e3
    local = measured["ms per comparison of all pairs"] + measured["ms per update of the weights"]
    if n_processes == 1:
        return evaluations + local
    messages = 6 * measured["ms per sum of a number"] + 2 * measured["ms per sum of the positions"]
    return evaluations + local + messages + measured["ms per sum of the gradient"]


def group(n_processes: int, work: str) -> dict[str, Any]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = mp.get_context("spawn")
    queue = context.SimpleQueue()
    mp.spawn(in_group, (n_processes, port, work, queue), nprocs=n_processes)
    result: dict[str, Any] = queue.get()
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", nargs="?", default="parts", choices=["parts", "map", "stages"])
    work = parser.parse_args().work
    result: dict[str, Any] = {f"{n} process{'es' * (n > 1)}": group(n, work) for n in (1, 2)}
    if work == "parts":
        one, two = result["1 process"], result["2 processes"]
        predicted = {n: model(measured, n) for n, measured in ((1, one), (2, two))}
        result["predicted ms per step"] = {"1 process": round(predicted[1], 1), "2 processes": round(predicted[2], 1)}
        result["measured over predicted"] = {
            "1 process": round(one["ms per step"] / predicted[1], 2),
            "2 processes": round(two["ms per step"] / predicted[2], 2),
        }
        result["speed of 2 processes over 1, per step"] = round(one["ms per step"] / two["ms per step"], 2)
        result["speed of 2 processes over 1, per round of k-means"] = round(
            one["ms per round of k-means"] / two["ms per round of k-means"], 2
        )
    print(json.dumps(result, indent=2))
    path = RESULTS / ("scaling.json" if work == "parts" else f"scaling-{work}.json")
    path.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
