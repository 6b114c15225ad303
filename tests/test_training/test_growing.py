"""An update that is stopped leaves the old map whole, and is resumed; several processes do as one."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import tsee
from tests.test_training.test_checkpoint import StoppedError, stop_at
from tsee.exceptions import CheckpointError
from tsee.layout import Growth
from tsee.training import checkpoint


@pytest.fixture(scope="module")
def X():
    return load_digits().data


@pytest.fixture(autouse=True)
def at_each_step(monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)


def quick(**changes):
    return tsee.DtSEE(hidden_layers=(16, 16), refinement=20, random_state=0, **changes)


@pytest.mark.parametrize("changes", [{}, dict(placement="forward")])
def test_a_stopped_update_ends_the_same_to_the_bit(changes, X, tmp_path, monkeypatch):
    see = quick(max_epochs=12, **changes).fit(X[:400])
    whole = see.update(X[400:700])
    before = see.embedding_.copy()
    see.set_params(checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        stop_at(patch, 2, 1)
        with pytest.raises(StoppedError):
            see.update(X[400:700])
    assert (tmp_path / "checkpoint.safetensors").exists()
    assert np.array_equal(see.embedding_, before)
    with pytest.raises(CheckpointError, match="belongs to a fit of other data"):
        see.update(X[400:700] + 1)
    with pytest.raises(CheckpointError, match="its hold is 1.0, not 0.5"):
        see.update(X[400:700], hold=0.5)
    again = see.update(X[400:700])
    assert again.history_["loss"] == whole.history_["loss"]
    assert np.array_equal(again.embedding_, whole.embedding_)
    assert np.array_equal(again.transform(X), whole.transform(X))
    again.save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]


COMMAND = "import tsee.training.checkpoint as c; c.INTERVAL = 0; from tsee.cli import main; main()"


def test_a_killed_update_leaves_the_model_whole_and_is_resumed(X, tmp_path):
    see = quick(max_epochs=24).fit(X[:400])
    see.save(tmp_path / "model")
    np.save(tmp_path / "new.npy", X[400:])
    files = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    command = [
        sys.executable,
        "-c",
        COMMAND,
        "update",
        "model",
        "new.npy",
        "-o",
        "model",
        "--checkpoint",
        "state",
        "-q",
    ]
    environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment)
    while not (tmp_path / "state" / "checkpoint.safetensors").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == files
    subprocess.run([*command, "--resume"], cwd=tmp_path, env=environment, check=True)
    assert np.array_equal(tsee.load(tmp_path / "model").transform(X), see.update(X[400:]).transform(X))
    assert not (tmp_path / "state" / "checkpoint.safetensors").exists()


UPDATE = """
import json, numpy as np, tsee
from sklearn.datasets import load_digits
X = load_digits().data
see = tsee.load(sys.argv[1])
new = X[900:1200] if rank == 0 else X[1200:1700]
grown = see.update(new, hold=float(sys.argv[3]))
if rank == 0:
    grown.save(sys.argv[2])
print(json.dumps(vars(grown.update_)))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="gloo processes are started as on Linux and macOS")
@pytest.mark.parametrize(("changes", "hold"), [({}, 1.0), ({}, 0.5), (dict(placement="forward"), 1.0)])
def test_two_processes_update_as_one(changes, hold, X, tmp_path, peers):
    see = tsee.DtSEE(max_epochs=4, random_state=0, **changes).fit(X[:900])
    see.save(tmp_path / "model")
    told = [json.loads(output) for output in peers.run(UPDATE, 2, tmp_path / "model", tmp_path / "grown", hold)]
    assert told[0] == told[1]
    alone, grown = see.update(X[900:1700], hold=hold), tsee.load(tmp_path / "grown")
    counts = {name: value for name, value in vars(alone.update_).items() if name.startswith("n_")}
    assert counts.items() <= told[0].items()
    # The layout does not depend on who has which row.
    positions = grown.map_.exemplars.positions.numpy()
    np.testing.assert_allclose(positions, alone.map_.exemplars.positions.numpy(), atol=0.05)
    assert np.array_equal(grown.exemplar_indices_, alone.exemplar_indices_)


def test_rows_larger_than_memory_are_read_by_slice(X, tmp_path):
    see = quick(max_epochs=2).fit(X[:400])
    np.save(tmp_path / "new.npy", X[400:])
    grown, expected = (see.update(rows) for rows in (np.load(tmp_path / "new.npy", mmap_mode="r"), X[400:]))
    assert grown.update_ == expected.update_
    assert np.array_equal(grown.exemplar_embedding_, expected.exemplar_embedding_)


TERMINATED = """
import os, signal, sys
import numpy as np, torch, tsee
from tsee.layout import Growth
from tsee.training import checkpoint
checkpoint.INTERVAL = 1000.0
folder, n_steps = sys.argv[1], int(sys.argv[2])
step = Growth.step
def stopped(growth):
    step(growth)
    if growth.done == n_steps:
        os.kill(os.getpid(), signal.SIGTERM)
Growth.step = stopped
see = tsee.load(folder + "/model").set_params(checkpoint=folder + "/state")
see.update(np.load(folder + "/new.npy"), hold=float(sys.argv[3]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no real SIGTERM")
@pytest.mark.parametrize(("hold", "n_steps"), [(1.0, 2), (0.5, 1)])
def test_an_update_that_is_told_to_end_as_it_lays_rows_out_is_resumed(hold, n_steps, X, tmp_path, monkeypatch):
    see = quick(max_epochs=2).fit(X[:400])
    whole = see.update(X[400:700], hold=hold)
    see.save(tmp_path / "model")
    np.save(tmp_path / "new.npy", X[400:700])
    environment = os.environ | {"OMP_NUM_THREADS": str(torch.get_num_threads())}
    command = [sys.executable, "-c", TERMINATED, str(tmp_path), str(n_steps), str(hold)]
    done = subprocess.run(command, env=environment, timeout=300, check=False)
    assert done.returncode == 128 + signal.SIGTERM
    steps = []
    step = Growth.step
    monkeypatch.setattr(Growth, "step", lambda growth: steps.append(growth.done) or step(growth))
    again = see.set_params(checkpoint=tmp_path / "state").update(X[400:700], hold=hold)
    assert steps == list(range(n_steps, 3))  # a seventh of 20 steps
    assert np.array_equal(again.embedding_, whole.embedding_)
    assert np.array_equal(again.transform(X), whole.transform(X))
    assert again.history_["loss"] == whole.history_["loss"]
