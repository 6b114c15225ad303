"""The page sends no requests, and text never becomes markup."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.request import urlopen

import numpy as np

from tsee.explorer import write_map_page

EVIL = '</script><img src=x onerror="window.bad=1"><b>\'&amp;'


def test_the_page_sends_no_requests(simple, digits, open_page, as_csv):
    page = open_page(simple)
    page.drop(as_csv(digits[2][:5]))
    page.placed()
    outside = [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []
    assert len([url for url in page.requests if url.startswith("file:")]) == 1


def test_requests_are_forbidden(simple, open_page):
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
        assert urlopen(host).status == 200  # the server does answer
        server.shutdown()
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"window.bad=1\">')")
    page.evaluate("s => document.head.append(Object.assign(document.createElement('script'), {text: s}))", "bad = 2")
    page.wait_for_timeout(200)
    assert page.evaluate("window.bad") is None  # scripts that are not the page's own do not run


def test_text_is_not_markup(fitted, clusters, tmp_path, open_page, feature_names):
    Y, labels = clusters
    columns = {
        EVIL: np.where(labels == "ant", EVIL, labels),
        "text": [f"{EVIL} {i}" for i in range(120)],
    }
    path = write_map_page(
        fitted, Y, tmp_path / "map.html", columns=columns, title=EVIL, features=[EVIL, *feature_names[1:]]
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
