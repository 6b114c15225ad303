"""The map's page: what is written, and what a browser makes of it."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import re
import shutil
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from urllib.request import urlopen

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.path import Path as Polygon
from PIL import Image

import tsee
from tsee.exceptions import DataFileError
from tsee.explorer import write_map_page
from tsee.explorer.columns import describe_column
from tsee.explorer.packing import pack, unpack
from tsee.explorer.page import DARK_COLORS
from tsee.files import open_table
from tsee.plots import COLORS

WEB = Path(write_map_page.__code__.co_filename).parent / "web"
NAMES = [f"pixel {i}" for i in range(64)]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Chromium asks its maker's hosts for things as it starts, unless told not to.
FLAGS = ["--no-sandbox", "--no-first-run", "--disable-quic", "--disable-background-networking", "--disable-sync"]
FLAGS += ["--disable-component-update", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
FLAGS += ["--ignore-gpu-blocklist"]


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright")
    if CHROMIUM is None:
        pytest.skip("no Chromium here: the page's tests need one (apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@dataclass
class Opened:
    """A page in the browser, with what it asked for and what went wrong in it."""

    page: object
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.page, name)

    def screen(self, row):
        return self.page.evaluate("row => tsee.screen(row)", row)

    def picture(self):
        """What is seen, as an array of RGB."""
        return np.asarray(Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")).astype(int)

    def settle(self):
        """Wait until what was asked for is drawn, and nothing moves."""
        self.page.evaluate(
            """async () => {
                const frame = () => new Promise(requestAnimationFrame);
                for (let before = null, still = 0; still < 4; before = tsee.screen(0).join()) {
                    await frame();
                    still = tsee.screen(0).join() === before ? still + 1 : 0;
                }
                await tsee.drawn();
                await frame();
            }"""
        )

    def drop(self, content, name="new.csv"):
        self.page.evaluate(
            """([text, name]) => {
                const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
                const data = new DataTransfer();
                data.items.add(new File([bytes], name));
                const how = {dataTransfer: data, bubbles: true, cancelable: true};
                for (const type of ['dragenter', 'dragover', 'drop'])
                    document.body.dispatchEvent(new DragEvent(type, how));
            }""",
            [base64.b64encode(content if isinstance(content, bytes) else content.encode()).decode(), name],
        )

    def placed(self):
        """Where new rows landed, or the sentence that they were refused with."""
        self.page.wait_for_function("tsee.added() || document.querySelector('.said:not([hidden])')")
        refused = self.page.query_selector(".said:not([hidden])")
        if refused:
            return refused.inner_text()
        return np.array(self.page.evaluate("tsee.added().places")).reshape(-1, 2)


@pytest.fixture
def open_page(browser):
    contexts = []

    def open_(path, width=1200, height=800, **options):
        options = {"reduced_motion": "reduce", **options}
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        context.set_default_timeout(60_000)
        opened = Opened(context.new_page())
        opened.page.on("request", lambda request: opened.requests.append(request.url))
        opened.page.on("pageerror", lambda error: opened.errors.append(str(error)))
        opened.page.goto(Path(path).as_uri())
        opened.page.wait_for_function("window.tsee")
        opened.settle()
        return opened

    yield open_
    for context in contexts:
        context.close()


@pytest.fixture(scope="module")
def fitted(digits):
    X, *_ = digits
    return tsee.DtSEE(max_epochs=6, random_state=0).fit(pd.DataFrame(X, columns=NAMES))


@pytest.fixture(scope="module")
def clusters():
    """Three clusters far apart, 40 points each, in the order of the classes."""
    generator = np.random.default_rng(0)
    labels = np.repeat(["ant", "bee", "cat"], 40)
    middles = np.repeat([[0.0, 0.0], [10.0, 0.0], [5.0, 8.0]], 40, axis=0)
    return middles + generator.normal(size=(120, 2)), labels


@pytest.fixture(scope="module")
def simple(fitted, clusters, tmp_path_factory):
    """A page of the three clusters with every kind of column."""
    Y, labels = clusters
    columns = {
        "kind": labels,
        "weight": np.linspace(0, 1, 120) + 0.25,
        "note": [f'says "{i}", twice' for i in range(120)],
    }
    path = tmp_path_factory.mktemp("page") / "simple.html"
    return write_map_page(fitted, Y, path, columns=columns, title="Three kinds")


@pytest.fixture(scope="module")
def page_path(fitted, digits, tmp_path_factory):
    """A page of digits."""
    path = tmp_path_factory.mktemp("page") / "map.html"
    return write_map_page(fitted, fitted.embedding_, path, columns={"digit": digits[1]})


def rgb(color):
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])


def near(picture, place, color, reach=2, tolerance=40):
    """Whether a pixel about a place has nearly a color."""
    x, y = (round(value) for value in place)
    patch = picture[y - reach : y + reach + 1, x - reach : x + reach + 1]
    return bool((np.abs(patch - rgb(color)).max(2) <= tolerance).any())


def as_csv(X, names=NAMES, **more):
    frame = pd.DataFrame(np.asarray(X), columns=names)
    return frame.assign(**more).to_csv(index=False)


class TestDrawing:
    def test_points_are_where_the_map_has_them(self, simple, clusters, open_page):
        Y, labels = clusters
        page = open_page(simple)
        assert page.title() == "Three kinds"
        assert page.inner_text("h1") == "Three kinds"
        assert "120 points" in page.inner_text("#counts")
        places = np.array([page.screen(row) for row in range(120)])
        # One scale for both directions, y upwards.
        scale = np.ptp(places[:, 0]) / np.ptp(Y[:, 0])
        away = (places - places.mean(0)) / scale * [1, -1] - (Y - Y.mean(0))
        assert np.abs(away).max() < 1e-3 * np.ptp(Y)
        page.keyboard.press("t")  # names may stand upon points
        page.settle()
        picture = page.picture()
        colors = dict(zip(["ant", "bee", "cat"], COLORS, strict=False))
        seen = [near(picture, place, colors[label]) for place, label in zip(places, labels, strict=True)]
        assert np.mean(seen) > 0.95  # a few are under a point of another class
        middle = places.mean(0).astype(int)
        assert near(picture, middle, "#fbfbf9", reach=3, tolerance=4)
        assert not page.errors

    def test_names_stand_on_the_map(self, simple, open_page):
        page = open_page(simple)
        with_names = page.picture()
        page.click("#names")
        page.settle()
        without = page.picture()
        changed = np.argwhere(np.abs(with_names - without).max(2) > 30)
        for row in (20, 60, 100):  # in each cluster
            x, y = page.screen(row)
            assert np.linalg.norm(changed[:, ::-1] - [x, y], axis=1).min() < 120

    def test_pan_and_zoom(self, simple, open_page):
        page = open_page(simple, reduced_motion="no-preference")
        before = np.array(page.screen(0))
        page.mouse.move(700, 700)
        page.mouse.down()
        page.mouse.move(650, 620, steps=6)
        page.mouse.move(600, 600, steps=6)
        page.settle()
        page.mouse.up()
        assert np.abs(page.screen(0) - before - [-100, -100]).max() < 12  # the first pixels of a drag may be lost
        at = np.array(page.screen(60))
        apart = np.linalg.norm(at - page.screen(0))
        page.mouse.move(*at)
        page.mouse.wheel(0, -300)
        page.settle()
        assert np.abs(page.screen(60) - at).max() < 2  # what is under the pointer stays
        assert np.linalg.norm(np.array(page.screen(60)) - page.screen(0)) > 1.2 * apart
        page.keyboard.press("0")
        page.settle()
        assert np.abs(page.screen(0) - before).max() < 2
        page.keyboard.press("ArrowRight")
        page.keyboard.press("+")
        page.settle()
        assert np.abs(page.screen(0) - before).max() > 20

    def test_dark_and_light(self, simple, open_page):
        page = open_page(simple, color_scheme="dark")
        assert near(page.picture(), (600, 790), "#121417", tolerance=6)
        assert near(page.picture(), page.screen(5), DARK_COLORS[0], reach=4)
        page.click("#theme")
        page.settle()
        assert near(page.picture(), (600, 790), "#fbfbf9", tolerance=6)

    def test_dark_colors_are_told_apart_by_every_kind_of_sight(self):
        """The base colors, of which the page takes more for more categories."""
        sights = re.search(r"const SIGHTS = (\[.*?\]);", (WEB / "source" / "colors.js").read_text(), re.S)
        matrices = np.array(json.loads(re.sub(r",\s*\]", "]", sights[1]))).reshape(4, 3, 3)
        to_cone = np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.6300]])
        to_lab = np.array([[0.2105, 0.7936, -0.0041], [1.9780, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]])
        parts = np.array([rgb(color) / 255 for color in DARK_COLORS])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        for matrix in matrices:
            lab = np.cbrt((linear @ matrix.T).clip(0, 1) @ to_cone.T) @ to_lab.T
            apart = np.linalg.norm(lab[:, None] - lab, axis=2)
            assert apart[np.triu_indices(10, 1)].min() > 0.1
            assert lab[:, 0].min() > 0.5

    def test_exemplars_are_a_layer(self, digits, tmp_path, open_page):
        X, *_ = digits
        see = tsee.DtSEE(max_epochs=2, exemplars="centers", n_exemplars=30, random_state=0)
        page = open_page(write_map_page(see, see.fit_transform(X), tmp_path / "map.html"))
        assert "30 exemplars" in page.get_attribute("#exemplars", "title")
        before = page.picture()
        page.click("#exemplars")
        page.settle()
        after = page.picture()
        places = [page.evaluate("([x, y]) => tsee.screenOf(x, y)", place.tolist()) for place in see.exemplar_embedding_]
        for x, y in places:
            patch = np.s_[round(y) - 9 : round(y) + 10, round(x) - 9 : round(x) + 10]
            assert np.abs(after[patch] - before[patch]).max() > 60

    @pytest.mark.parametrize("n_rows", [1, 2, 10])
    def test_few_points(self, fitted, tmp_path, n_rows, open_page):
        page = open_page(write_map_page(fitted, np.arange(2 * n_rows).reshape(-1, 2), tmp_path / "map.html"))
        assert f"{n_rows} point" in page.inner_text("#counts")
        assert near(page.picture(), page.screen(0), COLORS[0], reach=4)

    @pytest.mark.parametrize("width, height", [(390, 800), (1600, 1000)])
    def test_everything_is_on_the_screen(self, simple, open_page, width, height):
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


class TestLegend:
    def test_a_click_filters(self, simple, clusters, open_page):
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
        page.mouse.move(*page.screen(0))  # an ant, which is only a shadow now
        page.wait_for_timeout(200)
        assert page.is_hidden("#card")
        page.click(".names button >> text=ant")
        page.settle()
        assert "80 of 120 points" in page.inner_text("#counts")
        page.click("text=Show all")
        page.settle()
        assert "120 points" in page.inner_text("#counts")

    def test_a_range_of_numbers(self, simple, open_page):
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
        # Dark is little and bright is much, in both halves of what was left.
        picture = page.picture()
        assert near(picture, page.screen(119), "#c8e020", tolerance=70)

    def test_many_categories(self, fitted, tmp_path, open_page):
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

    def test_rows_without_a_value(self, fitted, tmp_path, open_page):
        labels = ["a", None, "b", "a", float("nan")]
        page = open_page(write_map_page(fitted, np.eye(5)[:, :2], tmp_path / "map.html", columns={"kind": labels}))
        assert page.inner_text(".names").split("\n")[-2:] == ["no value", "2"]

    def test_search(self, simple, open_page):
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


class TestCard:
    def test_it_tells_what_is_known(self, simple, open_page):
        page = open_page(simple)
        page.mouse.move(*page.screen(90))
        page.wait_for_selector("#card:not([hidden])")
        text = page.inner_text("#card")
        assert "cat" in text
        assert 'says "90", twice' in text
        assert "row 90" in text
        page.mouse.move(600, 780)
        page.wait_for_selector("#card", state="hidden")

    def test_it_shows_the_picture(self, fitted, clusters, tmp_path, open_page):
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

    def test_a_tap_of_a_finger(self, simple, open_page):
        page = open_page(simple, 390, 800, has_touch=True)
        page.touchscreen.tap(*page.screen(90))
        page.wait_for_selector("#card:not([hidden])")
        assert "row 90" in page.inner_text("#card")

    def test_two_fingers_zoom(self, simple, open_page):
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


class TestSelection:
    def box(self, page, rows):
        places = np.array([page.screen(row) for row in rows])
        return places.min(0) - 8, places.max(0) + 8

    def drag(self, page, corners):
        page.mouse.move(*corners[0])
        page.mouse.down()
        for corner in corners[1:]:
            page.mouse.move(*corner, steps=8)
            page.wait_for_timeout(60)
        page.mouse.up()
        page.wait_for_selector("#selection:not([hidden])")

    def test_a_box_selects_what_is_inside(self, simple, open_page):
        page = open_page(simple)
        low, high = self.box(page, range(40, 80))
        places = np.array([page.screen(row) for row in range(120)])
        page.keyboard.press("b")
        self.drag(page, [low, (low + high) / 2, high])
        inside = np.flatnonzero(((places > low) & (places < high)).all(1))
        assert sorted(page.evaluate("tsee.selected()")) == inside.tolist()
        assert len(inside) >= 40

    def test_a_lasso_selects_what_is_inside(self, simple, open_page):
        page = open_page(simple)
        (left, top), (right, bottom) = self.box(page, range(80, 120))
        middle = (left + right) / 2
        corners = [(middle, top), (right, bottom), (left, bottom), (middle, top)]  # a triangle
        places = np.array([page.screen(row) for row in range(120)])
        page.keyboard.down("Shift")
        self.drag(page, corners)
        page.keyboard.up("Shift")
        selected = set(page.evaluate("tsee.selected()"))
        # The lasso follows the pointer to a few pixels, so that points at its edge may be on either side.
        inner, outer = (Polygon(corners).contains_points(places, radius=radius) for radius in (-6, 6))
        assert set(np.flatnonzero(inner & outer)) <= selected <= set(np.flatnonzero(inner | outer))
        assert 5 < len(selected) < 40

    def test_it_is_downloaded_with_all_columns(self, simple, clusters, open_page):
        page = open_page(simple)
        low, high = self.box(page, range(40, 80))
        page.keyboard.press("b")
        self.drag(page, [low, (low + high) / 2, high])
        rows = sorted(page.evaluate("tsee.selected()"))
        with page.expect_download() as download:
            page.click("#save")
        saved = pd.read_csv(download.value.path())
        assert list(saved.columns) == ["row", "x", "y", "kind", "weight", "note"]
        assert saved["row"].tolist() == rows
        assert saved["kind"].tolist() == clusters[1][rows].tolist()
        assert saved["note"].tolist() == [f'says "{row}", twice' for row in rows]
        assert saved["weight"].to_numpy() == pytest.approx(np.linspace(0, 1, 120)[rows] + 0.25, rel=1e-6)
        assert np.abs(saved[["x", "y"]].to_numpy() - clusters[0][rows]).max() < 2e-5 * np.ptp(clusters[0])
        page.keyboard.press("Escape")
        page.settle()
        assert page.evaluate("tsee.selected()") is None


MODELS = {
    "refined": dict(kind=tsee.DtSEE),
    "forward": dict(kind=tsee.DtSEE, placement="forward"),
    "paper": dict(
        kind=tsee.PtSNE, hidden_layers=(50, 50, 200), normalization=None, activation="sigmoid", n_inputs=None
    ),
    "folded": dict(kind=tsee.PtSNE, hidden_layers=(33, 17), normalization="batch", activation="tanh"),
    "gelu": dict(kind=tsee.PtSNE, hidden_layers=(30,), activation="gelu"),
    "silu": dict(kind=tsee.PtSNE, hidden_layers=(30,), activation="silu", n_inputs=7),
    "high order": dict(kind=tsee.HotSEE, placement="forward", n_factors=31, n_hidden=19),
    "third order": dict(kind=tsee.HotSNE, order=3, normalization=None, n_factors=30, n_hidden=20),
    "centers": dict(kind=tsee.HotSEE, exemplars="centers", n_exemplars=40, normalization="batch", n_hidden=30),
}


ROWS = as_csv(np.ones((3, 64)))
BAD = {
    "no rows": ",".join(NAMES) + "\n",
    "empty": "",
    "ragged": ROWS.replace("1.0\n1.0", "1.0,7\n1.0", 1),
    "text in a number": ROWS.replace("\n1.0,1.0", "\n1.0,much", 1),
    "missing": ROWS.replace("\n1.0,1.0", "\n1.0,", 1),
    "missing, said": ROWS.replace("\n1.0,1.0", "\n1.0,NA", 1),
    "infinite": ROWS.replace("\n1.0,1.0", "\n1.0,inf", 1),
    "hexadecimal": ROWS.replace("\n1.0,1.0", "\n1.0,0x10", 1),
    "open quote": ROWS.replace("\n1.0,1.0", '\n1.0,"1.0', 1),
    "columns missing": pd.DataFrame(np.ones((2, 62)), columns=NAMES[:62]).to_csv(index=False),
    "column misspelt": as_csv(np.ones((2, 64))).replace("pixel 9", "Pixel_9"),
}


class TestNewRows:
    @pytest.mark.parametrize("name", MODELS)
    def test_they_land_where_transform_puts_them(self, name, digits, tmp_path, open_page):
        X, y, X_new, _ = digits
        settings = dict(MODELS[name])
        see = settings.pop("kind")(max_epochs=3, random_state=0, **settings)
        Y = see.fit_transform(pd.DataFrame(X, columns=NAMES))
        page = open_page(write_map_page(see, Y, tmp_path / "map.html", columns={"digit": y}))
        # In another order, and beside a column that is none of the features.
        frame = pd.DataFrame(X_new, columns=NAMES)
        page.drop(frame[NAMES[::-1]].assign(who="me").to_csv(index=False))
        away = np.abs(page.placed() - see.transform(frame)).max()
        assert away < 1e-3 * np.ptp(Y, axis=0).max()
        assert not page.errors

    def test_weights_that_half_precision_would_spoil_are_written_whole(self, digits, tmp_path, open_page):
        X, _, X_new, _ = digits
        see = tsee.PtSNE(max_epochs=2, random_state=0, n_inputs=None, hidden_layers=(20,)).fit(X)
        with torch.no_grad():
            see.network_.layers[0].weight *= 1e5  # beyond the largest half
        Y = see.transform(X)
        page = open_page(write_map_page(see, Y, tmp_path / "map.html"))
        page.drop(as_csv(X_new))
        assert np.abs(page.placed() - see.transform(X_new)).max() < 1e-3 * np.ptp(Y, axis=0).max()

    def test_other_forms_of_text(self, page_path, fitted, digits, open_page):
        rows = pd.DataFrame(digits[2][:3], columns=NAMES)
        expected = fitted.transform(rows)
        page = open_page(page_path)
        close = 1e-3 * np.ptp(fitted.embedding_)
        forms = {
            "a.csv": rows.to_csv(index=False, sep=";"),
            "b.tsv": rows.to_csv(index=False, sep="\t"),
            "c.csv": "\ufeff" + rows.to_csv(index=False, lineterminator="\r\n"),
            "d.csv": rows.to_csv(index=False, quoting=csv.QUOTE_ALL),
            "e.csv": rows.to_csv(index=False, header=False),  # as many fields as features, in their order
        }
        forms["f.csv.gz"] = gzip.compress(rows.to_csv(index=False).encode())
        for name, content in forms.items():
            page.drop(content, name)
            page.wait_for_function("name => document.querySelector('#additions h2')?.textContent === name", arg=name)
            assert np.abs(page.placed() - expected).max() < close, name

    def test_pasted_and_chosen(self, page_path, fitted, digits, tmp_path, open_page):
        rows = pd.DataFrame(digits[2][:3], columns=NAMES)
        page = open_page(page_path)
        page.evaluate(
            """text => {
                const data = new DataTransfer();
                data.setData('text', text);
                document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true}));
            }""",
            rows.to_csv(index=False),
        )
        assert np.abs(page.placed() - fitted.transform(rows)).max() < 1e-3 * np.ptp(fitted.embedding_)
        chosen = tmp_path / "mine.csv"
        rows[:2].to_csv(chosen, index=False)
        page.click("#place")
        page.set_input_files("#file", chosen)
        page.wait_for_function("document.querySelector('#additions h2')?.textContent === 'mine.csv'")
        assert len(page.placed()) == 2

    def test_they_are_drawn_listed_and_downloaded(self, page_path, fitted, digits, open_page):
        rows = pd.DataFrame(digits[2], columns=NAMES)
        names = [f"scan, no. {i}" for i in range(len(rows))]
        page = open_page(page_path)
        page.drop(as_csv(rows, name=names))
        places = page.placed()
        assert f"{len(rows)} new rows" in page.inner_text("#additions")
        page.settle()
        picture = page.picture()
        drawn = [page.evaluate("([x, y]) => tsee.screenOf(x, y)", place.tolist()) for place in places]
        page.keyboard.press("t")
        assert np.mean([near(picture, place, "#1d2024", reach=3) for place in drawn]) > 0.95
        page.mouse.move(*drawn[0])
        page.wait_for_selector("#card:not([hidden])")
        assert "new row" in page.inner_text("#card")
        with page.expect_download() as download:
            page.click("#save-new")
        saved = pd.read_csv(download.value.path())
        assert saved["name"].tolist() == names
        assert np.abs(saved[["tsee1", "tsee2"]].to_numpy() - places).max() < 1e-5 * np.ptp(places)
        page.click("#additions .icon")
        assert page.evaluate("tsee.added()") is None

    def test_what_is_unlike_the_data_is_marked(self, page_path, fitted, digits, open_page):
        generator = np.random.default_rng(0)
        noise = generator.permuted(digits[2][:20], axis=1)  # the ink of digits, strewn
        page = open_page(page_path)
        page.drop(as_csv(np.concatenate([digits[0][:50], noise])))
        page.placed()
        novelty = np.array(page.evaluate("tsee.added().novelty"))
        assert np.abs(novelty - fitted.novelty(np.concatenate([digits[0][:50], noise]))).max() < 0.03
        assert (novelty[50:] > 0.99).mean() > 0.9
        assert "unlike" in page.inner_text("#additions")

    def test_many_features_in_few_exemplars(self, digits, tmp_path, open_page, monkeypatch):
        """More exemplars than a page carries: rows are placed by the network, and the page says so."""
        monkeypatch.setattr("tsee.explorer.model.MOST_EXEMPLAR_NUMBERS", 5000)
        X, _, X_new, _ = digits
        see = tsee.DtSEE(max_epochs=3, random_state=0).fit(X)
        assert see.placement_ == "refined"
        page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
        page.drop(as_csv(X_new))
        forward = see.set_params(placement="forward").transform(X_new)
        assert np.abs(page.placed() - forward).max() < 1e-3 * np.ptp(see.embedding_, axis=0).max()
        assert "by the network alone" in page.inner_text("#additions")
        novelty = np.array(page.evaluate("tsee.added().novelty"))
        assert (novelty > 0.99).mean() < 0.1

    def test_a_network_of_the_users_own(self, digits, tmp_path, open_page):
        X, *_ = digits
        see = tsee.PtSNE(max_epochs=1, random_state=0, network=torch.nn.Linear(50, 2)).fit(X)
        page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
        page.drop(as_csv(X[:2]))
        page.wait_for_selector("dialog")
        assert "with Python" in page.inner_text("dialog")

    def test_bad_rows_get_the_sentence_of_the_command(self, page_path, tmp_path, open_page):
        """Up to its last part, the advice: what can be done about it is not the same on the page."""
        page = open_page(page_path)
        for name, content in BAD.items():
            path = tmp_path / f"{name}.csv"
            path.write_text(content)
            with pytest.raises(DataFileError) as refused:
                open_table(path, columns=NAMES)
            expected = str(refused.value).replace(str(path), path.name).rpartition(": ")[0]
            page.drop(content, path.name)
            page.wait_for_function(
                "start => document.querySelector('.said')?.textContent.startsWith(start)", arg=f"'{name}"
            )
            sentence = page.placed()
            assert sentence.startswith(expected), name
            assert sentence.endswith((".", "?")), name
            assert page.evaluate("tsee.added()") is None
        # The page goes on: good rows are taken after bad ones.
        page.drop(as_csv(np.ones((2, 64))))
        page.wait_for_function("tsee.added()")

    def test_other_files_are_refused(self, page_path, open_page):
        page = open_page(page_path)
        page.drop(b"PAR1\x00\x00\xff\xfe", "rows.parquet")
        assert page.placed() == "'rows.parquet' is not a text of separated values: save the data as CSV."
        page.drop("größe\n1\n".encode("latin-1"), "old.csv")
        page.wait_for_function("document.querySelector('.said').textContent.includes('old.csv')")
        assert page.placed() == "'old.csv' is not text in UTF-8: save it as UTF-8."

    def test_rows_beyond_all_measure(self, page_path, open_page):
        page = open_page(page_path)
        page.drop(as_csv(np.concatenate([np.ones((1, 64)), np.full((1, 64), 1e300)])))
        assert page.placed().startswith("'new.csv', row 2 (line 3) is too far from the data")

    def test_columns_without_names_count_by_their_order(self, digits, tmp_path, open_page):
        X, _, X_new, _ = digits
        see = tsee.DtSEE(max_epochs=2, random_state=0, placement="forward").fit(X)  # an array has no names
        page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
        numbers = [str(i) for i in range(64)]
        page.drop(as_csv(X_new, numbers, label=[f"row {i}" for i in range(len(X_new))]))
        assert np.abs(page.placed() - see.transform(X_new)).max() < 1e-3 * np.ptp(see.embedding_)
        page.drop(as_csv(X_new[:, :60], numbers[:60]), "few.csv")
        page.wait_for_selector(".said:not([hidden])")
        assert page.inner_text(".said").startswith("'few.csv' has 60 numeric columns, but the map was learned from 64")


EVIL = '</script><img src=x onerror="window.bad=1"><b>\'&amp;'


class TestSafety:
    def test_nothing_is_asked_of_the_network(self, simple, digits, open_page):
        page = open_page(simple)
        page.drop(as_csv(digits[2][:5]))
        page.placed()
        outside = [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))]
        assert outside == []
        assert len([url for url in page.requests if url.startswith("file:")]) == 1

    def test_the_page_may_not_ask(self, simple, open_page):
        asked = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        page = open_page(simple)
        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            Thread(target=server.serve_forever, daemon=True).start()
            host = f"http://127.0.0.1:{server.server_port}"
            refused = page.evaluate(
                """async (host) => {
                    const tries = [fetch(host), fetch('data:,x')];
                    const image = new Image();
                    tries.push(new Promise((done, fail) => { image.onload = done; image.onerror = fail; }));
                    image.src = host + '/x.png';
                    return (await Promise.allSettled(tries)).map((one) => one.status);
                }""",
                host,
            )
            assert refused == ["rejected"] * 3
            assert asked == []
            assert urlopen(host).status == 200  # the one that would have been asked is there
            server.shutdown()
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.bad=1\">')")
        page.evaluate(
            "s => document.head.append(Object.assign(document.createElement('script'), {text: s}))", "bad = 2"
        )
        page.wait_for_timeout(200)
        assert page.evaluate("window.bad") is None  # scripts that are not the page's own do not run

    def test_words_are_words(self, fitted, clusters, tmp_path, open_page):
        Y, labels = clusters
        columns = {
            EVIL: np.where(labels == "ant", EVIL, labels),
            "text": [f"{EVIL} {i}" for i in range(120)],
        }
        path = write_map_page(
            fitted, Y, tmp_path / "map.html", columns=columns, title=EVIL, features=[EVIL, *NAMES[1:]]
        )
        content = path.read_text()
        assert "<img" not in content.replace("'<img", "")
        page = open_page(path)
        assert page.title() == EVIL
        assert page.inner_text("h1") == EVIL
        assert page.inner_text("#color") == EVIL
        assert EVIL in page.inner_text(".names")
        page.mouse.move(*page.screen(3))
        page.wait_for_selector("#card:not([hidden])")
        assert page.inner_text("#card").count(EVIL) == 3  # the column's name, the category and the text
        page.keyboard.press("n")
        assert EVIL in page.inner_text("dialog")
        page.drop(f'a,"{EVIL}"\n1,2\n'.replace("window", '""window'), f"{EVIL[10:20]}.csv")
        assert isinstance(page.placed(), str)
        assert page.query_selector_all("img") == []
        assert page.evaluate("window.bad") is None
        assert not page.errors


class TestFile:
    def test_it_is_whole_and_small(self, simple):
        content = simple.read_text(encoding="utf-8")
        assert not re.findall(r"""(?:src|href)=["'](?!data:,)""", content.partition("<body>")[0])
        assert "connect-src 'none'" in content
        assert "regl-scatterplot" in content  # the licenses of what is inside
        script = content.rpartition("<script>")[2].partition("</script>")[0]
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in content

    def test_the_script_was_made_of_these_sources(self):
        """If this fails: run src/tsee/explorer/web/build.sh, and commit what it makes."""
        sources = [WEB / "build.sh", WEB / "package-lock.json", *sorted((WEB / "source").iterdir())]
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
        assert (WEB / "explorer.min.js").read_text(encoding="utf-8").startswith(f"// {digest}\n")

    def test_an_existing_file_is_replaced_or_left(self, fitted, clusters, tmp_path):
        path = tmp_path / "map.html"
        path.write_text("mine")
        with pytest.raises(ValueError, match="places"):
            write_map_page(fitted, [[1, 2, 3]], path)
        assert path.read_text() == "mine"
        assert write_map_page(fitted, clusters[0], path) == path
        assert path.read_text().startswith("<!doctype html>")
        assert [file.name for file in tmp_path.iterdir()] == ["map.html"]

    def test_the_same_map_gives_the_same_file(self, fitted, clusters, tmp_path):
        one, two = (write_map_page(fitted, clusters[0], tmp_path / name).read_bytes() for name in "ab")
        assert one == two

    def test_places_are_kept_to_a_65535th(self, fitted, clusters, tmp_path):
        content = write_map_page(fitted, clusters[0], tmp_path / "map.html").read_text()
        description, arrays = unpack(re.search(r'id="payload">([^<]+)<', content)[1])
        places = arrays["places"].reshape(-1, 2) / 65535 * description["extent"] + description["low"]
        assert np.abs(places - clusters[0]).max() <= description["extent"] / 65535 * 0.51

    def test_pictures_are_bounded(self, fitted, clusters, tmp_path, monkeypatch):
        monkeypatch.setattr("tsee.explorer.pictures.MOST_BYTES", 20 * 64 * 48 * 3)
        images = np.random.default_rng(0).integers(0, 256, (120, 128, 96, 3), dtype=np.uint8)
        content = write_map_page(fitted, clusters[0], tmp_path / "map.html", images=images).read_text()
        _, arrays = unpack(re.search(r'id="payload">([^<]+)<', content)[1])
        assert arrays["pictures"].size == 20 * 64 * 48 * 3
        small = arrays["pictures"].reshape(20, 64, 48, 3)
        halved = images[arrays["pictureRows"]].reshape(20, 64, 2, 48, 2, 3).mean((2, 4))
        assert np.abs(small - halved).max() <= 4.5

    @pytest.mark.parametrize(
        "wrong, error, words",
        [
            (dict(places=[[1.0, np.nan]]), ValueError, "'places'.*NaN"),
            (dict(places=np.zeros((3, 3))), ValueError, r"'places'.*shape \(3, 3\)"),
            (dict(places=np.zeros((0, 2))), ValueError, "'places'"),
            (dict(columns=[1, 2]), TypeError, "'columns'.*list"),
            (dict(columns={"kind": ["a"]}), ValueError, r"'kind'.*120 rows.*shape \(1,\)"),
            (dict(columns={"1": range(120), 1: range(120)}), ValueError, "two columns '1'"),
            (dict(features=["a"]), ValueError, "'features'.*64.*1 names"),
            (dict(images=np.zeros((5, 2, 2))), ValueError, r"'images'.*shape \(5, 2, 2\)"),
            (dict(images=np.zeros((120, 2, 2, 2))), ValueError, "'images'.*1 or 3 colors"),
            (dict(title=3), TypeError, "'title'.*int"),
        ],
    )
    def test_wrong_parameters_are_named(self, fitted, clusters, tmp_path, wrong, error, words):
        parameters = {"places": clusters[0], **wrong}
        with pytest.raises(error, match=words):
            write_map_page(fitted, path=tmp_path / "map.html", **parameters)
        assert not list(tmp_path.iterdir())


class TestPacking:
    def test_it_comes_back(self):
        given = {
            "a": np.arange(5, dtype=np.uint16),
            "b": np.array([], np.float32),
            "c": np.array([0.5, -2, 65504], np.float16),
        }
        description, arrays = unpack(pack({"title": "größe </script>"}, given))
        assert description == {"title": "größe </script>"}
        for name, array in given.items():
            assert arrays[name].dtype == array.dtype
            assert arrays[name].tolist() == array.tolist()

    @pytest.mark.parametrize(
        "values, kind",
        [
            (["a", "b", "a"], "category"),
            ([1, 2, 1], "category"),
            ([True, False, True], "category"),
            (np.arange(200), "number"),
            ([0.5, 1.5, np.nan], "number"),
            ([f"text {i}" for i in range(50)], "text"),
            (["a", 1, None], "category"),
            (np.array(["2026-01-01", "NaT"], "datetime64[D]"), "category"),
            (pd.Series(["x", "y", None], dtype="category"), "category"),
            (pd.Series(["x", "y", None], dtype="string"), "category"),
            (pd.Series([1, 2, None], dtype="Int64"), "category"),
            (np.arange(30), "number"),  # numbers the rows
            ([np.nan] * 3, "category"),
            ([], "category"),
        ],
    )
    def test_kinds_of_columns(self, values, kind):
        description, arrays = describe_column("name", np.asarray(values), "key")
        assert description["kind"] == kind
        assert len(arrays[description.get("lengths", "key")]) == len(values)

    @pytest.mark.parametrize("first", [0, 2**31, 2**53 - 200, 2**60])
    def test_identifiers_are_kept_exactly(self, first):
        values = first + np.arange(150)
        description, arrays = describe_column("id", values, "key")
        if description["kind"] == "number":
            assert arrays["key"].astype(np.int64).tolist() == values.tolist()
        else:  # more than JavaScript counts to
            assert arrays["key.text"].tobytes().decode() == "".join(map(str, values))
