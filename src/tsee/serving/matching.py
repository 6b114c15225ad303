"""A data file and a model: the columns of the file matched with the features of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from tsee.exceptions import DataFileError, UnnamedColumnsError
from tsee.files import Table, open_table
from tsee.files.errors import listed
from tsee.fitted import fitted_map

__all__ = ["ReadOptions", "open_matching"]


@dataclass(frozen=True)
class ReadOptions:
    """How a data file is read; `tsee.files.open_table` has parameters of the same names.

    Parameters
    ----------
    label : str, optional
        A column that is not a feature and goes with the map.
    columns : sequence of str, optional
        The features, in the model's order. By default they are matched by name.
    drop : sequence of str
        Columns to leave out.
    key : str, optional
        Which array of the file, if it has several.
    """

    label: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    key: str | None = None

    def open(self, path: str | PathLike[str]) -> Table:
        """Open a data file with these options."""
        return open_table(path, label=self.label, columns=self.columns, drop=self.drop, key=self.key)


def open_matching(model: Any, path: str | PathLike[str], options: ReadOptions | None = None) -> Table:
    """Open a data file with the features of the model as its columns, in the model's order.

    If the model and the file both name their columns, they are matched by name. Otherwise the columns are taken in the
    order of the file, and there must be as many as the model has features.

    Parameters
    ----------
    model : FittedMap or fitted estimator
        What the rows will be placed with.
    path : str or path
        The file or folder.
    options : ReadOptions, optional
        How to read it.

    Returns
    -------
    Table
        Close it, or use it with ``with``.

    Raises
    ------
    DataFileError
        If the file cannot be read, lacks a feature, or has a different number of features.
    """
    options = options or ReadOptions()
    fitted = fitted_map(model)
    names = None if options.columns is not None else fitted.feature_names
    by_name = options if names is None else replace(options, columns=names)
    try:
        table = by_name.open(path)
    except UnnamedColumnsError:
        if names is None:
            raise
        table = options.open(path)
        table.notes.append("Its columns have no names; they are taken in the order of the model's features.")
    expected, found = fitted.n_features, table.rows.shape[1]
    if found != expected:
        table.close()
        which = f" ({listed(table.feature_names)})" if table.feature_names is not None else ""
        raise DataFileError(
            f"{str(path)!r} has {found:,} features{which}, but the model was fitted with {expected:,}: choose them "
            "with the 'columns' parameter, or leave some out with the 'label' parameter or the 'drop' parameter."
        )
    return table
