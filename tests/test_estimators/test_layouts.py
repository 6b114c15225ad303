"""What is promised of layouts: no seed changes them, the dial keeps distances, and any number of dimensions has one."""

import numpy as np
import pytest

from tests.quick import quick
from tsee import DtSEE, HotSEE
from tsee.metrics import distance_correlation, map_disparity, quality_score, triplet_accuracy


def laid_out(X, cls=DtSEE, **parameters):
    return quick(cls, max_epochs=1, **{"refinement": 200, **parameters}).fit_transform(X)


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_no_seed_changes_the_map(cls, digits):
    X = digits[0]
    first = laid_out(X, cls)
    np.testing.assert_array_equal(laid_out(X, cls, random_state=1), first)
    np.testing.assert_array_equal(laid_out(X, cls, random_state=None), first)


def test_a_tenth_of_the_rows_changes_the_map_little_and_does_not_turn_it(digits):
    X = digits[0]
    rows = np.sort(np.random.default_rng(0).permutation(len(X))[: round(0.9 * len(X))])
    whole, part = laid_out(X)[rows], laid_out(X[rows])
    assert map_disparity(whole, part) < 0.1
    assert (np.diag(np.corrcoef(whole.T, part.T)[:2, 2:]) > 0.9).all()


def test_the_network_alone_draws_the_same_map_from_every_seed(digits):
    X = digits[0]
    maps = [
        quick(DtSEE, max_epochs=40, refinement=200, placement="forward", random_state=seed).fit_transform(X)
        for seed in (0, 1)
    ]
    assert not np.array_equal(*maps)
    assert map_disparity(*maps) < 0.05


def test_the_dial_keeps_distances_and_costs_neighbors(digits):
    X = digits[0]
    maps = [laid_out(X, global_weight=weight) for weight in (0.0, 0.5, 1.0)]
    correlations = [distance_correlation(X, Y) for Y in maps]
    kept = [quality_score(X, Y, k=(10,))[10] for Y in maps]
    assert correlations[0] < correlations[1] < correlations[2]
    assert kept[0] > kept[1] > kept[2]


def test_new_rows_obey_the_dial(digits):
    X, _, X_new, _ = digits
    found = []
    for weight in (0.0, 0.75):
        see = quick(DtSEE, max_epochs=1, refinement=200, global_weight=weight).fit(X)
        found.append(triplet_accuracy(X, see.embedding_, X_new, see.transform(X_new)))
    assert found[0] < found[1]


@pytest.mark.parametrize("n_components", [1, 3, 5, 10])
def test_any_number_of_dimensions_has_a_layout_and_a_place_for_new_rows(n_components, digits):
    X, _, X_new, _ = digits
    see = quick(DtSEE, n_components=n_components, max_epochs=1, refinement=200).fit(X)
    assert see.placement_ == "refined"
    assert see.embedding_.shape == (len(X), n_components)
    scores = quality_score(X, see.embedding_, X_new, see.transform(X_new), k=(10,))
    assert scores[10] > (0.3 if n_components == 1 else 0.5)


def test_three_dimensions_keep_more_neighbors_than_two(digits):
    X = digits[0]
    two, three = (quality_score(X, laid_out(X, n_components=h), k=(10,))[10] for h in (2, 3))
    assert three > two
