"""A fitted map to look at: as a page, or as a figure."""

from __future__ import annotations

import base64
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from tsee.scikit import BaseEstimator, check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tsee.explorer.widget import MapWidget
    from tsee.explorer.written import MapPage

__all__ = ["Shown"]


class Shown(BaseEstimator):
    """What a fitted estimator shows of its map."""

    def to_html(
        self: Any,
        path: str | PathLike[str],
        X: Any = None,
        *,
        columns: Any = None,
        images: Any = None,
        title: str | None = None,
    ) -> MapPage:
        """Write the map as one HTML file that opens offline, to look at and to drop new rows on.

        Parameters
        ----------
        path : str or path
            The file to write.
        X : array, DataFrame, tensor, sparse matrix or path, of shape (n_samples, n_features), optional
            The rows to show. By default the rows of ``fit``.
        columns : DataFrame or dict of str to array-like of shape (n_samples,), optional
            Columns that describe the rows; the first one colors the points at the start. The rows of a map that was
            updated also get a column "version", unless there is one.
        images : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
            Pictures of the rows.
        title : str, optional
            The title.

        Returns
        -------
        MapPage
            The path of the file. As the last line of a notebook's cell, it shows the page.

        See Also
        --------
        tsee.explorer.write_map_page : does the work.

        Examples
        --------
        >>> import tempfile
        >>> from sklearn.datasets import load_digits
        >>> from tsee import DtSEE
        >>> digits = load_digits()
        >>> see = DtSEE(max_epochs=1, random_state=0).fit(digits.data)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = see.to_html(f"{folder}/digits.html", columns={"digit": digits.target}, images=digits.images)
        ...     page.name
        'digits.html'
        """
        from tsee.explorer import write_map_page

        check_is_fitted(self)
        positions, rows = self._rows_shown(X)
        columns = self._with_versions(columns, X)
        return write_map_page(self, positions, path, columns=columns, images=images, title=title, X=rows)

    def show(
        self: Any,
        X: Any = None,
        *,
        columns: Any = None,
        images: Any = None,
        title: str | None = None,
        color: str | None = None,
        height: int = 600,
    ) -> MapWidget:
        """Show the map in a notebook: the page of ``to_html`` as a widget, with its selection in Python.

        Parameters
        ----------
        X : array, DataFrame, tensor, sparse matrix or path, of shape (n_samples, n_features), optional
            The rows to show. By default the rows of ``fit``.
        columns : DataFrame or dict of str to array-like of shape (n_samples,), optional
            Columns that describe the rows.
        images : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
            Pictures of the rows.
        title : str, optional
            The title.
        color : str, optional
            The column that colors the points. By default the first one.
        height : int, default 600
            The height in pixels.

        Returns
        -------
        MapWidget
            ``widget.selection`` holds the numbers of the rows that are selected on the map, and takes new ones;
            ``widget.color`` is the column that colors the points. Both can be observed.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from tsee import DtSEE
        >>> digits = load_digits()
        >>> see = DtSEE(max_epochs=1, random_state=0).fit(digits.data)
        >>> widget = see.show(columns={"digit": digits.target}, images=digits.images)
        >>> widget.selection = digits.target == 3
        >>> widget
        MapWidget of 1,797 rows, 183 selected
        """
        check_is_fitted(self)
        try:
            from tsee.explorer.widget import map_widget
        except ImportError as error:
            raise ImportError('show() needs anywidget: pip install "tsee[widget]"') from error
        positions, rows = self._rows_shown(X)
        columns = self._with_versions(columns, X)
        return map_widget(
            self, positions, columns=columns, images=images, title=title, color=color, height=height, X=rows
        )

    def plot(
        self: Any,
        labels: Any = None,
        *,
        title: str | None = None,
        ax: Axes | None = None,
        path: str | PathLike[str] | None = None,
        point_size: float | None = None,
        legend: bool = True,
        palette: Any = None,
        cmap: Any = None,
    ) -> Axes:
        """Draw ``embedding_``, the map of the rows of ``fit``, with `tsee.plots.scatter`.

        Parameters
        ----------
        labels : array-like of shape (n_samples,), optional
            What to color the points by: classes or amounts.
        title : str, optional
            The title.
        ax : matplotlib Axes, optional
            The axes to draw on. By default a new figure, which ``pyplot`` does not track.
        path : path, optional
            A file to write: PNG, SVG or PDF by its file extension.
        point_size : float, optional
            The diameter of a point in 1/72 inch. By default it depends on the number of points.
        legend : bool, default True
            Whether to write the names of (up to 100) classes or draw the color bar.
        palette : sequence of colors, or mapping of classes to colors, optional
            The colors of the classes, in their order.
        cmap : str or matplotlib Colormap, optional
            The colors of amounts. By default "viridis".

        Returns
        -------
        Axes
            The axes drawn on.

        Examples
        --------
        >>> from tsee import DtSEE
        >>> from tsee.datasets import load_digits
        >>> digits = load_digits()
        >>> ax = DtSEE(max_epochs=1, random_state=0).fit(digits.x_train).plot(digits.y_train, title="Digits")
        >>> len(ax.texts), ax.get_title()
        (10, 'Digits')
        """
        from tsee.plots import scatter

        check_is_fitted(self)
        look = {"point_size": point_size, "legend": legend, "palette": palette, "cmap": cmap}
        return scatter(self.embedding_, labels, title=title, ax=ax, path=path, **look)

    def _rows_shown(self: Any, X: Any) -> tuple[Any, Any]:
        """The positions of the rows to show, and the rows themselves if they were given."""
        if X is None:
            return self.embedding_, None
        rows = self._check_new(X)
        return self.transform(X), rows

    def _with_versions(self: Any, columns: Any, X: Any) -> Any:
        """Columns that describe the rows, with the version that each row came with, if there were updates."""
        if X is not None or not self.map_.updates:
            return columns
        from tsee.explorer.columns import named_columns

        given = {} if columns is None else named_columns(columns)
        if not hasattr(given, "items") or "version" in given:
            return columns
        names = np.array(["fit", *(f"update {i + 1}" for i in range(len(self.map_.updates)))])
        return {**dict(given.items()), "version": names[self.versions_]}

    def _picture(self: Any) -> str:
        """The map of a fitted estimator as HTML; empty if there is none, or nothing to draw it with."""
        fitted = vars(self).get("map_")
        if fitted is None or fitted.embedding is None or fitted.n_components != 2:
            return ""
        try:
            content, size = self.plot()._repr_png_()
        except ImportError:
            return ""
        source = base64.b64encode(content).decode()
        return f'<img src="data:image/png;base64,{source}" alt="The map" style="width: {size["width"] * 2 // 3}px">'

    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._picture()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """scikit-learn's diagram of the estimator and, once it is fitted, its map."""
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._picture()
        return bundle
