"""Figures of maps: one, or several side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tsee.plots.canvas import GRAY, INK, PathLike, check_path, drawable, new_axes, new_figure, save
from tsee.plots.coloring import MOST_CLASSES, Coloring, Floats, color_by
from tsee.plots.inputs import check_labels, check_map, named_maps
from tsee.plots.lines import round_numbers
from tsee.plots.naming import name_classes
from tsee.plots.shading import shade

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["compare", "scatter"]

# More points than this are drawn as one image of their density: dots would hide one another.
MAX_DOTS = 100_000
# The most maps in one row, and the most classes in a legend: names of more classes are easier to find on the maps.
MAX_COLUMNS, MAX_LEGEND_CLASSES = 4, 30
# The width of a map among others, in inches.
PANEL = 3.6


def scatter(
    Y: Any,
    labels: Any = None,
    *,
    title: str | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
    point_size: float | None = None,
    legend: bool = True,
    palette: Any = None,
    cmap: Any = None,
) -> Axes:
    """Draw a map, its points colored by their labels.

    Text labels, and up to 100 different whole numbers, are classes: each has a color, and its name is written on its
    points. Other numbers are amounts and have a color bar. Points without a label (None or NaN) are gray.

    More than 100,000 points are drawn as one image at the resolution of a file. Its opacity grows with the logarithm
    of the density, and a single point remains visible. Where classes overlap, their colors mix in proportion to the
    numbers of points; for amounts, the mean is shown.

    Parameters
    ----------
    Y : array-like of shape (n, 2)
        The map.
    labels : array-like of shape (n,), optional
        What to color the points by.
    title : str, optional
        The title.
    ax : matplotlib Axes, optional
        The axes to draw on. By default a new figure, which ``pyplot`` does not track.
    path : path, optional
        A file to write: PNG, SVG or PDF by its file extension. In SVG and PDF the points are one image.
    point_size : float, optional
        The diameter of a point in 1/72 inch. By default it depends on the number of points.
    legend : bool, default True
        Whether to write the names of up to 100 classes, or to draw the color bar.
    palette : sequence of colors, or mapping of classes to colors, optional
        The colors of the classes, in their order. By default the colors of the page: `tsee.plots.COLORS`, and for more
        than ten classes further ones that are distinct in all kinds of vision.
    cmap : str or matplotlib Colormap, optional
        The colors of amounts. By default "viridis".

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
    points = check_map(Y, "Y")
    values = check_labels(labels, len(points))
    _check_size(point_size, "scatter")
    check_path(path, "scatter")
    figure = new_figure(6.4, 6.4)
    coloring = color_by(values, palette, cmap)
    if ax is None:
        if coloring.scale is not None and legend:
            figure.set_figwidth(7.6)
        ax = new_axes(figure)
    if title is not None:
        ax.set_title(drawable(title), fontsize=14)
    _lay_out(ax)
    if legend and coloring.scale is not None:
        _add_bar(ax.figure, coloring, ax)
    ax.figure.figure.draw_without_rendering()  # so that the layout is final
    _draw(ax, points, coloring, point_size)
    if legend and 0 < len(coloring.names) <= MOST_CLASSES:
        name_classes(ax, points, coloring)
    save(ax, path)
    return ax


def compare(
    maps: Mapping[str, Any],
    labels: Any = None,
    *,
    k: int | None = None,
    title: str | None = None,
    path: PathLike | None = None,
    point_size: float | None = None,
    legend: bool = True,
    palette: Any = None,
    cmap: Any = None,
) -> Figure:
    """Draw several maps of the same data side by side, in the same colors.

    Each map fills its own panel: the units of a map have no meaning, so there is no common scale.

    Parameters
    ----------
    maps : mapping of str to array-like of shape (n, 2) or fitted estimator
        The maps, or estimators with an ``embedding_``, by name.
    labels : array-like of shape (n,), optional
        What to color the points by, as in `scatter`.
    k : int, optional
        Write the k-NN error of each map under its name: the share of labeled points, each left out in turn, that
        their ``k`` nearest points assign to a wrong class.
    title : str, optional
        The title of the figure.
    path : path, optional
        A file to write: PNG, SVG or PDF by its file extension.
    point_size : float, optional
        The diameter of a point in 1/72 inch. By default it depends on the number of points.
    legend : bool, default True
        Whether to draw a legend (up to 30 classes), to write the names on the maps (up to 100), or to draw a color
        bar (amounts).
    palette : sequence of colors, or mapping of classes to colors, optional
        The colors of the classes, as in `scatter`.
    cmap : str or matplotlib Colormap, optional
        The colors of amounts, as in `scatter`.

    Returns
    -------
    Figure
        The figure, which ``pyplot`` does not track.

    Examples
    --------
    >>> from tsee.plots import compare
    >>> good, bad = [[0, 0], [0, 1], [3, 3], [3, 4]], [[0, 0], [9, 9], [9, 8], [0, 1]]
    >>> figure = compare({"good": good, "bad": bad}, ["cat", "cat", "dog", "dog"], k=1)
    >>> [(ax.get_title(), ax.texts[0].get_text()) for ax in figure.axes]
    [('good', '1-NN error 0.0 %'), ('bad', '1-NN error 100.0 %')]
    """
    if not isinstance(maps, Mapping):
        raise ValueError(f"maps must be a mapping of names to maps. Got {type(maps).__name__} instead.")
    named = named_maps(maps)
    values = check_labels(labels, len(next(iter(named.values()))))
    _check_size(point_size, "compare")
    check_path(path, "compare")
    rows = -(-len(named) // MAX_COLUMNS)
    columns = -(-len(named) // rows)
    above = 0.35 if k is None else 0.55
    figure = new_figure(PANEL * columns, (PANEL + above) * rows + (0.4 if title else 0), wspace=0.04, hspace=0.06)
    coloring = color_by(values, palette, cmap)
    errors = None if k is None else _errors(named, values, coloring, k)
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for ax in panels[len(named) :]:
        ax.remove()
    panels = panels[: len(named)]
    for ax, name in zip(panels, named, strict=True):
        _lay_out(ax)
        ax.set_title(name, fontsize=13, color=INK, pad=6 if errors is None else 20)
        if errors is not None:
            text = f"{k}-NN error {100 * errors[name]:.1f} %"
            ax.text(0.5, 1.01, text, transform=ax.transAxes, ha="center", va="bottom", fontsize=10, color=GRAY)
    if title is not None:
        figure.suptitle(drawable(title), fontsize=15, color=INK)
    if legend and coloring.scale is not None:
        figure.set_figwidth(figure.get_figwidth() + 0.8)
        _add_bar(figure, coloring, panels)
    elif legend and 0 < len(coloring.names) <= MAX_LEGEND_CLASSES:
        _add_legend(figure, coloring)
    figure.draw_without_rendering()  # so that the layout is final
    for ax, points in zip(panels, named.values(), strict=True):
        _draw(ax, points, coloring, point_size)
        if legend and MAX_LEGEND_CLASSES < len(coloring.names) <= MOST_CLASSES:
            name_classes(ax, points, coloring)
    save(figure, path)
    return figure


def _check_size(point_size: float | None, caller: str) -> None:
    if point_size is not None and not point_size > 0:
        raise ValueError(f"The 'point_size' parameter of {caller} must be > 0. Got {point_size!r} instead.")


def _errors(named: dict[str, Floats], values: NDArray[Any], coloring: Coloring, k: int) -> dict[str, float]:
    from tsee.metrics import knn_error  # imports torch, which a figure without errors does not need

    if not coloring.names:
        raise ValueError(
            "The 'k' parameter of compare needs labels that are classes: leave it out, or pass such labels."
        )
    known = coloring.known
    return {name: knn_error(Y[known], values[known], k=k)[k] for name, Y in named.items()}


def _lay_out(ax: Axes) -> None:
    """Remove the axes, since directions and units of a map have no meaning, and make both scales equal."""
    ax.set_axis_off()
    ax.set_aspect("equal", adjustable="datalim")
    ax.margins(0.03)


def _draw(ax: Axes, points: Floats, coloring: Coloring, size: float | None) -> None:
    """Draw points as dots or as an image of their density: first those without a label, then the others over them."""
    for chosen, n_drawn in ((~coloring.known, len(points)), (coloring.known, int(coloring.known.sum()))):
        if not chosen.any():
            continue
        # A few labeled points are large enough to be found among very many unlabeled ones.
        diameter = size or _diameter(ax, n_drawn)
        if int(chosen.sum()) > MAX_DOTS:
            shade(ax, points[chosen], *coloring.mixing(chosen), diameter)
        else:
            _draw_dots(ax, points[chosen], coloring.colors[chosen], diameter)


def _draw_dots(ax: Axes, points: Floats, colors: Floats, diameter: float) -> None:
    order = np.random.default_rng(0).permutation(len(points))  # so that no class hides another
    alpha = float(np.clip(1.3 - 0.13 * np.log10(len(points)), 0.5, 0.9))
    x, y = points[order].T
    ax.scatter(x, y, c=colors[order], s=diameter**2, alpha=alpha, linewidths=0, rasterized=True)


def _diameter(ax: Axes, n_points: int) -> float:
    """The diameter of a point in 1/72 inch: side by side, all points would cover a fifth of the axes."""
    area = ax.bbox.width * ax.bbox.height * (72 / ax.figure.dpi) ** 2
    return float(np.clip(np.sqrt(area / 5 / n_points), 0.8, 5))


def _add_bar(figure: Any, coloring: Coloring, ax: Any) -> None:
    bar = figure.colorbar(coloring.scale, ax=ax, shrink=0.6, aspect=30, pad=0.02, extend="both")
    bar.outline.set_visible(False)
    bar.locator = round_numbers()
    bar.update_ticks()


def _add_legend(figure: Figure, coloring: Coloring) -> None:
    """List the classes below all maps, in as few rows as possible."""
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], linestyle="none", marker="o", markersize=7, color=color, markeredgewidth=0)
        for color in coloring.palette
    ]
    column = (6.5 * max(len(name) for name in coloring.names) + 30) / 72  # approximate width in inches
    columns = int(np.clip(figure.get_figwidth() / column, 1, len(handles)))
    figure.set_figheight(figure.get_figheight() + 0.15 + 0.22 * -(-len(handles) // columns))
    figure.legend(
        handles,
        coloring.names,
        loc="outside lower center",
        ncols=columns,
        frameon=False,
        handletextpad=0.2,
        columnspacing=1.2,
    )
