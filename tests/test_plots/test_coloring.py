"""Labels as colors: classes and amounts."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.colors import to_rgb

from tsee import plots
from tsee.plots import scatter


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
def test_labels_of_any_kind(labels, expected, tmp_path, texts_of):
    ax = scatter([[0, 0], [1, 1], [2, 0]], labels, path=tmp_path / "map.png")
    assert texts_of(ax) == expected


def test_points_without_a_label_are_gray_and_below():
    ax = scatter([[0, 0], [1, 1], [2, 0]], ["a", None, "b"])
    assert tuple(ax.collections[0].get_facecolor()[0, :3]) == to_rgb(plots.UNLABELED)
    assert tuple(ax.collections[0].get_offsets()[0]) == (1, 1)


def test_no_labels(make_map, texts_of, colors_of):
    ax = scatter(make_map(3)[0])
    assert texts_of(ax) == []
    assert len(colors_of(ax)) == 1


def test_ten_colors_are_far_apart():
    rgb = np.array([to_rgb(color) for color in plots.COLORS])
    assert len(rgb) == 10
    assert min(np.abs(a - b).max() for a, b in combinations(rgb, 2)) > 0.15


@pytest.mark.parametrize("labels", [np.linspace(0, 1, 200), np.arange(200), np.arange(200.0) / 2])
def test_color_bar(labels, tmp_path, texts_of, colors_of):
    ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), labels, path=tmp_path / "map.png")
    assert len(ax.figure.axes) == 2
    assert texts_of(ax) == []
    assert len(colors_of(ax)) > 100


def test_no_color_bar():
    ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), np.linspace(0, 1, 200), legend=False)
    assert len(ax.figure.axes) == 1


def test_one_extreme_does_not_take_all_colors(colors_of):
    labels = np.linspace(0, 1, 200)
    labels[0] = 1e9
    ax = scatter(np.random.default_rng(0).normal(size=(200, 2)), labels)
    assert len(colors_of(ax)) > 100


@pytest.mark.parametrize("labels", [[0.5, np.nan, 1.5], pd.Series([0.5, pd.NA, 1.5], dtype="Float64")])
def test_missing_amounts_are_gray(labels):
    ax = scatter([[0, 0], [1, 1], [2, 0]], labels)
    assert len(ax.figure.axes) == 2
    assert tuple(ax.collections[0].get_facecolor()[0, :3]) == to_rgb(plots.UNLABELED)
