"""The model inside the page: it places new rows as `transform` does."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import tsee
from tsee.explorer import write_map_page

MODELS = {
    "refined": dict(kind=tsee.DtSEE),
    "forward": dict(kind=tsee.DtSEE, placement="forward"),
    "standardized": dict(kind=tsee.DtSEE, standardize=True),
    "standardized, forward": dict(kind=tsee.DtSEE, standardize=True, placement="forward"),
    "paper": dict(
        kind=tsee.PtSNE, hidden_layers=(50, 50, 200), normalization=None, activation="sigmoid", n_inputs=None
    ),
    "folded": dict(kind=tsee.PtSNE, hidden_layers=(33, 17), normalization="batch", activation="tanh"),
    "gelu": dict(kind=tsee.PtSNE, hidden_layers=(30,), activation="gelu"),
    "silu": dict(kind=tsee.PtSNE, hidden_layers=(30,), activation="silu", n_inputs=7),
    "high order": dict(kind=tsee.HotSEE, placement="forward", n_factors=31, n_hidden=19),
    "third order": dict(kind=tsee.HotSNE, order=3, normalization=None, n_factors=30, n_hidden=20),
    "high order, no layout": dict(kind=tsee.HotSEE, refinement=0, n_factors=31, n_hidden=19),
    "centers": dict(kind=tsee.HotSEE, exemplars="centers", n_exemplars=40, normalization="batch", n_hidden=30),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_are_placed_as_by_transform(name, digits, tmp_path, open_page, feature_names):
    X, y, X_new, _ = digits
    settings = dict(MODELS[name])
    see = settings.pop("kind")(max_epochs=3, random_state=0, **settings)
    Y = see.fit_transform(pd.DataFrame(X, columns=feature_names))
    page = open_page(write_map_page(see, Y, tmp_path / "map.html", columns={"digit": y}))
    # In another order, and with a column that is not a feature.
    frame = pd.DataFrame(X_new, columns=feature_names)
    page.drop(frame[feature_names[::-1]].assign(who="me").to_csv(index=False))
    error = np.abs(page.placed() - see.transform(frame)).max()
    assert error < 1e-3 * np.ptp(Y, axis=0).max()
    assert not page.errors


def test_standardized_features(digits, tmp_path, open_page, as_csv):
    """Dividing features by their spread on the page is the same as dividing them before."""
    X, _, X_new, _ = digits
    see = tsee.DtSEE(max_epochs=3, random_state=0).fit(X)
    preprocessing = see.map_.preprocessing
    spread = np.random.default_rng(0).uniform(0.5, 2, 64)
    standardized = replace(see.map_, preprocessing=replace(preprocessing, spread=spread))
    expected = see.transform(preprocessing.mean + (X_new - preprocessing.mean) / spread)
    page = open_page(write_map_page(standardized, see.embedding_, tmp_path / "map.html"))
    page.drop(as_csv(X_new))
    assert np.abs(page.placed() - expected).max() < 1e-3 * np.ptp(see.embedding_)


def test_weights_that_need_single_precision(digits, tmp_path, open_page, as_csv):
    X, _, X_new, _ = digits
    see = tsee.PtSNE(max_epochs=2, random_state=0, n_inputs=None, hidden_layers=(20,)).fit(X)
    with torch.no_grad():
        see.network_.layers[0].weight *= 1e5  # beyond half precision
    Y = see.transform(X)
    page = open_page(write_map_page(see, Y, tmp_path / "map.html"))
    page.drop(as_csv(X_new))
    assert np.abs(page.placed() - see.transform(X_new)).max() < 1e-3 * np.ptp(Y, axis=0).max()


def test_more_exemplars_than_a_page_carries(digits, tmp_path, open_page, monkeypatch, as_csv):
    """Rows are placed by the network, and the page says so."""
    monkeypatch.setattr("tsee.explorer.model.MAX_EXEMPLAR_NUMBERS", 5000)
    X, _, X_new, _ = digits
    see = tsee.DtSEE(max_epochs=3, random_state=0).fit(X)
    assert see.placement_ == "refined"
    page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
    page.drop(as_csv(X_new))
    forward = see.set_params(placement="forward").transform(X_new)
    assert np.abs(page.placed() - forward).max() < 1e-3 * np.ptp(see.embedding_, axis=0).max()
    assert "by the network alone" in page.inner_text("#additions")
    novelty = np.array(page.evaluate("tsee.added().novelty"))
    assert (novelty > 0.99).mean() < 0.1


def test_a_network_of_the_users_own(digits, tmp_path, open_page, as_csv):
    X, *_ = digits
    see = tsee.PtSNE(max_epochs=1, random_state=0, network=torch.nn.Linear(50, 2)).fit(X)
    page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
    page.drop(as_csv(X[:2]))
    page.wait_for_selector("dialog")
    assert "with Python" in page.inner_text("dialog")


def test_what_is_unlike_the_data_is_marked(page_path, fitted, digits, open_page, as_csv):
    generator = np.random.default_rng(0)
    noise = generator.permuted(digits[2][:20], axis=1)  # the pixels of digits, shuffled
    page = open_page(page_path)
    page.drop(as_csv(np.concatenate([digits[0][:50], noise])))
    page.placed()
    novelty = np.array(page.evaluate("tsee.added().novelty"))
    assert np.abs(novelty - fitted.novelty(np.concatenate([digits[0][:50], noise]))).max() < 0.03
    assert (novelty[50:] > 0.99).mean() > 0.9
    assert "unlike" in page.inner_text("#additions")
