"""Experiments as data: TOML configs, expanded to runs.

An experiment names its runs with grids, and the measures to take of each run. Settings identify a run: experiments
with the same settings share a result, which has the measures that any of them asks for.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from reproduction.faithful import faithful_settings
from tsee.estimators import METHODS

__all__ = ["METHODS", "Catalog", "Experiment", "Run", "expand", "expand_faithful", "matches", "read_catalog"]

# The keys of each measure's numbers, from the outside in. A map has no numbers: it is kept as a file.
MEASURES: dict[str, tuple[str, ...]] = {
    "knn": ("part", "k"),
    "quality": ("k",),
    "test-sets": ("statistic",),
    "map": (),
    "speed": ("quantity",),
}
COMMON = "common"
NOT_PARAMETERS = ("arm", "data", "method", "seed")
Table = dict[str, Any]


@dataclass(frozen=True)
class Run:
    """The settings of one fit (data, method, seed and parameters), or of one comparison of speeds."""

    settings: Table

    @cached_property
    def digest(self) -> str:
        """A hash of the settings. Their order does not matter."""
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()[:10]

    @property
    def parameters(self) -> Table:
        """The estimator's parameters; TOML has no null, so the string "none" means None."""
        named = {name: value for name, value in self.settings.items() if name not in NOT_PARAMETERS}
        return {name: None if value == "none" else value for name, value in named.items()}

    @property
    def name(self) -> str:
        """A readable file name: the settings in which most runs differ, and the digest."""
        words = [self.settings.get(key) for key in ("kind", "arm", "data", "method")]
        words += [f"{key.split('_')[0]}-{self.settings[key]}" for key in ("batch_size", "perplexity") if key in self]
        return "-".join(re.sub(r"[^\w.]+", "-", str(word)) for word in [*words, self.digest] if word is not None)

    def __contains__(self, key: str) -> bool:
        return key in self.settings


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper: its runs, and how the report shows and judges them.

    ``runs`` are by tsee's recipe, and ``faithful`` by the paper's own method.
    """

    name: str
    config: Table
    runs: list[Run]
    faithful: list[Run] = field(default_factory=list)

    @property
    def measures(self) -> list[str]:
        return list(self.config["measures"])

    @cached_property
    def varying(self) -> list[str]:
        """The settings named in the grids in which the runs differ."""
        keys = dict.fromkeys(key for grid in self.config["grid"] for key in grid)
        values = {key: {json.dumps(run.settings[key]) for run in self.runs if key in run} for key in keys}
        return [key for key in keys if len(values[key]) > 1]


@dataclass(frozen=True)
class Catalog:
    """All experiments of a folder, and their common config."""

    folder: Path
    common: Table
    experiments: dict[str, Experiment] = field(default_factory=dict)

    @cached_property
    def wanted(self) -> dict[str, Table]:
        """For each run's digest, the measures that any experiment asks for, with their options."""
        wanted: dict[str, Table] = {}
        for experiment in self.experiments.values():
            for run in [*experiment.runs, *experiment.faithful]:
                for measure in experiment.measures:
                    wanted.setdefault(run.digest, {})[measure] = self.common.get("measures", {}).get(measure, {})
        return wanted

    @property
    def results(self) -> Path:
        return self.folder / "results"

    def display(self, value: Any) -> str:
        """The name of a setting or value in the report."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            return f"{value:,}" if isinstance(value, int) else f"{value:g}"
        return str(self.common.get("names", {}).get(value, value)) if isinstance(value, str) else str(value)

    def label(self, experiment: Experiment, run: Run) -> str:
        """A run in a few words: its method and data, and the settings in which the experiment's runs differ."""
        settings = run.settings
        what = settings["method"] if "method" in run else settings["kind"]
        words = [f"{self.display(what)} on {self.display(settings['data'])}"]
        for key in dict.fromkeys(["batch_size", "perplexity", *experiment.varying]):
            if key in run and key not in ("method", "data"):
                words.append(f"{self.display(key)} {self.display(settings[key])}")
        return ", ".join(words)


def read_catalog(folder: Path) -> Catalog:
    """Read ``common.toml`` and every other config in ``folder/experiments``.

    Parameters
    ----------
    folder : Path
        The folder ``reproduction`` of a checkout.

    Returns
    -------
    Catalog
        The experiments, in the order of their numbers.
    """
    configs = folder / "experiments"
    if not configs.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(configs)!r}: name the folder 'reproduction' of a checkout of tsee with --folder."
        )
    common = _read(configs / f"{COMMON}.toml") if (configs / f"{COMMON}.toml").is_file() else {}
    read = {path.stem: _read(path) for path in sorted(configs.glob("*.toml")) if path.stem != COMMON}
    catalog = Catalog(folder, common)
    for name, config in sorted(read.items(), key=lambda item: (item[1].get("number", 0), item[0])):
        where = configs / f"{name}.toml"
        for key in ("title", "measures", "grid"):
            if key not in config:
                raise ValueError(f"{where} must have {key!r}.")
        for measure in config["measures"]:
            if measure not in MEASURES:
                raise ValueError(f"{where} asks for the measure {measure!r}; it must be one of {', '.join(MEASURES)}.")
        try:
            runs, faithful = (
                list({run.digest: run for run in found}.values())
                for found in (expand(config, common), expand_faithful(config))
            )
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from error
        catalog.experiments[name] = Experiment(name, config, runs, faithful)
    return catalog


def expand(config: Table, common: Table) -> Iterator[Run]:
    """The runs of an experiment's grids. In a grid, a list holds alternatives; anything else is a single value.

    Parameters
    ----------
    config : dict
        An experiment's config.
    common : dict
        The common config. A setting applies to the runs that match its ``when``. Later settings override earlier
        ones, and the grid overrides them all.

    Yields
    ------
    Run
    """
    for chosen in _combinations(config["grid"]):
        settings: Table = {}
        if "kind" not in chosen:
            for setting in common.get("setting", []):
                if matches(setting.get("when", {}), {**settings, **chosen}):
                    settings |= {key: value for key, value in setting.items() if key != "when"}
        run = Run(_canonical({**settings, **chosen}))
        _check(run)
        yield run


def expand_faithful(config: Table) -> Iterator[Run]:
    """The runs of an experiment's ``[[faithful]]`` grids, with the paper's settings and no common ones."""
    for chosen in _combinations(config.get("faithful", [])):
        _check(Run({"seed": 0, **chosen}))
        yield Run(_canonical(faithful_settings(chosen)))


def _combinations(grids: list[Table]) -> Iterator[Table]:
    for grid in grids:
        alternatives = [value if isinstance(value, list) else [value] for value in grid.values()]
        for values in itertools.product(*alternatives):
            yield dict(zip(grid, values, strict=True))


def matches(when: Table, settings: Table) -> bool:
    """Whether the settings match every key of ``when``: a value, a list of values, or at_least and at_most."""
    for key, wanted in when.items():
        if key not in settings:
            return False
        value = settings[key]
        if isinstance(wanted, dict):
            if not wanted.get("at_least", value) <= value <= wanted.get("at_most", value):
                return False
        elif value not in (wanted if isinstance(wanted, list) else [wanted]):
            return False
    return True


def _canonical(value: Any) -> Any:
    """Whole numbers as int, so that 3.0 and 3 are the same setting."""
    if isinstance(value, dict):
        return {key: _canonical(entry) for key, entry in value.items()}
    if isinstance(value, list):
        return [_canonical(entry) for entry in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _check(run: Run) -> None:
    if run.settings.get("kind") == "speed":
        return
    for key in ("data", "method", "seed"):
        if key not in run:
            raise ValueError(f"a run must have {key!r}; this one has only {run.settings}.")
    if run.settings["method"] not in METHODS:
        raise ValueError(f"the method is {run.settings['method']!r}; it must be one of {', '.join(METHODS)}.")
    estimator = METHODS[run.settings["method"]]
    for name in run.parameters:
        if name not in inspect.signature(estimator).parameters:
            raise ValueError(f"{estimator.__name__} has no parameter {name!r}.")


def _read(path: Path) -> Table:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}.") from error
