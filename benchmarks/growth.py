"""How a fit grows with the number of rows: its time by part, and its memory beyond the data.

    python benchmarks/growth.py            # 10,000, 100,000 and 1,000,000 rows of 50 features: some minutes

Each fit has the defaults but for the number of epochs and the rows of a batch, which are the same for all sizes, and is
made in a process of its own. The speed of a machine changes within minutes: all but the largest are made several times
before it and after it, and their means are kept. The result is benchmarks/results/growth.json.
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
    """In this process: the seconds of a fit, those of its parts, and the memory it took."""
    from methods import Peak
    from run import cells

    import tsee
    from tsee.estimators import base, losses

    spent: dict[str, float] = {}
    base.fit_preprocessing = timed(spent, "preprocessing", base.fit_preprocessing)
    base.read_rows = timed(spent, "neighbors", base.read_rows)
    base.learn_in_stages = timed(spent, "learning", base.learn_in_stages)
    losses.Sampled._freed = timed(spent, "refinement", losses.Sampled._freed)
    tsee.DtSEE._make_objective = timed(spent, "exemplars", tsee.DtSEE._make_objective)
    X, _ = cells(n_rows)
    tsee.DtSEE(max_epochs=1, refinement=1, random_state=0).fit(X[:2000])  # what is made once is not measured
    spent.clear()
    with Peak() as peak:
        start = time.perf_counter()
        tsee.DtSEE(max_epochs=EPOCHS, batch_size=BATCH, random_state=0).fit(X)
        seconds = time.perf_counter() - start
    chosen = spent["exemplars"] + spent["neighbors"]
    training = spent["learning"] - spent["refinement"]
    return {
        "seconds": seconds,
        "exemplars and affinities, s": chosen,
        "refinement of the exemplars, s": spent["refinement"],
        "training, s": training,
        "the rest, s": seconds - chosen - spent["learning"],
        "training, us a row and epoch": 1e6 * training / n_rows / EPOCHS,
        "the whole fit, us a row and epoch": 1e6 * seconds / n_rows / EPOCHS,
        "share of exemplars and affinities": chosen / seconds,
        "memory beyond the data, MiB": peak.most - peak.start,
    }


def main() -> None:
    if len(sys.argv) > 1:
        print(json.dumps(fit(int(sys.argv[1]))))
        return
    result: dict[str, Any] = {"epochs": EPOCHS, "batch": BATCH, "sizes": {}}
    found: dict[int, list[dict[str, float]]] = {n_rows: [] for n_rows in SIZES}
    small = ROUNDS * SIZES[:-1]
    for n_rows in (*small, SIZES[-1], *small):
        done = subprocess.run([sys.executable, __file__, str(n_rows)], capture_output=True, text=True, check=True)
        found[n_rows].append(json.loads(done.stdout.splitlines()[-1]))
        print(n_rows, json.dumps(found[n_rows][-1], indent=2), flush=True)
    for n_rows, runs in found.items():
        result["sizes"][n_rows] = {name: round(mean(run[name] for run in runs), 3) for name in runs[0]}
    few, many = SIZES[-2:]
    more = result["sizes"][many]["memory beyond the data, MiB"] - result["sizes"][few]["memory beyond the data, MiB"]
    result["memory, bytes a row more"] = round(more * 2**20 / (many - few))
    print(f"{result['memory, bytes a row more']} bytes a row from {few:,} to {many:,} rows")
    RESULT.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
