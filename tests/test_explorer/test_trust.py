"""Neighbors in the data and on the map, and where the network alone would place a row."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

import tsee
from tsee.explorer import write_map_page
from tsee.explorer.trust import describe_trust, kept_neighbors


@pytest.fixture(scope="module")
def see(digits):
    return tsee.DtSEE(max_epochs=2, random_state=0).fit(digits[0])


def nearest(X, k):
    distances = pairwise_distances(X.astype(np.float64))
    np.fill_diagonal(distances, np.inf)
    return distances.argsort(1, kind="stable")[:, :k]


def test_neighbors_are_the_nearest_rows(see, digits):
    X = digits[0]
    described, arrays = describe_trust(see.map_, see.embedding_.astype(np.float64), X)
    assert described == {"neighbors": 10}
    found = arrays["dataNeighbors"]
    distances = pairwise_distances(X)
    expected = np.take_along_axis(distances, nearest(X, 10), 1)
    assert np.take_along_axis(distances, found.astype(int), 1) == pytest.approx(expected, rel=1e-3)
    on_map = nearest(see.embedding_, 10)
    kept = [len({*a} & {*b}) for a, b in zip(found.tolist(), on_map.tolist(), strict=True)]
    assert np.mean(arrays["kept"] == kept) > 0.99  # of equally near points either may be kept
    forward = see.map_.place(X, how="forward")
    strayed = np.linalg.norm(forward - see.embedding_, axis=1) / np.ptp(see.embedding_, axis=0).max()
    assert arrays["strayed"] / 65535 == pytest.approx(strayed.clip(0, 1), abs=1e-4)


def test_rows_of_fit_are_known_if_they_are_exemplars(see, digits):
    positions = see.embedding_.astype(np.float64)
    _, given = describe_trust(see.map_, positions, digits[0])
    _, known = describe_trust(see.map_, positions, None)
    assert np.array_equal(known["dataNeighbors"], given["dataNeighbors"])
    assert describe_trust(see.map_, positions[::-1], None) == (None, {})  # another map
    assert describe_trust(see.map_, positions[:1], digits[0][:1]) == (None, {})


def test_a_map_of_given_distances_has_a_page_without_them(digits, tmp_path):
    distances = pairwise_distances(digits[0][:200])
    see = tsee.DtSEE(metric="precomputed", max_epochs=1, random_state=0).fit(distances)
    assert see.to_html(tmp_path / "map.html").is_file()
    assert see.to_html(tmp_path / "some.html", distances[:50]).is_file()
    assert describe_trust(see.map_, see.embedding_, None) == (None, {})


def test_rows_at_one_position_are_neighbors():
    positions = np.zeros((30, 2))
    neighbors = np.array([[j for j in range(11) if j != i][:10] for i in range(30)])
    assert kept_neighbors(neighbors, positions).max() <= 10


def test_other_rows_than_the_map_has_are_refused(see, digits, tmp_path):
    with pytest.raises(ValueError, match="'X' parameter of a page must have the .* rows of the map"):
        write_map_page(see, see.embedding_, tmp_path / "map.html", X=digits[0][:5])


def test_a_click_shows_neighbors_and_trust(see, digits, tmp_path, open_page):
    page = open_page(see.to_html(tmp_path / "map.html", columns={"digit": digits[1]}))
    row = 7
    page.mouse.click(*page.screen(row))
    page.wait_for_selector("#point:not([hidden])")
    row = int(page.inner_text("#point h2").removeprefix("Row ").replace(",", ""))
    text = page.inner_text("#point")
    expected = nearest(digits[0], 10)[row].tolist()
    listed = [int(name) for name in page.eval_on_selector_all("#point .near button", "e => e.map(x => x.dataset.row)")]
    assert sorted(listed[:10]) == sorted(expected)
    assert sorted(listed[10:]) == sorted(nearest(see.embedding_, 10)[row].tolist())
    kept = len({*expected} & {*listed[10:]})
    assert f"{kept} of its 10 nearest rows in the data are among its 10 nearest on the map" in text
    assert "The network alone would place it" in text
    page.click("#point .near button >> nth=0")  # go on to the nearest
    page.wait_for_function(f"document.querySelector('#point h2').textContent === 'Row {expected[0]:,}'")
    page.keyboard.press("Escape")
    assert page.is_hidden("#point")
    page.select_option("#color", label="Neighbors kept (%)")
    page.settle()
    page.fill(".ends input >> nth=0", "50")
    page.keyboard.press("Enter")
    page.settle()
    _, arrays = describe_trust(see.map_, see.embedding_.astype(np.float64), None)
    assert page.evaluate("tsee.shown()") == (arrays["kept"] >= 5).sum()
    assert not page.errors


def test_a_point_is_opened_without_a_pointer(see, digits, tmp_path, open_page):
    page = open_page(see.to_html(tmp_path / "map.html", columns={"digit": digits[1]}))
    page.keyboard.press("i")
    page.wait_for_selector("#point:not([hidden])")
    first = page.inner_text("#point h2")
    page.keyboard.press("Enter")  # the focus is on its nearest neighbor
    page.wait_for_function(f"document.querySelector('#point h2').textContent !== {first!r}")
