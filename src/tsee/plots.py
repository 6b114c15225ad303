"""Still pictures of maps. matplotlib is imported only when one is drawn."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["scatter"]

Floats = NDArray[np.float64]
# Ten colours for white ground. For normal, red-, green- and blue-blind sight (Machado et al. 2009) no two are
# nearer than 0.095 in OKLab, where the usual tab10 has a pair at 0.007. The first few are the furthest apart.
COLOURS = ["#526db0", "#ff8804", "#06c9ff", "#c93f4e", "#24475e"]
COLOURS += ["#7b4113", "#86b977", "#702dab", "#009891", "#e898c7"]
UNLABELLED = "#c9ccd1"
# Up to this many different whole numbers are names of classes, more are amounts.
MOST_CLASSES = 100


def scatter(
    Y: Any,
    labels: Any = None,
    *,
    title: str | None = None,
    ax: Axes | None = None,
    path: str | os.PathLike[str] | None = None,
    point_size: float | None = None,
    legend: bool = True,
) -> Axes:
    """Draw a map, its points coloured by their labels.

    Names, and up to 100 different whole numbers, are classes: each has a colour, and its name stands in its
    midst. Other numbers are amounts and have a colour bar. Points without a label (None or NaN) are grey.

    Parameters
    ----------
    Y : array-like of shape (n, 2)
        The map.
    labels : array-like of shape (n,), optional
        What the points are coloured by.
    title : str, optional
        The title.
    ax : matplotlib Axes, optional
        Where to draw. Without it a figure is made, which ``pyplot`` does not know of.
    path : path, optional
        A file to write: PNG, SVG or PDF by its ending. In SVG and PDF the points are one image.
    point_size : float, optional
        The diameter of a point in 1/72 inch. Without it, it follows from the number of points.
    legend : bool, default True
        Whether to write the names of (up to 100) classes or draw the colour bar.

    Returns
    -------
    Axes
        The axes drawn on.

    Examples
    --------
    >>> from tsee.plots import scatter
    >>> ax = scatter([[0, 0], [0, 1], [3, 3]], ["cat", "cat", "dog"], title="Pets")
    >>> [text.get_text() for text in ax.texts]
    ['cat', 'dog']
    """
    points, values = _check_data(Y, labels)
    if point_size is not None and not point_size > 0:
        raise ValueError(f"The 'point_size' parameter of scatter must be > 0. Got {point_size!r} instead.")
    if path is not None and Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise ValueError(f"The 'path' parameter of scatter must end in .png, .svg or .pdf. Got {str(path)!r} instead.")
    try:
        import colorcet  # noqa: F401
        from matplotlib import rc_context
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('Plots need matplotlib and colorcet: pip install "tsee[plot]"') from error

    numbers = np.unique(values[np.isfinite(values)]) if values.dtype.kind in "iuf" else np.empty(0)
    amounts = len(numbers) > MOST_CLASSES or bool((numbers % 1 != 0).any())
    if ax is None:
        ax = Figure(figsize=(7.6 if amounts and legend else 6.4, 6.4), layout="constrained").add_subplot()
    # The directions and units of a map mean nothing, but its scales are equal.
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.03)
    if title is not None:
        ax.set_title(title, fontsize=14)
    (_draw_amounts if amounts else _draw_classes)(ax, points, values, point_size, legend)
    if path is not None:  # with fonts that can be edited, and the same bytes each time
        undated: dict[str, Any] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
        with rc_context({"svg.hashsalt": "tsee", "pdf.fonttype": 42}):
            ax.figure.figure.savefig(path, dpi=300, metadata=undated.get(Path(path).suffix.lower()))
    return ax


def _check_data(Y: Any, labels: Any) -> tuple[Floats, NDArray[Any]]:
    Y, labels = (A.detach().cpu() if hasattr(A, "detach") else A for A in (Y, labels))
    Y = np.asarray(Y)
    if Y.ndim != 2 or Y.shape[1] != 2 or not len(Y) or Y.dtype.kind not in "biuf":
        raise ValueError(f"Y must be numbers in two columns. Got {Y.dtype} of shape {Y.shape} instead.")
    if not np.isfinite(Y).all():
        raise ValueError("Y must not contain NaN or infinity.")
    values = np.full(len(Y), None) if labels is None else np.asarray(labels)
    if values.shape != (len(Y),):
        raise ValueError(f"labels must be one for each of {len(Y)} points. Got shape {values.shape} instead.")
    return Y.astype(np.float64), values


def _draw(ax: Axes, points: Floats, colours: Floats, labelled: NDArray[np.bool_], size: float | None) -> None:
    """Dots in random order, so that no class hides another, on top of those without a label."""
    if size is None:  # side by side, all dots would cover a fifth of the axes
        area = ax.bbox.width * ax.bbox.height * (72 / ax.figure.dpi) ** 2
        size = float(np.clip(np.sqrt(area / 5 / len(points)), 0.8, 5))
    order = np.random.default_rng(0).permutation(len(points))
    order = order[np.argsort(labelled[order], kind="stable")]
    alpha = float(np.clip(1.3 - 0.13 * np.log10(len(points)), 0.5, 0.9))
    x, y = points[order].T
    ax.scatter(x, y, c=colours[order], s=size**2, alpha=alpha, linewidths=0, rasterized=True)


def _draw_amounts(ax: Axes, points: Floats, values: NDArray[Any], size: float | None, legend: bool) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import to_rgba

    known = np.isfinite(values)
    # The hundredth at each end shares a colour: a few extremes would else leave one to all the rest.
    scale = ScalarMappable(cmap="viridis")
    scale.set_clim(*np.percentile(values[known], (1, 99)))
    _draw(ax, points, np.where(known[:, None], scale.to_rgba(values), to_rgba(UNLABELLED)), known, size)
    if legend:
        bar = ax.figure.colorbar(scale, ax=ax, shrink=0.6, aspect=30, pad=0.02, extend="both")
        bar.outline.set_visible(False)


def _draw_classes(ax: Axes, points: Floats, values: NDArray[Any], size: float | None, legend: bool) -> None:
    from colorcet import glasbey_dark
    from matplotlib.colors import to_rgba_array

    known = {value for value in values.tolist() if value is not None and value == value}
    classes = sorted(known, key=str if len({type(value) for value in known}) > 1 else None)
    number = {value: i for i, value in enumerate(classes)}
    codes = np.array([number.get(value, -1) for value in values.tolist()])
    colours = COLOURS if len(classes) <= len(COLOURS) else glasbey_dark
    # The code -1 takes the last: grey beside classes, a colour where there are none.
    last = UNLABELLED if classes else COLOURS[0]
    palette = to_rgba_array([*(colours[i % len(colours)] for i in range(len(classes))), last])
    _draw(ax, points, palette[codes], codes >= 0, size)
    names = [f"{value:g}" if isinstance(value, float) else str(value) for value in classes]
    if legend and 0 < len(names) <= MOST_CLASSES:
        _write_names(ax, names, palette, [points[codes == i] for i in range(len(names))])


def _write_names(ax: Axes, names: list[str], palette: Floats, members: list[Floats]) -> None:
    """Each class's name on one of its points that is amid others, or beside it where a name stands."""
    from matplotlib.patheffects import withStroke

    texts, halo = [], withStroke(linewidth=3, foreground="white")
    size = float(np.clip(13.5 - len(names) / 15, 7, 13))
    for name, colour, own in zip(names, palette[:-1], members, strict=True):
        # The median of a class in several clusters may lie in none: that of fewer and nearer ones does not.
        for _ in range(3):
            order = np.square(own - np.median(own, axis=0)).sum(1).argsort(kind="stable")
            own = own[order[: -(-len(own) // 2)]]
        text = ax.text(own[0, 0], own[0, 1], name, ha="center", va="center", weight="bold", parse_math=False)
        text.set(color=0.55 * colour[:3], fontsize=size, path_effects=[halo], in_layout=False)
        texts.append(text)
    ax.figure.figure.draw_without_rendering()  # so that sizes and places are known
    boxes = np.array([text.get_window_extent().extents for text in texts]).reshape(-1, 2, 2)
    moves = _spread(boxes, np.reshape(ax.bbox.extents, (2, 2))) - boxes.mean(1)
    for text, move in zip(texts, moves, strict=True):
        x, y = ax.transData.inverted().transform(ax.transData.transform(text.get_position()) + move)
        text.set_position((x, y))


def _spread(boxes: Floats, bounds: Floats) -> Floats:
    """Centres of boxes: each at the nearest place within bounds that those before it leave free."""
    sizes = boxes[:, 1] - boxes[:, 0]
    sizes += sizes[:, 1].min() / 4  # a little air
    low, high = bounds[0] + sizes / 2, bounds[1] - sizes / 2
    centres = boxes.mean(1).clip(low, high)
    # The places to try are a sunflower's: from the middle outwards, everywhere equally dense.
    k = np.arange(40_000)
    spiral = sizes[:, 1].min() / 5 * np.sqrt(k)[:, None] * np.stack([np.cos(2.4 * k), np.sin(2.4 * k)], 1)
    for i in range(1, len(boxes)):
        for part in np.split(spiral, [400, 4000]):  # most need only the first
            places = centres[i] + part
            gaps = np.abs(places[:, None] - centres[:i]) - (sizes[i] + sizes[:i]) / 2  # (places, i, 2)
            free = ((low[i] <= places) & (places <= high[i])).all(1) & (gaps >= 0).any(2).all(1)
            if free.any():
                centres[i] = places[free.argmax()]
                break
    return centres
