"""A fit that was stopped is resumed, and ends as it would have ended."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from tests.test_training.stopping import StoppedError, forge, quick, read, stop_at, with_nan
from tsee import DtSEE, HotSEE, HotSNE, ModelError, PtSNE, load
from tsee.batches import Store
from tsee.estimators import exemplar
from tsee.exceptions import CheckpointError, TrainingWarning
from tsee.layout import Descent
from tsee.training import checkpoint

EVERY = [DtSEE, HotSEE, PtSNE, HotSNE]


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:600]


@pytest.fixture(autouse=True)
def at_each_step(monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)


@pytest.mark.parametrize(
    ("cls", "changes"),
    [(cls, {}) for cls in EVERY]
    + [(DtSEE, dict(optimizer="cg")), (DtSEE, dict(contrast="noise", n_exemplars=200)), (DtSEE, dict(refinement=0))]
    + [(DtSEE, dict(normalization="batch")), (DtSEE, dict(placement="forward")), (HotSEE, dict(placement="forward"))],
)
@pytest.mark.parametrize(("epoch", "batch"), [(2, 0), (3, 2), (5, 1)])
def test_it_ends_the_same_to_the_bit(cls, changes, epoch, batch, X, tmp_path, monkeypatch):
    """Stopped between epochs, and within one."""
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
    assert (tmp_path / "checkpoint.safetensors").exists()  # in case the model cannot be saved
    see.save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]


def test_a_network_that_learns_from_exemplars_only_is_resumed_too(X, tmp_path, monkeypatch):
    monkeypatch.setattr(exemplar, "MANY_EXEMPLARS", 150)
    whole = quick(n_exemplars=400).fit(X)
    see = quick(n_exemplars=400, checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        stop_at(patch, 3, 1)
        with pytest.raises(StoppedError):
            see.fit(X)
    see.fit(X)
    assert see.history_["loss"] == whole.history_["loss"]
    for placement in ("refined", "forward"):
        see.placement = whole.placement = placement
        np.testing.assert_array_equal(see.transform(X), whole.transform(X))


@pytest.mark.parametrize("n_components", [2, 4])
def test_a_layout_is_resumed_too(n_components, X, tmp_path, monkeypatch):
    whole = quick(n_components=n_components).fit(X)
    see = quick(n_components=n_components, checkpoint=tmp_path)
    step = Descent.step

    def failing(self):
        if self.done == 9:
            raise StoppedError
        step(self)

    with monkeypatch.context() as patch:
        patch.setattr(Descent, "step", failing)
        with pytest.raises(StoppedError):
            see.fit(X)
    taken = []
    monkeypatch.setattr(Descent, "step", lambda self: (taken.append(self.done), step(self)))
    np.testing.assert_array_equal(see.fit(X).embedding_, whole.embedding_)
    assert taken == list(range(9, 20))


def test_a_network_that_draws_at_random_is_resumed_too(X, tmp_path, monkeypatch):
    network = torch.nn.Sequential(
        torch.nn.Linear(64, 16), torch.nn.Dropout(0.3), torch.nn.ReLU(), torch.nn.Linear(16, 2)
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
    assert see._checkpoint._state is None  # the weights of the optimizer are not kept, nor pickled
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
        (quick(checkpoint=tmp_path, perplexity=5.0), X, "perplexity is 36.0, not 5.0"),
        (quick(checkpoint=tmp_path), X[:500], "n_rows is 600, not 500"),
        (quick(HotSEE, checkpoint=tmp_path), X, "estimator is 'DtSEE', not 'HotSEE'"),
        (quick(checkpoint=tmp_path).set_params(random_state=1), X, "seed is"),
    ):
        with pytest.raises(CheckpointError, match=f"belongs to another fit .*{what}.*: choose another folder"):
            see.fit(data)
    corrected = X.copy()
    corrected[301, 20] += 1  # not among the rows that are looked at
    for data in (X * 2, X[::-1], X.astype(np.float32), corrected):
        with pytest.raises(CheckpointError, match="belongs to a fit of other data: choose another folder"):
            quick(checkpoint=tmp_path).fit(data)
    assert path.read_bytes() == before


def test_a_state_of_other_labels_is_refused(X, tmp_path, monkeypatch):
    see, y = quick(checkpoint=tmp_path, supervised=0.5), np.arange(600) % 7
    whole = quick(supervised=0.5).fit(X, y)
    with monkeypatch.context() as patch:
        stop_at(patch, 3, 0)
        with pytest.raises(StoppedError):
            see.fit(X, y)
    with pytest.raises(CheckpointError, match="belongs to another fit .*labels"):
        see.fit(X, y[::-1])
    np.testing.assert_array_equal(see.fit(X, y).embedding_, whole.embedding_)


def test_a_damaged_state_is_refused(X, tmp_path, monkeypatch):
    path = left(X, tmp_path, monkeypatch)
    content = path.read_bytes()
    odd = bytearray(content)
    odd[-1] ^= 1
    for damaged in (bytes(odd), content[:1000], content[: len(content) // 2], b"", b"PK" + content, os.urandom(2000)):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="is damaged .* remove it to start over"):
            quick(checkpoint=tmp_path).fit(X)


def test_a_state_of_another_version_is_refused(X, tmp_path, monkeypatch):
    path = left(X, tmp_path, monkeypatch)
    content, tensors = read(path)
    forge(path, {**content, "format": "tsee-checkpoint-0"}, tensors)
    with pytest.raises(CheckpointError, match="another version"):
        quick(checkpoint=tmp_path).fit(X)


def in_run(**changes):
    return lambda content, tensors: content["run"].update(changes)


def in_tensors(name, function):
    return lambda content, tensors: tensors.update({name: function(tensors.get(name))})


WEIGHT = "network.layers.0.weight"
FORGERIES = {
    "a stage that does not exist": lambda content, tensors: content.update(stage=7),
    "the layout": lambda content, tensors: content.update(stage=0),
    "a later stage": lambda content, tensors: content.update(stage=2),
    "another placement": lambda content, tensors: content.update(placement="beside"),
    "no positions": lambda content, tensors: tensors.pop("positions"),
    "an epoch less": in_run(epoch=1),
    "an epoch as text": in_run(epoch="2"),
    "more steps": in_run(step=10**6),
    "a step below 0": in_run(step=-1),
    "a loss of infinity": in_run(loss=[np.inf, 1.0]),
    "an endless sum": in_run(loss_sum=10**400),
    "a rate of infinity": in_run(learning_rate=[np.inf, 1.0]),
    "losses as text": in_run(loss=["a", "b"]),
    "one entry more": in_run(more=1),
    "another history": lambda content, tensors: content["history"].update(loss=[1.0]),
    "no identity": lambda content, tensors: content.update(identity=None),
    "no threads": lambda content, tensors: content.update(n_threads=0),
    "a weight of NaN": in_tensors(WEIGHT, with_nan),
    "a double weight": in_tensors(WEIGHT, torch.Tensor.double),
    "a smaller weight": in_tensors(WEIGHT, lambda t: t[1:]),
    "no weight": lambda content, tensors: tensors.pop(WEIGHT),
    "one weight more": in_tensors("network.more", lambda t: torch.zeros(3)),
    "good weights of NaN": in_tensors(WEIGHT.replace("network.", "ended.", 1), with_nan),
    "moments of NaN": in_tensors("optimizer.0.exp_avg", with_nan),
    "steps below 0": in_tensors("optimizer.0.step", lambda t: t - 1000),
    "moments of another size": in_tensors("optimizer.0.exp_avg_sq", lambda t: t[1:]),
    "moments of a weight that does not exist": in_tensors("optimizer.99.step", lambda t: torch.zeros(())),
    "positions of fewer exemplars": in_tensors("positions", lambda t: t[1:]),
}


@pytest.fixture(scope="module")
def state(X, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoint, "INTERVAL", 0.0)
        return left(X, tmp_path_factory.mktemp("state"), patch)


@pytest.mark.parametrize("what", FORGERIES)
def test_a_forged_state_is_refused(what, X, state, tmp_path):
    content, tensors = read(state)
    assert content["run"]["epoch"] == 2
    FORGERIES[what](content, tensors)
    forge(tmp_path / "checkpoint.safetensors", content, tensors)
    with pytest.raises(CheckpointError, match=r"is damaged \(.*\): remove it to start over") as caught:
        quick(checkpoint=tmp_path).fit(X)
    assert "\n" not in str(caught.value)


def test_random_damage_is_refused(X, state, tmp_path):
    """Flipped bits, cuts, and bytes that are missing or too many."""
    rng, content = np.random.default_rng(0), state.read_bytes()
    path = tmp_path / "checkpoint.safetensors"
    for _ in range(60):
        damaged = bytearray(content)
        at = int(rng.integers(len(content))) if rng.random() < 0.5 else int(rng.integers(2000))
        match rng.integers(4):
            case 0:
                damaged[at] ^= 1 << int(rng.integers(8))
            case 1:
                del damaged[at:]
            case 2:
                del damaged[at : at + int(rng.integers(1, 9))]
            case 3:
                damaged[at:at] = rng.bytes(int(rng.integers(1, 9)))
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError):
            checkpoint.Checkpoint(tmp_path, {}).read()


def test_a_state_that_is_not_a_file_is_refused(X, tmp_path):
    (tmp_path / "checkpoint.safetensors").mkdir()
    with pytest.raises(CheckpointError, match="it is not a file"):
        quick(checkpoint=tmp_path).fit(X)


def test_the_state_stays_until_the_model_is_safe(X, tmp_path, monkeypatch):
    """A full disk at the end loses nothing, and the state of a fit that has ended is in nobody's way."""
    see = quick(checkpoint=tmp_path / "state").fit(X)
    state = tmp_path / "state" / "checkpoint.safetensors"

    def full_disk(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", full_disk)
        with pytest.raises(ModelError):
            see.save(tmp_path / "model")
    assert state.exists()
    again = quick(checkpoint=tmp_path / "state").fit(X)  # as a new process would
    np.testing.assert_array_equal(again.embedding_, see.embedding_)
    other = quick(checkpoint=tmp_path / "state", perplexity=5.0).fit(X)
    again.save(tmp_path / "model")
    assert state.exists()  # it is of another fit by now
    other.save(tmp_path / "other")
    assert not state.exists()


def test_a_folder_that_cannot_be_written_is_reported(X, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(CheckpointError, match="cannot be written to .*file.* choose a folder"):
        quick(checkpoint=tmp_path / "file" / "sub").fit(X)


TERMINATED = """
import sys
from sklearn.datasets import load_digits
from tsee import DtSEE
from tsee.estimators import exemplar
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


def test_another_number_of_threads_is_told(X, state, tmp_path):
    content, tensors = read(state)
    assert content["n_threads"] == torch.get_num_threads()
    content["n_threads"] += 3
    forge(tmp_path / "checkpoint.safetensors", content, tensors)
    expected = f"a process with {content['n_threads']} threads, and this one has {torch.get_num_threads()}"
    with pytest.warns(TrainingWarning, match=expected):
        quick(checkpoint=tmp_path).fit(X)


def test_another_number_of_processes_is_told(X, state, tmp_path):
    content, tensors = read(state)
    content["identity"]["n_processes"] = 4
    forge(tmp_path / "checkpoint.safetensors", content, tensors)
    with pytest.raises(CheckpointError, match=r"a fit of 4 process\(es\), and this one has 1: start as many processes"):
        quick(checkpoint=tmp_path).fit(X)
