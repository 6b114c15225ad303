"""`triplet_accuracy` against a loop over all triplets, and at its extremes."""

import itertools

import numpy as np
import pytest

from tsee.exceptions import UndefinedMeasureError
from tsee.metrics import spaces, triplet_accuracy


def naive(X_train, Y_train, X_test=None, Y_test=None):
    """All triplets, one by one: those that tie in the data are left out, those that tie on the map count a half."""
    own = X_test is None
    points = (X_train, Y_train) if own else (X_test, Y_test)
    scores = []
    for i in range(len(points[0])):
        others = [j for j in range(len(X_train)) if not own or j != i]
        for j, k in itertools.combinations(others, 2):
            x, y = (
                np.sign(((test[i] - train[j]) ** 2).sum() - ((test[i] - train[k]) ** 2).sum())
                for test, train in zip(points, (X_train, Y_train), strict=True)
            )
            if x:
                scores.append(1 if x == y else 0.5 if y == 0 else 0)
    return np.mean(scores)


def cut(data, held_out, n):
    return [rows[:n] for rows in (data if held_out else data[:2])]


def test_all_triplets(data, held_out):
    args = cut(data, held_out, 20)
    assert triplet_accuracy(*args) == pytest.approx(naive(*args), abs=1e-12)


def test_ties(held_out):
    generator = np.random.default_rng(0)
    args = [generator.integers(3, size=(15, columns)).astype(float) for columns in (4, 2, 4, 2)]
    args = args if held_out else args[:2]
    assert triplet_accuracy(*args) == pytest.approx(naive(*args), abs=1e-12)


def test_a_sample_is_within_its_standard_error(data, held_out):
    args = cut(data, held_out, 60)
    exact = triplet_accuracy(*args, n_triplets=60**3)
    found = [triplet_accuracy(*args, n_triplets=2000, random_state=seed) for seed in range(40)]
    error = np.sqrt(exact * (1 - exact) / 2000)
    assert np.std(found) == pytest.approx(error, rel=0.4)
    assert np.mean(found) == pytest.approx(exact, abs=4 * error / np.sqrt(40))
    assert found[0] == triplet_accuracy(*args, n_triplets=2000)  # the same at every call


def test_blocks_do_not_matter(data, monkeypatch):
    whole = triplet_accuracy(*data, n_triplets=5000)
    monkeypatch.setattr(spaces, "BLOCK_ENTRIES", 1000)
    assert triplet_accuracy(*data, n_triplets=5000) == pytest.approx(whole, abs=1e-12)


def test_extremes(data):
    X = data[0]
    assert triplet_accuracy(X, 3 * X[:, ::-1] + 100) == 1
    assert triplet_accuracy(X, np.zeros((90, 2))) == 0.5  # all in one place
    assert triplet_accuracy(X, data[1][::-1], n_triplets=50_000) == pytest.approx(0.5, abs=0.02)  # unrelated


def test_what_it_cannot_measure(data):
    with pytest.raises(ValueError, match=r"'n_triplets' parameter of triplet_accuracy must be .* Got 0 instead"):
        triplet_accuracy(*data, n_triplets=0)
    with pytest.raises(ValueError, match=r"'random_state' parameter of triplet_accuracy must be .* Got -1 instead"):
        triplet_accuracy(*data, random_state=-1)
    with pytest.raises(UndefinedMeasureError, match="there is only 1 training point"):
        triplet_accuracy(data[0][:2], data[1][:2])
    with pytest.raises(UndefinedMeasureError, match="undefined if all distances in the data are equal"):
        triplet_accuracy(np.eye(9), np.eye(9))
