"""A fit that was stopped is resumed, and ends as it would have ended."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import safetensors.torch
import torch
from sklearn.datasets import load_digits

from tsee import DtSEE, HotSEE, HotSNE, PtSNE, load
from tsee.batches import Store
from tsee.exceptions import CheckpointError, TrainingWarning
from tsee.training import checkpoint

EVERY = [DtSEE, HotSEE, PtSNE, HotSNE]


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:600]


def quick(cls=DtSEE, **changes):
    sizes = dict(hidden_layers=(16, 16)) if cls in (DtSEE, PtSNE) else dict(n_factors=20, n_hidden=10)
    refinement = dict(refinement=20) if cls in (DtSEE, HotSEE) else {}
    return cls(max_epochs=6, random_state=0, **{**sizes, **refinement, **changes})


@pytest.fixture(autouse=True)
def at_each_step(monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)


class StoppedError(Exception):
    """The power went out."""


def stop_at(monkeypatch, epoch_number, batch_number):
    """The n-th epoch, over all stages, fails at one of its batches."""
    batches, seen = Store.batches, []

    def counted(self, n_steps, epoch, skip=0):
        seen.append(epoch)
        for i, batch in enumerate(batches(self, n_steps, epoch, skip)):
            if len(seen) == epoch_number and i == batch_number:
                raise StoppedError
            yield batch

    monkeypatch.setattr(Store, "batches", counted)


@pytest.mark.parametrize(
    ("cls", "changes"),
    [(cls, {}) for cls in EVERY]
    + [(DtSEE, dict(optimizer="cg")), (DtSEE, dict(contrast="noise", n_exemplars=200)), (DtSEE, dict(refinement=0))]
    + [(DtSEE, dict(normalization="batch"))],
)
@pytest.mark.parametrize(("epoch", "batch"), [(2, 0), (3, 2), (5, 1)])
def test_it_ends_the_same_to_the_bit(cls, changes, epoch, batch, X, tmp_path, monkeypatch):
    """Stopped between epochs, within one, and after the refinement."""
    whole = quick(cls, **changes).fit(X)
    see = quick(cls, checkpoint=tmp_path, **changes)
    with monkeypatch.context() as patch:
        stop_at(patch, epoch, batch)
        with pytest.raises(StoppedError):
            see.fit(X)
    assert (tmp_path / "checkpoint.safetensors").exists()
    see.fit(X)
    assert see.history_["loss"] == whole.history_["loss"]
    np.testing.assert_array_equal(see.transform(X), whole.transform(X))
    np.testing.assert_array_equal(see.embedding_, whole.embedding_)
    assert not (tmp_path / "checkpoint.safetensors").exists()  # a fit that is done leaves none


def test_a_network_that_draws_at_random_is_resumed_too(X, tmp_path, monkeypatch):
    network = torch.nn.Sequential(
        torch.nn.Linear(50, 16), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Linear(16, 2)
    )
    whole = quick(network=network).fit(X)
    see = quick(network=network, checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        stop_at(patch, 3, 1)
        with pytest.raises(StoppedError):
            see.fit(X)
    np.testing.assert_array_equal(see.fit(X).embedding_, whole.embedding_)


def test_an_interrupted_fit_keeps_what_was_learned_and_can_be_resumed(X, tmp_path, monkeypatch):
    whole = quick().fit(X)
    see = quick(checkpoint=tmp_path)
    batches, seen = Store.batches, []

    def interrupted(self, n_steps, epoch, skip=0):
        seen.append(epoch)
        if len(seen) == 3:
            raise KeyboardInterrupt
        yield from batches(self, n_steps, epoch, skip)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "batches", interrupted)
        with pytest.warns(UserWarning, match="interrupted after 2 of 6 epochs"):
            see.fit(X)
    assert see.n_iter_ == 2
    np.testing.assert_array_equal(see.fit(X).embedding_, whole.embedding_)


def left(X, folder, monkeypatch):
    """A folder with the state of a fit that was stopped."""
    with monkeypatch.context() as patch:
        stop_at(patch, 3, 0)
        with pytest.raises(StoppedError):
            quick(checkpoint=folder).fit(X)
    return folder / "checkpoint.safetensors"


def test_a_state_of_another_fit_is_refused(X, tmp_path, monkeypatch):
    path = left(X, tmp_path, monkeypatch)
    before = path.read_bytes()
    for see, data, what in (
        (quick(checkpoint=tmp_path, perplexity=5.0), X, "perplexity is 10.0, not 5.0"),
        (quick(checkpoint=tmp_path), X[:500], "n_rows is 600, not 500"),
        (quick(checkpoint=tmp_path), X * 2, "scale is"),
        (quick(HotSEE, checkpoint=tmp_path), X, "estimator is 'DtSEE', not 'HotSEE'"),
        (quick(checkpoint=tmp_path).set_params(random_state=1), X, "seed is"),
    ):
        with pytest.raises(CheckpointError, match=f"belongs to another fit .*{what}.*: choose another folder"):
            see.fit(data)
    assert path.read_bytes() == before


def test_a_damaged_state_is_refused(X, tmp_path, monkeypatch):
    path = left(X, tmp_path, monkeypatch)
    content = path.read_bytes()
    for damaged in (content[:1000], content[: len(content) // 2], b"", b"PK" + content, os.urandom(2000)):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="is damaged .* remove it to start over"):
            quick(checkpoint=tmp_path).fit(X)


def test_a_state_of_another_version_is_refused(X, tmp_path, monkeypatch):
    path = left(X, tmp_path, monkeypatch)
    with safetensors.safe_open(path, framework="pt") as file:
        said = json.loads(file.metadata()["state"])
    said["format"] = "tsee-checkpoint-0"
    safetensors.torch.save_file(safetensors.torch.load_file(path), path, {"state": json.dumps(said)})
    with pytest.raises(CheckpointError, match="another version"):
        quick(checkpoint=tmp_path).fit(X)


def test_a_folder_that_cannot_be_written_is_reported(X, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CheckpointError, match="cannot be written to .*file.* choose a folder"):
        quick(checkpoint=tmp_path / "file" / "sub").fit(X)


TERMINATED = """
import sys
from sklearn.datasets import load_digits
from tsee import DtSEE
from tsee.training import checkpoint
checkpoint.INTERVAL = 0.3
X = load_digits().data[:600]
see = DtSEE(max_epochs=int(sys.argv[2]), hidden_layers=(16, 16), refinement=20, random_state=0, checkpoint=sys.argv[1])
see.fit(X).save(sys.argv[3])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no real SIGTERM")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_real_process_that_is_killed(number, tmp_path):
    state, n_epochs = tmp_path / "checkpoint.safetensors", 300
    command = [sys.executable, "-c", TERMINATED, str(tmp_path), str(n_epochs), str(tmp_path / "model")]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        begin = time.monotonic()
        while not state.exists() and process.poll() is None and time.monotonic() - begin < 300:
            time.sleep(0.05)
        process.send_signal(number)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == (143 if number == signal.SIGTERM else -signal.SIGKILL), errors
    assert state.exists()
    subprocess.run(command, check=True, timeout=600)
    whole = DtSEE(max_epochs=n_epochs, hidden_layers=(16, 16), refinement=20, random_state=0)
    whole.fit(load_digits().data[:600])
    np.testing.assert_array_equal(load(tmp_path / "model").embedding_, whole.embedding_)


def test_another_number_of_threads_is_told(X, tmp_path, monkeypatch):
    path = left(X, tmp_path, monkeypatch)
    with safetensors.safe_open(path, framework="pt") as file:
        content = json.loads(file.metadata()["state"])
    assert content["n_threads"] == torch.get_num_threads()
    content["n_threads"] += 3
    safetensors.torch.save_file(safetensors.torch.load_file(path), path, {"state": json.dumps(content)})
    expected = f"a process with {content['n_threads']} threads, and this one has {torch.get_num_threads()}"
    with pytest.warns(TrainingWarning, match=expected):
        quick(checkpoint=tmp_path).fit(X)
