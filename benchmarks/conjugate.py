"""The paper's conjugate gradient: how often a batch evaluates its loss, and how fast an evaluation is.

    python benchmarks/conjugate.py --keep

Trains the paper's two networks on MNIST for a few batches of 1,000 rows against 2,000 k-means centers, and pt-SNE's and
hot-SNE's loss on the same batches. An evaluation is the loss with its gradient. Its share of the products' rate is the
time of the network's matrix products alone, forward and backward, divided by the time of the evaluation; all times are
of the processor, in one process. ``--keep`` writes benchmarks/results/conjugate.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from tsee.batches import Batch
from tsee.datasets import load_mnist
from tsee.exemplars import Exemplars, choose_centers
from tsee.networks import DeepNetwork, HighOrderNetwork
from tsee.objectives import Full, Objective, Pairwise
from tsee.preprocessing import Inputs, fit_preprocessing
from tsee.training.optimizers import make_optimizer

RESULT = Path(__file__).parent / "results" / "conjugate.json"
BATCH, CENTERS, PERPLEXITY = 1000, 2000, 3.0
CPU = torch.device("cpu")


def seconds(*works: Callable[[], Any], repeats: int = 8) -> list[float]:
    """The fewest seconds of the processor that each of several calls took, in turns: others may slow the machine."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, taken in zip(works, times, strict=True):
            start = time.process_time()
            work()
            taken.append(time.process_time() - start)
    return [min(taken) for taken in times]


def products(n_rows: int, network: nn.Module) -> tuple[Callable[[], None], float]:
    """The matrix products of a network's loss and gradient for so many rows, and how many operations they are."""
    shapes = [(m.in_features, m.out_features) for m in network.modules() if isinstance(m, nn.Linear)]
    layers = [[torch.randn(*shape) for shape in ((n_rows, a), (b, a), (n_rows, b))] for a, b in shapes]

    def work() -> None:
        for i, (rows, weights, gradient) in enumerate(layers):
            rows @ weights.T
            gradient.T @ rows
            if i:  # the gradient of the data is not needed
                gradient @ weights

    return work, sum(2.0 * n_rows * a * b * (3 if i else 2) for i, (a, b) in enumerate(shapes))


def measure(network: nn.Module, form: Objective, batches: list[Batch], n_warm: int) -> dict[str, float]:
    """Train on the batches, and count and time the ones after the first ``n_warm``."""
    optimizer = make_optimizer("cg", network.parameters())
    counts, times, losses = [], [], []
    for batch in batches:
        start, count = time.process_time(), itertools.count()
        ready = form.prepared(batch)

        def closure(ready: Batch = ready, count: Any = count) -> Tensor:
            next(count)
            return form.loss(network, ready)

        losses.append(optimizer.step(closure))
        times.append(time.process_time() - start)
        counts.append(next(count))
    ready = form.prepared(batches[-1])
    parameters = list(network.parameters())
    work, operations = products(len(ready["rows"]), network)
    alone, evaluation = seconds(work, lambda: torch.autograd.grad(form.loss(network, ready), parameters))
    return {
        "evaluations of a batch, mean": statistics.fmean(counts[n_warm:]),
        "evaluations of a batch, largest": max(counts[n_warm:]),
        "seconds of a batch": statistics.median(times[n_warm:]),
        "a batch, in evaluations": statistics.median(times[n_warm:]) / evaluation,
        "seconds of an evaluation": evaluation,
        "GFLOP of an evaluation's products": operations / 1e9,
        "GFLOP/s of the products alone": operations / alone / 1e9,
        "products alone / evaluation": alone / evaluation,
        "loss of the first batch": losses[0],
        "loss of the last batches": statistics.fmean(losses[-5:]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", action="store_true", help="write the result to benchmarks/results/conjugate.json")
    parser.add_argument("--batches", type=int, default=30)
    parser.add_argument("--only", help="a part of the name of the methods to measure")
    arguments = parser.parse_args()
    X = load_mnist().x_train
    generator = torch.Generator().manual_seed(0)
    inputs = Inputs(X, fit_preprocessing(X, None, generator))
    sample = inputs[slice(0, 20_000)]
    centers = choose_centers(sample, CENTERS, n_iterations=3, generator=generator).positions
    full, pairwise = Full(Exemplars(centers), 0, PERPLEXITY, CPU), Pairwise(PERPLEXITY, CPU)
    deep = partial(DeepNetwork, X.shape[1], 2, normalization=None, activation="sigmoid", generator=generator)
    high = partial(HighOrderNetwork, X.shape[1], 2, normalization=None, generator=generator)
    result = {}
    methods: list[tuple[str, Objective, Callable[[], nn.Module]]] = [
        ("dt-SEE", full, deep),
        ("hot-SEE", full, high),
        ("pt-SNE", pairwise, deep),
        ("hot-SNE", pairwise, high),
    ]
    for name, form, make in methods:
        if arguments.only and arguments.only not in name:
            continue
        batches = []
        for part in range(arguments.batches):
            rows = sample[torch.randperm(len(sample), generator=generator)[:BATCH]]
            batches.append(Batch({"inputs": rows, **form.columns(rows, slice(0, BATCH))}, part))
        found = measure(make(), form, batches, arguments.batches // 3)
        result[name] = {key: float(f"{value:.4g}") for key, value in found.items()}
        print(name)
        for key, value in result[name].items():
            print(f"{value:10.3f}  {key}", flush=True)
    if arguments.keep:
        RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
