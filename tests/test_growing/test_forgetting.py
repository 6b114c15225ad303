"""Rows leave a map by their age or their numbers; the others stay."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tsee import DtSEE, ModelError
from tsee.growing.forgetting import check_forget, forget_rows


@pytest.fixture(scope="module")
def fitted():
    X = np.random.default_rng(0).normal(size=(60, 4))
    found = DtSEE(max_epochs=1, refinement=5, n_exemplars=40, random_state=0).fit(X).map_
    return replace(found, row_counts=(30, 20, 10))


@pytest.mark.parametrize(("age", "counts"), [(4, (30, 20, 10)), (3, (0, 20, 10)), (2, (0, 0, 10))])
def test_rows_of_an_age_leave(fitted, age, counts):
    left = forget_rows(fitted, age, least=1)
    assert left.row_counts == counts
    gone = 60 - sum(counts)
    assert np.array_equal(left.embedding, fitted.embedding[gone:])
    kept = fitted.exemplars.indices >= gone
    assert (left.exemplars.indices == fitted.exemplars.indices[kept] - gone).all()
    assert (left.exemplars.positions == fitted.exemplars.positions[kept]).all()
    assert (left.exemplars.inputs == fitted.exemplars.inputs[kept]).all()


def test_rows_of_given_numbers_leave(fitted):
    gone = np.array([0, 3, 31, 59])
    left = forget_rows(fitted, gone, least=1)
    assert left.row_counts == (28, 19, 9)
    assert np.array_equal(left.embedding, np.delete(fitted.embedding, gone, 0))
    # An exemplar is still the row that it was.
    stays = np.delete(np.arange(60), gone)
    assert set(stays[left.exemplars.indices]) == set(fitted.exemplars.indices.tolist()) - set(gone.tolist())


def test_too_little_may_not_be_left(fitted):
    with pytest.raises(ModelError, match="leaves 0 of 40 exemplars.*fit a new map"):
        forget_rows(fitted, 1, least=10)


def test_what_can_be_forgotten():
    assert check_forget(None, 5) is None
    assert check_forget(np.int64(2), 5) == 2
    assert check_forget([4, 0, 4], 5).tolist() == [0, 4]
    assert check_forget([True, False, False, True, False], 5).tolist() == [0, 3]
    assert check_forget([], 5).tolist() == []


@pytest.mark.parametrize("bad", [0, -1, 1.5, True, "old", [5], [-1], [0.5], [True, False], [[1]], {"a": 1}])
def test_anything_else_is_refused(bad):
    with pytest.raises(ValueError, match=re.escape("'forget' parameter of update must be None, an age of at least 1")):
        check_forget(bad, 5)
