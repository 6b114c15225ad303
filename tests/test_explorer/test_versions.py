"""The slider over the versions of a map that was updated."""

from __future__ import annotations

import numpy as np
import pytest

import tsee

COUNTS = (300, 60, 90)


@pytest.fixture(scope="module")
def grown(digits):
    X = digits[0]
    see = tsee.DtSEE(max_epochs=2, random_state=0).fit(X[:300])
    return see.update(X[300:360]).update(X[360:450])


@pytest.fixture(scope="module")
def grown_path(grown, digits, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "grown.html"
    return grown.to_html(path, columns={"digit": digits[1][:450]})


def test_each_version_as_it_was(grown, grown_path, open_page):
    """By the keyboard alone: from all rows to those of fit, and on."""
    assert np.bincount(grown.versions_).tolist() == list(COUNTS)
    page = open_page(grown_path)
    assert page.evaluate("tsee.shown()") == 450
    assert "all" in page.inner_text(".versions")
    page.focus("#version")
    page.keyboard.press("Home")
    expected = [("fit", 300, ["300 rows"]), ("update 1", 360, ["60 added", "300 older"])]
    expected += [("update 2", 450, ["90 added", "360 older"]), ("all", 450, [])]
    for name, shown, said in expected:
        page.wait_for_function("name => document.querySelector('.versions strong').textContent === name", arg=name)
        page.settle()
        assert page.evaluate("tsee.shown()") == shown
        assert page.get_attribute("#version", "aria-valuetext") == name
        for words in said:
            assert words in page.inner_text(".versions")
        page.keyboard.press("ArrowRight")
    assert page.requests == [grown_path.as_uri()]
    assert not page.errors


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1200])
def test_new_rows_stand_out_and_later_ones_are_gone(grown_path, open_page, theme, width):
    """Measured by how far the pixels at the rows of each version are from the background, with one color for all."""
    page = open_page(grown_path, width=width, color_scheme=theme)
    page.keyboard.press("t")
    page.focus("#version")
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    page.settle()
    box = page.query_selector("#version").bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    picture = page.picture()
    ground = picture[-1, 0]
    strong = []
    for version, count in enumerate(COUNTS):
        rows = range(sum(COUNTS[:version]), sum(COUNTS[:version]) + count)
        at = [tuple(round(value) for value in page.screen(row)) for row in rows]
        strong.append(np.median([np.abs(picture[y, x] - ground).max() for x, y in at]))
    old, new, later = strong
    assert new > 2 * old > 0
    assert later < old / 2


def test_a_link_has_the_version(grown_path, open_page):
    page = open_page(grown_path)
    page.keyboard.press("[")
    page.keyboard.press("[")
    page.wait_for_function("tsee.link().includes('version=update+1')")
    link = page.evaluate("tsee.link()")
    other = open_page(grown_path)
    other.goto(grown_path.as_uri() + "#" + link)
    other.reload()
    other.wait_for_function("window.tsee")
    other.settle()
    assert other.inner_text(".versions strong") == "update 1"
    assert other.evaluate("tsee.shown()") == 360


def test_a_map_without_updates_has_no_slider(page_path, open_page):
    page = open_page(page_path)
    assert page.query_selector("#version") is None
