"""AnnData's .h5ad files, read with h5py alone, by slice."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError, UnnamedColumnsError
from tsee.files.columns import OtherColumns
from tsee.files.errors import check_known, listed, reading, require
from tsee.files.loadings import loadings_checksum, loadings_key
from tsee.files.rows import ArrayRows, ChosenColumns, Rows, SparseRows, check_numeric
from tsee.files.stamps import Watched, check_own_hdf5, hdf5_stamp
from tsee.files.table import Table

__all__ = ["is_h5ad", "open_h5ad", "put_obsm", "rows_of"]


def is_h5ad(path: Path) -> bool:
    """Whether an HDF5 file has the layout of AnnData."""
    h5py = require("h5py", "hdf5", path)
    with reading(path, "an HDF5 file"), h5py.File(path, "r") as file:
        return file.attrs.get("encoding-type") == "anndata" or {"X", "obs", "var"} <= set(file)


def open_h5ad(
    path: Path,
    *,
    key: str | None = None,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
) -> Table:
    """A table of an .h5ad file: X, an entry of obsm ("X_pca") or a layer ("layers/counts")."""
    h5py = require("h5py", "anndata", path)
    with reading(path, "an .h5ad file"), contextlib.ExitStack() as stack:
        file = stack.enter_context(h5py.File(path, "r"))
        check_own_hdf5(file, path)
        item, of_variables = _matrix(file, key, path)
        names = _names(file, "var") if of_variables else None
        rows, notes = rows_of(item, path, names)
        if columns is not None or drop:
            if names is None:
                raise UnnamedColumnsError(
                    f"The columns of {key!r} in {str(path)!r} have no names: leave out columns and drop."
                )
            if list(columns or ()) != names or drop:
                chosen = _numbers_of(names, columns, drop, path)
                if columns is not None and len(chosen) < len(names):
                    left = f"{len(names) - len(chosen):,} of {len(names):,} variables"
                    notes.append(f"Left out, not among the features: {left}.")
                names = [names[number] for number in chosen]
                rows = ChosenColumns(rows, chosen, names)
        obs = _obs(file, path)
        if any(len(column) != len(rows) for column in obs.values()):
            raise DataFileError(
                f"{str(path)!r} has a different number of rows in obs than in its data: write it again."
            )
        if label is not None:
            check_known([label], list(obs), path, "column of obs")
        others = {name: column for name, column in obs.items() if name != label}
        if len(others) > 1:
            notes.append(f"Kept aside: the names of the observations and {len(others) - 1} columns of obs.")
        table = Table(
            rows=rows,
            source=path,
            kind="h5ad",
            feature_names=names,
            other_columns=OtherColumns(others, path),
            label_name=label,
            label_column=None if label is None else obs[label],
            notes=notes,
            loadings=None if of_variables else _loadings(file, item),
            holds=[file],
        )
        stack.pop_all()  # the file stays open with the table
        return table


def put_obsm(path: Path, name: str, n_rows: int, width: int) -> tuple[Any, Any]:
    """Make room for an array in obsm of a file, and return the open file and the dataset to fill.

    The parameters of an earlier array of that name no longer hold: they are removed from uns, where their key is
    ``name`` without "X_".
    """
    h5py = require("h5py", "anndata", path)
    file = h5py.File(path, "r+", locking=False)  # `replacing` has locked it
    if "obsm" not in file:
        file.create_group("obsm").attrs.update({"encoding-type": "dict", "encoding-version": "0.1.0"})
    if name in file["obsm"]:
        del file["obsm"][name]
    if name.removeprefix("X_") in file.get("uns", ()):
        del file["uns"][name.removeprefix("X_")]
    dataset = file["obsm"].create_dataset(name, shape=(n_rows, width), dtype=np.float32)
    dataset.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})
    return file, dataset


def _numbers_of(names: list[str], columns: Sequence[str] | None, drop: Sequence[str], path: Path) -> list[int]:
    """The numbers of the variables that are asked for. Variables of the same name are refused."""
    check_known([*(columns or ()), *drop], names, path, "variable")
    if columns is None:
        return [number for number, name in enumerate(names) if name not in set(drop)]
    counts = Counter(names)
    twice = [name for name in columns if counts[name] > 1]
    if twice:
        raise DataFileError(
            f"{str(path)!r} has several variables named {listed(twice)}: make the names unique (var_names_make_unique)."
        )
    number = {name: position for position, name in enumerate(names)}
    return [number[name] for name in columns if name not in set(drop)]


def _matrix(file: Any, key: str | None, path: Path) -> tuple[Any, bool]:
    """The data asked for, and whether its columns are the variables."""
    if key in (None, "X"):
        if "X" not in file:
            raise DataFileError(f"{str(path)!r} has no X: choose an entry of obsm by its key, such as 'X_pca'.")
        return file["X"], True
    assert key is not None
    if "/" in key.strip("/"):
        part, _, name = key.strip("/").partition("/")
        known = [f"{group}/{inner}" for group in ("obsm", "layers") if group in file for inner in file[group]]
        check_known([f"{part}/{name}"], known, path, "key")
        return file[part][name], part == "layers"
    known = ["X", *file.get("obsm", ())]
    check_known([key], known, path, "key")
    return file["obsm"][key], False


def _loadings(file: Any, item: Any) -> str | None:
    """A checksum of the PCA that made an entry of obsm, if the file has its loadings."""
    loadings = file.get(f"varm/{loadings_key(item.name.rpartition('/')[2])}")
    return loadings_checksum(_names(file, "var"), loadings[:]) if hasattr(loadings, "shape") else None


def rows_of(item: Any, path: Path, names: list[str] | None = None) -> tuple[Rows, list[str]]:
    """The rows of an open dataset, or of the group of a sparse matrix, and notes for the user."""
    stamp = hdf5_stamp(item.file)
    if hasattr(item, "shape"):
        check_numeric(item, path)
        return ArrayRows(Watched(item, stamp), path, names), []
    encoding = _text(item.attrs.get("encoding-type", item.attrs.get("h5sparse_format", "")))
    shape = item.attrs.get("shape", item.attrs.get("h5sparse_shape"))
    if encoding.startswith(("csr", "csc")):
        data, indices, indptr = (Watched(item[part], stamp) for part in ("data", "indices", "indptr"))
        if encoding.startswith("csr"):
            return SparseRows(data, indices, indptr, shape, path, names), []
        # By columns, it is the transposed matrix by rows.
        turned = SparseRows(data, indices, indptr, shape[::-1], path)
        matrix = turned._read(0, len(turned)).T.tocsr()
        rows = SparseRows(matrix.data, matrix.indices, matrix.indptr, shape, path, names)
        return rows, ["Sparse, but stored by column (CSC): kept in memory."]
    raise DataFileError(f"{item.name!r} in {str(path)!r} is a {encoding or 'group'}, not an array: choose another key.")


def _names(file: Any, part: str) -> list[str]:
    group = file[part]
    values = _Obs(group[_text(group.attrs.get("_index", "_index"))])[:]
    return [str(value) for value in values]


def _obs(file: Any, path: Path) -> dict[str, Any]:
    group = file["obs"]
    if hasattr(group, "shape"):
        raise DataFileError(f"{str(path)!r} was written by an old anndata: read it with anndata and write it again.")
    index = _text(group.attrs.get("_index", "_index"))
    order = [_text(name) for name in group.attrs.get("column-order", [])]
    columns = {index if index != "_index" else "index": _Obs(group[index])}
    for name in order:
        columns.setdefault(name, _Obs(group[name]))
    return columns


class _Obs:
    """A column of obs in any encoding, read by slice."""

    def __init__(self, item: Any):
        self._item = item
        self._group = not hasattr(item, "shape")
        self._main = Watched(item[_main_part(item)] if self._group else item, hdf5_stamp(item.file))
        self._categories: np.ndarray | None = None

    def __len__(self) -> int:
        return int(self._main.shape[0])

    def __getitem__(self, rows: slice) -> np.ndarray:
        values = _plain(self._main[rows])
        if self._group and "mask" in self._item:
            mask = self._item["mask"][rows]
            if mask.any():
                values = values.astype(object)
                values[mask] = None
            return values
        if self._categories is None:
            if self._group and "categories" in self._item:
                self._categories = _plain(self._item["categories"][:])
            elif "categories" in self._item.attrs:  # anndata before 0.7
                self._categories = _plain(self._item.file[self._item.attrs["categories"]][:])
        if self._categories is None:
            return values
        decoded = self._categories.astype(object) if (values < 0).any() else self._categories
        decoded = decoded[values] if len(decoded) else np.full(len(values), None, dtype=object)
        if (values < 0).any():
            decoded[values < 0] = None
        return decoded


def _main_part(group: Any) -> str:
    for name in ("codes", "values"):
        if name in group:
            return name
    encoding = group.attrs.get("encoding-type")
    raise DataFileError(
        f"{group.name!r} in {group.file.filename!r} has an unknown encoding, {encoding!r}: write it again with a "
        "recent anndata."
    )


def _plain(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind in "OS":
        out = np.empty(len(values), dtype=object)
        out[:] = [_text(value) for value in values]
        return out
    return values


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
