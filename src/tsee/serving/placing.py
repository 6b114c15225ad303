"""Placing the rows of a table on the map of a model, one block after another, and writing the map to a file."""

from __future__ import annotations

from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tsee.estimators.loading import load
from tsee.exceptions import DataFileError, ModelError, RowError
from tsee.files import MapWriter, Table
from tsee.fitted import FittedMap, fitted_map
from tsee.progress import progress_bar

__all__ = ["PlacedBlock", "check_map_path", "check_novelty", "load_model", "place_blocks", "place_table"]

# The size of a block in memory, the limits of its number of rows, and the most rows of a file's chunk that it is made
# to hold.
BLOCK_BYTES = 2**26
MIN_BLOCK_ROWS, MAX_BLOCK_ROWS, MAX_SPAN = 2**10, 2**18, 2**16
# The formats of maps that can hold the novelty as one more column.
EXTENSIONS_WITH_COLUMNS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


class PlacedBlock(NamedTuple):
    """A block of the rows of a table, and their positions on the map."""

    rows: slice
    values: Any
    positions: np.ndarray


def load_model(path: str | PathLike[str], *, placement: str | None = None, device: str = "auto") -> FittedMap:
    """Load a saved model, and set how it places rows.

    Parameters
    ----------
    path : str or path
        The folder of the model.
    placement : {"refined", "forward"}, optional
        How rows are placed. By default as saved in the model.
    device : str
        Where the network runs.

    Returns
    -------
    FittedMap

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tsee
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> folder = tempfile.TemporaryDirectory()
    >>> tsee.DtSEE(max_epochs=1, random_state=0).fit(X).save(f"{folder.name}/model")
    >>> load_model(f"{folder.name}/model", placement="forward").placement
    'forward'
    >>> folder.cleanup()
    """
    return fitted_map(load(path, device=device)).placed_by(placement)


def place_blocks(model: Any, table: Table, *, verbose: bool = False) -> Iterator[PlacedBlock]:
    """Read and place the rows of a table, one block after another.

    Parameters
    ----------
    model : FittedMap or fitted estimator
    table : Table
        Its columns are the model's features, in the model's order; `open_matching` opens such a table.
    verbose : bool
        Show a progress bar.

    Yields
    ------
    PlacedBlock
        The blocks, in the order of the table.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tsee
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> folder = tempfile.TemporaryDirectory()
    >>> tsee.DtSEE(max_epochs=1, random_state=0).fit(X).save(f"{folder.name}/model")
    >>> np.save(f"{folder.name}/new.npy", X)
    >>> model = load_model(f"{folder.name}/model")
    >>> with tsee.serving.open_matching(model, f"{folder.name}/new.npy") as table:
    ...     [(block.rows, block.positions.shape) for block in place_blocks(model, table)]
    [(slice(0, 60, None), (60, 2))]
    >>> folder.cleanup()
    """
    fitted = fitted_map(model)
    n_rows, n_columns = table.rows.shape
    size = int(np.clip(BLOCK_BYTES // (n_columns * table.rows.dtype.itemsize), MIN_BLOCK_ROWS, MAX_BLOCK_ROWS))
    size = max(size, min(table.rows.span, MAX_SPAN))
    with progress_bar(n_rows, "placing", "row", verbose=verbose) as bar:
        for start in range(0, n_rows, size):
            rows = slice(start, min(start + size, n_rows))
            values = table.rows[rows]
            yield PlacedBlock(rows, values, _positions(fitted, values, start, table))
            bar.update(rows.stop - rows.start)


def _positions(fitted: FittedMap, values: Any, start: int, table: Table) -> np.ndarray:
    try:
        return fitted.place(values)
    except RowError as error:
        raise DataFileError(f"{str(table.source)!r}, row {start + error.row} {error.problem}") from error


def place_table(
    model: Any, table: Table, path: str | PathLike[str], *, novelty: bool = False, verbose: bool = False
) -> None:
    """Place the rows of a table, and write their map to a file.

    Memory does not grow with the number of rows. The file is complete or not there: if placing fails or is killed, an
    older file at ``path`` stays as it was.

    Parameters
    ----------
    model : FittedMap or fitted estimator
    table : Table
        Its columns are the model's features, in the model's order; `open_matching` opens such a table.
    path : str or path
        The file to write; its extension gives the format. See `tsee.files.write_map`.
    novelty : bool
        Add a column ``novelty``.
    verbose : bool
        Show a progress bar.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tsee
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> folder = tempfile.TemporaryDirectory()
    >>> tsee.DtSEE(max_epochs=1, random_state=0).fit(X).save(f"{folder.name}/model")
    >>> np.save(f"{folder.name}/new.npy", X)
    >>> model = load_model(f"{folder.name}/model")
    >>> with tsee.serving.open_matching(model, f"{folder.name}/new.npy") as table:
    ...     place_table(model, table, f"{folder.name}/map.csv", novelty=True)
    >>> with open(f"{folder.name}/map.csv") as file:
    ...     file.read(19)
    'tsee0,tsee1,novelty'
    >>> folder.cleanup()
    """
    fitted = fitted_map(model)
    if novelty:
        check_novelty(fitted)
    check_map_path(path, table, novelty=novelty)
    columns = [*(f"tsee{i}" for i in range(fitted.n_components)), "novelty"] if novelty else None
    with MapWriter(path, table, columns=columns) as writer:
        for _, values, positions in place_blocks(fitted, table, verbose=verbose):
            if novelty:
                positions = np.column_stack([positions, fitted.novelty(values)])
            writer.write(positions)


def check_map_path(path: str | PathLike[str], table: Table, *, novelty: bool = False) -> None:
    """Raise an error, before the work, if the map of ``table`` cannot be written to ``path``."""
    path = Path(path)
    if novelty and not path.name.lower().endswith(EXTENSIONS_WITH_COLUMNS):
        raise DataFileError(
            f"The 'novelty' parameter adds a column, which {str(path)!r} cannot hold: write text or Parquet instead."
        )
    # An .h5ad map is a copy of the data with the positions added, so it can replace the data.
    if table.kind != "h5ad" and path.exists() and path.samefile(table.source):
        raise DataFileError(f"{str(path)!r} is the data itself, which the map would replace: name another file.")
    MapWriter(path, table)


def check_novelty(fitted: FittedMap) -> None:
    """Raise an error, before the work, if the map has no exemplars, from which the novelty of a row is measured."""
    if fitted.exemplars is None:
        raise ModelError(
            f"A {fitted.method} has no exemplars to measure novelty from: leave out the 'novelty' parameter."
        )
