"""A small table, models of it, and Python processes that import this tsee."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tsee

FEATURES = list("abcd")
QUICK = dict(max_epochs=1, hidden_layers=(8,), random_state=0)


@pytest.fixture(scope="session")
def frame():
    """Sixty rows of three kinds, in 64ths, which text and single precision hold exactly."""
    generator = np.random.default_rng(0)
    kind = np.arange(60) % 3
    values = np.round(64 * generator.normal(size=(60, 4))) / 64 + 8 * kind[:, None]
    frame = pd.DataFrame(values.astype(np.float32), columns=FEATURES)
    return frame.assign(id=np.arange(60) + 100, kind=np.array(["rose", "lily", "iris"])[kind])


@pytest.fixture(scope="session")
def see(frame):
    return tsee.DtSEE(**QUICK, refinement=5).fit(frame[FEATURES])


@pytest.fixture(scope="session")
def positions(see, frame):
    return see.transform(frame[FEATURES])


@pytest.fixture(scope="session")
def model(see, tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model"
    see.save(path)
    return path


@pytest.fixture(scope="session")
def unnamed_model(frame, tmp_path_factory):
    """A model of the same rows that does not know the names of its features."""
    path = tmp_path_factory.mktemp("models") / "unnamed"
    tsee.DtSEE(**QUICK, refinement=5).fit(frame[FEATURES].to_numpy()).save(path)
    return path


@pytest.fixture(scope="session")
def pairwise_model(frame, tmp_path_factory):
    """A model without exemplars."""
    path = tmp_path_factory.mktemp("models") / "pairwise"
    tsee.PtSNE(**QUICK).fit(frame[FEATURES]).save(path)
    return path


@pytest.fixture(scope="session")
def write():
    """Write the table to a file of the kind that its extension says; to ``.npy`` the features alone."""

    def write(path, frame):
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".csv":
            frame.to_csv(path, index=False)
        elif path.suffix == ".parquet":
            frame.to_parquet(path, index=False)
        else:
            np.save(path, frame[FEATURES].to_numpy())
        return path

    return write


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
