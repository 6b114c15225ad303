"""`open_table`: the kind of a file, by its content and its extension."""

from __future__ import annotations

import gzip
import os
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tsee.exceptions import DataFileError
from tsee.files import arrays, h5ad, parquet, text
from tsee.files.errors import listed, reading
from tsee.files.stamps import check_plain
from tsee.files.stores import is_zarr
from tsee.files.table import Table

__all__ = ["data_files", "has_columns", "is_zarr", "open_share", "open_table"]

# If a file begins with these bytes, its kind is certain.
MAGIC = {
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "npz",
    b"PK\x05\x06": "npz",
    b"PAR1": "parquet",
    b"\x89HDF\r\n\x1a\n": "hdf5",
}
EXTENSIONS = {
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".h5ad": "hdf5",
    ".zarr": "zarr",
}
TEXT_EXTENSIONS = (".csv", ".tsv", ".tab", ".txt", ".data")
KNOWN = ".npy, .npz, .csv, .tsv, .parquet, .h5ad, .h5 and .zarr"
UNSUPPORTED = {
    ".xlsx": "an Excel workbook: save the sheet as CSV",
    ".xls": "an Excel workbook: save the sheet as CSV",
    ".pkl": "a pickle, which is not read because it can run code: write the data as .npy or CSV",
    ".pickle": "a pickle, which is not read because it can run code: write the data as .npy or CSV",
    ".pt": "a file of torch, which is not read because it can run code: write the data as .npy",
    ".pth": "a file of torch, which is not read because it can run code: write the data as .npy",
    ".mat": "a MATLAB file: write the matrix as CSV or HDF5",
    ".feather": "a Feather file: write the data as Parquet",
    ".json": "JSON: write the data as CSV",
}


def open_table(
    path: str | PathLike[str],
    *,
    label: str | None = None,
    columns: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    key: str | None = None,
) -> Table:
    """Open a data file as a table whose rows are read by slice.

    The content decides the kind of the file, or else its extension: ``.npy``, ``.npz`` (dense, or a sparse matrix of
    scipy), ``.csv`` and ``.tsv`` (also ``.gz``), ``.parquet`` (a file or a folder of files), ``.h5ad``, ``.h5``,
    ``.zarr``, or a folder of ``.npy`` files. No pickle is ever read. A folder is read whole: other files in it are
    refused, except texts for readers (``README``, ``.md``) and names that begin with ``.`` or ``_``.

    Two kinds of columns are kept aside: columns that are not numeric, and identifiers: whole numbers that are all
    different and, by their name or their size, no measurement. ``notes`` names them. A column that has text among its
    numbers or missing values is refused, and so is a table with several columns of the same name.

    Parameters
    ----------
    path : str or path
        The file or folder.
    label : str, optional
        A column that is not a feature, but goes with the map. In ``.npz``, ``.h5`` and ``.zarr``: the key of an
        array with one value per row; in ``.h5ad``: a column of ``obs``.
    columns : sequence of str, optional
        The features, in this order. By default every numeric column.
    drop : sequence of str
        Columns to leave out altogether.
    key : str, optional
        Which array of the file. In ``.npz``, ``.h5`` and ``.zarr``: its name; in ``.h5ad``: ``"X"`` (the default), an
        entry of ``obsm`` such as ``"X_pca"``, or ``"layers/counts"``.

    Returns
    -------
    Table
        With ``rows``, ``feature_names``, ``other_columns``, ``label`` and ``notes``.

    Raises
    ------
    DataFileError
        The message says which file, row and column, what is wrong and what to do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tsee.files import open_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "flowers.csv"
    ...     _ = path.write_text("id,kind,width,height\\n7,rose,1.5,2\\n8,lily,0.5,3\\n")
    ...     with open_table(path, label="kind") as table:
    ...         table.rows[0:2], table.feature_names, table.label.tolist(), list(table.other_columns)
    (array([[1.5, 2. ],
           [0.5, 3. ]], dtype=float32), ['width', 'height'], ['rose', 'lily'], ['id'])
    """
    for name, value in (("columns", columns), ("drop", drop)):
        if isinstance(value, str):
            raise TypeError(f"The {name!r} parameter must be a sequence of names. Got the text {value!r} instead.")
    return _opened(Path(path), key, dict(label=label, columns=columns, drop=drop))


def open_share(path: str | PathLike[str]) -> Table:
    """Open a data file with this process's share of the rows of a table: a collective if its columns have names.

    All shares have the same columns, and what identifies the rows is judged from all of them.
    """
    return _opened(Path(path), None, dict(label=None, columns=None, drop=()), together=True)


def _opened(path: Path, key: str | None, named: dict[str, Any], *, together: bool = False) -> Table:
    kind, files = _kind(path)
    if kind in ("text", "parquet", "npy") and key is not None:
        raise DataFileError(f"{str(path)!r} holds one table, and has no key {key!r}: leave the key out.")
    if kind == "text":
        return text.open_text(path, **named, together=together)
    if kind == "parquet":
        return parquet.open_parquet(path, files, **named, together=together)
    if kind == "hdf5" and h5ad.is_h5ad(path):
        return h5ad.open_h5ad(path, key=key, **named)
    label = named["label"]
    arrays.check_no_columns(path, columns=named["columns"], drop=named["drop"])
    if kind == "npy":
        arrays.check_no_columns(path, label=label)
        return arrays.open_npy(path) if path.is_file() else arrays.open_npy_folder(path, files)
    opener = {"npz": arrays.open_npz, "hdf5": arrays.open_hdf5, "zarr": arrays.open_zarr}[kind]
    return opener(path, key=key, label=label)


def has_columns(path: str | PathLike[str]) -> bool:
    """Whether the features of a file have names."""
    path = Path(path)
    kind, _ = _kind(path)
    return kind in ("text", "parquet") or (kind == "hdf5" and h5ad.is_h5ad(path))


def _kind(path: Path) -> tuple[str, list[Path]]:
    """The kind of a file, and the files that it consists of."""
    if path.is_dir():
        return _kind_of_folder(path)
    check_plain(path)
    with reading(path, "a file that can be read"), open(path, "rb") as file:
        head = file.read(8)
    extension = path.suffix.lower()
    for magic, kind in MAGIC.items():
        if head.startswith(magic) and extension not in UNSUPPORTED:
            return kind, [path]
    if extension in EXTENSIONS:
        what = "is empty" if not head else f"does not begin like a {extension} file"
        raise DataFileError(f"{str(path)!r} {what}: it is damaged or of another kind; copy or write it again.")
    compressed = head.startswith(b"\x1f\x8b")
    inner = path.with_suffix("").suffix.lower() if extension == ".gz" else extension
    if inner in TEXT_EXTENSIONS and (extension != ".gz" or compressed):
        _check_text(path, compressed)
        return "text", [path]
    if extension == ".gz" and inner in TEXT_EXTENSIONS:
        raise DataFileError(
            f"{str(path)!r} is not compressed with gzip, although its name says so: rename it, or copy it again."
        )
    if inner in UNSUPPORTED:
        raise DataFileError(f"{str(path)!r} is {UNSUPPORTED[inner]}.")
    raise DataFileError(f"{str(path)!r} is of a kind that tsee does not read: write it as one of {KNOWN}.")


def _kind_of_folder(folder: Path) -> tuple[str, list[Path]]:
    if is_zarr(folder):
        return "zarr", [folder]
    found = _visible_files(folder)
    kinds = {kind for entry in found if (kind := EXTENSIONS.get(entry.suffix.lower())) in ("parquet", "npy")}
    if not kinds:
        raise DataFileError(
            f"The folder {str(folder)!r} holds no .parquet or .npy files, and is not a Zarr store: write the data as "
            f"one of {KNOWN}."
        )
    if len(kinds) > 1:
        raise DataFileError(f"The folder {str(folder)!r} holds both .parquet and .npy files: keep one kind in it.")
    (kind,) = kinds
    _check_known(folder, found, [entry for entry in found if EXTENSIONS.get(entry.suffix.lower()) == kind])
    return kind, arrays.in_order(found)


def data_files(folder: Path) -> list[Path]:
    """The data files in a folder, each of them a table, in the order of their names."""
    extensions = tuple(EXTENSIONS) + tuple(end + gz for end in TEXT_EXTENSIONS for gz in ("", ".gz"))
    found = _visible_files(folder)
    known = [entry for entry in found if entry.is_dir() or entry.name.lower().endswith(extensions)]
    if not known:
        raise DataFileError(f"The folder {str(folder)!r} holds no data files: write them as one of {KNOWN}.")
    _check_known(folder, found, known)
    return arrays.in_order(found)


def _check_known(folder: Path, found: list[Path], known: list[Path]) -> None:
    """Refuse a folder of which a part would not be read."""
    read = set(known)
    others = [str(entry.relative_to(folder)) for entry in found if entry not in read]
    if others:
        raise DataFileError(
            f"The folder {str(folder)!r} holds data and also {listed(others)}, which would not be read with it: move "
            "that elsewhere, or write it like the others."
        )


def _visible_files(folder: Path) -> list[Path]:
    """Files, and stores of Zarr, which are folders, that are in a folder or in one of its folders.

    Names that begin with "." or "_" are for programs, and texts about the data are for people.
    """
    found = []
    for parent, folders, names in os.walk(folder):
        for name in list(folders):
            if name.startswith((".", "_")):
                folders.remove(name)
            elif is_zarr(Path(parent, name)):
                folders.remove(name)
                found.append(Path(parent, name))
        for name in names:
            path = Path(parent, name)
            if name.startswith((".", "_")) or path.suffix.lower() == ".md" or path.stem in ("README", "LICENSE"):
                continue
            check_plain(path)
            found.append(path)
    return found


def _check_text(path: Path, compressed: bool) -> None:
    """Refuse a file that is not text, before it is parsed."""
    with reading(path, "a text of separated values"), gzip.open(path) if compressed else open(path, "rb") as file:
        head = file.read(4096)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise DataFileError(f"{str(path)!r} is text in UTF-16: save it as UTF-8.")
    if b"\0" in head:
        raise DataFileError(f"{str(path)!r} is not a text of separated values: check what kind of file it is.")
