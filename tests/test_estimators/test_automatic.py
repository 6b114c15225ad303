"""What the exemplar methods choose by themselves: how many exemplars, within what memory."""

import numpy as np
import pytest

from tsee import DtSEE
from tsee.estimators import automatic


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(600, 5)).astype(np.float32)


def quick(**parameters):
    return DtSEE(max_epochs=1, refinement=5, random_state=0, **parameters)


def test_every_row_is_an_exemplar_if_memory_allows(rows, monkeypatch):
    monkeypatch.setattr(automatic, "FEWEST_POINTS", 50)
    assert quick(max_memory=0.1).fit(rows).n_exemplars_ == 600
    few = quick(max_memory=0.0005).fit(rows)
    assert 50 < few.n_exemplars_ < 600
    assert quick(max_memory=1e-9).fit(rows).n_exemplars_ == 50
    monkeypatch.setattr(automatic, "free_memory", lambda: 2 * int(0.0005 * 2**30))
    assert quick().fit(rows).n_exemplars_ == few.n_exemplars_
    assert quick(n_exemplars=400).fit(rows).n_exemplars_ == 400


def test_a_map_of_fewer_exemplars_than_rows_places_all_rows(rows, monkeypatch):
    monkeypatch.setattr(automatic, "FEWEST_POINTS", 50)
    few = quick(max_memory=0.0005)
    np.testing.assert_array_equal(few.fit_transform(rows), few.transform(rows))


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), "2 GiB"])
def test_bad_limits_are_named(rows, value):
    with pytest.raises(ValueError, match="'max_memory' parameter of DtSEE must be a number above 0 or None"):
        quick(max_memory=value).fit(rows)


def test_only_the_default_perplexity_falls(monkeypatch):
    monkeypatch.setattr(automatic, "MANY", 100)
    assert automatic.falling_perplexity(36.0, 800) == pytest.approx(18.0)
    assert automatic.falling_perplexity(36.0, 90) == 36.0
    assert automatic.falling_perplexity(30.0, 800) == 30.0
