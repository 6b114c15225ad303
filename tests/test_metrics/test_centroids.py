"""`centroid_scores` against loops over classes."""

import itertools

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
import torch
from scipy.spatial.distance import pdist

from tsee.exceptions import UndefinedMeasureError
from tsee.metrics import CentroidScores, centroid_scores, spaces

NAMES = np.array(["ant", "bee", "cat", "dog", "eel", "fox"])
Y_TRAIN, Y_TEST = NAMES[np.arange(90) % 6], NAMES[2 + np.arange(40) % 4]  # no ant and no bee held out


def naive(X_train, Y_train, y_train, X_test, Y_test, y_test, k):
    """Class by class: the distances to all other classes, in the data and on the map."""
    shares, triplets, pairs = [], [], []
    for name in sorted(set(y_test)):
        others = [other for other in sorted(set(y_train)) if other != name]
        x, y = (
            [np.linalg.norm(test[y_test == name].mean(0) - train[y_train == other].mean(0)) for other in others]
            for test, train in ((X_test, X_train), (Y_test, Y_train))
        )
        shares.append(len({*np.argsort(x)[:k]} & {*np.argsort(y)[:k]}) / k)
        triplets += [(x[j] < x[i]) == (y[j] < y[i]) for i, j in itertools.combinations(range(len(others)), 2)]
        pairs += zip(x, y, strict=True)
    return CentroidScores(np.mean(shares), np.mean(triplets), scipy.stats.spearmanr(pairs).statistic)


def test_against_loops(data, held_out):
    X, Y, Z, Q = data
    test = (Z, Q, Y_TEST) if held_out else (X, Y, Y_TRAIN)
    expected = naive(X, Y, Y_TRAIN, *test, k=2)
    found = centroid_scores(X, Y, Y_TRAIN, *(test if held_out else ()))
    assert found == pytest.approx(expected, abs=1e-12)
    expected = naive(X, Y, Y_TRAIN, *test, k=4)
    assert centroid_scores(X, Y, Y_TRAIN, *(test if held_out else (None, None, None)), k=4) == pytest.approx(expected)


def test_data_of_any_kind_in_blocks(data, monkeypatch):
    X, Y, Z, Q = data
    expected = centroid_scores(X, Y, Y_TRAIN, Z, Q, Y_TEST)
    for kind in (scipy.sparse.csr_matrix, torch.from_numpy):
        assert centroid_scores(kind(X), Y, Y_TRAIN, kind(Z), Q, Y_TEST) == pytest.approx(expected)
    monkeypatch.setattr(spaces, "BLOCK_ENTRIES", 70)
    assert centroid_scores(X, Y, Y_TRAIN, Z, Q, Y_TEST) == pytest.approx(expected)


def test_more_classes_than_triplets_are_counted_for(data):
    X, Y = data[:2]
    found = centroid_scores(X, Y, np.arange(90))  # every row is a class
    assert found.triplets == pytest.approx(naive(X, Y, np.arange(90), X, Y, np.arange(90), 10).triplets, abs=0.006)
    assert found.correlation == pytest.approx(scipy.stats.spearmanr(pdist(X), pdist(Y)).statistic)


def test_a_class_without_training_rows_is_left_out(data):
    X, Y, Z, Q = data
    unknown = Y_TEST.copy()
    unknown[:10] = "gnu"
    expected = centroid_scores(X, Y, Y_TRAIN, Z[10:], Q[10:], Y_TEST[10:])
    assert centroid_scores(X, Y, Y_TRAIN, Z, Q, unknown) == pytest.approx(expected)
    with pytest.raises(UndefinedMeasureError, match="No class of y_test is in y_train"):
        centroid_scores(X, Y, Y_TRAIN, Z, Q, np.full(40, "gnu"))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"y_test": None}, "X_test, Y_test and y_test must be given together"),
        ({"y_train": np.arange(90) % 2}, "y_train must have at least three classes.* Got 2 instead"),
        ({"y_train": [0]}, "y_train must hold one label for each of the 90 rows of X_train"),
        ({"y_test": [0]}, "y_test must hold one label for each of the 40 rows of X_test"),
        ({"k": 6}, "The 'k' parameter of centroid_scores must be .* from 1 to 5, .* Got 6 instead"),
        ({"Y_train": np.zeros((90, 2)), "Y_test": np.zeros((40, 2))}, "centroid_scores is undefined if all distances"),
    ],
)
def test_bad_input(data, change, message):
    good = dict(zip(["X_train", "Y_train", "X_test", "Y_test"], data, strict=True))
    with pytest.raises(ValueError, match=message):
        centroid_scores(**good | {"y_train": Y_TRAIN, "y_test": Y_TEST} | change)
