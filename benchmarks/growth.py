"""How the time of a fit, part by part, and its memory beyond the data grow with the number of rows.

    python benchmarks/growth.py            # 10,000, 100,000 and 1,000,000 rows of 50 features: some minutes

All sizes have the same number of epochs and the same batch size; the other parameters have their defaults. Each fit
runs in its own process. The speed of a machine changes within minutes, so the smaller sizes run several times before
and after the largest, and their means are kept. The result goes to benchmarks/results/growth.json.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

HERE = Path(__file__).parent
RESULT = HERE / "results" / "growth.json"
SIZES = (10_000, 100_000, 1_000_000)
EPOCHS, BATCH = 10, 1024
ROUNDS = 2  # of the smaller sizes, before and after the largest

sys.path.insert(0, str(HERE / "peers"))


def timed(spent: dict[str, float], name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def work(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*args, **kwargs)
        finally:
            spent[name] = spent.get(name, 0.0) + time.perf_counter() - start

    return work


def fit(n_rows: int) -> dict[str, float]:
    """Fit in this process, and return the seconds of the fit and of its parts, and its memory."""
    from methods import PeakMemory
    from run import cells

    import tsee
    from tsee.estimators import base
    from tsee.training import stages

    spent: dict[str, float] = {}
    tsee.DtSEE._choose_exemplars = timed(spent, "exemplars", tsee.DtSEE._choose_exemplars)
    tsee.DtSEE._make_objective = timed(spent, "exemplars", tsee.DtSEE._make_objective)
    base.read_batches = timed(spent, "neighbors", base.read_batches)
    base.run_stages = timed(spent, "stages", base.run_stages)
    stages.LayOut.run = timed(spent, "layout", stages.LayOut.run)
    X, _ = cells(n_rows)
    tsee.DtSEE(max_epochs=1, refinement=1, random_state=0).fit(X[:2000])  # a warm-up
    spent.clear()
    with PeakMemory() as memory:
        start = time.perf_counter()
        tsee.DtSEE(max_epochs=EPOCHS, batch_size=BATCH, random_state=0).fit(X)
        seconds = time.perf_counter() - start
    preparation = spent["exemplars"] + spent["neighbors"]
    training = spent["stages"] - spent["layout"]
    return {
        "seconds": seconds,
        "exemplars and affinities, s": preparation,
        "layout of the exemplars, s": spent["layout"],
        "training, s": training,
        "the rest, s": seconds - preparation - spent["stages"],
        "training, us per row and epoch": 1e6 * training / n_rows / EPOCHS,
        "the whole fit, us per row and epoch": 1e6 * seconds / n_rows / EPOCHS,
        "share of exemplars and affinities": preparation / seconds,
        "memory beyond the data, MiB": memory.peak - memory.start,
    }


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(fit(int(sys.argv[1]))))
        return
    result: dict[str, Any] = {"epochs": EPOCHS, "batch": BATCH, "sizes": {}}
    runs_by_size: dict[int, list[dict[str, float]]] = {n_rows: [] for n_rows in SIZES}
    small = ROUNDS * SIZES[:-1]
    for n_rows in (*small, SIZES[-1], *small):
        done = subprocess.run([sys.executable, __file__, str(n_rows)], capture_output=True, text=True, check=True)
        runs_by_size[n_rows].append(json.loads(done.stdout.splitlines()[-1]))
        print(n_rows, json.dumps(runs_by_size[n_rows][-1], indent=2), flush=True)
    for n_rows, runs in runs_by_size.items():
        result["sizes"][n_rows] = {name: round(mean(run[name] for run in runs), 3) for name in runs[0]}
    medium, large = SIZES[-2:]
    memory = {n_rows: result["sizes"][n_rows]["memory beyond the data, MiB"] for n_rows in (medium, large)}
    result["memory, bytes per additional row"] = round((memory[large] - memory[medium]) * 2**20 / (large - medium))
    print(f"{result['memory, bytes per additional row']} bytes per row from {medium:,} to {large:,} rows")
    RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
