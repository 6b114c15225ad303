"""Pictures: what is in them, and what they are written as."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from tsee import plots
from tsee.plots import scatter


def make_map(n_classes: int, seed: int = 0, spread: float = 10.0) -> tuple[np.ndarray, np.ndarray]:
    """A map of round clusters of 20 points."""
    generator = np.random.default_rng(seed)
    labels = np.arange(n_classes).repeat(20)
    return spread * generator.normal(size=(n_classes, 2))[labels] + generator.normal(size=(len(labels), 2)), labels


def names(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


def overlaps(ax: Axes) -> int:
    """How many pairs of names overlap, when drawn."""
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    return sum(a.overlaps(b) for a, b in combinations(boxes, 2))


def colours(ax: Axes) -> np.ndarray:
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


class TestClasses:
    @pytest.mark.parametrize("n_classes", [2, 10, 40, 100])
    @pytest.mark.parametrize("spread", [10.0, 0.1])  # apart, and all in one place
    def test_names_are_there_and_apart(self, n_classes, spread):
        Y, labels = make_map(n_classes, spread=spread)
        ax = scatter(Y, labels)
        assert names(ax) == [str(i) for i in range(n_classes)]
        assert overlaps(ax) == 0
        assert len(colours(ax)) == n_classes

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
            (torch.tensor([3, 3, 4]), ["3", "4"]),
            (["$a_b$", "%", "%"], ["$a_b$", "%"]),
        ],
    )
    def test_labels_of_any_kind(self, labels, expected, tmp_path):
        ax = scatter([[0, 0], [1, 1], [2, 0]], labels, path=tmp_path / "map.png")
        assert names(ax) == expected

    def test_points_without_a_label_are_grey_and_below(self):
        ax = scatter([[0, 0], [1, 1], [2, 0]], ["a", None, "b"])
        assert tuple(ax.collections[0].get_facecolor()[0, :3]) == to_rgb(plots.UNLABELLED)
        assert tuple(ax.collections[0].get_offsets()[0]) == (1, 1)

    def test_more_than_a_hundred_names_are_not_written(self):
        Y, labels = make_map(101)
        ax = scatter(Y, [f"class {i}" for i in labels])
        assert names(ax) == []
        assert len(colours(ax)) == 101

    def test_no_legend(self):
        assert names(scatter(*make_map(3), legend=False)) == []

    def test_no_labels(self):
        ax = scatter(make_map(3)[0])
        assert names(ax) == []
        assert len(colours(ax)) == 1

    def test_ten_colours_are_far_apart(self):
        rgb = np.array([to_rgb(colour) for colour in plots.COLOURS])
        assert len(rgb) == 10
        assert min(np.abs(a - b).max() for a, b in combinations(rgb, 2)) > 0.15


class TestAmounts:
    @pytest.mark.parametrize("labels", [np.linspace(0, 1, 200), np.arange(200), np.arange(200.0) / 2])
    def test_colour_bar(self, labels, tmp_path):
        ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), labels, path=tmp_path / "map.png")
        assert len(ax.figure.axes) == 2
        assert names(ax) == []
        assert len(colours(ax)) > 100

    def test_no_colour_bar(self):
        ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), np.linspace(0, 1, 200), legend=False)
        assert len(ax.figure.axes) == 1

    def test_one_extreme_does_not_take_all_colours(self):
        labels = np.linspace(0, 1, 200)
        labels[0] = 1e9
        ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), labels)
        assert len(colours(ax)) > 100

    def test_missing_amounts_are_grey(self):
        ax = scatter([[0, 0], [1, 1], [2, 0]], [0.5, np.nan, 1.5])
        assert tuple(ax.collections[0].get_facecolor()[0, :3]) == to_rgb(plots.UNLABELLED)


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
