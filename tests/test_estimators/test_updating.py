"""Maps that take in new rows."""

import re

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import tsee
from tsee import DtSEE, HotSEE, ModelError, PtSNE


@pytest.fixture(scope="module")
def parts():
    """Digits: 700 without the 2s, 700 more with them, and 397 held out, each with labels."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = X[order].astype(np.float32), y[order]
    old = np.flatnonzero(y[:700] != 2)
    return (X[old], y[old]), (X[700:1400], y[700:1400]), (X[1400:], y[1400:])


@pytest.fixture(scope="module")
def see(parts):
    return DtSEE(random_state=0).fit(parts[0][0])


@pytest.fixture(scope="module")
def grown(see, parts):
    return see.update(parts[1][0])


def quick(cls=DtSEE, **changes):
    sizes = dict(hidden_layers=(16, 16)) if cls is DtSEE else dict(n_factors=20, n_hidden=10)
    return cls(**{"max_epochs": 2, "refinement": 20, "random_state": 0, **sizes, **changes})


def error(model, parts, **parameters):
    (_, old), (_, new), (X, y) = parts
    placed = clone(model).set_params(**parameters)._adopt(model.map_)
    return 1 - KNeighborsClassifier(1).fit(model.embedding_, np.concatenate([old, new])).score(placed.transform(X), y)


def test_the_old_map_stays_and_old_rows_do_not_move(see, grown, parts):
    before = see.embedding_.copy()
    weights = [weight.clone() for weight in see.network_.parameters()]
    again = see.update(parts[1][0])
    assert np.array_equal(see.embedding_, before)
    assert all(torch.equal(a, b) for a, b in zip(weights, see.network_.parameters(), strict=True))
    assert np.array_equal(again.embedding_, grown.embedding_)  # the same seed
    n = len(before)
    assert np.array_equal(grown.embedding_[:n], before)
    assert np.array_equal(grown.transform(parts[0][0]), before)
    assert grown.embedding_.shape == (n + 700, 2)
    assert (grown.update_.moved_median, grown.update_.moved_95) == (0, 0)


def test_a_new_kind_gets_a_place_of_its_own(see, grown, parts):
    """Nearly as few errors as a fit of all rows has, by both placements."""
    (old, _), (new, y_new), _ = parts
    assert grown.update_.n_exemplars == 700
    assert 0.7 * (y_new == 2).sum() < grown.update_.n_new_kind < 1.3 * (y_new == 2).sum()
    refit = DtSEE(random_state=0).fit(np.concatenate([old, new]))
    assert error(grown, parts) < error(refit, parts) + 0.02
    assert error(grown, parts, placement="forward") < error(refit, parts, placement="forward") + 0.04


def test_what_is_new_can_be_told_from_what_is_old(see, grown, parts):
    n = len(see.embedding_)
    assert see.versions_.tolist() == [0] * n
    assert grown.versions_.tolist() == [0] * n + [1] * 700
    with pytest.raises(AttributeError, match="has not been updated"):
        _ = see.update_


def test_pages_tell_versions_apart(see, grown, monkeypatch):
    shown = []
    monkeypatch.setattr(tsee.explorer, "write_map_page", lambda *given, columns, **others: shown.append(columns))
    n = len(see.embedding_)
    own = {"version": np.arange(n + 700)}
    see.to_html("map.html")
    grown.to_html("map.html")
    grown.to_html("map.html", columns={"digit": np.zeros(n + 700)})
    grown.to_html("map.html", columns=own)
    grown.to_html("map.html", columns=polars.DataFrame({"digit": np.zeros(n + 700)}))
    names = [None, ["version"], ["digit", "version"], ["version"], ["digit", "version"]]
    assert [columns and list(columns) for columns in shown] == names
    assert shown[2]["version"].tolist() == ["fit"] * n + ["update 1"] * 700
    assert shown[3] is own


def test_an_update_of_an_update_and_many_small_ones_end_near_one_large_one(see, grown, parts):
    small = see
    for rows in np.array_split(parts[1][0], 5):
        small = small.update(rows)
    assert small.map_.row_counts == (len(see.embedding_), *[140] * 5)
    assert np.array_equal(small.embedding_[: len(see.embedding_)], see.embedding_)
    assert error(small, parts) < error(grown, parts) + 0.03
    extent = np.ptp(grown.embedding_, axis=0).max()
    known = parts[1][1] != 2
    apart = np.linalg.norm(small.embedding_ - grown.embedding_, axis=1)[len(see.embedding_) :][known]
    assert np.median(apart) < 0.03 * extent


@pytest.mark.parametrize("hold", [0.5, 0.0])
def test_old_ones_that_are_held_softly_move_a_little(see, parts, hold):
    grown = see.update(parts[1][0], hold=hold)
    update = grown.update_
    assert 0 < update.moved_median < update.moved_95 < (0.03 if hold else 0.3)
    n = len(see.embedding_)
    extent = np.ptp(see.embedding_, axis=0).max()
    moved = np.linalg.norm(grown.embedding_[:n] - see.embedding_, axis=1) / extent
    assert np.median(moved) == pytest.approx(update.moved_median, rel=1e-3)
    assert np.percentile(moved, 95) == pytest.approx(update.moved_95, rel=1e-3)


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_a_network_with_places_gets_more_of_them(parts, cls):
    see = quick(cls, placement="forward").fit(parts[0][0])
    grown = see.update(parts[1][0])
    assert grown.network_.n_places > see.network_.n_places
    assert grown.network_.n_places % 16 == 0
    assert grown.update_.moved_median > 0  # by the network
    assert np.isfinite(grown.transform(parts[2][0])).all()


def test_when_there_is_no_more_room_only_new_kinds_become_exemplars(parts):
    see = quick(n_exemplars=200).fit(parts[0][0])
    grown = see.update(parts[1][0])
    assert grown.update_.n_exemplars == grown.update_.n_new_kind > 0
    assert grown.update_.n_placed == 700 - grown.update_.n_exemplars
    assert grown.n_exemplars_ == 200 + grown.update_.n_exemplars
    assert (np.diff(grown.exemplar_indices_) > 0).all()
    n = len(see.embedding_)
    # An exemplar is the row that its number says.
    new = grown.exemplar_indices_[200:] - n
    assert np.array_equal(grown.embedding_[n:][new], grown.exemplar_embedding_[200:])
    assert np.allclose(grown.exemplars_[200:], parts[1][0][new], atol=1e-3)


@pytest.mark.parametrize("changes", [{}, {"metric": "manhattan"}, {"n_inputs": 10}, {"n_exemplars": 100}], ids=str)
def test_rows_too_far_for_a_distance_are_refused(parts, changes):
    see = quick(**changes).fit(parts[0][0][:200])
    X = parts[1][0][:60].astype(np.float64)
    for n, factor in ((60, 1e20), (60, 1e300), (3, 1e20)):
        bad = X[:n].copy()
        bad[2] *= factor
        with pytest.raises(ValueError, match="Row 2 of X is too far from the data of fit"):
            see.update(bad)


@pytest.mark.parametrize("hold", [1, 0.5])
@pytest.mark.parametrize("changes", [{}, {"placement": "forward"}, {"metric": "manhattan"}], ids=str)
def test_when_there_is_no_more_room_known_rows_are_only_placed(parts, changes, hold):
    X = parts[0][0][:100]
    see = quick(n_exemplars=100, **changes).fit(X)
    grown = see.update(X[:50], hold=hold)
    assert (grown.update_.n_rows, grown.update_.n_exemplars, grown.update_.n_placed) == (50, 0, 50)
    assert grown.embedding_.shape == (150, 2)
    assert np.array_equal(grown.embedding_[100:], grown.transform(X[:50]))
    again = grown.update(parts[1][0], hold=hold)  # with a new kind
    assert again.embedding_.shape == (850, 2)


def test_rows_that_equal_old_ones_go_where_these_are(see, parts):
    grown = see.update(parts[0][0][:50])
    assert np.array_equal(grown.embedding_[-50:], see.embedding_[:50])


def test_a_single_row(see, parts):
    grown = see.update(parts[1][0][:1])
    assert grown.update_.n_rows == grown.update_.n_exemplars == 1
    assert np.isfinite(grown.embedding_).all()


def test_forgotten_rows_are_gone(see, grown, parts):
    n = len(see.embedding_)
    later = grown.update(parts[2][0][:100], forget=2)
    assert later.map_.row_counts == (0, 700, 100)
    assert later.update_.n_forgotten == n
    assert np.array_equal(later.embedding_[:700], grown.embedding_[n:])
    assert set(later.versions_) == {1, 2}
    fewer = grown.update(parts[2][0][:100], forget=[0, 5])
    assert np.array_equal(fewer.embedding_[: n + 698], np.delete(grown.embedding_, [0, 5], 0))


def test_saved_and_loaded_maps_go_on(see, grown, parts, tmp_path):
    grown.save(tmp_path / "model")
    again = tsee.load(tmp_path / "model")
    assert again.update_ == grown.update_
    assert np.array_equal(again.versions_, grown.versions_)
    more = [model.update(parts[2][0][:50]) for model in (grown, again)]
    assert np.array_equal(more[0].embedding_, more[1].embedding_)


@pytest.mark.parametrize("kind", ["sparse", "file", "float64"])
def test_any_kind_of_rows(kind, parts, tmp_path):
    see, new = quick().fit(parts[0][0]), parts[1][0][:100]
    expected = see.update(new)
    if kind == "sparse":
        given = scipy.sparse.csr_matrix(new)
    elif kind == "file":
        given = tmp_path / "rows.npy"
        np.save(given, new)
    else:
        given = new.astype(np.float64)
    found = see.update(given)
    positions = expected.transform(new)  # the descent amplifies rounding
    np.testing.assert_allclose(found.transform(new), positions, atol=1e-3 * np.ptp(positions))


@pytest.mark.parametrize("parameters", [dict(metric="cosine"), dict(metric="manhattan"), dict(n_components=3)])
def test_other_metrics_and_dimensions(parts, parameters):
    X = parts[0][0] + 1
    see = quick(**parameters).fit(X[:300])
    grown = see.update(X[300:])
    assert np.array_equal(grown.embedding_[:300], see.embedding_)
    assert np.isfinite(grown.embedding_).all()


def test_a_table_with_words_and_gaps():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"width": generator.normal(size=90), "kind": np.array(["rose", "lily", "iris"])[np.arange(90) % 3]}
    )
    frame.loc[5, "width"] = np.nan
    see = quick().fit(frame[:60])
    grown = see.update(frame[60:])
    assert np.array_equal(grown.embedding_[:60], see.embedding_)
    assert np.array_equal(grown.transform(frame[60:]), grown.embedding_[60:])
    with pytest.raises(ValueError, match="a map of a table with words or gaps"):
        quick(start=see).fit(frame)


@pytest.mark.parametrize("hold", [-0.1, 1.1, "firmly", None, np.nan, True])
def test_hold_is_checked(see, parts, hold):
    with pytest.raises(ValueError, match=re.escape("'hold' parameter of update must be a number from 0 to 1. Got")):
        see.update(parts[1][0], hold=hold)


def test_bad_rows_and_other_columns_are_refused(see, parts):
    bad = parts[1][0].copy()
    bad[3, 7] = np.nan
    with pytest.raises(ValueError, match="NaN in row 3, column 7"):
        see.update(bad)
    with pytest.raises(ValueError, match="63 features, but DtSEE is expecting 64"):
        see.update(bad[:, 1:])


@pytest.mark.parametrize("changes", [dict(exemplars="centers"), dict(contrast="full"), dict(refinement=0)])
def test_maps_that_were_not_laid_out_cannot_be_updated(parts, changes):
    see = quick(**{"n_exemplars": 50, **changes}).fit(parts[0][0][:200])
    with pytest.raises(ModelError, match="cannot be updated: only maps whose exemplars are points"):
        see.update(parts[1][0])


def test_pairwise_methods_have_no_update():
    assert not hasattr(PtSNE(), "update")
