"""What is promised of a network that places rows alone: it chooses among places of the layout, and so follows it."""

import numpy as np
import pytest
import torch

import tsee
from tests.quick import quick
from tsee import DtSEE, HotSEE
from tsee.metrics import quality_score
from tsee.training import stages


@pytest.fixture(scope="module", params=[DtSEE, HotSEE])
def forward(request, digits):
    return quick(request.param, placement="forward", max_epochs=10, refinement=100).fit(digits[0])


def test_a_network_has_places_only_if_it_places_rows_alone(digits):
    X = digits[0]
    assert quick(DtSEE, placement="forward").fit(X).network_.n_places == 80  # one for eight of 600 rows, in sixteens
    assert quick(DtSEE, placement="forward", n_exemplars=20).fit(X).network_.n_places == 32
    few = quick(DtSEE, n_exemplars=100).fit(X)  # six rows for each exemplar
    assert (few.placement_, few.network_.n_places) == ("forward", 64)
    assert quick(DtSEE).fit(X).network_.n_places == 0
    assert quick(DtSEE, placement="forward", refinement=0).fit(X).network_.n_places == 0  # there is no layout
    wanted = quick(DtSEE, n_exemplars=100, placement="refined").fit(X)  # few exemplars, but rows go among them
    assert wanted.network_.n_places == 0
    again = quick(DtSEE, placement="forward", network=few.network_).fit(X).network_  # the user's own, as it is
    assert again.n_places == 64
    own = quick(DtSEE, placement="forward", network=torch.nn.Linear(64, 2)).fit(X).network_
    assert type(own) is torch.nn.Linear


def test_its_steps_are_half_as_many_again(digits):
    X = np.concatenate([digits[0]] * 40)  # 24,000 rows in batches of 512
    epochs = [
        len(quick(DtSEE, placement=how, max_epochs=None, n_exemplars=6000).fit(X).history_["loss"])
        for how in (None, "forward")
    ]
    assert epochs == [39, 58]


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_it_keeps_more_neighbors_than_a_network_without_places(cls):
    """Of rows in many clusters, between which positions have to jump."""
    generator = np.random.default_rng(0)
    centers = generator.normal(size=(60, 12))
    X = centers[generator.integers(0, 60, 3500)] + 0.25 * generator.normal(size=(3500, 12))
    X, X_new = X[:3000], X[3000:]
    kept = []
    for how in (None, "forward"):
        see = cls(placement=how, max_epochs=20, refinement=150, random_state=0).fit(X).set_params(placement="forward")
        kept.append(quality_score(X, see.transform(X), X_new, see.transform(X_new), k=10)[10])
    assert kept[1] > kept[0] + 0.03


def test_the_layout_is_the_same_however_rows_are_placed(digits):
    layouts = [quick(DtSEE, placement=how).fit(digits[0]).map_.exemplars.positions for how in (None, "forward")]
    assert torch.equal(*layouts)


def test_rows_are_placed_the_same_alone_and_together(forward, digits):
    X_new = digits[2]
    together = forward.transform(X_new)
    np.testing.assert_array_equal(np.concatenate([forward.transform(row[None]) for row in X_new]), together)
    np.testing.assert_array_equal(forward.transform(X_new[::-1])[::-1], together)
    np.testing.assert_array_equal(forward.transform(digits[0]), forward.embedding_)


def test_the_same_seed_gives_the_same_map_and_it_is_loaded_as_it_was_saved(forward, digits, tmp_path):
    again = quick(type(forward), placement="forward", max_epochs=10, refinement=100).fit(digits[0])
    np.testing.assert_array_equal(again.embedding_, forward.embedding_)
    forward.save(tmp_path / "model")
    loaded = tsee.load(tmp_path / "model")
    assert loaded.network_.n_places == 80
    np.testing.assert_array_equal(loaded.transform(digits[2]), forward.transform(digits[2]))


@pytest.mark.parametrize("n_components", [1, 3, 10])
def test_any_number_of_dimensions_has_places(n_components, digits):
    X, _, X_new, _ = digits
    see = quick(DtSEE, n_components=n_components, placement="forward", max_epochs=60, refinement=200).fit(X)
    scores = quality_score(X, see.embedding_, X_new, see.transform(X_new), k=(10,))
    assert scores[10] > (0.2 if n_components == 1 else 0.35)


def test_rows_that_are_all_alike_have_one_place():
    X = np.ones((40, 3))
    see = quick(DtSEE, placement="forward").fit(np.concatenate([X, X + 1]))
    assert np.isfinite(see.embedding_).all()
    assert len(np.unique(see.embedding_, axis=0)) == 2


@pytest.mark.parametrize(("n_places", "factor"), [(16, 2.0), (256, 2.0), (576, 3.0), (1024, 4.0), (2048, 4.0)])
def test_more_places_are_chosen_among_more_sharply(n_places, factor):
    assert stages._sharpness(n_places) == factor
