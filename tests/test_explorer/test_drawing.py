"""Points, names, exemplars and backgrounds, as a browser draws them."""

from __future__ import annotations

import numpy as np
import pytest

import tsee
from tsee.explorer import write_map_page
from tsee.plots import COLORS, scatter
from tsee.plots.palette import DARK_COLORS, class_colors


def test_points_are_where_the_map_has_them(simple, clusters, open_page, near):
    Y, labels = clusters
    page = open_page(simple)
    assert page.title() == "Three kinds"
    assert page.inner_text("h1") == "Three kinds"
    assert "120 points" in page.inner_text("#counts")
    positions = np.array([page.screen(row) for row in range(120)])
    # One scale for both directions, and y points up.
    scale = np.ptp(positions[:, 0]) / np.ptp(Y[:, 0])
    away = (positions - positions.mean(0)) / scale * [1, -1] - (Y - Y.mean(0))
    assert np.abs(away).max() < 1e-3 * np.ptp(Y)
    page.keyboard.press("t")  # names can cover points
    page.settle()
    picture = page.picture()
    colors = dict(zip(["ant", "bee", "cat"], COLORS, strict=False))
    seen = [near(picture, position, colors[label]) for position, label in zip(positions, labels, strict=True)]
    assert np.mean(seen) > 0.95  # a few are below a point of another class
    middle = positions.mean(0).astype(int)
    assert near(picture, middle, "#fbfbf9", reach=3, tolerance=4)
    assert not page.errors


def test_names_stand_on_the_map(simple, open_page):
    page = open_page(simple)
    with_names = page.picture()
    page.click("#names")
    page.settle()
    without = page.picture()
    changed = np.argwhere(np.abs(with_names - without).max(2) > 30)
    for row in (20, 60, 100):  # in each cluster
        x, y = page.screen(row)
        assert np.linalg.norm(changed[:, ::-1] - [x, y], axis=1).min() < 120


def test_pan_and_zoom(simple, open_page):
    page = open_page(simple, reduced_motion="no-preference")
    before = np.array(page.screen(0))
    page.mouse.move(700, 700)
    page.mouse.down()
    page.mouse.move(650, 620, steps=6)
    page.mouse.move(600, 600, steps=6)
    page.settle()
    page.mouse.up()
    assert np.abs(page.screen(0) - before - [-100, -100]).max() < 12  # the first pixels of a drag can be lost
    at = np.array(page.screen(60))
    apart = np.linalg.norm(at - page.screen(0))
    page.mouse.move(*at)
    page.mouse.wheel(0, -300)
    page.settle()
    assert np.abs(page.screen(60) - at).max() < 2  # the point under the pointer stays there
    assert np.linalg.norm(np.array(page.screen(60)) - page.screen(0)) > 1.2 * apart
    page.keyboard.press("0")
    page.settle()
    assert np.abs(page.screen(0) - before).max() < 2
    page.keyboard.press("ArrowRight")
    page.keyboard.press("+")
    page.settle()
    assert np.abs(page.screen(0) - before).max() > 20


def test_dark_and_light(simple, open_page, near):
    page = open_page(simple, color_scheme="dark")
    assert near(page.picture(), (600, 790), "#121417", tolerance=6)
    assert near(page.picture(), page.screen(5), DARK_COLORS[0], reach=4)
    page.click("#theme")
    page.settle()
    assert near(page.picture(), (600, 790), "#fbfbf9", tolerance=6)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_many_categories_have_the_colors_of_figures(fitted, tmp_path, open_page, theme):
    """Beyond ten categories, too: the most frequent have the first colors."""
    labels = np.repeat([f"c{i:02d}" for i in range(30)], np.arange(31, 1, -1))[::-1]
    Y = np.random.default_rng(0).normal(size=(len(labels), 2))
    path = write_map_page(fitted, Y, tmp_path / "map.html", columns={"class": labels})
    page = open_page(path, color_scheme=theme)
    shown = page.eval_on_selector_all(".names i", "e => e.map(x => getComputedStyle(x).backgroundColor)")
    expected = class_colors(np.arange(31, 1, -1), theme)
    assert shown == [f"rgb({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))})" for color in expected]
    if theme == "light":
        palette = scatter(Y, labels).collections[-1].get_facecolor()[:, :3]
        assert {tuple(np.round(255 * color).astype(int)) for color in palette} == {
            tuple(int(color[i : i + 2], 16) for i in (1, 3, 5)) for color in expected
        }


def test_exemplars_are_a_layer(digits, tmp_path, open_page):
    X, *_ = digits
    see = tsee.DtSEE(max_epochs=2, exemplars="centers", n_exemplars=30, random_state=0)
    page = open_page(write_map_page(see, see.fit_transform(X), tmp_path / "map.html"))
    assert "30 exemplars" in page.get_attribute("#exemplars", "title")
    before = page.picture()
    page.click("#exemplars")
    page.settle()
    after = page.picture()
    for position in see.exemplar_embedding_:
        x, y = page.evaluate("([x, y]) => tsee.screenOf(x, y)", position.tolist())
        patch = np.s_[round(y) - 9 : round(y) + 10, round(x) - 9 : round(x) + 10]
        assert np.abs(after[patch] - before[patch]).max() > 60


@pytest.mark.parametrize("n_rows", [1, 2, 10])
def test_few_points(fitted, tmp_path, n_rows, open_page, near):
    page = open_page(write_map_page(fitted, np.arange(2 * n_rows).reshape(-1, 2), tmp_path / "map.html"))
    assert f"{n_rows} point" in page.inner_text("#counts")
    assert near(page.picture(), page.screen(0), COLORS[0], reach=4)


@pytest.mark.parametrize("width, height", [(390, 800), (1600, 1000)])
def test_everything_is_on_the_screen(simple, open_page, width, height):
    page = open_page(simple, width, height)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for name in ("#heading", "#panel", "#tools", "#place", "#color", ".names"):
        box = page.query_selector(name).bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= height
    x, y = np.array([page.screen(row) for row in range(120)]).T
    assert x.min() > 0
    assert x.max() < width
    assert y.min() > 0
    assert y.max() < height
