"""A data file as a table: features that are read by slice, a label, and other columns."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError
from tsee.files.columns import OtherColumns
from tsee.files.errors import reading
from tsee.files.rows import Rows

__all__ = ["Table"]


class Table:
    """The content of a file, as `open_table` returns it. Close it, or use it with ``with``, to release the file.

    Attributes
    ----------
    rows : Rows
        The features: ``rows.shape``, ``rows.dtype``, and ``rows[a:b]``, an array or a CSR matrix. However large
        the file is, only the slice is in memory.
    feature_names : list of str or None
        Names of the features, if the file has them.
    other_columns : mapping of str to numpy.ndarray
        Identifiers and columns that are not numeric, in the order of the file. Each is read when it is needed.
    identifiers : list of str
        The columns that were taken for identifiers.
    label_name : str or None
        The column that was named as the label.
    label : numpy.ndarray or None
        Its values, one per row.
    notes : list of str
        Notes for the user, one sentence each: which columns were kept aside, and why.
    source : pathlib.Path
        The file or folder.
    loadings : str or None
        A checksum of the PCA that made the features, if they are an entry of obsm and the file has its loadings.
    kind : str
        The format: "text", "npy", "npz", "parquet", "hdf5", "h5ad" or "zarr".
    """

    def __init__(
        self,
        *,
        rows: Rows,
        source: Path,
        kind: str,
        feature_names: Sequence[str] | None = None,
        other_columns: OtherColumns | None = None,
        label_name: str | None = None,
        label_column: Any = None,
        notes: Sequence[str] = (),
        identifiers: Sequence[str] = (),
        loadings: str | None = None,
        holds: Sequence[Any] = (),
    ):
        if len(rows) == 0:
            raise DataFileError(f"{str(source)!r} has no rows of data: is it the right file?")
        if rows.shape[1] == 0:
            raise DataFileError(f"{str(source)!r} has no numeric column left to map: choose other columns.")
        self.rows, self.source, self.kind = rows, source, kind
        self.feature_names = None if feature_names is None else list(feature_names)
        self.other_columns = OtherColumns() if other_columns is None else other_columns
        self.label_name, self._label_column = label_name, label_column
        self._label: np.ndarray | None = None
        self.notes, self.identifiers = list(notes), list(identifiers)
        self.loadings = loadings
        self._holds = list(holds)

    @property
    def label(self) -> np.ndarray | None:
        """The values of the column that was named as the label, one per row; None if no column was."""
        if self._label is None and self._label_column is not None:
            with reading(self.source, "what it was when it was opened"):
                self._label = np.asarray(self._label_column[:])
        return self._label

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        label = f", label {self.label_name!r}" if self.label_name else ""
        return f"<Table of {self.rows.shape[0]} rows, {self.rows.shape[1]} features{label} in {str(self.source)!r}>"

    def kept(self, start: int, stop: int) -> dict[str, np.ndarray]:
        """Rows ``start`` to ``stop`` of the columns that go with the map: the other columns, then the label."""
        columns = self.other_columns.block(start, stop)
        if self.label_name is not None and self._label_column is not None:
            with reading(self.source, "what it was when it was opened"):
                columns[self.label_name] = np.asarray(self._label_column[start:stop])
        return columns

    def close(self) -> None:
        """Release the file, and remove temporary files."""
        for held in self._holds:
            with contextlib.suppress(OSError):
                held.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
