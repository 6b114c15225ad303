"""Links that work on the site as they do in the repository, and a place in the contents for every page."""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

# Files beside `docs` that are pages of the site.
PAGES = {"../CONTRIBUTING.md": "contributing.md", "../CHANGELOG.md": "changelog.md", "../SECURITY.md": "security.md"}


def setup(app: Sphinx) -> dict[str, bool]:
    """Change what is read, before it is parsed."""
    app.connect("source-read", _point_at_pages)
    app.connect("source-read", _list_the_other_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _point_at_pages(app: Sphinx, name: str, source: list[str]) -> None:
    for path, page in PAGES.items():
        source[0] = source[0].replace(f"]({path})", f"]({page})")


def _list_the_other_pages(app: Sphinx, name: str, source: list[str]) -> None:
    """Put every page of `docs` that the contents do not name where they say ``(other pages)``."""
    if name == "index":
        named = set(re.findall(r"^[\w/-]+$", source[0], re.MULTILINE))
        pages = sorted(path.stem for path in Path(app.srcdir).glob("*.md"))
        others = [page for page in pages if page not in {*named, "index"}]
        source[0] = source[0].replace("(other pages)", "\n".join(others))
