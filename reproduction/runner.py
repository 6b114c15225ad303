"""Runs are executed once, and each is kept as a JSON file, which is written completely or not at all."""

from __future__ import annotations

import datetime
import hashlib
import io
import json
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import tsee
from reproduction.experiments import METHODS, Catalog, Run, Table, matches
from reproduction.faithful import Rule, faithful_estimator
from tsee.batches import steps_per_epoch
from tsee.data import blocks
from tsee.datasets import Split, load_coil100, load_digits, load_fashion, load_mnist
from tsee.exceptions import TrainingWarning
from tsee.metrics import knn_error, quality_score
from tsee.networks import DeepNetwork, HighOrderNetwork

__all__ = ["SPEED_QUANTITIES", "check_names", "is_short", "progress", "read_result", "run_experiments"]

LOADERS: dict[str, Callable[[], Split]] = {
    "mnist": load_mnist,
    "fashion": load_fashion,
    "coil100": load_coil100,
    "digits": load_digits,
}
ROWS_PER_CALL = 1024  # of a network whose speed is measured
SPEED_QUANTITIES = ("deep", "high-order", "time ratio", "multiplication ratio")


def check_names(catalog: Catalog, names: Sequence[str]) -> list[str]:
    """The named experiments, each once; "all" stands for all of them."""
    for name in names:
        if name != "all" and name not in catalog.experiments:
            raise ValueError(f"There is no experiment {name!r}; choose from {', '.join(catalog.experiments)}, or all.")
    return list(catalog.experiments) if "all" in names else list(dict.fromkeys(names))


def progress(catalog: Catalog) -> list[str]:
    """A line for each experiment: its name, the number of runs done, and its title."""
    width = max(map(len, catalog.experiments), default=0)
    lines = []
    for name, experiment in catalog.experiments.items():
        done, faithful = (
            f"{sum(read_result(catalog, run) is not None for run in runs):3} of {len(runs):3} runs"
            for runs in (experiment.runs, experiment.faithful)
        )
        what = f"{experiment.config['title']} ({experiment.config.get('paper', 'not in the paper')})"
        lines.append(f"{name:{width}}  {done}  {faithful} of the paper's method  {what}")
    return lines


def run_experiments(
    catalog: Catalog,
    names: Sequence[str],
    say: Callable[[str], None],
    *,
    faithful: bool = False,
    only: Table | None = None,
    minutes: float | None = None,
) -> None:
    """Execute the runs of the named experiments that have no result yet, or whose time limit was shorter.

    Parameters
    ----------
    catalog : Catalog
        All experiments; those that are not named still add their measures to shared runs.
    names : sequence of str
        Names of experiments, or "all".
    say : callable
        Called with a line of text for each run.
    faithful : bool
        Execute the runs of the paper's own method instead of those of tsee's recipe.
    only : dict, optional
        Settings: only the runs that match them are executed.
    minutes : float, optional
        The time limit of a run of the paper's method, instead of the limit in the common config.
    """
    names = check_names(catalog, names)
    catalog.results.mkdir(exist_ok=True)
    for name in names:
        experiment = catalog.experiments[name]
        runs = [
            run for run in (experiment.faithful if faithful else experiment.runs) if matches(only or {}, run.settings)
        ]
        for i, run in enumerate(runs, 1):
            # Read only now, because another process may have written it in the meantime.
            result, note = read_result(catalog, run), "kept"
            if result is None or (is_short(result) and result["training"]["limit"] < _limit(catalog, minutes)):
                start = time.perf_counter()
                result = _execute(catalog, run, minutes)
                note = f"{time.perf_counter() - start:.0f} s"
            label = catalog.label(experiment, run)
            say(f"{i}/{len(runs)} {name}: {label}: {_headline(result)} ({note})")


def read_result(catalog: Catalog, run: Run) -> Table | None:
    """The result of a run, or None if there is no result with all the measures that the experiments ask for."""
    path = catalog.results / f"{run.name}.json"
    try:
        result: Table = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    if result.get("settings") != run.settings:
        return None
    for measure, options in catalog.wanted.get(run.digest, {}).items():
        if result["metrics"].get(measure, {}).get("options") != options:
            return None
    file = result["metrics"].get("map", {}).get("file")
    return result if file is None or (catalog.results / file).is_file() else None


def is_short(result: Table) -> bool:
    """Whether a time limit ended a run while its loss still fell."""
    return bool(result.get("training", {}).get("ended by") == "time")


def _limit(catalog: Catalog, minutes: float | None) -> float:
    """The time limit of a run of the paper's method."""
    return float(catalog.common.get("faithful", {})["minutes"] if minutes is None else minutes)


def _execute(catalog: Catalog, run: Run, minutes: float | None = None) -> Table:
    wanted = catalog.wanted[run.digest]
    if run.settings.get("kind") == "speed":
        found = _time_networks(run)
    elif "arm" in run:
        found = _fit_faithfully(catalog, run, wanted, minutes)
    else:
        estimator = METHODS[run.settings["method"]](**run.parameters, random_state=run.settings["seed"])
        found = _fit(catalog, run, wanted, estimator)
    metrics = {measure: {"options": wanted[measure], **found["metrics"][measure]} for measure in wanted}
    result = {
        "settings": run.settings,
        **found,
        "metrics": metrics,
        "machine": _machine(),
        "tsee": tsee.__version__,
        "commit": _commit(catalog.folder),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
    _write(catalog.results / f"{run.name}.json", (_format(result) + "\n").encode())
    if not is_short(result):
        shutil.rmtree(_unfinished(catalog, run), ignore_errors=True)
    return result


def _unfinished(catalog: Catalog, run: Run) -> Path:
    """Where the state of a run is kept until it has ended by itself."""
    return catalog.folder / "unfinished" / run.name


def _fit_faithfully(catalog: Catalog, run: Run, wanted: Table, minutes: float | None) -> Table:
    """Fit by the paper's method for as long as the loss falls, within a time limit."""
    settings = catalog.common.get("faithful", {})
    state = _unfinished(catalog, run)
    rule = Rule(**{**settings, "minutes": _limit(catalog, minutes)}, note=state / "course.json")
    parameters = {**run.parameters, "random_state": run.settings["seed"], "checkpoint": state}
    return _fit(catalog, run, wanted, faithful_estimator(run.settings["method"], parameters, rule), rule)


def _fit(catalog: Catalog, run: Run, wanted: Table, estimator: Any, rule: Rule | None = None) -> Table:
    data = _load(run.settings["data"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        # An interrupted fit returns what it has learned so far, which must not be kept as a result, unless it has ended
        # by a rule.
        warnings.filterwarnings("error" if rule is None else "ignore", ".*was interrupted", TrainingWarning)
        start = time.perf_counter()
        try:
            Y_train = estimator.fit_transform(data.x_train)
        except TrainingWarning:
            raise KeyboardInterrupt from None
        training = {} if rule is None else {"training": rule.ended(estimator.history_["loss"], caught)}
        fitted = time.perf_counter()
        Y_test = estimator.transform(data.x_test)
        placed = time.perf_counter()
    n_steps = steps_per_epoch(len(data.x_train), estimator.batch_size) if estimator.batch_size else None
    metrics: Table = {}
    for measure, options in wanted.items():
        if measure == "knn":
            test = knn_error(Y_train, data.y_train, Y_test, data.y_test, **options)
            train = knn_error(Y_train, data.y_train, **options)
            metrics[measure] = {"values": _percent({"test": test, "train": train})}
        elif measure == "quality":
            scores = quality_score(data.x_train, Y_train, data.x_test, Y_test, **options)
            metrics[measure] = {"values": _percent(scores)}
        elif measure == "test-sets":
            metrics[measure] = {"values": _percent(_test_sets(data, Y_train, Y_test, **options))}
        else:
            metrics[measure] = {"file": f"{run.name}.npz"}
            arrays = {"Y": Y_test.astype(np.float32), "labels": data.y_test}
            if hasattr(estimator, "exemplar_embedding_"):
                arrays["exemplars"] = estimator.exemplar_embedding_
            content = io.BytesIO()
            np.savez_compressed(content, **arrays)
            _write(catalog.results / f"{run.name}.npz", content.getvalue())
    return {
        "resolved": {
            "epochs": estimator.n_iter_,
            "steps": None if n_steps is None else n_steps * estimator.n_iter_,
            "perplexity": estimator.perplexity_,
            "exemplars": getattr(estimator, "n_exemplars_", None),
            "device": str(next(estimator.network_.parameters()).device),
        },
        "data": {"rows": [len(data.x_train), len(data.x_test)], "sha256": _checksum(run.settings["data"])},
        "metrics": metrics,
        "loss": estimator.history_["loss"][-1] if estimator.history_["loss"] else None,
        "seconds": {"fit": round(fitted - start, 2), "transform": round(placed - fitted, 3)},
        "warnings": [str(warning.message) for warning in caught],
        **training,
    }


def _test_sets(data: Split, Y_train: Any, Y_test: Any, sets: int, rows: int, seed: int) -> dict[str, float]:
    """Mean and standard deviation of the 1-NN error over random subsets of the held-out rows."""
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(sets):
        drawn = rng.choice(len(Y_test), rows, replace=False)
        errors.append(knn_error(Y_train, data.y_train, Y_test[drawn], data.y_test[drawn], k=1)[1])
    return {"mean": statistics.fmean(errors), "sd": statistics.stdev(errors)}


@torch.inference_mode()
def _time_networks(run: Run) -> Table:
    """Median times of the two networks on the same held-out rows; the networks take turns."""
    settings = run.settings
    data = _load(settings["data"])
    rows = torch.from_numpy(data.x_test.astype(np.float32)) / float(data.x_test.max())
    generator = torch.Generator().manual_seed(settings["seed"])
    kinds: dict[str, type[nn.Module]] = {"deep": DeepNetwork, "high-order": HighOrderNetwork}
    networks = {}
    for name, kind in kinds.items():
        options = {key: None if value == "none" else value for key, value in settings[name].items()}
        networks[name] = kind(rows.shape[1], 2, **options, generator=generator).eval()
    seconds: dict[str, list[float]] = {name: [] for name in networks}
    for _ in range(1 + settings["repeats"]):
        for name, network in networks.items():
            start = time.perf_counter()
            for part in blocks(len(rows), ROWS_PER_CALL):
                network(rows[part])
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(times[1:]) for name, times in seconds.items()}  # the first round is a warm-up
    weights = {
        name: sum(m.in_features * m.out_features for m in network.modules() if isinstance(m, nn.Linear))
        for name, network in networks.items()
    }
    values = {
        **{name: round(1000 * median, 2) for name, median in medians.items()},
        "time ratio": round(medians["deep"] / medians["high-order"], 3),
        "multiplication ratio": round(weights["deep"] / weights["high-order"], 3),
    }
    return {
        "data": {"rows": [len(data.x_train), len(data.x_test)], "sha256": _checksum(settings["data"])},
        "metrics": {"speed": {"values": values}},
        "seconds": {"all": round(sum(map(sum, seconds.values())), 2)},
    }


@cache
def _load(name: str) -> Split:
    if name not in LOADERS:
        raise ValueError(f"There is no data set {name!r}; choose from {', '.join(LOADERS)}.")
    return LOADERS[name]()


@cache
def _checksum(name: str) -> str:
    """A hash of the rows and labels: a data set of the same name may be split differently."""
    digest = hashlib.sha256()
    for array in _load(name):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@cache
def _machine() -> Table:
    model = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:  # not Linux
        pass
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def _commit(folder: Path) -> str | None:
    command = ["git", "-C", str(folder), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _percent(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _percent(entry) for key, entry in value.items()}
    return round(100 * value, 3)


def _headline(result: Table) -> str:
    metrics = result["metrics"]
    if "speed" in metrics:
        return f"deep / high-order {metrics['speed']['values']['time ratio']:.2f}"
    if "knn" in metrics:
        k, error = next(iter(metrics["knn"]["values"]["test"].items()))
        return f"{k}-NN {error:.1f} %"
    return ", ".join(metrics)


def _format(result: Table) -> str:
    """JSON with one line per entry; a dictionary without dictionaries in it is on one line."""

    def flat(value: Any) -> bool:
        return not (isinstance(value, dict) and any(isinstance(entry, dict) for entry in value.values()))

    def text(value: Any, indent: str) -> str:
        if flat(value) and indent:
            return json.dumps(value)
        inner = indent + "  "
        entries = [f"{inner}{json.dumps(key)}: {text(entry, inner)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(entries) + f"\n{indent}}}"

    return text(result, "")


def _write(path: Path, content: bytes) -> None:
    """Write a file at once: a reader sees the old content or the new one, never a part of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
