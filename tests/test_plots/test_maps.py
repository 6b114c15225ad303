"""Maps: one, and several side by side."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from tsee import DtSEE, plots
from tsee.metrics import knn_error
from tsee.plots import scatter


def test_axes_are_bare_and_of_equal_scales(make_map):
    ax = scatter(*make_map(3), title="A map")
    assert not ax.axison
    assert ax.get_aspect() == 1
    assert ax.get_title() == "A map"


def test_given_axes_are_drawn_on(tmp_path, make_map, overlaps):
    figure = Figure(figsize=(8, 4))
    left, right = figure.subplots(1, 2)
    left.set_title("kept")
    assert scatter(*make_map(10), ax=left, path=tmp_path / "map.png") is left
    assert left.get_title() == "kept"
    assert overlaps(left) == 0
    assert not right.collections


def test_axes_in_a_subfigure(tmp_path, make_map):
    parts = Figure(figsize=(8, 4)).subfigures(1, 2)
    scatter(*make_map(10), ax=parts[1].subplots(), path=tmp_path / "map.png")
    assert (tmp_path / "map.png").is_file()


def test_many_points_are_small_and_faint():
    few, many = (scatter(np.random.default_rng(0).normal(size=(n, 2))).collections[0] for n in (50, 50000))
    assert many.get_sizes()[0] < few.get_sizes()[0]
    assert many.get_alpha() < few.get_alpha()


def test_point_size(make_map):
    assert scatter(*make_map(3), point_size=3).collections[0].get_sizes() == [9]


@pytest.mark.parametrize("Y", [[[1.0, 2.0]], [[1.0, 2.0]] * 5, [[0, 0], [0, 9]], np.eye(2, dtype=bool)])
def test_points_without_extent(Y, tmp_path):
    scatter(Y, np.zeros(len(Y)), path=tmp_path / "map.png")


def test_plot_draws_the_embedding(model, digits, tmp_path, texts_of):
    ax = model.plot(digits[1], title="Digits", path=tmp_path / "map.png", point_size=2)
    np.testing.assert_allclose(np.sort(ax.collections[0].get_offsets(), 0), np.sort(model.embedding_, 0), rtol=1e-6)
    assert len(texts_of(ax)) == 10
    assert ax.get_title() == "Digits"
    assert (tmp_path / "map.png").is_file()


def test_without_an_embedding(model):
    with pytest.raises(NotFittedError):
        DtSEE().plot()
    without = copy.copy(model)
    without.map_ = replace(model.map_, embedding=None)
    with pytest.raises(AttributeError, match=r"There is no 'embedding_'.*transform\(X\) gives them"):
        without.plot()


def test_panels(tmp_path, make_map, texts_of):
    Y, labels = make_map(3)
    figure = plots.compare({"one": Y, "two": 2 * Y[:, ::-1]}, labels, title="Both", path=tmp_path / "maps.png")
    assert (tmp_path / "maps.png").is_file()
    assert [ax.get_title() for ax in figure.axes] == ["one", "two"]
    assert figure.get_suptitle() == "Both"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0", "1", "2"]
    assert all(texts_of(ax) == [] for ax in figure.axes)


def test_each_map_fills_its_panel(tmp_path):
    Y = np.random.default_rng(0).uniform(size=(300, 2))
    maps = {"small": Y / 100, "tall": Y * [1, 1.2], "large": Y * 100, "far": Y + 1e4, "wide": Y * [3, 1]}
    figure = plots.compare(maps, np.arange(300) % 3, k=1, title="All", path=tmp_path / "maps.png")
    for ax in figure.axes:
        low, high = ax.transData.transform([ax.dataLim.p0, ax.dataLim.p1])
        assert 0.93 < ((high - low) / ax.bbox.size).max() < 0.96  # the rest is the margin


def test_errors_leave_out_one_labeled_point_at_a_time(make_map, texts_of):
    Y, labels = make_map(4, spread=1.5)
    values = np.where(np.arange(len(Y)) % 3 == 0, np.nan, labels)
    figure = plots.compare({"map": Y}, values, k=5)
    known = ~np.isnan(values)
    error = knn_error(Y[known], labels[known], k=5)[5]
    assert 0 < error < 1
    assert texts_of(figure.axes[0]) == [f"5-NN error {100 * error:.1f} %"]


def test_estimators(model):
    figure = plots.compare({"model": model})
    np.testing.assert_allclose(
        np.sort(figure.axes[0].collections[0].get_offsets(), 0), np.sort(model.embedding_, 0), rtol=1e-6
    )


def test_one_color_bar(make_map):
    Y, labels = make_map(3)
    figure = plots.compare({"one": Y, "two": Y}, labels + 0.5)
    assert len(figure.axes) == 3
    assert not figure.legends


def test_many_classes_are_named_on_the_maps(make_map, texts_of, overlaps):
    Y, labels = make_map(40)
    figure = plots.compare({"one": Y, "two": Y}, labels)
    assert not figure.legends
    assert all(len(texts_of(ax)) == 40 and overlaps(ax) == 0 for ax in figure.axes)


def test_five_are_in_two_rows(make_map):
    Y, labels = make_map(3)
    figure = plots.compare({str(i): Y for i in range(5)}, labels, legend=False)
    rows = [ax.get_subplotspec().rowspan.start for ax in figure.axes]
    assert rows == [0, 0, 0, 1, 1]
    assert not figure.legends


@pytest.mark.parametrize(
    "maps, change, message",
    [
        ([[0, 0]], {}, "maps must be a mapping of names to maps. Got list"),
        ({}, {}, "maps must hold at least one map"),
        ({"a": [[0, 0, 0]]}, {}, r"maps\['a'\] must be numbers in two columns. Got int64 of shape \(1, 3\)"),
        (
            {"a": np.eye(2), "b": np.ones((3, 2))},
            {},
            r"show the same points. maps\['a'\] has 2 and maps\['b'\] has 3",
        ),
        ({"a": np.eye(2)}, {"labels": [1]}, "labels must have one value for each of 2 points"),
        ({"a": np.eye(2)}, {"k": 1}, "'k' parameter of compare needs labels that are classes"),
        ({"a": np.eye(2)}, {"labels": [0.5, 1], "k": 1}, "'k' parameter of compare needs labels that are classes"),
        ({"a": np.eye(2)}, {"labels": [0, 1], "k": 2}, "'k' parameter"),
        ({"a": np.eye(2)}, {"point_size": -1}, "'point_size' parameter of compare must be > 0"),
        ({"a": np.eye(2)}, {"path": "a.gif"}, "'path' parameter of compare must end in .png, .svg or .pdf"),
    ],
)
def test_bad_input(maps, change, message):
    with pytest.raises(ValueError, match=message):
        plots.compare(maps, **change)
