"""Categories, ranges and the search, which decide the points that are shown."""

from __future__ import annotations

import numpy as np

from tsee.explorer import write_map_page
from tsee.plots import COLORS


def test_a_click_filters(simple, clusters, open_page, near):
    page = open_page(simple)
    page.keyboard.press("t")
    page.click(".names button >> text=bee")
    page.settle()
    assert "40 of 120 points" in page.inner_text("#counts")
    picture = page.picture()
    bees = [near(picture, page.screen(row), COLORS[1]) for row in range(40, 80)]
    ants = [near(picture, page.screen(row), COLORS[0]) for row in range(40)]
    assert np.mean(bees) > 0.9
    assert not any(ants)
    page.mouse.move(*page.screen(0))  # an ant, which is only faint now
    page.wait_for_timeout(200)
    assert page.is_hidden("#card")
    page.click(".names button >> text=ant")
    page.settle()
    assert "80 of 120 points" in page.inner_text("#counts")
    page.click("text=Show all")
    page.settle()
    assert "120 points" in page.inner_text("#counts")


def test_a_range_of_numbers(simple, open_page, near):
    page = open_page(simple)
    page.select_option("#color", label="weight")
    page.settle()
    box = page.query_selector(".scale").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"], box["y"] + 20, steps=4)
    page.mouse.up()
    page.settle()
    shown = page.evaluate("tsee.shown()")
    assert 55 <= shown <= 65  # the heavier half
    # Dark is low and bright is high.
    picture = page.picture()
    assert near(picture, page.screen(119), "#c8e020", tolerance=70)


def test_many_categories(fitted, tmp_path, open_page):
    generator = np.random.default_rng(0)
    names = np.array([f"class {i:02d}" for i in range(60)])
    labels = np.concatenate([names, names[:30], names[:5].repeat(10)])
    Y = generator.normal(size=(len(labels), 2))
    page = open_page(write_map_page(fitted, Y, tmp_path / "map.html", columns={"class": labels}))
    items = page.query_selector_all(".names button")
    assert len(items) == 60
    counts = [int(item.query_selector("b").inner_text()) for item in items]
    assert counts == sorted(counts, reverse=True)  # the most frequent first
    colors = [item.query_selector("i").evaluate("e => getComputedStyle(e).backgroundColor") for item in items]
    assert len(set(colors)) == 60
    page.fill(".find", "class 17")
    page.wait_for_function("document.querySelectorAll('.names button').length === 1")
    page.click(".names button")
    page.settle()
    assert page.evaluate("tsee.shown()") == 2


def test_rows_without_a_value(fitted, tmp_path, open_page):
    labels = ["a", None, "b", "a", float("nan")]
    page = open_page(write_map_page(fitted, np.eye(5)[:, :2], tmp_path / "map.html", columns={"kind": labels}))
    assert page.inner_text(".names").split("\n")[-2:] == ["no value", "2"]


def test_search(simple, open_page):
    page = open_page(simple)
    page.keyboard.press("/")
    page.keyboard.type('SAYS "7')
    page.wait_for_function("document.querySelector('.search output').textContent === '11'")  # 7 and 70 to 79
    assert page.evaluate("tsee.shown()") == 11
    page.fill("#search", "nowhere")
    page.wait_for_function("document.querySelector('.search output').textContent === 'none'")
    page.keyboard.press("Escape")
    page.settle()
    assert page.evaluate("tsee.shown()") == 120
