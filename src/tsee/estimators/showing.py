"""A fitted map to look at: as a page, or as a figure."""

from __future__ import annotations

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Shown"]


class Shown:
    """What a fitted estimator shows of its map."""

    def to_html(
        self: Any,
        path: str | PathLike[str],
        X: Any = None,
        *,
        columns: Any = None,
        images: Any = None,
        title: str | None = None,
    ) -> Path:
        """Write the map as one HTML file that opens offline, to look at and to drop new rows on.

        Parameters
        ----------
        path : str or path
            The file to write.
        X : array, DataFrame, tensor, sparse matrix or path, of shape (n_samples, n_features), optional
            The rows to show. By default the rows of ``fit``.
        columns : DataFrame or dict of str to array-like of shape (n_samples,), optional
            Columns that describe the rows; the first one colors the points at the start.
        images : array-like of shape (n_samples, height, width) or (n_samples, height, width, 3), optional
            Pictures of the rows.
        title : str, optional
            The title.

        Returns
        -------
        Path
            The file.

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
        positions = self.embedding_ if X is None else self.transform(X)
        return write_map_page(self, positions, path, columns=columns, images=images, title=title)

    def plot(
        self: Any,
        labels: Any = None,
        *,
        title: str | None = None,
        ax: Axes | None = None,
        path: str | PathLike[str] | None = None,
        point_size: float | None = None,
        legend: bool = True,
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
        return scatter(self.embedding_, labels, title=title, ax=ax, path=path, point_size=point_size, legend=legend)
