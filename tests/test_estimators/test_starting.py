"""Maps that start from another map."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import tsee
from tsee import DataWarning, DtSEE, HotSEE, PtSNE
from tsee.metrics import knn_error


@pytest.fixture(scope="module")
def halves():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    return np.array_split(X[order], 2), np.array_split(y[order], 2)


@pytest.fixture(scope="module")
def first(halves):
    return DtSEE(max_epochs=1, random_state=0).fit(halves[0][0])


def apart(first, second, X):
    """How far rows are from where they would be on the first map, in the median, as a share of its extent."""
    distances = np.linalg.norm(second.embedding_ - first.transform(X), axis=1)
    return float(np.median(distances)) / np.ptp(first.embedding_, axis=0).max()


def test_maps_of_other_rows_lie_alike(first, halves):
    (_, X), (_, y) = halves
    plain = DtSEE(max_epochs=1, random_state=0).fit(X)
    started = DtSEE(max_epochs=1, random_state=0, start=first).fit(X)
    assert apart(first, started, X) < 0.07 < apart(first, plain, X)
    assert knn_error(started.embedding_, y, k=1)[1] < knn_error(plain.embedding_, y, k=1)[1] + 0.01


def test_a_new_kind_is_not_drawn_onto_the_others(halves):
    (old, new), (y_old, y_new) = halves
    first = DtSEE(max_epochs=1, random_state=0).fit(old[y_old != 0])
    started = DtSEE(max_epochs=1, random_state=0, start=first).fit(new)
    assert knn_error(started.embedding_, y_new, k=1)[1] < 0.05
    assert apart(first, DtSEE(max_epochs=1, start=first).fit(new[y_new != 0]), new[y_new != 0]) < 0.1


@pytest.mark.parametrize("kind", ["estimator", "map", "path", "hot-see"])
def test_what_a_map_can_start_from(first, halves, kind, tmp_path):
    X = halves[0][1][:200]
    start = {"estimator": first, "map": first.map_, "path": tmp_path / "model", "hot-see": None}[kind]
    first.save(tmp_path / "model")
    if kind == "hot-see":
        start = HotSEE(max_epochs=1, refinement=20, random_state=0).fit(halves[0][0])
    see = DtSEE(max_epochs=1, refinement=20, random_state=0, start=start).fit(X)
    if kind in ("map", "path"):
        expected = DtSEE(max_epochs=1, refinement=20, random_state=0, start=first).fit(X)
        assert np.array_equal(see.embedding_, expected.embedding_)
    see.save(tmp_path / "started")  # needs no other model
    again = tsee.load(tmp_path / "started")
    assert again.start is None
    assert np.array_equal(again.transform(X), see.transform(X))


def test_clones_keep_a_map_and_say_what_became_of_an_estimator(first, halves):
    X = halves[0][1][:200]
    see = DtSEE(max_epochs=1, refinement=5, start=first.map_)
    assert clone(see).start is first.map_
    clone(see).fit(X)
    with pytest.raises(ValueError, match=re.escape("is not fitted: fit it. If this is a clone")):
        clone(DtSEE(max_epochs=1, refinement=5, start=first)).fit(X)


def test_features_are_matched_by_name_and_what_is_missing_is_said(halves):
    names = [f"pixel{i}" for i in range(64)]
    old, new = (pd.DataFrame(X, columns=names) for X in halves[0])
    first = DtSEE(max_epochs=1, random_state=0).fit(old)
    quick = dict(max_epochs=1, random_state=0, start=first)
    whole = DtSEE(**quick).fit(new)
    turned = DtSEE(**quick).fit(new[names[::-1]])
    assert apart(first, whole, new) < 0.07
    distances = np.linalg.norm(turned.embedding_ - whole.embedding_, axis=1)
    assert np.median(distances) < 0.02 * np.ptp(whole.embedding_, axis=0).max()
    other = new.drop(columns=["pixel20", "pixel30"]).assign(more=1.0)
    with pytest.warns(DataWarning) as said:
        fewer = DtSEE(**quick).fit(other)
    sentences = [str(warning.message) for warning in said]
    assert any("X lacks 2 of the 64 features of the map of 'start' ('pixel20', 'pixel30')" in s for s in sentences)
    assert any("lacks 1 features of X ('more')" in s for s in sentences)
    placed = first.transform(new)
    assert np.median(np.linalg.norm(fewer.embedding_ - placed, axis=1)) < 0.1 * np.ptp(placed, axis=0).max()
    with pytest.raises(ValueError, match="no feature of the same name"):
        DtSEE(**quick).fit(new.rename(columns=lambda name: f"{name}x"))


def test_what_cannot_be_a_start_is_said(first, halves):
    X = halves[0][1][:200]
    quick = dict(max_epochs=1, refinement=5)
    with pytest.raises(ValueError, match="must be a path of a model, a fitted DtSEE or HotSEE, its map_, or None"):
        DtSEE(start=3).fit(X)
    with pytest.raises(ValueError, match="is a PtSNE, which has no exemplars"):
        DtSEE(start=PtSNE(max_epochs=1).fit(X), **quick).fit(X)
    with pytest.raises(ValueError, match="a map of 2 dimensions, and this one has n_components=3"):
        DtSEE(3, start=first, **quick).fit(X)
    with pytest.raises(ValueError, match="X has 63 features, and the map of the 'start' parameter 64"):
        DtSEE(start=first, **quick).fit(X[:, 1:])
    with pytest.raises(ValueError, match="must be None for a map that is not laid out"):
        DtSEE(start=first, contrast="full", max_epochs=1, n_exemplars=50).fit(X)
    with pytest.raises(tsee.ModelError, match="is not a tsee model"):
        DtSEE(start="nowhere", **quick).fit(X)
