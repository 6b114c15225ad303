"""A fit that is interrupted or diverges leaves a usable estimator."""

import subprocess
import sys

import numpy as np
import pytest

from tests.quick import quick
from tsee import DtSEE, TrainingWarning, fitted, layout, load
from tsee.training import loop, stages


def test_an_interrupt_leaves_a_fitted_estimator(digits, monkeypatch):
    step, calls = loop.scheduled_rate, 0

    def interrupting(*arguments, **keywords):
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt
        return step(*arguments, **keywords)

    monkeypatch.setattr(loop, "scheduled_rate", interrupting)
    see = quick(DtSEE, max_epochs=100, batch_size=300)
    with pytest.warns(TrainingWarning, match="interrupted after 3 of 100 epochs"):
        see.fit(digits[0])
    assert see.n_iter_ == 3
    assert see.placement_ == "refined"
    assert np.isfinite(see.transform(digits[2])).all()


def test_an_interrupt_of_the_layout_keeps_its_positions(digits, monkeypatch):
    force, calls = layout.Repulsion.__call__, 0

    def interrupting(*arguments):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return force(*arguments)

    monkeypatch.setattr(layout.Repulsion, "__call__", interrupting)
    see = quick(DtSEE, max_epochs=4, n_exemplars=50)
    with pytest.warns(
        TrainingWarning, match="The layout was interrupted: the positions found until then are kept, but"
    ):
        Y = see.fit_transform(digits[0])
    assert see.n_iter_ == 0
    assert see.placement_ == "refined"  # the network has learned nothing
    np.testing.assert_array_equal(see.transform(digits[0]), Y)
    assert len(np.unique(Y, axis=0)) > 100


@pytest.mark.parametrize("moment", ["choose_centers", "Distillation"])
def test_an_interrupt_before_the_network_learns_keeps_the_layout(digits, monkeypatch, moment):
    """While places of the layout are chosen, or what the network is to learn is prepared."""

    def interrupted(*arguments, **keywords):
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, moment, interrupted)
    see = quick(DtSEE, max_epochs=4, placement="forward")
    with pytest.warns(TrainingWarning, match="interrupted before its first epoch: the layout is kept, but the network"):
        see.fit(digits[0])
    assert see.n_iter_ == 0
    assert see.placement_ == "refined"  # the network has learned nothing
    see.set_params(placement=None)
    assert len(np.unique(see.transform(digits[2]), axis=0)) > 100


def test_an_interrupt_before_anything_was_learned_ends_the_fit(digits, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "large_shape", interrupted)
    with pytest.raises(KeyboardInterrupt):
        quick(DtSEE).fit(digits[0])


def test_a_fit_interrupted_at_its_end_leaves_the_previous_fit_intact(digits, monkeypatch):
    X = digits[0]
    see = quick(DtSEE, refinement=0, placement="refined", n_exemplars=100).fit(X)
    before = see.transform(X)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(fitted, "refined_positions", interrupted)
    with pytest.raises(KeyboardInterrupt):
        see.fit(X[:300, :30])
    monkeypatch.undo()
    assert see.n_features_in_ == 64
    np.testing.assert_array_equal(see.transform(X), before)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from sklearn.datasets import load_digits
from tsee import DtSEE, batches as store

X = load_digits().data
see = DtSEE(max_epochs=100000, random_state=0, optimizer=sys.argv[1])
epochs, batches = [], store.Store.batches

def counted(self, n_steps, epoch, skip=0):
    epochs.append(epoch)
    yield from batches(self, n_steps, epoch, skip)

def interrupt():
    while len(epochs) < 3:
        time.sleep(0.1)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

store.Store.batches = counted
threading.Thread(target=interrupt).start()
see.fit(X)
assert 0 < see.n_iter_ < 100000, see.n_iter_
assert np.isfinite(see.transform(X)).all()
see.save(sys.argv[2])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill cannot send SIGINT on Windows")
@pytest.mark.parametrize("optimizer", ["adam", "cg"])
def test_a_real_interrupt(optimizer, tmp_path):
    command = [sys.executable, "-c", INTERRUPTED, optimizer, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "TrainingWarning: Training was interrupted after" in done.stderr
    assert load(tmp_path / "model").n_iter_ > 0


def test_divergence_leaves_a_fitted_estimator(digits):
    see = quick(DtSEE, learning_rate=1e30, max_epochs=5, normalization=None)
    with pytest.warns(TrainingWarning, match="Training diverged in epoch .*learning_rate"):
        see.fit(digits[0])
    assert np.isfinite(see.transform(digits[2])).all()
