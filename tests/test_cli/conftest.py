"""A small table in files of every kind, a model of it, and the command as a user types it."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tsee
from tsee.cli import main

FEATURES = ["width", "length", "height", "weight"]


@pytest.fixture(scope="session")
def quick():
    """As little training as possible: these tests are about the command, not about the quality of maps."""
    return ["--max-epochs", "1", "--refinement", "5", "--hidden-layers", "8", "--random-state", "0"]


@pytest.fixture(scope="session")
def run():
    """Type ``tsee ...``; the exit code must be ``code``, and a failure one sentence on standard error."""

    def run(*arguments, code=0):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == code, (result.output, result.exception)
        if code == 1:
            errors = [line for line in result.stderr.splitlines() if not line.startswith(("Note on", "Warning:", "  "))]
            assert len(errors) == 1, result.stderr
            assert errors[0].startswith("Error: ")
            assert errors[0].endswith((".", "?"))
            assert result.stdout == ""
        return result

    return run


@pytest.fixture(scope="session")
def flowers():
    """Three kinds of flowers, far apart; in 64ths, which text and single precision hold exactly."""
    generator = np.random.default_rng(0)
    kind = np.arange(90) % 3
    sizes = np.round(64 * generator.normal(size=(90, 4))) / 64 + 8 * kind[:, None]
    frame = pd.DataFrame(sizes, columns=FEATURES, dtype=np.float32)
    frame.insert(0, "id", np.arange(90) + 100)
    frame.insert(1, "kind", np.array(["rose", "lily", "iris"])[kind])
    return frame


@pytest.fixture(scope="session")
def write():
    return write_flowers


def write_flowers(path, frame):
    """The table as a file of the kind that its extension says; as ``.npy`` the features alone."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".npy":
        np.save(path, frame[FEATURES].to_numpy())
    else:
        with h5py.File(path, "w") as file:
            file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
            file["X"] = frame[FEATURES].to_numpy()
            for part, index, columns in (("obs", frame["id"].astype(str), ["kind"]), ("var", FEATURES, [])):
                group = file.create_group(part)
                group.attrs.update({"_index": "index", "column-order": columns})
                group["index"] = np.array(index, dtype=object)
                for column in columns:
                    group[column] = frame[column].to_numpy(object)
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory, flowers):
    """Files of the flowers."""
    folder = tmp_path_factory.mktemp("flowers")
    for extension in (".csv", ".parquet", ".npy", ".h5ad"):
        write_flowers(folder / f"flowers{extension}", flowers)
    return folder


@pytest.fixture(scope="session")
def model(run, folder, quick):
    """A model of the flowers, its features known by name."""
    run("fit", folder / "flowers.csv", "--label", "kind", "-o", folder / "model", *quick)
    return folder / "model"


@pytest.fixture
def model_without_positions(run, folder, quick, tmp_path, monkeypatch):
    """A model fitted to a file as if it were too large for memory: the positions of its rows are not kept."""
    monkeypatch.setattr("tsee.batches.MEMORY", 0)
    run("fit", folder / "flowers.npy", "-o", tmp_path / "without-positions", *quick)
    return tmp_path / "without-positions"


@pytest.fixture(scope="session")
def positions(model, flowers):
    """Their positions on its map."""
    return tsee.load(model).transform(flowers[FEATURES])


@pytest.fixture
def process():
    """Start Python code in a process of its own, which ends with the test at the latest."""
    started = []

    def start(code, *arguments, **given):
        paths = [str(Path(tsee.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
        started.append(subprocess.Popen(command, env=environment, **given))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        one.wait()
