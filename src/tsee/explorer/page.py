"""`write_map_page`: a map, what is known of its points, and the network, in one HTML file."""

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
from tsee.files.replacing import beside, put_in_place
from tsee.fitted import FittedMap, fitted_map
from tsee.plots import COLORS

__all__ = ["write_map_page"]

# The colors of `tsee.plots` for dark ground: hues as near to them as leaves no two nearer than 0.105 in OKLab for
# normal, red-, green- and blue-blind sight.
DARK_COLORS = ["#8d92f5", "#efb42c", "#0cd5fc", "#d54463", "#498aa1"]
DARK_COLORS += ["#c98811", "#abfe73", "#9c53f7", "#a1c89c", "#fce1d9"]


def write_map_page(
    estimator: Any,
    places: Any,
    path: str | os.PathLike[str],
    *,
    columns: Any = None,
    features: Sequence[str] | None = None,
    images: Any = None,
    title: str | None = None,
) -> Path:
    """Write a map as one HTML file, which opens offline and places new rows itself.

    The page pans, zooms, colors, searches and selects. It carries the network, so that a CSV file that is dropped
    on it is placed in the browser; neither the map nor what is dropped leaves it.

    Parameters
    ----------
    estimator : PtSNE, HotSNE, DtSEE or HotSEE
        The fitted model.
    places : array-like of shape (n, 2)
        The map: what ``fit_transform`` or ``transform`` returned.
    path : path
        The file to write. An existing one is replaced.
    columns : DataFrame or dict of str to array-like of shape (n,), optional
        What is known of the rows. The first column colors the points at the start. Words, and up to 100 different
        whole numbers, are categories; other numbers have a color scale; words that hardly repeat are texts to
        search in. None and NaN are missing values.
    features : sequence of str, optional
        Names of the features, by which the columns of new data are found. Without it, the names of the DataFrame
        that the estimator was fitted on; of an estimator that was fitted on an array, columns count by their order.
    images : array-like of shape (n, height, width) or (n, height, width, 3), optional
        Pictures of the rows, shown at a size of at most 64 pixels. Of more than 16 MB of them, before compression,
        as many as that are drawn at random.
    title : str, optional
        The title.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> from tsee import DtSEE
    >>> from tsee.explorer import write_map_page
    >>> digits = load_digits()
    >>> X, labels, images = digits.data[:300], digits.target[:300], digits.images[:300]
    >>> see = DtSEE(max_epochs=2, random_state=0)
    >>> places = see.fit_transform(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = write_map_page(see, places, f"{folder}/map.html", columns={"digit": labels}, images=images)
    ...     page.stat().st_size < 3e6
    True
    """
    fitted = fitted_map(estimator)
    places = _check_places(places)
    n_rows = len(places)
    if features is not None and len(features) != fitted.n_features:
        raise ValueError(
            f"The 'features' parameter of write_map_page must name the {fitted.n_features} features of the "
            f"estimator. Got {len(features)} names instead."
        )
    if title is not None and not isinstance(title, str):
        raise TypeError(f"The 'title' parameter of write_map_page must be a str. Got {type(title).__name__} instead.")
    title = title or f"{fitted.method} map"
    low, high = places.min(0), places.max(0)
    extent = float((high - low).max()) or 1.0

    arrays: Arrays = {"places": np.round((places - low) / extent * 65535).astype(np.uint16)}
    described, own = columns_of(check_columns(columns, n_rows))
    arrays |= own
    pictures, own = describe_pictures(images, n_rows)
    arrays |= own
    model, own = describe_model(fitted, features, extent)
    arrays |= own
    exemplars = _exemplar_places(fitted, n_rows)
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
        "pictures": pictures,
        "model": model,
        "colors": {"light": COLORS, "dark": DARK_COLORS},
    }
    return _replace(Path(path), _html(title, pack(description, arrays)))


def _check_places(places: Any) -> np.ndarray:
    places = np.asarray(places.detach().cpu() if hasattr(places, "detach") else places)
    if places.ndim != 2 or places.shape[1] != 2 or not len(places) or places.dtype.kind not in "iuf":
        raise ValueError(
            "The 'places' parameter of write_map_page must be numbers in two columns, a map in the plane. "
            f"Got {places.dtype} of shape {places.shape} instead."
        )
    if not np.isfinite(places).all():
        raise ValueError("The 'places' parameter of write_map_page must not contain NaN or infinity.")
    return places.astype(np.float64)


def _exemplar_places(fitted: FittedMap, n_rows: int) -> np.ndarray | None:
    """Places of the exemplars, unless all rows are exemplars: these are on the map."""
    if fitted.exemplars is None or len(fitted.exemplars) >= n_rows:
        return None
    return fitted.exemplar_positions().numpy()


def _html(title: str, payload: str) -> str:
    web = files("tsee.explorer") / "web"
    script = (web / "explorer.min.js").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Nothing is loaded and nothing sent; of scripts only the one that is written here runs. The renderer, regl, makes
    # its drawing functions with `new Function`, hence unsafe-eval.
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


def _replace(path: Path, content: str) -> Path:
    """Write the file beside its place first, so that one that is there is replaced whole or left whole."""
    temporary = beside(path)
    try:
        temporary.write_text(content, encoding="utf-8", newline="")
        put_in_place(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
