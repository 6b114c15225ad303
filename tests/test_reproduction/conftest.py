"""Small experiments on the digits, the committed configs, and results that no run has made."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from reproduction.__main__ import FOLDER, main
from reproduction.claims import number_keys

TINY = """
title = "Tiny"
paper = "table 0"
measures = ["knn", "map"]

[[grid]]
data = "digits"
method = ["pt-sne", "hot-see"]
batch_size = [200, 400]

[[faithful]]
data = "digits"
method = "hot-see"
batch_size = 400
n_exemplars = 50
n_factors = 20
n_hidden = 10

[[table]]
measure = "knn"
where = { part = "test", k = 1 }
rows = { method = ["pt-sne", "hot-see"] }
columns = { batch_size = [200, 400] }
paper = { pt-sne = [98.76, 0.12] }

[[figure]]
kind = "lines"
file = "lines.png"
measure = "knn"
where = { part = "test", k = 1 }
panels = [{ data = "digits" }]
x = "batch_size"
lines = "method"

[[figure]]
kind = "maps"
file = "maps.png"
panels = [{ method = "pt-sne", batch_size = 200 }, { method = "hot-see", batch_size = 400 }]

[[claim]]
text = "All is well"
check = "cells"
"""
OTHER = """
number = 1
title = "Other"
measures = ["quality"]

[[grid]]
data = "digits"
method = "pt-sne"
batch_size = 200
"""
COMMON = """
[[setting]]
seed = 0
perplexity = 3.0
max_epochs = 1

[[setting]]
when = { method = ["hot-see", "dt-see"] }
exemplars = "centers"
n_exemplars = 50
kmeans_iterations = 1

[[setting]]
when = { batch_size = { at_least = 400 } }
learning_rate = 0.02

[faithful]
minutes = 5
epochs = 2
batches = 6
fall = 0.1

[measures.knn]
k = [1, 3]

[measures.quality]
k = [1, 5]

[names]
pt-sne = "pt-SNE"
batch_size = "batch"

[report]
tolerance = 0.5
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A reproduction folder with two experiments on the digits, one epoch each."""
    folder = tmp_path / "reproduction"
    (folder / "experiments").mkdir(parents=True)
    for name, text in {"common": COMMON, "tiny": TINY, "other": OTHER}.items():
        (folder / "experiments" / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    """A reproduction folder with the configs of the paper's experiments and no results."""
    shutil.copytree(FOLDER / "experiments", tmp_path / "experiments")
    return tmp_path


@pytest.fixture
def command():
    """Call ``python -m reproduction`` with arguments."""
    return lambda *arguments: CliRunner().invoke(main, [*map(str, arguments)])


@pytest.fixture
def pretend():
    """Write results as the runner does, without running anything."""
    return write_results


def write_results(catalog, value=lambda run: 7.0, skip=lambda run: False):
    catalog.results.mkdir(exist_ok=True)
    runs = {
        run.digest: run
        for experiment in catalog.experiments.values()
        for run in [*experiment.runs, *experiment.faithful]
    }
    for run in runs.values():
        if skip(run):
            continue
        metrics = {}
        for measure, options in catalog.wanted[run.digest].items():
            metrics[measure] = {"options": options, "values": {}}
            for keys in number_keys(measure, options):
                *outer, last = map(str, keys.values())
                level = metrics[measure]["values"]
                for key in outer:
                    level = level.setdefault(key, {})
                level[last] = value(run)
            if measure == "map":
                metrics[measure]["file"] = f"{run.name}.npz"
                positions = np.random.default_rng(0).random((40, 2))
                np.savez(catalog.results / f"{run.name}.npz", Y=positions, labels=np.arange(40) % 10)
        result = {
            "settings": run.settings,
            "metrics": metrics,
            "seconds": {"fit": 60.0},
            "machine": dict(processor="P", cores=2, threads=1, torch="2"),
        }
        (catalog.results / f"{run.name}.json").write_text(json.dumps(result))
