"""A data file as a table: features that are read by slice, a label, and columns kept aside."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError
from tsee.files.columns import Aside
from tsee.files.errors import reading
from tsee.files.rows import Rows

__all__ = ["Table"]


class Table:
    """What `open_table` finds in a file. Close it, or use it with ``with``, to let go of the file.

    Attributes
    ----------
    rows : Rows
        The features: ``rows.shape``, ``rows.dtype``, and ``rows[a:b]``, an array or a CSR matrix. However large
        the file is, nothing is held but the slice.
    feature_names : list of str or None
        Names of the features, where the file has them.
    aside : mapping of str to numpy.ndarray
        Identifiers and columns that are not numeric, in the order of the file. Each is read when asked for.
    label_name : str or None
        The column that was named as the label.
    label : numpy.ndarray or None
        Its values, one a row.
    notes : list of str
        What a user should know, a sentence each: which columns were kept aside, and why.
    source : pathlib.Path
        The file or folder.
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
        aside: Aside | None = None,
        label_name: str | None = None,
        label_column: Any = None,
        notes: Sequence[str] = (),
        holds: Sequence[Any] = (),
    ):
        if len(rows) == 0:
            raise DataFileError(f"{str(source)!r} has no rows of data: is it the right file?")
        if rows.shape[1] == 0:
            raise DataFileError(f"{str(source)!r} has no numeric column left to map: choose other columns.")
        self.rows, self.source, self.kind = rows, source, kind
        self.feature_names = None if feature_names is None else list(feature_names)
        self.aside = Aside() if aside is None else aside
        self.label_name, self._label_column = label_name, label_column
        self._label: np.ndarray | None = None
        self.notes = list(notes)
        self._holds = list(holds)

    @property
    def label(self) -> np.ndarray | None:
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
        """Rows ``start`` to ``stop`` of what goes beside the map: the columns aside, then the label."""
        columns = self.aside.block(start, stop)
        if self.label_name is not None and self._label_column is not None:
            with reading(self.source, "what it was when it was opened"):
                columns[self.label_name] = np.asarray(self._label_column[start:stop])
        return columns

    def close(self) -> None:
        """Let go of the file, and remove what was unpacked from it."""
        for held in self._holds:
            with contextlib.suppress(OSError):
                held.close()

    def __enter__(self) -> Table:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
