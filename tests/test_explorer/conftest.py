"""A fitted model, pages of it, and a browser to open them in."""

from __future__ import annotations

import base64
import io
import shutil
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import tsee
from tsee.explorer import write_map_page

NAMES = [f"pixel {i}" for i in range(64)]
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# Without these flags, Chromium contacts its maker's hosts when it starts.
FLAGS = ["--no-sandbox", "--no-first-run", "--disable-quic", "--disable-background-networking", "--disable-sync"]
FLAGS += ["--disable-component-update", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]
FLAGS += ["--ignore-gpu-blocklist"]


@pytest.fixture(scope="session")
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
    """A page in the browser, with its requests and its errors."""

    page: object
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def __getattr__(self, name):
        return getattr(self.page, name)

    def screen(self, row):
        return self.page.evaluate("row => tsee.screen(row)", row)

    def picture(self):
        """A screenshot, as an array of RGB."""
        return np.asarray(Image.open(io.BytesIO(self.page.screenshot())).convert("RGB")).astype(int)

    def settle(self):
        """Wait until everything is drawn and nothing moves."""
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
        """The positions of new rows, or the sentence with which they were refused."""
        self.page.wait_for_function("tsee.added() || document.querySelector('.said:not([hidden])')")
        refused = self.page.query_selector(".said:not([hidden])")
        if refused:
            return refused.inner_text()
        return np.array(self.page.evaluate("tsee.added().positions")).reshape(-1, 2)


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


@pytest.fixture(scope="session")
def fitted(digits):
    X, *_ = digits
    return tsee.DtSEE(max_epochs=6, random_state=0).fit(pd.DataFrame(X, columns=NAMES))


@pytest.fixture(scope="session")
def clusters():
    """Three clusters far apart, 40 points each, in the order of the classes."""
    generator = np.random.default_rng(0)
    labels = np.repeat(["ant", "bee", "cat"], 40)
    middles = np.repeat([[0.0, 0.0], [10.0, 0.0], [5.0, 8.0]], 40, axis=0)
    return middles + generator.normal(size=(120, 2)), labels


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def page_path(fitted, digits, tmp_path_factory):
    """A page of digits."""
    path = tmp_path_factory.mktemp("page") / "map.html"
    return write_map_page(fitted, fitted.embedding_, path, columns={"digit": digits[1]})


def rgb(color):
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])


@pytest.fixture(scope="session")
def near():
    """``near(picture, position, color)``: whether a pixel around a position has nearly a color."""

    def near(picture, position, color, reach=2, tolerance=40):
        x, y = (round(value) for value in position)
        patch = picture[y - reach : y + reach + 1, x - reach : x + reach + 1]
        return bool((np.abs(patch - rgb(color)).max(2) <= tolerance).any())

    return near


@pytest.fixture(scope="session")
def feature_names():
    """The names of the columns that the models are fitted on."""
    return NAMES


@pytest.fixture(scope="session")
def as_csv():
    """``as_csv(X, names, column=values)``: rows as the text of a CSV file."""

    def as_csv(X, names=NAMES, **more):
        return pd.DataFrame(np.asarray(X), columns=names).assign(**more).to_csv(index=False)

    return as_csv
