"""A search for neighbors that was stopped goes on where it was."""

import os
import signal

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tests.test_training.stopping import StoppedError, forge, quick, read, stop_at, with_nan
from tsee import DtSEE, PtSNE
from tsee.exceptions import CheckpointError
from tsee.objectives import Neighborhoods, neighborhoods
from tsee.training import checkpoint
from tsee.training.kept import KeptNeighbors


@pytest.fixture(scope="module")
def X():
    return load_digits().data[:600]


@pytest.fixture(autouse=True)
def at_each_step(monkeypatch):
    monkeypatch.setattr(checkpoint, "INTERVAL", 0.0)


@pytest.fixture
def in_parts(monkeypatch):
    """The neighbors of 600 exemplars are searched for in three parts; what was searched for is counted."""
    monkeypatch.setattr(neighborhoods, "SEARCHED_ROWS", 200)
    searched, nearest = [], Neighborhoods._nearest

    def counted(self, inputs, own):
        searched.append(own.tolist())
        return nearest(self, inputs, own)

    monkeypatch.setattr(Neighborhoods, "_nearest", counted)
    return searched


def killed_in_search(monkeypatch, searched, see, X):
    """The fit stops when it has found the neighbors of 400 exemplars."""

    def failing(self, rows, found):
        add(self, rows, found)
        if sum(map(len, searched)) == 400:
            raise StoppedError

    add = KeptNeighbors.add
    with monkeypatch.context() as patch:
        patch.setattr(KeptNeighbors, "add", failing)
        with pytest.raises(StoppedError):
            see.fit(X)


def test_a_search_is_resumed_too(X, tmp_path, monkeypatch, in_parts):
    whole = quick().fit(X)
    in_parts.clear()
    see = quick(checkpoint=tmp_path)
    killed_in_search(monkeypatch, in_parts, see, X)
    assert len(os.listdir(tmp_path)) == 2
    in_parts.clear()
    see.fit(X)
    assert sum(map(len, in_parts)) == 200  # only what had not been found
    np.testing.assert_array_equal(see.embedding_, whole.embedding_)
    np.testing.assert_array_equal(see.transform(X), whole.transform(X))
    see.save(tmp_path / "model")
    assert os.listdir(tmp_path) == ["model"]


def test_a_layout_is_resumed_without_another_search(X, tmp_path, monkeypatch, in_parts):
    see = quick(checkpoint=tmp_path)
    with monkeypatch.context() as patch:
        stop_at(patch, 2, 0)
        with pytest.raises(StoppedError):
            see.fit(X)
    in_parts.clear()
    see.fit(X)
    assert not in_parts


def test_a_search_that_is_short_leaves_no_file(X, tmp_path, monkeypatch, in_parts):
    monkeypatch.setattr(checkpoint, "INTERVAL", 1000.0)
    quick(checkpoint=tmp_path).fit(X)
    assert os.listdir(tmp_path) == []


def test_neighbors_stay_only_beside_a_state(X, tmp_path, monkeypatch, in_parts):
    """The search was long, all that followed was short: nothing of the fit stays, as if it had been short."""
    write = KeptNeighbors._write

    def last(self, found):
        write(self, found)
        monkeypatch.setattr(checkpoint, "INTERVAL", 1000.0)

    monkeypatch.setattr(KeptNeighbors, "_write", last)
    quick(checkpoint=tmp_path).fit(X)
    assert os.listdir(tmp_path) == []


def test_a_seed_that_was_drawn_stays_when_a_search_is_resumed(X, tmp_path, monkeypatch, in_parts):
    see = quick(checkpoint=tmp_path).set_params(random_state=None)
    killed_in_search(monkeypatch, in_parts, see, X)
    in_parts.clear()
    see.fit(X)
    assert sum(map(len, in_parts)) == 200


def test_neighbors_of_another_fit_are_refused(X, tmp_path, monkeypatch, in_parts):
    killed_in_search(monkeypatch, in_parts, quick(checkpoint=tmp_path), X)
    with pytest.raises(CheckpointError, match="belongs to another fit .its perplexity"):
        quick(checkpoint=tmp_path, perplexity=7).fit(X)
    with pytest.raises(CheckpointError, match="belongs to a fit of other data"):
        quick(checkpoint=tmp_path).fit(X[::-1])


def test_neighbors_of_a_fit_that_has_ended_make_room(X, tmp_path, monkeypatch, in_parts):
    quick(checkpoint=tmp_path).fit(X)
    expected = quick(perplexity=7).fit(X).embedding_
    np.testing.assert_array_equal(quick(perplexity=7, checkpoint=tmp_path).fit(X).embedding_, expected)


def test_sigterm_in_a_search_keeps_what_was_found(X, tmp_path, monkeypatch, in_parts):
    monkeypatch.setattr(checkpoint, "INTERVAL", 1000.0)
    see = quick(checkpoint=tmp_path)
    begin = Neighborhoods._nearest

    def told(self, inputs, own):
        os.kill(os.getpid(), signal.SIGTERM)
        return begin(self, inputs, own)

    with monkeypatch.context() as patch:
        patch.setattr(Neighborhoods, "_nearest", told)
        with pytest.raises(SystemExit) as ended:
            see.fit(X)
    assert ended.value.code == 143
    in_parts.clear()
    see.fit(X)
    assert sum(map(len, in_parts)) == 400


FORGED_NEIGHBORS = {
    "rows of another type": dict(rows=lambda rows: rows.long()),
    "a row too far": dict(rows=lambda rows: rows + 500),
    "a row below": dict(rows=lambda rows: rows - 1000),
    "neighbors too far": dict(indices=lambda indices: indices + 600),
    "fewer neighbors": dict(indices=lambda indices: indices[:, 1:].contiguous()),
    "no numbers": dict(probabilities=with_nan),
    "other probabilities": dict(probabilities=lambda values: values.double()),
}


@pytest.mark.parametrize("what", FORGED_NEIGHBORS)
def test_forged_neighbors_are_refused(what, X, tmp_path, monkeypatch, in_parts):
    see = quick(checkpoint=tmp_path)
    killed_in_search(monkeypatch, in_parts, see, X)
    path = tmp_path / "neighbors-00000-00001.safetensors"
    content, tensors = read(path)
    for name, function in FORGED_NEIGHBORS[what].items():
        tensors[name] = function(tensors[name])
    forge(path, content, tensors)
    with pytest.raises(CheckpointError, match="is damaged"):
        see.fit(X)


def test_a_file_that_was_cut_off_is_named_and_can_be_removed(X, tmp_path, monkeypatch, in_parts):
    whole = quick().fit(X)
    in_parts.clear()
    see = quick(checkpoint=tmp_path)
    killed_in_search(monkeypatch, in_parts, see, X)
    first, second = (tmp_path / f"neighbors-00000-0000{number}.safetensors" for number in range(2))
    first.write_bytes(first.read_bytes()[:-10])
    with pytest.raises(CheckpointError, match="neighbors-00000-00000.* remove this file to go on without it"):
        see.fit(X)
    first.unlink()
    kept = second.read_bytes()
    in_parts.clear()
    np.testing.assert_array_equal(see.fit(X).embedding_, whole.embedding_)
    assert sum(map(len, in_parts)) == 400
    assert second.read_bytes() == kept


def test_a_file_of_another_process_is_refused(X, tmp_path, monkeypatch, in_parts):
    see = quick(checkpoint=tmp_path)
    killed_in_search(monkeypatch, in_parts, see, X)
    path = tmp_path / "neighbors-00000-00001.safetensors"
    content, tensors = read(path)
    path.unlink()
    forge(path, content | {"process": 3}, tensors)
    in_parts.clear()
    see.fit(X)  # it is not of this process, which searches for what it lacks
    assert sum(map(len, in_parts)) == 400


def test_a_search_is_resumed_where_another_fit_has_ended(X, tmp_path, monkeypatch, in_parts):
    quick(checkpoint=tmp_path).fit(X)
    see = quick(checkpoint=tmp_path, perplexity=7)
    in_parts.clear()
    killed_in_search(monkeypatch, in_parts, see, X)
    in_parts.clear()
    see.fit(X)
    assert sum(map(len, in_parts)) == 200


@pytest.mark.parametrize("other", [PtSNE(max_epochs=1), DtSEE(max_epochs=1, refinement=0)])
def test_fits_that_search_for_no_neighbors_refuse_them_too(other, X, tmp_path, monkeypatch, in_parts):
    killed_in_search(monkeypatch, in_parts, quick(checkpoint=tmp_path), X)
    left = sorted(os.listdir(tmp_path))
    with pytest.raises(CheckpointError, match="belongs to another fit"):
        other.set_params(checkpoint=tmp_path).fit(X)
    assert sorted(os.listdir(tmp_path)) == left


def test_files_of_the_user_stay(X, tmp_path, in_parts):
    for name in ("neighbors-mnist-k15.safetensors", "neighbors-00000-00000.npy"):
        (tmp_path / name).write_bytes(b"precious")
    assert not checkpoint.holds_state(tmp_path)
    quick(checkpoint=tmp_path).fit(X).save(tmp_path / "model")
    assert len(os.listdir(tmp_path)) == 3
