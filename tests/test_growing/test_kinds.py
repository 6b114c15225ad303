"""Rows of a new kind are told from rows that the map knows, and find room of their own."""

import numpy as np
import pytest
import torch
from scipy.spatial import cKDTree
from sklearn.neighbors import KNeighborsClassifier

from tsee import DtSEE
from tsee.affinities import Affinities, conditional_probabilities
from tsee.data import dense
from tsee.growing import room
from tsee.growing.kinds import are_new_kind
from tsee.growing.room import starting_positions
from tsee.neighbors import build_index


def kinds_of_rows(counts, seed=0):
    """Clusters in ten dimensions: so many rows of each."""
    generator = np.random.default_rng(seed)
    middles = 12 * np.random.default_rng(9).normal(size=(8, 10))
    return np.concatenate([middles[kind] + generator.normal(size=(n, 10)) for kind, n in enumerate(counts)])


@pytest.fixture(scope="module")
def fitted():
    return DtSEE(max_epochs=1, random_state=0).fit(kinds_of_rows([150, 150, 150])).map_


def neighbors(fitted, X):
    inputs = fitted.preprocessing(dense(X, slice(0, len(X))))
    everyone = torch.cat([fitted.exemplars.inputs, inputs])
    own = torch.arange(len(fitted.exemplars), len(everyone))
    indices, squared = build_index(everyone, 60).query(inputs, 60, exclude=own)
    return inputs, Affinities(indices, conditional_probabilities(squared, 20.0)), squared


def judged(fitted, X):
    inputs, found, squared = neighbors(fitted, X)
    outside = fitted.preprocessing.outside(dense(X, slice(0, len(X))), inputs)
    return are_new_kind(fitted, inputs, outside, found, squared)


@pytest.mark.parametrize("n_new", [5, 40, 300])
def test_a_new_kind_is_found_whether_it_is_large_or_small(fitted, n_new):
    fresh = judged(fitted, kinds_of_rows([100, 100, 0, n_new], seed=1))
    assert float(fresh[200:].float().mean()) > 0.95
    assert float(fresh[:200].float().mean()) < 0.05


@pytest.mark.parametrize("counts", [[1], [30], [400, 400, 400]])
def test_known_rows_are_known_however_many_come(fitted, counts):
    assert float(judged(fitted, kinds_of_rows(counts, seed=2)).float().mean()) < 0.05


def test_a_new_kind_gets_room_of_its_own_and_known_rows_start_among_theirs(fitted):
    X = kinds_of_rows([50, 0, 0, 80, 0, 60], seed=1)
    inputs, found, _ = neighbors(fitted, X)
    fresh = torch.arange(len(X)) >= 50
    start = starting_positions(fitted.exemplars, inputs, found, fresh).numpy()
    old = fitted.exemplars.positions.numpy()
    gap = room._usual_gap(old)
    apart, _ = cKDTree(old).query(start)
    assert np.median(apart[50:]) > 3 * gap
    assert np.median(apart[:50]) < gap
    # Every group is in one piece, and the two are apart.
    for group in (start[50:130], start[130:]):
        assert len(set(room._groups(group).tolist())) <= 3
    between, _ = cKDTree(start[50:130]).query(start[130:])
    assert between.min() > gap
    assert cKDTree(old).query(start[:50])[1].max() < 150  # among rows of their own kind


def test_few_rows_of_a_new_kind_start_where_they_would_be_placed(fitted):
    X = kinds_of_rows([0, 0, 0, 4], seed=1)
    inputs, found, _ = neighbors(fitted, X)
    start = starting_positions(fitted.exemplars, inputs, found, torch.ones(4, dtype=torch.bool))
    torch.testing.assert_close(start, torch.from_numpy(fitted.place(X, "refined")))


@pytest.mark.parametrize(("n_old", "n_features"), [(12, 10), (60, 200), (2000, 10)])
@pytest.mark.filterwarnings("ignore:All rows of X are equal")
def test_a_map_of_equal_rows_takes_in_rows_that_differ(n_old, n_features):
    see = DtSEE(max_epochs=1, random_state=0).fit(np.full((n_old, n_features), 3.0))
    X = np.zeros((160, n_features))
    X[:, :10] = kinds_of_rows([80, 80], seed=1)
    grown = see.update(X)
    assert np.array_equal(grown.embedding_[:n_old], see.embedding_)
    new, kinds = grown.embedding_[n_old:], np.arange(160) // 80
    assert np.ptp(new[:80], axis=0).min() > 2  # the distance at which repulsion falls off is 1
    assert KNeighborsClassifier(1).fit(new[::2], kinds[::2]).score(new[1::2], kinds[1::2]) > 0.95
    assert np.linalg.norm(new - see.embedding_[0], axis=1).min() > 0


def test_the_start_is_the_same_every_time(fitted):
    X = kinds_of_rows([20, 0, 0, 80], seed=1)
    inputs, found, _ = neighbors(fitted, X)
    fresh = torch.arange(100) >= 20
    first, second = (starting_positions(fitted.exemplars, inputs, found, fresh) for _ in range(2))
    assert torch.equal(first, second)
