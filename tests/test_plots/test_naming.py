"""Names of classes on a map."""

from __future__ import annotations

import numpy as np
import pytest

from tsee.plots import scatter


@pytest.mark.parametrize("n_classes", [2, 10, 40, 100])
@pytest.mark.parametrize("spread", [10.0, 0.1])  # apart, and all at one position
def test_names_are_there_and_apart(n_classes, spread, make_map, texts_of, overlaps, colors_of):
    Y, labels = make_map(n_classes, spread=spread)
    ax = scatter(Y, labels)
    assert texts_of(ax) == [str(i) for i in range(n_classes)]
    assert overlaps(ax) == 0
    assert len(colors_of(ax)) == n_classes


def test_long_names_at_one_position(make_map, overlaps):
    Y, labels = make_map(30, spread=0.1)
    ax = scatter(Y, np.array([f"a class called {i}" for i in range(30)])[labels])
    assert overlaps(ax) == 0


def test_a_name_is_among_its_own_points(make_map):
    Y, labels = make_map(4, spread=50)
    Y, labels = np.concatenate([Y, Y + np.array([300, 0])]), np.tile(labels, 2)  # each in two clusters
    ax = scatter(Y, labels)
    for i, text in enumerate(ax.texts):
        nearest = np.square(Y - text.get_position()).sum(1).argmin()
        assert labels[nearest] == i


def test_a_name_does_not_hide_the_only_point_of_its_class():
    Y = np.array([[0, 0], [5, 5], [9, 0]])
    ax = scatter(Y, ["a", "b", "c"])
    ax.figure.draw_without_rendering()
    for text, position in zip(ax.texts, ax.transData.transform(Y), strict=True):
        assert not text.get_window_extent().contains(*position)


def test_names_do_not_hide_small_rings():
    generator = np.random.default_rng(0)
    angle = np.linspace(0, 2 * np.pi, 40)
    ring = np.stack([np.cos(angle), np.sin(angle)], 1)
    Y = np.concatenate([12 * middle + 0.6 * ring for middle in generator.uniform(-1, 1, (15, 2))])
    ax = scatter(Y, [f"ring {i:02d}" for i in range(15) for _ in range(40)])
    ax.figure.draw_without_rendering()
    on_screen = ax.transData.transform(Y)
    hidden = [text.get_window_extent().count_contains(on_screen) for text in ax.texts]
    assert max(hidden) <= 4  # of 40
    nearest = [np.square(Y - text.get_position()).sum(1).argmin() // 40 for text in ax.texts]
    assert np.mean(np.array(nearest) == np.arange(15)) > 0.8


def test_more_than_a_hundred_names_are_not_written(make_map, texts_of, colors_of):
    Y, labels = make_map(101)
    ax = scatter(Y, [f"class {i}" for i in labels])
    assert texts_of(ax) == []
    assert len(colors_of(ax)) == 100  # from the 101st on, colors repeat


def test_no_legend(make_map, texts_of):
    assert texts_of(scatter(*make_map(3), legend=False)) == []
