"""A model and the rows of a file: their columns matched, their places block by block."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tsee.data import without_names
from tsee.estimators.loading import load
from tsee.exceptions import DataFileError, ModelError, UnnamedColumnsError
from tsee.files import MapWriter, Table, open_table
from tsee.files.errors import listed
from tsee.progress import progress_bar

__all__ = ["check_not_input", "load_model", "open_matching", "placed", "write_places"]

# Rows are placed this many bytes at a time, or this many rows of them.
BLOCK_BYTES = 2**26
FEWEST, MOST = 2**10, 2**16


def load_model(path: Path, *, placement: str | None, device: str) -> Any:
    """The model of a folder, placing rows as asked for."""
    model = load(path, device=device)
    if placement is not None and "placement" in model.get_params():
        model.set_params(placement=placement)
    elif placement == "refined":
        raise ModelError(
            f"The model in {str(path)!r} has no exemplars among which to place rows (it is a {type(model).__name__}): "
            "leave --placement out."
        )
    return model


def open_matching(
    model: Any, path: Path, *, label: str | None, columns: list[str] | None, drop: list[str], key: str | None
) -> Table:
    """Open a file with the columns that the model knows, by their names where both have them."""
    names = None if columns is not None else getattr(model, "feature_names_in_", None)
    given: dict[str, Any] = dict(label=label, drop=drop, key=key)
    try:
        table = open_table(path, columns=columns if names is None else [str(name) for name in names], **given)
    except UnnamedColumnsError:
        if names is None:
            raise
        table = open_table(path, **given)
        table.notes.append("Its columns have no names, and are taken in the order of the model's.")
    wanted, found = model.n_features_in_, table.rows.shape[1]
    if found != wanted:
        table.close()
        has = f" ({listed(table.feature_names)})" if table.feature_names is not None else ""
        raise DataFileError(
            f"{str(path)!r} has {found:,} features{has}, where the model was fitted with {wanted:,}: choose them by "
            "--columns, or keep one out by --label or --drop."
        )
    return table


def placed(model: Any, table: Table, *, quiet: bool) -> Iterator[tuple[slice, Any, np.ndarray]]:
    """For one block of rows after the other: where it is, the rows, and their places."""
    n_rows, width = table.rows.shape
    size = int(np.clip(BLOCK_BYTES // (width * table.rows.dtype.itemsize), FEWEST, MOST))
    size = max(size, min(table.rows.span, MOST))
    with progress_bar(n_rows, "placing", "row", verbose=not quiet) as bar:
        for start in range(0, n_rows, size):
            rows = slice(start, min(start + size, n_rows))
            block = table.rows[rows]
            yield rows, block, _places(model, block, start, table)
            bar.update(rows.stop - rows.start)


def _places(model: Any, block: Any, start: int, table: Table) -> np.ndarray:
    try:
        return without_names(model.transform, block)
    except ValueError as error:
        row = re.match(r"Row (\d+) of X (.*)", str(error))
        if row is None:
            raise
        raise DataFileError(f"{str(table.source)!r}, row {start + int(row[1]) + 1} {row[2]}") from error


def write_places(
    model: Any, table: Table, path: Path, *, fitted: bool = False, novelty: bool = False, quiet: bool
) -> None:
    """Write the map of a table; that of the rows just ``fitted`` is there already."""
    places = getattr(model, "embedding_", None) if fitted else None
    columns = [*(f"tsee{i}" for i in range(model._n_features_out)), "novelty"] if novelty else None
    with MapWriter(path, table, columns=columns) as writer:
        if places is None:
            for _, rows, block in placed(model, table, quiet=quiet):
                writer.write(np.column_stack([block, without_names(model.novelty, rows)]) if novelty else block)
        else:
            for start in range(0, len(places), MOST):
                writer.write(places[start : start + MOST])


def check_not_input(path: Path, table: Table) -> None:
    """Refuse to put a map in the place of the data it is made of; an .h5ad file keeps its data beside the map."""
    if table.kind != "h5ad" and path.exists() and path.samefile(table.source):
        raise DataFileError(f"{str(path)!r} is the data itself, which the map would replace: name another file.")
