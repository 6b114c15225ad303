"""Curves of training and of quality."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

import tsee
from tsee import DtSEE, plots
from tsee.metrics import knn_error, quality_score


def test_the_two_losses_have_panels_of_their_own(model, tmp_path):
    assert model.history_["refined"] == [True] * 4
    plain = DtSEE(max_epochs=3, refinement=0, hidden_layers=(8,), random_state=0).fit(np.eye(40))
    figure = plots.training_curve({"a": plain, "b": model}, title="Training", path=tmp_path / "curve.pdf")
    assert (tmp_path / "curve.pdf").is_file()
    first, second = figure.axes
    assert first.get_ylabel() != second.get_ylabel()
    for ax, drawn in ((first, plain), (second, model)):
        (line,) = ax.lines
        assert list(line.get_xdata()) == list(range(1, drawn.n_iter_ + 1))
        assert list(line.get_ydata()) == drawn.history_["loss"]


def test_the_loss_of_a_network_that_chooses_among_places_is_named_as_such(model, digits):
    places = DtSEE(max_epochs=2, hidden_layers=(8,), placement="forward", random_state=0).fit(digits[0][:100])
    assert places.map_.network.n_places
    names = [plots.training_curve(drawn).axes[0].get_ylabel() for drawn in (model, places, {"a": model, "b": places})]
    assert names == ["squared distance, relative to the map", "loss of places and distance", "loss"]


def test_several_by_name(model, digits, texts_of, overlaps):
    plain = DtSEE(max_epochs=3, refinement=0, hidden_layers=(8,), random_state=0).fit(digits[0][:100])
    assert plain.history_["refined"] == [False] * 3
    first, second = plots.training_curve({"refined": model, "plain": plain}).axes
    assert texts_of(first) == ["plain"]
    assert texts_of(second) == ["refined"]
    assert overlaps(first) == 0
    assert len(plots.training_curve({"plain": plain}).axes) == 1


def test_a_model_that_was_saved(model, tmp_path):
    model.save(tmp_path / "model")
    (ax,) = plots.training_curve(tsee.load(tmp_path / "model")).axes
    assert list(ax.lines[0].get_ydata()) == model.history_["loss"]


def test_bad_input_of_training(model):
    with pytest.raises(ValueError, match="estimators must be a fitted estimator, or a mapping .* Got ndarray"):
        plots.training_curve(np.eye(2))
    with pytest.raises(NotFittedError):
        plots.training_curve({"a": model, "b": DtSEE()})
    with pytest.raises(ValueError, match="estimators must hold at least one"):
        plots.training_curve({})
    with pytest.raises(ValueError, match="'path' parameter of training_curve must end in"):
        plots.training_curve(model, path="curve.txt")


def test_knn(tmp_path, make_map, texts_of):
    Y, labels = make_map(4, spread=1.5)
    noisy = Y + np.random.default_rng(1).normal(size=Y.shape)
    ax = plots.knn_curve({"good": Y, "noisy": noisy}, labels, title="Errors", path=tmp_path / "error.svg")
    assert (tmp_path / "error.svg").is_file()
    for line, positions in zip(ax.lines, (Y, noisy), strict=True):
        expected = knn_error(positions, labels, k=range(1, 11))
        assert dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) == {k: 100 * expected[k] for k in expected}
    assert sorted(texts_of(ax)) == ["good", "noisy"]
    assert ax.get_title() == "Errors"
    assert ax.get_legend() is None
    assert ax.get_ylim()[0] == 0


def test_knn_held_out(make_map, texts_of):
    Y, labels = make_map(4, spread=1.5)
    ax = plots.knn_curve(Y[::2], labels[::2], Y[1::2], labels[1::2], k=[1, 3])
    expected = knn_error(Y[::2], labels[::2], Y[1::2], labels[1::2], k=[1, 3])
    assert list(ax.lines[0].get_ydata()) == [100 * expected[1], 100 * expected[3]]
    assert texts_of(ax) == []


def test_quality(model, digits):
    X, X_new = digits[0], digits[2]
    figure = Figure()
    ax = plots.quality_curve(X, {"dt": model}, X_new, {"dt": model.transform(X_new)}, ax=figure.add_subplot())
    assert ax.figure is figure
    expected = quality_score(X, model.embedding_, X_new, model.transform(X_new))
    assert list(ax.lines[0].get_xdata()) == [1, *range(10, 101, 10)]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [100 * score for score in expected.values()])


def test_names_at_the_ends_are_apart_and_in_order(make_map, texts_of, overlaps):
    Y, labels = make_map(4, spread=1.5)
    maps = {f"map {i}": Y + i / 1000 for i in range(12)}  # twelve lines in one
    ax = plots.knn_curve(maps, labels)
    assert len(texts_of(ax)) == 12
    assert overlaps(ax) == 0
    assert all(text.get_window_extent().x0 > ax.transData.transform((10, 0))[0] for text in ax.texts)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"maps": {}}, "maps must hold at least one"),
        ({"labels": [1]}, "labels must have one value for each of 80 points"),
        ({"maps_test": np.eye(2)}, "maps_test and labels_test must be given together"),
        ({"labels_test": [1]}, "maps_test and labels_test must be given together"),
        ({"maps_test": {"b": np.eye(2)}, "labels_test": [0, 1]}, "maps_test must have the names of maps"),
        ({"k": [0]}, "'k' parameter of knn_error must be an int"),
        ({"path": "x"}, "'path' parameter of knn_curve must end in"),
    ],
)
def test_bad_input_of_knn(change, message, make_map):
    Y, labels = make_map(4)
    with pytest.raises(ValueError, match=message):
        plots.knn_curve(**{"maps": {"a": Y}, "labels": labels} | change)


def test_bad_input_of_quality():
    with pytest.raises(ValueError, match="X_test and maps_test must be given together"):
        plots.quality_curve(np.eye(3), np.eye(3), np.eye(3))


def test_quality_in_the_metric_of_the_data():
    generator = np.random.default_rng(0)
    X, Y = generator.normal(size=(40, 6)), generator.normal(size=(40, 2))
    (line,) = plots.quality_curve(X, Y, k=[3, 9], metric="cosine").lines
    scores = quality_score(X, Y, k=[3, 9], metric="cosine")
    assert list(line.get_ydata()) == pytest.approx([100 * score for score in scores.values()])
    assert scores != quality_score(X, Y, k=[3, 9])
