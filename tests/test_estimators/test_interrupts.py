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
    see = quick(DtSEE, max_epochs=100, batch_size=300)  # half of them before the refinement
    with pytest.warns(TrainingWarning, match="interrupted after 3 of 100 epochs"):
        see.fit(digits[0])
    assert see.n_iter_ == 3
    assert see.placement_ == "forward"
    assert np.isfinite(see.transform(digits[2])).all()


def test_an_interrupt_of_the_refinement_keeps_its_positions(digits, monkeypatch):
    force, calls = layout.Repulsion.__call__, 0

    def interrupting(*arguments):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return force(*arguments)

    monkeypatch.setattr(layout.Repulsion, "__call__", interrupting)
    see = quick(DtSEE, max_epochs=4)
    with pytest.warns(TrainingWarning, match="The refinement was interrupted: the positions found until then"):
        Y = see.fit_transform(digits[0])
    assert see.n_iter_ == 2
    np.testing.assert_array_equal(see.transform(digits[0]), Y)
    monkeypatch.undo()
    np.testing.assert_array_equal(quick(DtSEE, max_epochs=4, refinement=3).fit_transform(digits[0]), Y)


def test_an_interrupt_after_the_refinement_keeps_the_network(digits, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(stages, "same_for_equal", interrupted)
    see = quick(DtSEE, max_epochs=4)
    with pytest.warns(TrainingWarning, match="The refinement was interrupted: positions are the network's"):
        Y = see.fit_transform(digits[0])
    assert see.placement_ == "forward"
    np.testing.assert_array_equal(see.transform(digits[0]), Y)


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
