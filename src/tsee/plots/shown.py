"""Figures and axes that a notebook shows, though ``pyplot`` does not know them."""

from __future__ import annotations

import io
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

__all__ = ["ShownAxes", "ShownFigure"]

# Pixels of a screen per pixel of the figure: sharp on screens of high resolution.
SHARPNESS = 2


def png_of(figure: Any) -> tuple[bytes, dict[str, int]]:
    """A figure as PNG, and the size at which a notebook shows it."""
    content = io.BytesIO()
    figure.savefig(content, dpi=SHARPNESS * figure.dpi, format="png")
    width, height = figure.get_size_inches() * figure.dpi
    return content.getvalue(), {"width": round(width), "height": round(height)}


class ShownFigure(Figure):
    """A figure that shows itself as the last line of a notebook's cell."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return png_of(self)


class ShownAxes(Axes):
    """Axes that show their figure as the last line of a notebook's cell."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return png_of(self.figure.figure)
