"""Selecting by a box or a lasso, and downloading."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.path import Path as Polygon


def box(page, rows):
    positions = np.array([page.screen(row) for row in rows])
    return positions.min(0) - 8, positions.max(0) + 8


def drag(page, corners):
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner, steps=8)
        page.wait_for_timeout(60)
    page.mouse.up()
    page.wait_for_selector("#selection:not([hidden])")


def test_a_box_selects_what_is_inside(simple, open_page):
    page = open_page(simple)
    low, high = box(page, range(40, 80))
    positions = np.array([page.screen(row) for row in range(120)])
    page.keyboard.press("b")
    drag(page, [low, (low + high) / 2, high])
    inside = np.flatnonzero(((positions > low) & (positions < high)).all(1))
    assert sorted(page.evaluate("tsee.selected()")) == inside.tolist()
    assert len(inside) >= 40


def test_a_lasso_selects_what_is_inside(simple, open_page):
    page = open_page(simple)
    (left, top), (right, bottom) = box(page, range(80, 120))
    middle = (left + right) / 2
    corners = [(middle, top), (right, bottom), (left, bottom), (middle, top)]  # a triangle
    positions = np.array([page.screen(row) for row in range(120)])
    page.keyboard.down("Shift")
    drag(page, corners)
    page.keyboard.up("Shift")
    selected = set(page.evaluate("tsee.selected()"))
    # The lasso follows the pointer within a few pixels, so points at its edge can be on either side.
    inner, outer = (Polygon(corners).contains_points(positions, radius=radius) for radius in (-6, 6))
    assert set(np.flatnonzero(inner & outer)) <= selected <= set(np.flatnonzero(inner | outer))
    assert 5 < len(selected) < 40


def test_it_is_downloaded_with_all_columns(simple, clusters, open_page):
    page = open_page(simple)
    low, high = box(page, range(40, 80))
    page.keyboard.press("b")
    drag(page, [low, (low + high) / 2, high])
    rows = sorted(page.evaluate("tsee.selected()"))
    with page.expect_download() as download:
        page.click("#save")
    saved = pd.read_csv(download.value.path())
    assert list(saved.columns) == ["row", "kind", "weight", "note", "tsee0", "tsee1"]
    assert saved["row"].tolist() == rows
    assert saved["kind"].tolist() == clusters[1][rows].tolist()
    assert saved["note"].tolist() == [f'says "{row}", twice' for row in rows]
    assert saved["weight"].to_numpy() == pytest.approx(np.linspace(0, 1, 120)[rows] + 0.25, rel=1e-6)
    assert np.abs(saved[["tsee0", "tsee1"]].to_numpy() - clusters[0][rows]).max() < 2e-5 * np.ptp(clusters[0])
    page.keyboard.press("Escape")
    page.settle()
    assert page.evaluate("tsee.selected()") is None
