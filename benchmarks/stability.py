"""How much a map changes with the seed, and with a tenth of the data.

    TSEE_DATA=folder python benchmarks/stability.py            # all data sets
    TSEE_DATA=folder python benchmarks/stability.py genomes

Five seeds are compared pair by pair, by `tsee.metrics.map_disparity` of all rows (0: the same map up to shift, scale,
rotation and reflection; 1: unrelated). Then two fits of random nine tenths of the rows are compared, on the rows that
they share, three times. The network is trained for one epoch only: rows are placed among the exemplars, which are laid
out without it. Medians go to benchmarks/results/stability.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from pathlib import Path

import numpy as np
from sets import SETS, load

import tsee

RESULT = Path(__file__).parent / "results" / "stability.json"
NAMES = ["genomes", "mnist", "fashion", "mammoth", "sentences", "pbmc", "words"]


def fit(X: np.ndarray, seed: int) -> np.ndarray:
    return tsee.DtSEE(max_epochs=1, random_state=seed).fit_transform(X)


def compare(X: np.ndarray) -> dict[str, float]:
    maps = [fit(X, seed) for seed in range(5)]
    seeds = [tsee.metrics.map_disparity(*pair) for pair in itertools.combinations(maps, 2)]
    random, parts = np.random.default_rng(0), []
    for repeat in range(3):
        kept = [np.sort(random.permutation(len(X))[: round(0.9 * len(X))]) for _ in range(2)]
        fits = [fit(X[rows], 2 * repeat + i) for i, rows in enumerate(kept)]
        _, first, second = np.intersect1d(*kept, return_indices=True)
        parts.append(tsee.metrics.map_disparity(fits[0][first], fits[1][second]))
    return {
        "rows": len(X),
        "five seeds": round(statistics.median(seeds), 4),
        "two random 90 %": round(statistics.median(parts), 4),
        "two random 90 %, worst of three": round(max(parts), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", metavar="{" + ",".join(SETS) + "}", help="data sets; by default all")
    results = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    for name in parser.parse_args().data or NAMES:
        results[name] = compare(load(name).x_train)
        print(name, results[name], flush=True)
        RESULT.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
