"""Curves of the training loss, and of the quality of maps for neighborhoods of every size."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tsee.files.errors import listed
from tsee.plots.canvas import COLORS, INK, PathLike, check_path, drawable, new_axes, new_figure, save
from tsee.plots.inputs import check_labels, map_of
from tsee.plots.lines import Line, draw_lines, name_ends

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tsee.fitted import History

__all__ = ["knn_curve", "quality_curve", "training_curve"]

# The two panels of a training curve.
MAP, REFINED = "Learning the map", "Learning the layout"
# What is drawn: of networks that learn a layout by the distance alone, and of those that choose among its places.
LOSS = "loss"
LAYOUT_LOSS = {
    frozenset({False}): "squared distance, relative to the map",
    frozenset({True}): "loss of places and distance",
}
# Up to this many sizes have a tick each.
MAX_TICKS = 12
# Around axes, in inches, and between them, as a share of their width.
SPACE = {"w_pad": 0.1, "h_pad": 0.1, "wspace": 0.04}
TENS = (1, *range(10, 101, 10))


def training_curve(estimators: Any, *, title: str | None = None, path: PathLike | None = None) -> Figure:
    """Draw the training loss of each epoch.

    A network that learns a layout has a loss of its own, which is drawn in a second panel if other networks are drawn,
    too: the squared distance from its positions, relative to the map, or, if the network chooses among places (see
    ``placement``), the loss of that choice and of the distance together. Losses of different methods, contrasts or
    perplexities are not comparable, either; only the shapes of their curves are.

    Parameters
    ----------
    estimators : fitted estimator, or mapping of str to fitted estimator
        The estimator whose training is drawn, or several by name.
    title : str, optional
        The title.
    path : path, optional
        A file to write: PNG, SVG or PDF by its file extension.

    Returns
    -------
    Figure
        The figure, which ``pyplot`` does not track.

    Examples
    --------
    >>> from tsee import DtSEE
    >>> from tsee.datasets import load_digits
    >>> from tsee.plots import training_curve
    >>> X = load_digits().x_train
    >>> see, sampled = (DtSEE(max_epochs=4, refinement=steps, random_state=0).fit(X) for steps in (20, 0))
    >>> [ax.get_title(loc="left") for ax in training_curve({"with": see, "without": sampled}).axes]
    ['Learning the map', 'Learning the layout']
    """
    from tsee.fitted import FittedMap, fitted_map

    histories, choosing = {}, set()  # whether the networks that learn a layout choose among its places
    for name, estimator in _named(estimators, "estimators").items():
        if not isinstance(estimator, FittedMap) and not hasattr(estimator, "fit"):
            raise ValueError(
                "estimators must be a fitted estimator, or a mapping of names to fitted estimators. "
                f"Got {type(estimator).__name__} instead."
            )
        fitted = fitted_map(estimator)
        histories[name] = fitted.history
        if any(fitted.history.refined):
            choosing.add(bool(getattr(fitted.network, "n_places", 0)))
    check_path(path, "training_curve")
    lines = _stages(histories)
    figure = new_figure(1.2 + 4.2 * len(lines), 3.6, **SPACE)
    from matplotlib.ticker import MaxNLocator

    panels = figure.subplots(1, len(lines), squeeze=False)[0]
    for ax, (refined, stage) in zip(panels, lines.items(), strict=True):
        draw_lines(ax, stage)
        ax.set_xlabel("epoch", color=INK)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        ax.set_ylabel(LAYOUT_LOSS.get(frozenset(choosing), LOSS) if refined else LOSS, color=INK)
        if len(lines) > 1:
            ax.set_title(REFINED if refined else MAP, loc="left", fontsize=11, color=INK)
        if refined:
            ax.set_ylim(0)
    if title is not None:
        figure.suptitle(drawable(title), fontsize=14)
    for ax, stage in zip(panels, lines.values(), strict=True):
        name_ends(ax, stage)
    save(figure, path)
    return figure


def knn_curve(
    maps: Any,
    labels: Any,
    maps_test: Any = None,
    labels_test: Any = None,
    *,
    k: Sequence[int] = tuple(range(1, 11)),
    title: str | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Axes:
    """Draw the k-NN error of maps against the number of neighbors ``k``.

    Parameters
    ----------
    maps : array-like of shape (n, c) or fitted estimator, or mapping of str to either
        The map of the training points, or an estimator with an ``embedding_``; several by name.
    labels : array-like of shape (n,)
        The classes of the training points.
    maps_test : array-like of shape (m, c), or mapping of str to array-like, optional
        The maps of held-out points, by the same names. By default each training point is left out in turn.
    labels_test : array-like of shape (m,), optional
        The classes of the held-out points.
    k : sequence of int, default 1 to 10
        The numbers of neighbors.
    title : str, optional
        The title.
    ax : matplotlib Axes, optional
        The axes to draw on. By default a new figure, which ``pyplot`` does not track.
    path : path, optional
        A file to write: PNG, SVG or PDF by its file extension.

    Returns
    -------
    Axes
        The axes drawn on.

    See Also
    --------
    tsee.metrics.knn_error : Computes the errors.

    Examples
    --------
    >>> from tsee.plots import knn_curve
    >>> good, bad = [[0], [1], [2], [7], [8], [9]], [[0], [7], [1], [8], [2], [9]]
    >>> ax = knn_curve({"good": good, "bad": bad}, ["cat"] * 3 + ["dog"] * 3, k=[1, 2, 3])
    >>> sorted(text.get_text() for text in ax.texts)
    ['bad', 'good']
    """
    from tsee.metrics import knn_error

    if (maps_test is None) != (labels_test is None):
        raise ValueError("maps_test and labels_test must be given together, or neither for leave-one-out.")

    def errors(Y: Any, Y_test: Any) -> dict[int, float]:
        check_labels(labels, len(Y))
        return knn_error(Y, labels, Y_test, labels_test, k=k)

    what = "k-NN error on the map (%)"
    return _curve("knn_curve", errors, what, maps, maps_test, title, ax, path)


def quality_curve(
    X: Any,
    maps: Any,
    X_test: Any = None,
    maps_test: Any = None,
    *,
    k: Sequence[int] = TENS,
    metric: str = "euclidean",
    title: str | None = None,
    ax: Axes | None = None,
    path: PathLike | None = None,
) -> Axes:
    """Draw the Quality Score of maps against the size ``k`` of the neighborhood.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, d)
        The training data.
    maps : array-like of shape (n, c) or fitted estimator, or mapping of str to either
        The map of the training data, or an estimator with an ``embedding_``; several by name.
    X_test : array-like or sparse matrix of shape (m, d), optional
        Held-out data. By default each training point is compared with the others.
    maps_test : array-like of shape (m, c), or mapping of str to array-like, optional
        The maps of the held-out data, by the same names.
    k : sequence of int, default 1 and 10, 20, ..., 100
        The sizes of the neighborhoods.
    metric : str, default "euclidean"
        How rows of the data are compared, as in `tsee.metrics.quality_score`.
    title : str, optional
        The title.
    ax : matplotlib Axes, optional
        The axes to draw on. By default a new figure, which ``pyplot`` does not track.
    path : path, optional
        A file to write: PNG, SVG or PDF by its file extension.

    Returns
    -------
    Axes
        The axes drawn on.

    See Also
    --------
    tsee.metrics.quality_score : Computes the scores.

    Examples
    --------
    >>> from tsee.plots import quality_curve
    >>> X = [[0], [1], [3], [7]]
    >>> ax = quality_curve(X, {"the data": X, "a bad map": [[3], [7], [0], [1]]}, k=[1, 2])
    >>> [line.get_ydata().tolist() for line in ax.lines]
    [[100.0, 100.0], [50.0, 50.0]]
    """
    from tsee.metrics import quality_score

    if (X_test is None) != (maps_test is None):
        raise ValueError("X_test and maps_test must be given together, or neither to use the training points.")

    def scores(Y: Any, Y_test: Any) -> dict[int, float]:
        return quality_score(X, Y, X_test, Y_test, k=k, metric=metric)

    what = "Quality Score (%)"
    return _curve("quality_curve", scores, what, maps, maps_test, title, ax, path)


def _named(given: Any, parameter: str) -> dict[str, Any]:
    """Entries by name; a single one has an empty name."""
    if not isinstance(given, Mapping):
        return {"": given}
    if not given:
        raise ValueError(f"{parameter} must hold at least one entry. It is empty.")
    return {drawable(name): value for name, value in given.items()}


def _stages(histories: dict[str, History]) -> dict[bool, list[Line]]:
    """The lines of the epochs that learned a map (False) and of those that learned a layout (True)."""
    stages: dict[bool, list[Line]] = {}
    for i, (name, history) in enumerate(histories.items()):
        epochs = list(enumerate(zip(history.loss, history.refined, strict=True), start=1))
        for refined in (False, True):
            points = [(epoch, loss) for epoch, (loss, after) in epochs if after == refined]
            if points:
                stages.setdefault(refined, []).append(Line(points, name, COLORS[i % len(COLORS)]))
    if not stages:
        raise ValueError("There is no loss to draw: training was interrupted before the end of its first epoch.")
    return dict(sorted(stages.items()))


def _curve(
    caller: str,
    values: Callable[[Any, Any], dict[int, float]],
    what: str,
    maps: Any,
    maps_test: Any,
    title: str | None,
    ax: Axes | None,
    path: PathLike | None,
) -> Axes:
    """Draw a line of percentages for each map."""
    check_path(path, caller)
    figure = new_figure(5.6, 3.8, **SPACE)
    named = {name: map_of(value) for name, value in _named(maps, "maps").items()}
    tests = dict.fromkeys(named) if maps_test is None else _named(maps_test, "maps_test")
    if named.keys() != tests.keys():
        raise ValueError(f"maps_test must have the names of maps. Got {listed(tests)} instead of {listed(named)}.")
    lines = []
    for i, (name, Y) in enumerate(named.items()):
        found = values(Y, tests[name])
        sizes = sorted(found)
        lines.append(Line([(size, 100 * found[size]) for size in sizes], name, COLORS[i % len(COLORS)]))
    if ax is None:
        ax = new_axes(figure)
    draw_lines(ax, lines)
    if len(sizes) <= MAX_TICKS:
        ax.set_xticks(sizes)
    ax.set_ylim(0, max(1.0, ax.get_ylim()[1]))
    ax.set_xlabel("neighbors k", color=INK)
    ax.set_ylabel(what, color=INK)
    if title is not None:
        ax.set_title(drawable(title), fontsize=14)
    name_ends(ax, lines)
    save(ax, path)
    return ax
