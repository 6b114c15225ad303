"""A data file and a model: the columns of the file matched with the features of the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from tsee.exceptions import DataFileError, UnnamedColumnsError
from tsee.files import Table, open_table
from tsee.files.errors import listed
from tsee.files.identifiers import kept_aside
from tsee.files.loadings import PROJECT
from tsee.files.mixed import MixedTable, open_mixed
from tsee.fitted import fitted_map
from tsee.tables import Choice, EncodedRows, as_frame, encoded_file, open_encoded

__all__ = ["ReadOptions", "open_for_fit", "open_matching"]


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

    Examples
    --------
    >>> ReadOptions(label="kind", drop=["note"])
    ReadOptions(label='kind', columns=None, drop=['note'], key=None)
    """

    label: str | None = None
    columns: Sequence[str] | None = None
    drop: Sequence[str] = ()
    key: str | None = None

    def open(self, path: str | PathLike[str]) -> Table:
        """Open a data file with these options."""
        return open_table(path, label=self.label, columns=self.columns, drop=self.drop, key=self.key)


def open_for_fit(
    path: str | PathLike[str], options: ReadOptions, choices: dict[str, Choice], missing: str = "allow"
) -> Table:
    """Open a data file to fit a model: its features as they are, or encoded if they have words or gaps.

    Parameters
    ----------
    path : str or path
        The file or folder.
    options : ReadOptions
        How to read it.
    choices : dict of str to Choice
        Kinds and weights of columns, as `tsee.tables.check_columns` gives them.
    missing : {"allow", "error"}
        Whether gaps are refused.

    Returns
    -------
    Table
        Close it, or use it with ``with``. If it is encoded, its ``rows`` are `tsee.tables.EncodedRows`.
    """
    named = dict(label=options.label, columns=options.columns, drop=options.drop, key=options.key)
    table = open_encoded(path, missing=missing, forced=bool(choices), **named)
    if table is None:
        return options.open(path)
    rows = encoded_file(table, choices, missing)
    table.identifiers = rows.encoder.identifiers
    if table.identifiers:
        table.notes.append(kept_aside(table.identifiers))
    return _encoded(table, rows)


def _encoded(table: MixedTable, rows: EncodedRows) -> Table:
    """A table with encoded rows; its columns that are not numbers go with the map."""
    table.rows = rows
    table.write_beside(rows.encoder.names)
    return table


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
        If the file cannot be read, lacks a feature, has a different number of features, or if they come from another
        PCA than the features of the model.

    Examples
    --------
    Columns are found by their names, in any order:

    >>> import tempfile
    >>> import numpy as np
    >>> import pandas as pd
    >>> import tsee
    >>> frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=["a", "b", "c"])
    >>> see = tsee.DtSEE(max_epochs=1, random_state=0).fit(frame)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame[["c", "a", "b"]].to_csv(f"{folder}/new.csv", index=False)
    ...     with open_matching(see, f"{folder}/new.csv") as table:
    ...         table.feature_names, table.rows.shape
    (['a', 'b', 'c'], (60, 3))
    """
    options = options or ReadOptions()
    fitted = fitted_map(model)
    if fitted.table is not None:
        mixed = open_mixed(Path(path), label=options.label, drop=options.drop, key=options.key)
        if options.label in fitted.table.names:
            mixed.names.append(str(options.label))
        try:
            return _encoded(mixed, EncodedRows(as_frame(mixed), fitted.table, path))
        except ValueError as error:
            raise DataFileError(str(error).replace("X lacks", f"{str(path)!r} lacks")) from error
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
    if fitted.loadings is not None:
        _compare_loadings(table, fitted.loadings, options.key)
    return table


def _compare_loadings(table: Table, known: str, key: str | None) -> None:
    """Refuse the features of another PCA; a note says so if that could not be seen."""
    if table.loadings is None:
        table.notes.append(
            "It has no loadings to compare with the model's: if its features come from another PCA, positions "
            f"mean nothing; {PROJECT}."
        )
    elif table.loadings != known:
        table.close()
        raise DataFileError(
            f"{key!r} in {str(table.source)!r} comes from another PCA than the data of the model (their loadings in "
            f"varm differ), so positions would mean nothing: {PROJECT}."
        )
