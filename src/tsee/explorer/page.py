"""`write_map_page`: a map, the columns of its rows, and the network, in one HTML file."""

from __future__ import annotations

import base64
import hashlib
import html
import os
from collections.abc import Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from tsee.explorer.columns import check_columns, columns_of
from tsee.explorer.model import describe_model
from tsee.explorer.packing import Arrays, pack
from tsee.explorer.pictures import describe_pictures
from tsee.explorer.topics import describe_topics
from tsee.explorer.trust import describe_trust
from tsee.explorer.written import MapPage
from tsee.files.atomic import replacing
from tsee.files.errors import listed, unwritable
from tsee.fitted import FittedMap, fitted_map
from tsee.plots.palette import distinct_colors

__all__ = ["map_page", "write_map_page"]


def write_map_page(
    estimator: Any,
    positions: Any,
    path: str | os.PathLike[str],
    *,
    columns: Any = None,
    features: Sequence[str] | None = None,
    images: Any = None,
    title: str | None = None,
    X: Any = None,
) -> MapPage:
    """Write a map as one HTML file, which opens offline and places new rows.

    On the page, the reader can pan, zoom, color, search and select. The page carries the network, so that it can place
    the rows of a CSV file that is dropped on it. Neither the map nor the new rows leave the browser.

    Parameters
    ----------
    estimator : fitted PtSNE, HotSNE, DtSEE or HotSEE, or FittedMap
        The model that places new rows.
    positions : array-like of shape (n, 2)
        The map, as ``fit_transform`` or ``transform`` returns it.
    path : path
        The file to write. An existing file is replaced.
    columns : DataFrame or dict of str to array-like of shape (n,), optional
        Columns that describe the rows. At first the points are colored by the first column. Words, and up to 100
        different whole numbers, are categories; other numbers have a color scale; words that rarely repeat are texts,
        which can be searched. None and NaN are missing values.
    features : sequence of str, optional
        Names of the features, by which the page finds the columns of new rows. By default the names of the DataFrame
        that the model was fitted on. A model that was fitted on an array takes columns by their order.
    images : array-like of shape (n, height, width) or (n, height, width, 3), optional
        Pictures of the rows, reduced to at most 64 pixels per side. If they are more than 16 MB before compression, the
        page carries a random sample of that size.
    title : str, optional
        The title of the page.
    X : array, tensor, sparse matrix or Rows, of shape (n, n_features), optional
        The rows of the map. With them, a page of up to 65,536 rows shows the nearest rows in the data of each point,
        how many of them the map keeps, and where the network alone would place it. Not needed for a map of the rows
        of ``fit`` if all of them are exemplars.

    Returns
    -------
    MapPage
        The path of the file. As the last line of a notebook's cell, it shows the page.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from tsee import DtSEE
    >>> from tsee.explorer import write_map_page
    >>> digits = load_digits()
    >>> X, labels, images = digits.data[:300], digits.target[:300], digits.images[:300]
    >>> see = DtSEE(max_epochs=2, random_state=0)
    >>> positions = see.fit_transform(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_map_page(see, positions, f"{folder}/map.html", columns={"digit": labels}, images=images)
    ...     page.stat().st_size < 3e6
    True
    """
    page, _ = map_page(estimator, positions, columns=columns, features=features, images=images, title=title, X=X)
    return _replace(Path(path), page)


def map_page(
    estimator: Any,
    positions: Any,
    *,
    columns: Any = None,
    features: Sequence[str] | None = None,
    images: Any = None,
    title: str | None = None,
    X: Any = None,
    color: str | None = None,
    embedded: bool = False,
) -> tuple[str, dict[str, Any]]:
    """The text of a page, and its description, as `write_map_page` writes it.

    Parameters
    ----------
    estimator, positions, columns, features, images, title, X
        As in `write_map_page`.
    color : str, optional
        The column that colors the points at first. By default the first one.
    embedded : bool, default False
        Whether the page is part of another one, which it tells what is selected.
    """
    fitted = fitted_map(estimator)
    if fitted.n_components != 2:
        raise ValueError(
            f"A page shows maps of two dimensions, and this one has {fitted.n_components}: fit with n_components=2."
        )
    positions = _check_positions(positions)
    n_rows = len(positions)
    if features is not None and len(features) != fitted.n_features:
        raise ValueError(
            f"The 'features' parameter of a page must name the {fitted.n_features} features of the "
            f"model. Got {len(features)} names instead."
        )
    if title is not None and not isinstance(title, str):
        raise TypeError(f"The 'title' parameter of a page must be a str. Got {type(title).__name__} instead.")
    title = (title or f"{fitted.method} map").encode("utf-8", "replace").decode()  # without lone surrogates
    low, high = positions.min(0), positions.max(0)
    extent = float((high - low).max()) or 1.0

    arrays: Arrays = {"positions": np.round((positions - low) / extent * 65535).astype(np.uint16)}
    named = check_columns(columns, n_rows)
    described, own = columns_of(named)
    arrays |= own
    pictures, own = describe_pictures(images, n_rows)
    arrays |= own
    placing, own = describe_model(fitted, features, extent)
    arrays |= own
    trust, own = describe_trust(fitted, positions, X)
    arrays |= own
    exemplars = _exemplar_positions(fitted, n_rows)
    if exemplars is not None:
        arrays["exemplars"] = exemplars
    description = {
        "title": title,
        "method": fitted.method,
        "version": version("tsee"),
        "rows": n_rows,
        "low": low.tolist(),
        "extent": extent,
        "columns": described,
        "topics": describe_topics((positions - low) / extent, named, described),
        "trust": trust,
        "pictures": pictures,
        "model": placing,
        "colors": {background: distinct_colors(background) for background in ("light", "dark")},
    }
    if embedded:
        description["embedded"] = True
    if color is not None:
        description["color"] = _colored_by(color, described)
    return _html(title, pack(description, arrays)), description


def _colored_by(color: str, described: list[dict[str, Any]]) -> str:
    """The name of a column that can color the points."""
    names = [column["name"] for column in described if column["kind"] != "text"]
    if str(color) not in names:
        known = (
            f"one of its columns: {listed(names)}" if names else "None, since it has no columns that can color points"
        )
        raise ValueError(f"The 'color' parameter of a page must be {known}. Got {color!r} instead.")
    return str(color)


def _check_positions(positions: Any) -> np.ndarray:
    positions = np.asarray(positions.detach().cpu() if hasattr(positions, "detach") else positions)
    if positions.ndim != 2 or positions.shape[1] != 2 or not len(positions) or positions.dtype.kind not in "iuf":
        raise ValueError(
            "The 'positions' parameter of a page must be numbers in two columns, a map in the plane. "
            f"Got {positions.dtype} of shape {positions.shape} instead."
        )
    if not np.isfinite(positions).all():
        raise ValueError("The 'positions' parameter of a page must not contain NaN or infinity.")
    return positions.astype(np.float64)


def _exemplar_positions(fitted: FittedMap, n_rows: int) -> np.ndarray | None:
    """The positions of the exemplars; None if there are no fewer exemplars than rows, which are on the map anyway."""
    if fitted.exemplars is None or len(fitted.exemplars) >= n_rows:
        return None
    return fitted.exemplar_positions().numpy().astype(np.float32)


def _html(title: str, payload: str) -> str:
    web = files("tsee.explorer") / "web"
    script = (web / "explorer.min.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Nothing is loaded, nothing is sent, and no script runs except the one inside the page. unsafe-eval: the renderer,
    # regl, makes its drawing functions with `new Function`.
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}' 'unsafe-eval'; worker-src blob:; style-src 'unsafe-inline'; "
        "img-src data: blob:; connect-src 'none'; form-action 'none'; base-uri 'none'"
    )
    template = (web / "page.html").read_text(encoding="utf-8")
    parts = {
        "{{policy}}": policy,
        "{{title}}": html.escape(title),
        "{{style}}": (web / "page.css").read_text(encoding="utf-8"),
        "{{payload}}": payload,
        "{{script}}": script,
        "{{licenses}}": (web / "LICENSES.txt").read_text(encoding="utf-8").replace("--", "- -"),
    }
    page = []
    for piece in template.replace("}}", "}}\0").replace("{{", "\0{{").split("\0"):
        page.append(parts.get(piece, piece))
    return "".join(page)


def _replace(path: Path, content: str) -> MapPage:
    """Write a temporary file first, so that an existing file is either replaced completely or left unchanged."""
    try:
        with replacing(path) as temporary:
            temporary.write_text(content, encoding="utf-8", newline="")
    except OSError as error:
        raise unwritable("The page", path, error) from error
    return MapPage(path)
