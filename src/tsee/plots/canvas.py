"""What all figures share: colors, importing matplotlib only when needed, and writing files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tsee.files.atomic import replacing
from tsee.plots.palette import COLORS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "COLORS",
    "DPI",
    "FAINT",
    "GRAY",
    "INK",
    "UNLABELED",
    "check_path",
    "drawable",
    "new_axes",
    "new_figure",
    "save",
]

UNLABELED = "#c9ccd1"
# Titles and names; numbers along axes; grid lines.
INK, GRAY, FAINT = "#24292f", "#6b727a", "#e4e7eb"
# The resolution of a file, in pixels per inch.
DPI = 300

PathLike = str | os.PathLike[str]


def check_path(path: PathLike | None, caller: str) -> None:
    """Raise an error if a figure cannot be written to a path, before it is drawn."""
    if path is None:
        return
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"The 'path' parameter of {caller} must end in .png, .svg or .pdf. Got {str(path)!r} instead.")
    if Path(path).is_dir():
        raise ValueError(f"The 'path' parameter of {caller} must be a file, but {str(path)!r} is a folder.")


def drawable(text: Any) -> str:
    """A text with "?" for lone surrogates, which no font can draw."""
    return str(text).encode("utf-8", "replace").decode()


def new_figure(width: float, height: float, **layout: float) -> Figure:
    """A figure that ``pyplot`` does not track, in inches; ``layout`` is the space around and between its axes."""
    try:
        import matplotlib.figure  # noqa: F401

        from tsee.plots.shown import ShownFigure
    except ImportError as error:
        raise ImportError('Plots need matplotlib: pip install "tsee[plot]"') from error
    figure = ShownFigure(figsize=(width, height))
    figure.set_layout_engine("constrained", **layout)
    return figure


def new_axes(figure: Figure) -> Axes:
    """The only axes of a new figure."""
    from tsee.plots.shown import ShownAxes

    return figure.add_subplot(axes_class=ShownAxes)


def save(drawn: Figure | Axes, path: PathLike | None) -> None:
    """Write a figure, or the figure of axes, to a file. An existing file is replaced only by a complete one."""
    if path is None:
        return
    from matplotlib import rc_context

    figure: Any = drawn.figure
    target = Path(path).resolve()
    extension = target.suffix.lower()
    # Text stays editable, and the same figure gives the same bytes.
    undated: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as temporary, rc_context({"svg.hashsalt": "tsee", "pdf.fonttype": 42}):
            figure.figure.savefig(temporary, dpi=DPI, format=extension[1:], metadata=undated.get(extension))
    except OSError as error:
        raise ValueError(
            f"The figure cannot be written to {str(path)!r} ({error.strerror or error}), and an existing file is "
            "unchanged. Choose a folder that you can write to, on a disk with free space."
        ) from error
