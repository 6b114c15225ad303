"""Colors of classes: distinct in every kind of vision, and the user's own."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from tsee import DtSEE
from tsee.plots import compare, scatter
from tsee.plots.palette import COLORS, DARK_COLORS, class_colors, distinct_colors, seen_by_all


def closest(colors):
    """The distance of the most similar two of some colors in OKLab, in the vision that tells them least well."""
    seen = seen_by_all(np.array([to_rgb(color) for color in colors]))
    apart = np.linalg.norm(seen[:, None] - seen, axis=3)  # (colors, colors, visions)
    return apart[np.triu_indices(len(colors), 1)].min()


def test_oklab_of_known_colors():
    """White, black and red, as in the definition of OKLab (Ottosson 2020)."""
    lab = seen_by_all(np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]))[:, 0]
    assert lab == pytest.approx(np.array([[1, 0, 0], [0, 0, 0], [0.628, 0.225, 0.126]]), abs=2e-3)


@pytest.mark.parametrize("background, base, least", [("light", COLORS, 0.095), ("dark", DARK_COLORS, 0.105)])
def test_colors_are_distinct_in_every_kind_of_vision(background, base, least):
    colors = distinct_colors(background)
    assert list(colors[:10]) == base
    assert len(set(colors)) == 100
    assert closest(base) > least
    assert closest(colors[:20]) > 0.055
    assert closest(colors) > 0.015
    lightness = seen_by_all(np.array([to_rgb(color) for color in colors]))[:, 0, 0]
    assert lightness.max() < 0.85 if background == "light" else lightness.min() > 0.5


def test_of_many_classes_the_most_frequent_have_the_most_distinct_colors():
    assert class_colors(np.array([3, 9, 5])) == COLORS[:3]
    colors = class_colors(np.arange(1, 13))
    assert colors[::-1] == list(distinct_colors("light")[:12])
    assert class_colors(np.full(150, 2))[100:] == class_colors(np.full(150, 2))[:50]  # repeated


Y, LABELS = np.array([[0, 0], [1, 1], [2, 0.0]]), ["a", "b", "a"]


@pytest.mark.parametrize("palette", [["red", "#00ff00", "blue"], {"b": (0, 1, 0), "a": "red"}])
def test_a_palette_of_ones_own(palette):
    expected = {(1, 0, 0), (0, 1, 0)}
    for ax in (scatter(Y, LABELS, palette=palette), compare({"map": Y}, LABELS, palette=palette).axes[0]):
        assert {tuple(color) for color in ax.collections[-1].get_facecolor()[:, :3]} == expected


def test_a_color_map_of_ones_own():
    ax = scatter(Y, [0.0, 0.5, 1.0], cmap="gray")
    colors = ax.collections[-1].get_facecolor()[:, :3]
    assert (colors == colors[:, :1]).all()
    assert len(compare({"map": Y}, [0.0, 0.5, 1.0], cmap="gray").axes) == 2


def test_an_estimator_takes_them(digits):
    see = DtSEE(max_epochs=1, random_state=0).fit(digits[0][:100])
    ax = see.plot(digits[1][:100] > 4, palette=["red", "blue"])
    assert {tuple(color) for color in ax.collections[-1].get_facecolor()[:, :3]} == {(1, 0, 0), (0, 0, 1)}


@pytest.mark.parametrize(
    "palette, message",
    [
        (["red"], "must have a color for each of 2 classes. Got 1"),
        ({"a": "red"}, "It has none for 'b'"),
        (["red", "reddish"], "colors that matplotlib knows. Got 'reddish'"),
    ],
)
def test_bad_palettes_are_refused(palette, message):
    with pytest.raises(ValueError, match=message):
        scatter(Y, LABELS, palette=palette)


def test_a_bad_color_map_is_refused():
    with pytest.raises(ValueError, match="'cmap' parameter must be a color map of matplotlib. Got 'grayish'"):
        scatter(Y, [0.0, 0.5, 1.0], cmap="grayish")


def test_ticks_are_at_round_numbers():
    ax = scatter(Y, [0.0, 0.37, 1.13])
    ticks = ax.figure.axes[1].get_yticks()
    step = np.diff(ticks)[0]
    assert round(step / 10 ** np.floor(np.log10(step)), 6) in (1, 2, 5)
