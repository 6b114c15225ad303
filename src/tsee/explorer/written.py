"""A page as a file that a notebook shows."""

from __future__ import annotations

import html
import sys
from typing import Any

if sys.platform == "win32":
    from pathlib import WindowsPath as SystemPath
else:
    from pathlib import PosixPath as SystemPath

__all__ = ["MapPage"]

# A larger page is not shown inside a notebook: it would be stored in the notebook, too, and Jupyter drops outputs that
# come faster than 1 MB per second over three seconds.
MAX_SHOWN = 2_500_000
HEIGHT = 620


class MapPage(SystemPath):
    """The path of a page. As the last line of a notebook's cell, it shows the page.

    It is a `pathlib.Path` in every other respect.

    Examples
    --------
    >>> from tsee.explorer.written import MapPage
    >>> page = MapPage("maps/digits.html")
    >>> page.name, page.parent.name
    ('digits.html', 'maps')
    """

    def _repr_html_(self) -> str | None:
        """The page in a frame; a link if it is large; nothing if there is no such file."""
        if self.suffix.lower() not in (".html", ".htm") or not self.is_file():
            return None
        size = self.stat().st_size
        if size > MAX_SHOWN:
            name = html.escape(str(self))
            return (
                f'<a href="{name}" target="_blank">{name}</a> ({size / 1e6:.1f} MB) is too large to be shown in a '
                "notebook: open it in a browser. <code>show()</code> shows the same map here."
            )
        return framed(self.read_text(encoding="utf-8"))

    def __reduce__(self) -> tuple[Any, ...]:
        return MapPage, (str(self),)


def framed(page: str) -> str:
    """A page inside another one, apart from its scripts and styles."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" style="width: 100%; height: {HEIGHT}px; border: 0" '
        'allow="clipboard-write" title="Map"></iframe>'
    )
