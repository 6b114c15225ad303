"""Rows that are not exemplars, where exemplars are enough to learn the layout from."""

import numpy as np
import pytest

from tsee import DtSEE
from tsee.estimators import exemplar
from tsee.objectives import Neighborhoods

X = np.random.default_rng(0).normal(size=(600, 8)) + 5 * np.repeat(np.eye(8)[:6], 100, axis=0)


def quick(**parameters):
    return DtSEE(max_epochs=2, refinement=30, hidden_layers=(16,), n_exemplars=200, random_state=0, **parameters)


@pytest.fixture
def searched(monkeypatch):
    counts, nearest = [], Neighborhoods._nearest

    def counted(self, inputs, own):
        counts.append(len(inputs))
        return nearest(self, inputs, own)

    monkeypatch.setattr(Neighborhoods, "_nearest", counted)
    return counts


@pytest.mark.parametrize(("placement", "n_searched"), [(None, 200), ("refined", 200), ("forward", 600)])
def test_neighbors_of_other_rows_are_not_searched_for(placement, n_searched, monkeypatch, searched):
    monkeypatch.setattr(exemplar, "MANY_EXEMPLARS", 150)
    see = quick(placement=placement).fit(X)
    assert sum(searched) == n_searched
    assert see.embedding_.shape == (600, 2)
    np.testing.assert_array_equal(see.transform(X), see.embedding_)


def test_the_layout_is_the_same(monkeypatch):
    before = quick(placement="refined").fit(X)
    monkeypatch.setattr(exemplar, "MANY_EXEMPLARS", 150)
    np.testing.assert_array_equal(quick(placement="refined").fit(X).embedding_, before.embedding_)


def test_labels_are_those_of_the_exemplars(monkeypatch):
    monkeypatch.setattr(exemplar, "MANY_EXEMPLARS", 150)
    y = np.repeat(np.arange(6), 100)
    one, two = (quick(supervised=1.0).fit(X, y).embedding_ for _ in range(2))
    np.testing.assert_array_equal(one, two)
