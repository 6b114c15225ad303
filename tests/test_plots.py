"""Pictures: what is in them, and what they are written as."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.cm import viridis
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from PIL import Image
from sklearn.exceptions import NotFittedError

import tsee
from tsee import DtSEE, plots
from tsee.metrics import knn_error, quality_score
from tsee.plots import scatter
from tsee.plots.canvas import DPI


def make_map(n_classes: int, seed: int = 0, spread: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """A map of round clusters of 20 points."""
    generator = np.random.default_rng(seed)
    labels = np.arange(n_classes).repeat(20)
    return spread * generator.normal(size=(n_classes, 2))[labels] + generator.normal(size=(len(labels), 2)), labels


@pytest.fixture(scope="module")
def model(digits):
    return DtSEE(max_epochs=4, hidden_layers=(16,), random_state=0).fit(digits[0])


def names(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def overlaps(ax: Axes) -> int:
    """How many pairs of names overlap, when drawn."""
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    return sum(a.overlaps(b) for a, b in combinations(boxes, 2))


def colors(ax: Axes) -> np.ndarray:
    return np.unique(ax.collections[0].get_facecolor(), axis=0)


class TestFiles:
    @pytest.mark.parametrize(
        "ending, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
    )
    def test_formats(self, tmp_path, ending, start):
        path = tmp_path / f"map.{ending}"
        scatter(*make_map(3), title="A map", path=path)
        assert path.read_bytes().startswith(start)
        scatter(*make_map(3), title="A map", path=str(path))

    def test_points_of_a_vector_picture_are_one_image(self, tmp_path):
        sizes = []
        for n in (100, 3000):
            scatter(np.random.default_rng(0).normal(size=(n, 2)), path=tmp_path / "map.svg", point_size=1)
            text = (tmp_path / "map.svg").read_text()
            assert text.count("<image") == 1
            sizes.append(text.count("<use") + text.count("<path"))
        assert sizes[0] == sizes[1]

    @pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
    def test_the_same_bytes_each_time(self, tmp_path, ending):
        for name in "ab":
            scatter(*make_map(12), path=tmp_path / f"{name}.{ending}")
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()

    def test_a_picture_that_was_there_goes_only_for_a_whole_one(self, tmp_path, monkeypatch):
        path = tmp_path / "map.png"
        path.write_bytes(b"before")

        def full(self, target, **settings):
            Path(target).write_bytes(b"part")
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Figure, "savefig", full)
        with pytest.raises(ValueError, match=r"cannot be written to '.*map.png' \(No space left on device\)"):
            scatter(*make_map(3), path=path)
        assert [file.name for file in tmp_path.iterdir()] == ["map.png"]
        assert path.read_bytes() == b"before"

    def test_a_folder_is_made_and_is_no_picture(self, tmp_path):
        scatter(*make_map(3), path=tmp_path / "new" / "map.png")
        assert (tmp_path / "new" / "map.png").is_file()
        (tmp_path / "folder.png").mkdir()
        with pytest.raises(ValueError, match=r"must be a file, and '.*folder.png' is a folder"):
            scatter(*make_map(3), path=tmp_path / "folder.png")


class TestClasses:
    @pytest.mark.parametrize("n_classes", [2, 10, 40, 100])
    @pytest.mark.parametrize("spread", [10.0, 0.1])  # apart, and all in one place
    def test_names_are_there_and_apart(self, n_classes, spread):
        Y, labels = make_map(n_classes, spread=spread)
        ax = scatter(Y, labels)
        assert names(ax) == [str(i) for i in range(n_classes)]
        assert overlaps(ax) == 0
        assert len(colors(ax)) == n_classes

    def test_long_names_in_one_place(self):
        Y, labels = make_map(30, spread=0.1)
        ax = scatter(Y, np.array([f"a class called {i}" for i in range(30)])[labels])
        assert overlaps(ax) == 0

    def test_a_name_stands_among_its_own(self):
        Y, labels = make_map(4, spread=50)
        Y, labels = np.concatenate([Y, Y + np.array([300, 0])]), np.tile(labels, 2)  # each in two clusters
        ax = scatter(Y, labels)
        for i, text in enumerate(ax.texts):
            nearest = np.square(Y - text.get_position()).sum(1).argmin()
            assert labels[nearest] == i

    @pytest.mark.parametrize(
        "labels, expected",
        [
            (["b", "a", "b"], ["a", "b"]),
            ([10, 9, 10], ["9", "10"]),
            ([2.0, 1.0, 2.0], ["1", "2"]),
            ([True, False, True], ["False", "True"]),
            (np.array([1, "a", None], dtype=object), ["1", "a"]),
            ([1.0, np.nan, 2.0], ["1", "2"]),
            (pd.Series(["x", "y", None], dtype="category"), ["x", "y"]),
            (pd.Series(["x", pd.NA, "y"], dtype="string"), ["x", "y"]),
            (pd.Series([10, pd.NA, 9], dtype="Int64"), ["9", "10"]),
            (torch.tensor([3, 3, 4]), ["3", "4"]),
            (["$a_b$", "%", "%"], ["$a_b$", "%"]),
        ],
    )
    def test_labels_of_any_kind(self, labels, expected, tmp_path):
        ax = scatter([[0, 0], [1, 1], [2, 0]], labels, path=tmp_path / "map.png")
        assert names(ax) == expected

    def test_points_without_a_label_are_gray_and_below(self):
        ax = scatter([[0, 0], [1, 1], [2, 0]], ["a", None, "b"])
        assert tuple(ax.collections[0].get_facecolor()[0, :3]) == to_rgb(plots.UNLABELED)
        assert tuple(ax.collections[0].get_offsets()[0]) == (1, 1)

    def test_a_name_does_not_hide_the_only_point_of_its_class(self):
        Y = np.array([[0, 0], [5, 5], [9, 0]])
        ax = scatter(Y, ["a", "b", "c"])
        ax.figure.draw_without_rendering()
        for text, place in zip(ax.texts, ax.transData.transform(Y), strict=True):
            assert not text.get_window_extent().contains(*place)

    def test_more_than_a_hundred_names_are_not_written(self):
        Y, labels = make_map(101)
        ax = scatter(Y, [f"class {i}" for i in labels])
        assert names(ax) == []
        assert len(colors(ax)) == 101

    def test_no_legend(self):
        assert names(scatter(*make_map(3), legend=False)) == []

    def test_no_labels(self):
        ax = scatter(make_map(3)[0])
        assert names(ax) == []
        assert len(colors(ax)) == 1

    def test_ten_colors_are_far_apart(self):
        rgb = np.array([to_rgb(color) for color in plots.COLORS])
        assert len(rgb) == 10
        assert min(np.abs(a - b).max() for a, b in combinations(rgb, 2)) > 0.15


class TestAmounts:
    @pytest.mark.parametrize("labels", [np.linspace(0, 1, 200), np.arange(200), np.arange(200.0) / 2])
    def test_color_bar(self, labels, tmp_path):
        ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), labels, path=tmp_path / "map.png")
        assert len(ax.figure.axes) == 2
        assert names(ax) == []
        assert len(colors(ax)) > 100

    def test_no_color_bar(self):
        ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), np.linspace(0, 1, 200), legend=False)
        assert len(ax.figure.axes) == 1

    def test_one_extreme_does_not_take_all_colors(self):
        labels = np.linspace(0, 1, 200)
        labels[0] = 1e9
        ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), labels)
        assert len(colors(ax)) > 100

    @pytest.mark.parametrize("labels", [[0.5, np.nan, 1.5], pd.Series([0.5, pd.NA, 1.5], dtype="Float64")])
    def test_missing_amounts_are_gray(self, labels):
        ax = scatter([[0, 0], [1, 1], [2, 0]], labels)
        assert len(ax.figure.axes) == 2
        assert tuple(ax.collections[0].get_facecolor()[0, :3]) == to_rgb(plots.UNLABELED)


def pixels(ax: Axes) -> np.ndarray:
    """The image of very many points, which must be all that is drawn of them."""
    assert len(ax.images) == 1
    assert len(ax.collections) == 0
    return np.asarray(ax.images[0].get_array())


def at(ax: Axes, place: tuple[float, float]) -> np.ndarray:
    """The pixel of the image at a place of the map."""
    image = pixels(ax)
    height, width, _ = image.shape
    left, right, bottom, top = ax.images[0].get_extent()
    return image[int((place[1] - bottom) / (top - bottom) * height), int((place[0] - left) / (right - left) * width)]


class TestDensity:
    """Maps of more than 100,000 points."""

    @pytest.fixture
    def Y(self):
        """Two crowds, which overlap in part, and a lone point, the last."""
        Y = np.random.default_rng(0).normal(size=(150_001, 2))
        Y[75_000:, 0] += 2
        Y[-1] = 12, 12
        return Y

    @pytest.fixture
    def labels(self, Y):
        return np.repeat(["a", "b"], [75_000, 75_001])

    def test_a_million_points_are_one_image_of_the_size_of_the_axes(self, tmp_path):
        Y, labels = make_map(50_000)
        assert len(Y) == 1_000_000
        ax = scatter(Y, labels % 7, path=tmp_path / "map.svg")
        height, width, _ = pixels(ax).shape
        inches = ax.get_window_extent().size / ax.figure.dpi
        np.testing.assert_allclose([width, height], inches * DPI, atol=1)
        assert (tmp_path / "map.svg").read_text().count("<image") == 1
        assert names(ax) == list("0123456")

    def test_from_dots_to_an_image(self, Y):
        assert len(scatter(Y[:100_000]).collections) == 1
        pixels(scatter(Y[:100_001]))

    @pytest.mark.parametrize("kind", ["classes", "amounts", "none"])
    def test_a_lone_point_shows_in_the_file(self, Y, labels, kind, tmp_path):
        given = {"classes": labels, "amounts": Y[:, 0], "none": None}[kind]
        ax = scatter(Y, given, path=tmp_path / "map.png", legend=False)
        with Image.open(tmp_path / "map.png") as file:
            picture = np.asarray(file.convert("RGB")) / 255
        left, bottom = ax.transData.transform(Y[-1]) * DPI / ax.figure.dpi
        around = picture[::-1][int(bottom) - 3 : int(bottom) + 4, int(left) - 3 : int(left) + 4]
        assert around.min() < 0.8  # of the white around it
        assert around[0, 0].min() == 1

    def test_denser_is_fuller(self, Y):
        ax = scatter(Y)
        lone, thin, dense = (at(ax, place)[3] for place in (Y[-1], (1, 2.6), (1, 0)))
        assert 0.35 * 255 < lone <= thin < dense
        assert pixels(ax)[..., 3].min() == 0
        assert pixels(ax)[..., 3].max() == 255

    def test_no_class_hides_another(self, Y, labels):
        """Where as many of both lie, the order of the rows changes nothing and the color is between theirs."""
        ax = scatter(Y, labels, legend=False)
        turned = scatter(Y[::-1], labels[::-1], legend=False)
        np.testing.assert_allclose(pixels(ax).astype(int), pixels(turned).astype(int), atol=1)
        a, b = (255 * np.array(to_rgb(color)) for color in plots.COLORS[:2])
        between = np.mean([at(ax, (1, y))[:3] for y in np.linspace(-1, 1, 101)], axis=0)
        assert (np.minimum(a, b) + 10 < between).all()
        assert (between < np.maximum(a, b) - 10).all()
        np.testing.assert_allclose(np.median([at(ax, (-1, y))[:3] for y in np.linspace(-1, 1, 9)], axis=0), a, atol=25)

    def test_amounts_are_means_on_the_scale_of_the_bar(self, Y):
        times = 1.7e9 + np.where(np.arange(len(Y)) % 2, 10.0, 20.0) + np.linspace(0, 1, len(Y))
        ax = scatter(Y, times)
        assert len(ax.figure.axes) == 2
        middle = 255 * np.array(viridis(0.5)[:3])
        np.testing.assert_allclose(np.median(pixels(ax)[pixels(ax)[..., 3] > 240][:, :3], axis=0), middle, atol=30)

    def test_a_few_labels_among_very_many_points_are_dots_above_them(self, Y):
        labels = np.full(len(Y), None)
        labels[:50] = "found"
        ax = scatter(Y, labels)
        assert len(ax.images) == len(ax.collections) == 1
        assert len(ax.collections[0].get_offsets()) == 50
        assert ax.collections[0].get_zorder() > ax.images[0].get_zorder()
        visible = ax.images[0].get_array()[ax.images[0].get_array()[..., 3] > 0]
        np.testing.assert_allclose(visible[:, :3] / 255, np.tile(to_rgb(plots.UNLABELED), (len(visible), 1)), atol=0.01)

    def test_point_size(self, Y):
        small, large = (scatter(Y, point_size=size) for size in (0.5, 12))
        assert np.count_nonzero(pixels(small)[..., 3]) < 0.5 * np.count_nonzero(pixels(large)[..., 3])

    def test_points_in_one_place(self, tmp_path):
        ax = scatter(np.ones((100_001, 2)), path=tmp_path / "map.png")
        assert pixels(ax)[..., 3].max() == 255

    def test_given_axes_with_limits_of_their_own(self, Y):
        ax = Figure().add_subplot()
        ax.set(xlim=(3, -1), ylim=(-1, 3))  # a part, mirrored
        scatter(Y, Y[:, 0], ax=ax, legend=False)
        image = pixels(ax)
        x = np.where(image[..., 3] > 150, image[..., 0].astype(int), -1)
        half = image.shape[1] // 2
        assert x[:, :half][x[:, :half] >= 0].mean() > x[:, half:][x[:, half:] >= 0].mean()  # large amounts left


class TestAxes:
    def test_axes_are_bare_and_of_equal_scales(self):
        ax = scatter(*make_map(3), title="A map")
        assert not ax.axison
        assert ax.get_aspect() == 1
        assert ax.get_title() == "A map"

    def test_given_axes_are_drawn_on(self, tmp_path):
        figure = Figure(figsize=(8, 4))
        left, right = figure.subplots(1, 2)
        left.set_title("kept")
        assert scatter(*make_map(10), ax=left, path=tmp_path / "map.png") is left
        assert left.get_title() == "kept"
        assert overlaps(left) == 0
        assert not right.collections

    def test_axes_in_a_subfigure(self, tmp_path):
        parts = Figure(figsize=(8, 4)).subfigures(1, 2)
        scatter(*make_map(10), ax=parts[1].subplots(), path=tmp_path / "map.png")
        assert (tmp_path / "map.png").is_file()

    def test_many_points_are_small_and_faint(self):
        few, many = (scatter(np.random.default_rng(0).normal(size=(n, 2))).collections[0] for n in (50, 50000))
        assert many.get_sizes()[0] < few.get_sizes()[0]
        assert many.get_alpha() < few.get_alpha()

    def test_point_size(self):
        assert scatter(*make_map(3), point_size=3).collections[0].get_sizes() == [9]

    @pytest.mark.parametrize("Y", [[[1.0, 2.0]], [[1.0, 2.0]] * 5, [[0, 0], [0, 9]], np.eye(2, dtype=bool)])
    def test_points_without_extent(self, Y, tmp_path):
        scatter(Y, np.zeros(len(Y)), path=tmp_path / "map.png")

    def test_pyplot_is_left_alone(self):
        code = "import sys, tsee.plots as p; p.scatter([[0, 0], [1, 1]], [0, 1]); "
        code += "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
        subprocess.run([sys.executable, "-c", code], check=True)


class TestCompare:
    def test_panels(self, tmp_path):
        Y, labels = make_map(3)
        figure = plots.compare({"one": Y, "two": 2 * Y[:, ::-1]}, labels, title="Both", path=tmp_path / "maps.png")
        assert (tmp_path / "maps.png").is_file()
        assert [ax.get_title() for ax in figure.axes] == ["one", "two"]
        assert figure.get_suptitle() == "Both"
        assert [text.get_text() for text in figure.legends[0].get_texts()] == ["0", "1", "2"]
        assert all(names(ax) == [] for ax in figure.axes)

    def test_each_map_fills_its_panel(self, tmp_path):
        Y = np.random.default_rng(0).uniform(size=(300, 2))
        maps = {"small": Y / 100, "tall": Y * [1, 1.2], "large": Y * 100, "far": Y + 1e4, "wide": Y * [3, 1]}
        figure = plots.compare(maps, np.arange(300) % 3, k=1, title="All", path=tmp_path / "maps.png")
        for ax in figure.axes:
            low, high = ax.transData.transform([ax.dataLim.p0, ax.dataLim.p1])
            assert 0.93 < ((high - low) / ax.bbox.size).max() < 0.96  # the rest is the margin

    def test_errors_are_those_of_labeled_points_left_out(self):
        Y, labels = make_map(4, spread=1.5)
        values = np.where(np.arange(len(Y)) % 3 == 0, np.nan, labels)
        figure = plots.compare({"map": Y}, values, k=5)
        known = ~np.isnan(values)
        error = knn_error(Y[known], labels[known], k=5)[5]
        assert 0 < error < 1
        assert names(figure.axes[0]) == [f"5-NN error {100 * error:.1f} %"]

    def test_estimators(self, model):
        figure = plots.compare({"model": model})
        np.testing.assert_allclose(
            np.sort(figure.axes[0].collections[0].get_offsets(), 0), np.sort(model.embedding_, 0), rtol=1e-6
        )

    def test_one_color_bar(self):
        Y, labels = make_map(3)
        figure = plots.compare({"one": Y, "two": Y}, labels + 0.5)
        assert len(figure.axes) == 3
        assert not figure.legends

    def test_many_classes_are_named_on_the_maps(self):
        Y, labels = make_map(40)
        figure = plots.compare({"one": Y, "two": Y}, labels)
        assert not figure.legends
        assert all(len(names(ax)) == 40 and overlaps(ax) == 0 for ax in figure.axes)

    def test_five_are_in_two_rows(self):
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
                r"of the same points. maps\['a'\] has 2 and maps\['b'\] has 3",
            ),
            ({"a": np.eye(2)}, {"labels": [1]}, "labels must be one for each of 2 points"),
            ({"a": np.eye(2)}, {"k": 1}, "'k' parameter of compare needs labels that are classes"),
            ({"a": np.eye(2)}, {"labels": [0.5, 1], "k": 1}, "'k' parameter of compare needs labels that are classes"),
            ({"a": np.eye(2)}, {"labels": [0, 1], "k": 2}, "'k' parameter"),
            ({"a": np.eye(2)}, {"point_size": -1}, "'point_size' parameter of compare must be > 0"),
            ({"a": np.eye(2)}, {"path": "a.gif"}, "'path' parameter of compare must end in .png, .svg or .pdf"),
        ],
    )
    def test_bad_input(self, maps, change, message):
        with pytest.raises(ValueError, match=message):
            plots.compare(maps, **change)


class TestTrainingCurve:
    def test_the_two_losses_have_panels_of_their_own(self, model, tmp_path):
        assert model.history_["refined"] == [False, False, True, True]
        figure = plots.training_curve(model, title="Training", path=tmp_path / "curve.pdf")
        assert (tmp_path / "curve.pdf").is_file()
        first, second = figure.axes
        assert first.get_ylabel() != second.get_ylabel()
        for ax, epochs in ((first, [1, 2]), (second, [3, 4])):
            (line,) = ax.lines
            assert list(line.get_xdata()) == epochs
            assert list(line.get_ydata()) == [model.history_["loss"][epoch - 1] for epoch in epochs]

    def test_several_by_name(self, model, digits):
        plain = DtSEE(max_epochs=3, refinement=0, hidden_layers=(8,), random_state=0).fit(digits[0][:100])
        assert plain.history_["refined"] == [False] * 3
        first, second = plots.training_curve({"refined": model, "plain": plain}).axes
        assert sorted(names(first)) == ["plain", "refined"]
        assert names(second) == ["refined"]
        assert overlaps(first) == 0
        assert len(plots.training_curve({"plain": plain}).axes) == 1

    def test_a_model_that_was_saved(self, model, tmp_path):
        model.save(tmp_path / "model")
        assert len(plots.training_curve(tsee.load(tmp_path / "model")).axes) == 2

    def test_bad_input(self, model):
        with pytest.raises(ValueError, match="estimators must be a fitted estimator, or a mapping .* Got ndarray"):
            plots.training_curve(np.eye(2))
        with pytest.raises(NotFittedError):
            plots.training_curve({"a": model, "b": DtSEE()})
        with pytest.raises(ValueError, match="estimators must hold at least one"):
            plots.training_curve({})
        with pytest.raises(ValueError, match="'path' parameter of training_curve must end in"):
            plots.training_curve(model, path="curve.txt")


class TestCurves:
    def test_knn(self, tmp_path):
        Y, labels = make_map(4, spread=1.5)
        noisy = Y + np.random.default_rng(1).normal(size=Y.shape)
        ax = plots.knn_curve({"good": Y, "noisy": noisy}, labels, title="Errors", path=tmp_path / "error.svg")
        assert (tmp_path / "error.svg").is_file()
        for line, places in zip(ax.lines, (Y, noisy), strict=True):
            expected = knn_error(places, labels, k=range(1, 11))
            assert dict(zip(line.get_xdata(), line.get_ydata(), strict=True)) == {
                k: 100 * expected[k] for k in expected
            }
        assert sorted(names(ax)) == ["good", "noisy"]
        assert ax.get_title() == "Errors"
        assert ax.get_legend() is None
        assert ax.get_ylim()[0] == 0

    def test_knn_held_out(self):
        Y, labels = make_map(4, spread=1.5)
        ax = plots.knn_curve(Y[::2], labels[::2], Y[1::2], labels[1::2], k=[1, 3])
        expected = knn_error(Y[::2], labels[::2], Y[1::2], labels[1::2], k=[1, 3])
        assert list(ax.lines[0].get_ydata()) == [100 * expected[1], 100 * expected[3]]
        assert names(ax) == []

    def test_quality(self, model, digits):
        X, X_new = digits[0], digits[2]
        figure = Figure()
        ax = plots.quality_curve(X, {"dt": model}, X_new, {"dt": model.transform(X_new)}, ax=figure.add_subplot())
        assert ax.figure is figure
        expected = quality_score(X, model.embedding_, X_new, model.transform(X_new))
        assert list(ax.lines[0].get_xdata()) == [1, *range(10, 101, 10)]
        np.testing.assert_array_equal(ax.lines[0].get_ydata(), [100 * score for score in expected.values()])

    def test_names_at_the_ends_are_apart_and_in_order(self):
        Y, labels = make_map(4, spread=1.5)
        maps = {f"map {i}": Y + i / 1000 for i in range(12)}  # twelve lines in one
        ax = plots.knn_curve(maps, labels)
        assert len(names(ax)) == 12
        assert overlaps(ax) == 0
        assert all(text.get_window_extent().x0 > ax.transData.transform((10, 0))[0] for text in ax.texts)

    @pytest.mark.parametrize(
        "change, message",
        [
            ({"maps": {}}, "maps must hold at least one"),
            ({"labels": [1]}, "labels must be one for each of 80 points"),
            ({"maps_test": np.eye(2)}, "maps_test and labels_test must be given together"),
            ({"labels_test": [1]}, "maps_test and labels_test must be given together"),
            ({"maps_test": {"b": np.eye(2)}, "labels_test": [0, 1]}, "maps_test must have the names of maps"),
            ({"k": [0]}, "'k' parameter of knn_error must be an int"),
            ({"path": "x"}, "'path' parameter of knn_curve must end in"),
        ],
    )
    def test_bad_input(self, change, message):
        Y, labels = make_map(4)
        with pytest.raises(ValueError, match=message):
            plots.knn_curve(**{"maps": {"a": Y}, "labels": labels} | change)

    def test_bad_input_of_quality(self):
        with pytest.raises(ValueError, match="X_test and maps_test must be given together"):
            plots.quality_curve(np.eye(3), np.eye(3), np.eye(3))


class TestEstimators:
    def test_plot_draws_the_embedding(self, model, digits, tmp_path):
        ax = model.plot(digits[1], title="Digits", path=tmp_path / "map.png", point_size=2)
        np.testing.assert_allclose(np.sort(ax.collections[0].get_offsets(), 0), np.sort(model.embedding_, 0), rtol=1e-6)
        assert len(names(ax)) == 10
        assert ax.get_title() == "Digits"
        assert (tmp_path / "map.png").is_file()

    def test_without_places(self, model):
        with pytest.raises(NotFittedError):
            DtSEE().plot()
        loaded = copy.copy(model)
        del loaded.embedding_
        with pytest.raises(AttributeError, match=r"There is no 'embedding_'.*transform\(X\) gives them"):
            loaded.plot()


def test_the_manual(tmp_path, monkeypatch):
    """The calls of docs/plots.md, in order."""
    text = (Path(__file__).parents[1] / "docs" / "plots.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    exec("\n".join(re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)), {})
    assert {file.name for file in tmp_path.iterdir()} == set(re.findall(r'path="(.*?)"', text))


class TestInputs:
    @pytest.mark.parametrize(
        "change, message",
        [
            ({"Y": [1.0, 2.0]}, r"Y must be numbers in two columns. Got float64 of shape \(2,\) instead"),
            ({"Y": np.zeros((2, 3))}, r"Y must be numbers in two columns. Got float64 of shape \(2, 3\)"),
            ({"Y": np.empty((0, 2))}, "Y must be numbers in two columns"),
            ({"Y": [["a", "b"], ["c", "d"]]}, "Y must be numbers in two columns. Got <U1"),
            ({"Y": [[0, 0], [0, np.inf]]}, "Y must not contain NaN or infinity"),
            ({"labels": [1]}, r"labels must be one for each of 2 points. Got shape \(1,\) instead"),
            ({"labels": [[1], [2]]}, r"labels must be one for each of 2 points. Got shape \(2, 1\) instead"),
            ({"point_size": 0}, "'point_size' parameter of scatter must be > 0. Got 0 instead"),
            (
                {"path": "map.bmp"},
                r"'path' parameter of scatter must end in .png, .svg or .pdf. Got 'map.bmp'",
            ),
            ({"path": Path("map")}, "'path' parameter of scatter must end in .* Got 'map' instead"),
        ],
    )
    def test_bad_input(self, change, message):
        with pytest.raises(ValueError, match=message):
            scatter(**{"Y": [[0, 0], [1, 1]]} | change)

    def test_import_without_matplotlib(self):
        code = "import sys, tsee.plots; assert not {'matplotlib', 'colorcet'} & set(sys.modules)"
        subprocess.run([sys.executable, "-c", code], check=True)

    @pytest.mark.parametrize("module", ["matplotlib", "colorcet"])
    def test_without_a_module(self, module, monkeypatch):
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(ImportError, match=r'pip install "tsee\[plot\]"'):
            scatter([[0, 0], [1, 1]])
