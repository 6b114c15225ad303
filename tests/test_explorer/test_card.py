"""The card next to a point, and touch."""

from __future__ import annotations

import numpy as np

from tsee.explorer import write_map_page


def test_it_shows_the_columns(simple, open_page):
    page = open_page(simple)
    page.mouse.move(*page.screen(90))
    page.wait_for_selector("#card:not([hidden])")
    text = page.inner_text("#card")
    assert "cat" in text
    assert 'says "90", twice' in text
    assert "row 90" in text
    page.mouse.move(600, 780)
    page.wait_for_selector("#card", state="hidden")


def test_it_shows_the_picture(fitted, clusters, tmp_path, open_page):
    images = np.zeros((120, 4, 4))
    images[7, 1, 2] = 0.9
    page = open_page(write_map_page(fitted, clusters[0], tmp_path / "map.html", images=images))
    page.mouse.move(*page.screen(7))
    page.wait_for_selector("#card .picture")
    pixels = page.evaluate(
        "Array.from(document.querySelector('.picture').getContext('2d').getImageData(0, 0, 4, 4).data)"
    )
    red = np.array(pixels).reshape(4, 4, 4)[:, :, 0]
    assert red[1, 2] == 255
    assert red.sum() == 255


def test_a_tap_of_a_finger(simple, open_page):
    page = open_page(simple, 390, 800, has_touch=True)
    page.touchscreen.tap(*page.screen(90))
    page.wait_for_selector("#point:not([hidden])")
    assert "Row 90" in page.inner_text("#point")


def test_what_a_tap_opens_can_be_seen_on_a_dark_phone(simple, open_page):
    """Nothing lies above the sheet of the point, and its ground is not that of the map."""
    page = open_page(simple, 390, 800, has_touch=True, is_mobile=True, color_scheme="dark")
    for row in (90, 3, 60):  # the second and the third tap change what is there
        page.touchscreen.tap(*page.screen(row))
        page.wait_for_function("row => document.querySelector('#point').innerText.includes(`Row ${row}`)", arg=row)
        page.settle()
        left, top, right, bottom = page.evaluate(
            """() => {
                const { left, top, right, bottom } = document.querySelector('#point').getBoundingClientRect();
                return [left, top, right, bottom];
            }"""
        )
        assert 0 <= left < right <= 390
        assert 0 <= top < bottom <= 800
        spots = [(x, y) for x in (left + 12, right - 12) for y in (top + 12, bottom - 6)]
        seen = "([x, y]) => document.querySelector('#point').contains(document.elementFromPoint(x, y))"
        assert all(page.evaluate(seen, spot) for spot in spots)
        picture = page.picture()
        ground = picture[int(top) - 8, 4]
        assert all((picture[int(y), int(left) + 6] > ground).all() for y in (top + 20, (top + bottom) / 2, bottom - 20))


def test_two_fingers_zoom(simple, open_page):
    page = open_page(simple, 390, 800, has_touch=True)
    session = page.context.new_cdp_session(page.page)
    apart = np.linalg.norm(np.array(page.screen(0)) - page.screen(60))

    def touch(kind, *fingers):
        points = [{"x": x, "y": y, "id": i} for i, (x, y) in enumerate(fingers)]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", (180, 400))
    touch("touchStart", (180, 400), (220, 400))
    for step in range(1, 9):
        touch("touchMove", (180 - 5 * step, 400), (220 + 5 * step, 400))
    touch("touchEnd")
    page.settle()
    grown = np.linalg.norm(np.array(page.screen(0)) - page.screen(60)) / apart
    assert 2.5 < grown < 3.5  # fingers 40 apart are now 120 apart
