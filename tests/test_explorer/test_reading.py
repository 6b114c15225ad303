"""Reading a selection, pins, filters, links, and what is written on the map."""

from __future__ import annotations

import numpy as np
import pytest

from tsee.explorer import write_map_page


@pytest.fixture(scope="module")
def page_of_kinds(fitted, clusters, tmp_path_factory):
    """Three clusters with words, amounts, dates and pictures; the first class has a second island."""
    Y, labels = (part.copy() for part in clusters)
    Y[:15] = np.array([-9.0, 7.0]) + np.random.default_rng(1).normal(scale=0.3, size=(15, 2))
    columns = {
        "kind": labels,
        "weight": np.arange(120) / 100 + 1 / 3,
        "born": np.datetime64("2020-01-01") + np.arange(120),
        "note": [f"a {label} seen in {'spring' if i % 2 else 'autumn'} number {i}" for i, label in enumerate(labels)],
    }
    path = tmp_path_factory.mktemp("reading") / "kinds.html"
    images = np.arange(120)[:, None, None] * np.ones((120, 4, 4))
    return write_map_page(fitted, Y, path, columns=columns, images=images, title="Kinds")


def search(page, text, hits):
    page.fill("#search", text)
    page.wait_for_function(f"document.querySelector('.matches').textContent === '{hits}'")


def test_all_words_of_a_search_must_occur(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    search(page, "spring BEE", 20)
    search(page, '"bee seen" spring', 20)
    search(page, '"seen bee"', "none")
    search(page, "2020-01-05", 1)


def test_enter_lists_what_is_found_and_the_keyboard_reads_it(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    search(page, "bee spring", 20)
    page.focus("#search")
    page.keyboard.press("Enter")
    page.wait_for_selector("#reading:not([hidden])")
    expected = list(range(41, 80, 2))
    assert page.evaluate("tsee.selected()") == expected
    text = page.inner_text("#reading")
    assert "20 selected rows" in text
    assert "kind: bee" in text
    assert "100 % here, 20 % elsewhere" in text
    assert "born" in page.inner_text("#reading .head")
    assert page.is_hidden("#point")
    page.keyboard.press("ArrowDown")  # the focus is on the first line
    page.keyboard.press("Enter")
    page.wait_for_selector("#point:not([hidden])")
    assert page.inner_text("#point h2") == "Row 43"
    assert "2020-02-13" in page.inner_text("#point")
    assert "0.7633" in page.inner_text("#point")  # four digits


def test_what_sets_a_selection_apart(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    page.click(".names button >> text=cat")
    page.keyboard.press("s")  # what is in view
    page.wait_for_selector("#reading:not([hidden])")
    lines = page.eval_on_selector_all("#reading .apart li", "e => e.map(x => x.innerText)")
    assert any(line.startswith("kind: cat") and "100 % here, 0 % elsewhere" in line for line in lines)
    assert any(line.startswith("note: “cat”") for line in lines)
    assert any(line.startswith("weight: higher") and "1.328 on average, 0.7283 elsewhere" in line for line in lines)
    assert any(line.startswith("born: higher") for line in lines)
    assert page.inner_text("#reading .bars") == "cat\n40 · 100 %"
    assert len(page.query_selector_all("#reading .tiles canvas")) == 40


def test_the_whole_of_a_long_table_can_be_reached(fitted, tmp_path, open_page):
    Y = np.random.default_rng(0).normal(size=(3000, 2))
    page = open_page(write_map_page(fitted, Y, tmp_path / "map.html", columns={"name": [f"n{i}" for i in range(3000)]}))
    page.keyboard.press("s")
    page.wait_for_selector("#reading .line")
    assert len(page.query_selector_all("#reading .line")) < 60
    page.evaluate("document.querySelector('.table').scrollTop = 1e6")
    page.wait_for_selector("#reading .line[data-row='2999']")


def test_pins_are_kept_and_select_again(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    page.click(".names button >> text=bee")
    page.keyboard.press("s")
    page.click("#pin")
    assert page.inner_text("#pins") == "bee40"
    page.keyboard.press("Escape")
    page.click("text=Show all")
    page.settle()
    assert page.evaluate("tsee.shown()") == 120
    page.click("#pins .chip button >> nth=0")
    page.settle()
    assert page.evaluate("tsee.selected()") == list(range(40, 80))
    page.click("#pins [aria-label^=Remove]")
    assert page.inner_text("#pins") == ""


def test_filters_by_numbers_and_dates_combine(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    page.select_option("#filter", label="born")
    page.fill(".filter input >> nth=0", "2020-01-11")
    page.keyboard.press("Enter")
    page.settle()
    assert page.evaluate("tsee.shown()") == 110
    page.fill(".filter input >> nth=1", "2020-02-19")
    page.keyboard.press("Enter")
    page.settle()
    assert page.evaluate("tsee.shown()") == 40  # rows 10 to 49
    page.select_option("#filter", label="weight")
    box = page.query_selector_all(".filter .scale")[1].bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 4, box["y"] + 20, steps=4)
    page.mouse.up()
    page.settle()
    assert 18 <= page.evaluate("tsee.shown()") <= 22  # up to about row 30
    page.click(".names button >> text=bee")  # the legend's own filter
    page.settle()
    assert page.evaluate("tsee.shown()") == 0
    page.keyboard.press("Escape")
    page.settle()
    assert page.evaluate("tsee.shown()") == 120


@pytest.mark.parametrize("opened", [False, True])
def test_a_link_shows_the_same(page_of_kinds, open_page, opened):
    """In a page that opens with it, and in one that is open already."""
    page = open_page(page_of_kinds)
    assert page.evaluate("tsee.link()") == ""
    page.select_option("#color", label="weight")
    page.select_option("#filter", label="kind")
    page.click(".filter .names button >> text=cat")
    page.keyboard.press("+")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("s")
    page.click("#pin")
    page.settle()
    page.wait_for_function("location.hash.includes('pin=')")
    other = open_page(page_of_kinds)
    follow(other, page.evaluate("location.hash"), opened)
    assert other.evaluate("tsee.link()") == page.evaluate("tsee.link()")
    assert other.evaluate("tsee.selected()") == page.evaluate("tsee.selected()")
    assert other.input_value("#color") == page.input_value("#color")
    assert np.abs(np.array(other.screen(100)) - page.screen(100)).max() < 3


def follow(page, link, opened=True):
    """Open a link, which ends with ``link``, in the page as it is or, unless ``opened``, anew."""
    page.evaluate("link => { location.hash = link }", link)
    if not opened:
        page.reload()
        page.wait_for_function("window.tsee")
    page.settle()


def test_a_link_replaces_what_was_shown_and_back_restores_it(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    home = page.screen(100)
    page.select_option("#color", label="weight")
    page.select_option("#filter", label="born")
    page.fill(".filter input >> nth=0", "2020-01-11")
    page.fill("#search", "bee")
    page.keyboard.press("Enter")  # selects what is found, and reads it
    page.click("#pin")
    page.keyboard.press("+")
    page.settle()
    page.wait_for_function("location.hash.includes('pin=')")
    page.wait_for_function("location.hash.slice(1) === tsee.link()")
    before = page.evaluate("tsee.link()")
    entries = page.evaluate("history.length")
    follow(page, "#only=%5B%22cat%22%5D&row=90")
    assert page.evaluate("tsee.shown()") == 40
    assert page.evaluate("tsee.selected()") is None
    assert page.input_value("#search") == page.inner_text("#pins") == ""
    assert page.query_selector(".filter") is None
    assert page.inner_text("#point h2") == "Row 90"
    page.wait_for_timeout(600)  # longer than the page waits before it writes its address
    assert page.evaluate("history.length") == entries + 1
    assert page.evaluate("decodeURIComponent(location.hash)") == '#only=["cat"]&row=90'
    follow(page, "")
    assert page.evaluate("[tsee.link(), tsee.shown()]") == ["", 120]
    assert np.abs(np.array(page.screen(100)) - home).max() < 1
    page.go_back()
    page.go_back()
    page.wait_for_function("before => tsee.link() === before", arg=before)
    assert not page.errors


@pytest.mark.parametrize("opened", [False, True])
def test_the_view_of_a_link_is_not_lost_while_the_map_moves(simple, open_page, opened):
    """The list of the rows opens, for which the map would make room."""
    page = open_page(simple, reduced_motion="no-preference")
    follow(page, "rows=0-3&at=5,5,3", opened)
    page.wait_for_timeout(600)  # longer than the map moves
    assert page.evaluate("decodeURIComponent(tsee.link())") == "at=5,5,3&rows=0-3"


WRONG = ["at=a,b,c&rows=x&row=9999&color=nothing", "filter=[&only={&pin=:1", 'only=[{"toString":1}]&rows=,&row=']


@pytest.mark.parametrize("opened", [False, True])
@pytest.mark.parametrize("link", [*WRONG, "rows=0-99999999,0-9,5-"])
def test_a_link_that_is_wrong_does_no_harm(page_of_kinds, open_page, link, opened):
    page = open_page(page_of_kinds)
    follow(page, link, opened)
    assert not page.errors
    assert page.evaluate("tsee.shown()") == 120
    assert page.evaluate("tsee.selected()") == (list(range(120)) if "0-9" in link else None)
    assert page.is_hidden("#point")
    page.click(".names button >> text=cat")
    page.settle()
    assert page.evaluate("tsee.shown()") == 40


def test_a_link_that_comes_while_the_page_opens(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    page.add_init_script(
        """const before = requestAnimationFrame;
        window.requestAnimationFrame = (draw) => {
            if (!location.hash) location.hash = '#only=["cat"]&row=90';
            return window.tsee ? before(draw) : before(() => setTimeout(draw, 50));
        };"""
    )
    page.reload()
    page.wait_for_function("window.tsee")
    page.settle()
    assert not page.errors
    assert page.evaluate("tsee.shown()") == 40
    assert page.inner_text("#point h2") == "Row 90"


def test_the_address_is_written_after_a_link_failed(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    page.evaluate("() => { document.getElementById('pins').replaceChildren = () => { throw Error('once') } }")
    follow(page, "#rows=0-9")
    assert page.errors == ["once"]
    page.evaluate("() => delete document.getElementById('pins').replaceChildren")
    page.click(".names button >> text=cat")
    page.wait_for_function("location.hash === '#only=%5B%22cat%22%5D'", timeout=5000)


def test_each_island_of_a_category_is_named(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    names = page.evaluate("tsee.names()")
    assert sorted(name["name"] for name in names if name["name"] in ("ant", "bee", "cat")) == [
        "ant",
        "ant",
        "bee",
        "cat",
    ]
    (first, second) = [np.reshape(name["box"], (2, 2)).mean(0) for name in names if name["name"] == "ant"]
    assert np.linalg.norm(first - second) > 100


def test_names_do_not_run_under_the_panels(page_of_kinds, open_page):
    page = open_page(page_of_kinds)
    for _ in range(6):
        for name in page.evaluate("tsee.names()"):
            left, top, right, bottom = name["box"]
            for part in ("#heading", "#panel", "#tools"):
                box = page.query_selector(part).bounding_box()
                assert (
                    right <= box["x"]
                    or left >= box["x"] + box["width"]
                    or bottom <= box["y"]
                    or top >= box["y"] + box["height"]
                )
        page.keyboard.press("ArrowLeft")
        page.settle()


def test_pictures_appear_on_the_zoomed_map(page_of_kinds, open_page, near):
    page = open_page(page_of_kinds)
    page.keyboard.press("t")
    assert page.evaluate("tsee.pictures()") == []
    page.mouse.move(*page.screen(119))
    page.mouse.wheel(0, -900)
    page.settle()
    rows = page.evaluate("tsee.pictures()")
    assert len(rows) > 3
    page.mouse.move(5, 450)
    page.settle()
    picture = page.picture()
    for row in rows:  # each has its own shade
        shade = min(255, round(row / 119 * 255 / 8) * 8)
        assert near(picture, page.screen(row), f"#{shade:02x}{shade:02x}{shade:02x}", tolerance=10)
    page.keyboard.press("p")
    page.settle()
    assert page.evaluate("tsee.pictures()") == []


def test_many_points_have_lines_of_equal_density(fitted, tmp_path, open_page):
    generator = np.random.default_rng(0)
    Y = generator.normal(size=(21_000, 2))
    page = open_page(write_map_page(fitted, Y, tmp_path / "map.html"))
    with_lines = page.picture()
    page.click("#contours")
    page.settle()
    changed = np.argwhere(np.abs(with_lines - page.picture()).max(2) > 15)[:, ::-1]  # x, y
    middle = np.array(page.evaluate("tsee.screenOf(0, 0)"))
    unit = np.array(page.evaluate("tsee.screenOf(1, 0)"))[0] - middle[0]
    radii = np.linalg.norm(changed - middle, axis=1) / unit
    # Lines of equal density are circles: distances gather at a few radii.
    counts, _ = np.histogram(radii, np.arange(0, 4, 0.1))
    assert len(radii) > 300
    assert counts[counts > len(radii) / 15].sum() > 0.7 * len(radii)
