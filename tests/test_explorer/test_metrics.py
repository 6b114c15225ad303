"""The page compares rows by the metric of the model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tsee
from tests.words import rows_of_words
from tsee.explorer import write_map_page
from tsee.metric import METRICS


@pytest.mark.parametrize("placement", ["refined", "forward"])
@pytest.mark.parametrize("metric", METRICS[1:])
def test_rows_are_placed_as_by_transform(metric, placement, digits, tmp_path, open_page, feature_names):
    X, _, X_new, _ = digits
    if metric in ("hamming", "jaccard"):  # with many distances that tie
        X, X_new = (X > 7).astype(float), (X_new > 7).astype(float)
    see = tsee.DtSEE(metric=metric, placement=placement, max_epochs=3, random_state=0, refinement=100)
    Y = see.fit_transform(pd.DataFrame(X, columns=feature_names))
    page = open_page(write_map_page(see, Y, tmp_path / "map.html"))
    frame = pd.DataFrame(X_new, columns=feature_names)
    page.drop(frame.to_csv(index=False))
    assert np.abs(page.placed() - see.transform(frame)).max() < 1e-3 * np.ptp(Y, axis=0).max()
    np.testing.assert_allclose(page.evaluate("tsee.added().novelty"), see.novelty(frame), atol=0.03)
    assert not page.errors


@pytest.mark.parametrize("placement", ["refined", "forward"])
def test_inputs_of_one_length_have_it_on_the_page_too(placement, tmp_path, open_page):
    X = rows_of_words()
    see = tsee.DtSEE(placement=placement, max_epochs=3, random_state=0, refinement=100)
    Y = see.fit_transform(X[:900])
    assert see.map_.preprocessing.length is not None
    page = open_page(write_map_page(see, Y, tmp_path / "map.html"))
    page.drop(pd.DataFrame(X[900:]).to_csv(index=False))
    assert np.abs(page.placed() - see.transform(X[900:])).max() < 1e-3 * np.ptp(Y, axis=0).max()
    np.testing.assert_allclose(page.evaluate("tsee.added().novelty"), see.novelty(X[900:]), atol=0.03)
    assert not page.errors


@pytest.mark.parametrize(
    ("metric", "value", "problem"),
    [
        ("cosine", 0, "is all zeros, so it has no direction, which metric='cosine' compares: leave such rows out"),
        ("correlation", 0.1, "is constant, so it has no direction, which metric='correlation' compares: leave"),
        ("jaccard", 2, "holds 2 in column 0 (counted from 0), but metric='jaccard' compares booleans: pass X != 0"),
    ],
)
def test_a_row_that_cannot_be_compared_is_named(metric, value, problem, digits, tmp_path, open_page, as_csv):
    X = (digits[0] > 7).astype(float)
    see = tsee.DtSEE(metric=metric, max_epochs=1, random_state=0, refinement=10).fit(X)
    page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
    bad = X[:100].copy()
    bad[80] = value
    page.drop(as_csv(bad))
    assert f"'new.csv', row 80 (line 82) {problem}" in page.placed()
