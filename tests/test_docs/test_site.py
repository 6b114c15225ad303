"""The documentation site: it builds without a warning, names everything public, and loads nothing from the network."""

import inspect
import os
import re
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

import tsee

pytest.importorskip("sphinx")
ROOT = Path(__file__).parents[2]
# What a page loads by itself; a link (a, form) is the reader's to follow.
LOADING = {"script": "src", "link": "href", "img": "src", "source": "src", "iframe": "src", "video": "src"}


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site as `make docs` builds it, but for running the tutorials."""
    out = tmp_path_factory.mktemp("site")
    environment = os.environ | {"TSEE_DOCS_EXECUTION": "off", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*command, "-d", str(out / "doctrees"), str(ROOT / "docs"), str(out / "html")],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


def test_every_page_is_there_and_in_the_contents(site):
    contents = (site / "index.html").read_text()
    pages = [*ROOT.glob("docs/*.md"), *ROOT.glob("docs/tutorials/*.md")]
    assert len(pages) > 20
    for page in pages:
        name = page.relative_to(ROOT / "docs").with_suffix(".html").as_posix()
        assert (site / name).exists()
        assert name == "index.html" or f'href="{name}"' in contents, name


def test_every_public_name_is_in_the_reference(site):
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]  # below four lines of heading
    listed = set(re.findall(r"^(\S+) py:", zlib.decompress(inventory).decode(), re.MULTILINE))
    public = {f"tsee.{name}" for name in tsee.__all__}
    for module in (getattr(tsee, name) for name in tsee.__all__ if inspect.ismodule(getattr(tsee, name))):
        public |= {f"{module.__name__}.{name}" for name in module.__all__ if name not in tsee.__all__}
    assert len(public) > 40
    assert public <= listed
    methods = {
        f"tsee.DtSEE.{name}" for name in ("fit", "transform", "novelty", "save", "plot", "to_html", "fast", "paper")
    }
    assert methods <= listed


class Loads(HTMLParser):
    """What a page loads when it is opened."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        if tag == "link" and given.get("rel") in ("index", "search", "next", "prev", "canonical", "author"):
            return
        if tag in LOADING and LOADING[tag] in given:
            self.found.append(given[LOADING[tag]])


def test_a_page_loads_nothing_from_the_network(site):
    pages, loaded = list(site.rglob("*.html")), []
    assert len(pages) > 30
    for page in pages:
        reader = Loads()
        reader.feed(page.read_text())
        loaded += reader.found
    assert any(address.endswith(".css") or ".css?" in address for address in loaded)
    assert not [address for address in loaded if re.match(r"(https?:)?//", address)]
    for style in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", style.read_text()), style


def test_formulas_are_drawn(site):
    page = (site / "reference" / "tsee.metrics.html").read_text()
    drawn = re.findall(r'<div class="formula"><svg role="img" aria-label="([^"]*)"', page)
    assert any("QS" in formula for formula in drawn)
    assert len(drawn) >= 7
    assert not re.search(r"\\\(|\\\[|:math:|mathjax", page)


def test_links_between_pages_lead_somewhere(site):
    """Relative links of every page; what Sphinx itself resolves, and what is written as a plain link."""
    missing = []
    for page in site.rglob("*.html"):
        for address in re.findall(r'<a [^>]*href="([^"#?]+)[^"]*"', page.read_text()):
            if not re.match(r"\w+:", address) and not (page.parent / address).exists():
                missing.append((page.name, address))
    assert not missing
