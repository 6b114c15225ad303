"""A map as a widget of a notebook: the page in a frame, with its selection in Python."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import anywidget
import numpy as np
import traitlets

from tsee.explorer.page import map_page

__all__ = ["MapWidget", "map_widget"]

MIN_HEIGHT = 240


def map_widget(estimator: Any, positions: Any, *, height: int = 600, **shown: Any) -> MapWidget:
    """A widget of a map; ``shown`` is what `tsee.explorer.page.map_page` takes."""
    page, description = map_page(estimator, positions, embedded=True, **shown)
    colorable = [column["name"] for column in description["columns"] if column["kind"] != "text"]
    color = description.get("color") or next(iter(colorable), "")
    return MapWidget(page, description["rows"], colorable, color=color, height=height)


class RowNumbers(traitlets.TraitType[np.ndarray, Any]):
    """Numbers of rows, counted from 0, in ascending order; a mask of all rows is taken as the rows that it marks."""

    def default(self, obj: Any = None) -> np.ndarray:
        return np.empty(0, np.int64)

    def validate(self, obj: Any, value: Any) -> np.ndarray:
        n_rows = obj.n_rows
        rows = np.asarray(value)
        if rows.dtype == bool and rows.shape == (n_rows,):
            rows = np.flatnonzero(rows)
        if not rows.size:
            return self.default()
        if rows.ndim != 1 or rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= n_rows:
            between = f" from {rows.min()} to {rows.max()}" if rows.dtype.kind in "iu" else ""
            raise ValueError(
                f"selection must be numbers of rows from 0 to {n_rows - 1}, or a boolean for each row. "
                f"Got {rows.dtype} of shape {rows.shape}{between}."
            )
        return np.unique(rows.astype(np.int64))


class MapWidget(anywidget.AnyWidget):
    """A map in a notebook, as ``show()`` of a fitted estimator returns it.

    Attributes
    ----------
    selection : ndarray of shape (k,), int64
        The rows selected on the map, counted from 0. Assign row numbers or a mask to select them.
    color : str
        The column that colors the points.
    height : int
        The height in pixels.
    n_rows : int
        The number of rows on the map.
    """

    _esm = (files("tsee.explorer") / "web" / "widget.js").read_text(encoding="utf-8")

    _page = traitlets.Unicode().tag(sync=True)
    selection = RowNumbers().tag(
        sync=True, to_json=lambda rows, _: rows.tolist(), from_json=lambda rows, _: np.array(rows, np.int64)
    )
    color = traitlets.Unicode().tag(sync=True)
    height = traitlets.Int(600).tag(sync=True)

    def __init__(self, page: str, n_rows: int, colorable: list[str], **traits: Any) -> None:
        self.n_rows = n_rows
        self._colorable = colorable
        super().__init__(_page=page, **traits)

    @traitlets.validate("color")
    def _check_color(self, proposal: Any) -> str:
        if proposal["value"] not in (self._colorable or [""]):
            names = ", ".join(map(repr, self._colorable)) or "none"
            raise ValueError(f"color must be one of the map's columns: {names}. Got {proposal['value']!r}.")
        return str(proposal["value"])

    @traitlets.validate("height")
    def _check_height(self, proposal: Any) -> int:
        if proposal["value"] < MIN_HEIGHT:
            raise ValueError(f"height must be at least {MIN_HEIGHT} pixels. Got {proposal['value']}.")
        return int(proposal["value"])

    def __repr__(self) -> str:
        return f"MapWidget of {self.n_rows:,} rows, {len(self.selection):,} selected"
