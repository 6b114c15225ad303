"""Files of arrays: NumPy's .npy and .npz, HDF5 and Zarr."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import struct
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from tsee.exceptions import DataFileError, UnnamedColumnsError
from tsee.files.errors import check_known, listed, reading, require
from tsee.files.rows import ArrayRows, FileArray, JoinedRows, Rows, SparseRows, check_numeric
from tsee.files.scratch import Scratch, writing
from tsee.files.sparse import checked_csr
from tsee.files.stamps import Stamp, Watched, check_own_hdf5, check_plain, hdf5_stamp
from tsee.files.stores import check_store, missing_chunks, stored_arrays
from tsee.files.table import Table

__all__ = ["check_no_columns", "in_order", "open_hdf5", "open_npy", "open_npy_folder", "open_npz", "open_zarr"]


def open_npy(path: Path) -> Table:
    """A table of an .npy file."""
    array = _map_npy(path)
    return Table(rows=ArrayRows(array, path), source=path, kind="npy", notes=_flattened(array))


def open_npy_folder(folder: Path, paths: Sequence[Path]) -> Table:
    """A table of a folder of .npy files, joined in order."""
    arrays = [_map_npy(path) for path in paths]
    rows = JoinedRows([ArrayRows(array, path) for array, path in zip(arrays, paths, strict=True)], folder)
    notes = [f"{len(paths)} files, in the order of their names.", *_flattened(arrays[0])]
    return Table(rows=rows, source=folder, kind="npy", notes=notes)


def open_npz(path: Path, *, key: str | None = None, label: str | None = None) -> Table:
    """A table of an .npz file: an array by its name, or a sparse matrix of scipy."""
    scratch, stamp = Scratch(), Stamp(path)
    with reading(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy"): name for name in archive.namelist() if name.endswith(".npy")}
        if not members:
            raise DataFileError(f"{str(path)!r} is a zip archive without NumPy arrays: save the data as CSV or .npy.")
        if {"format", "shape", "data"} <= set(members) and key is None:
            check_no_columns(path, label=label)
            return _open_sparse(path, archive, members, scratch, stamp)
        arrays = {
            name: _Member(path, archive.getinfo(member), archive, scratch, stamp) for name, member in members.items()
        }
    return _open_stored(path, "npz", arrays, key, label, [scratch])


def open_hdf5(path: Path, *, key: str | None = None, label: str | None = None) -> Table:
    """A table of a dataset of an HDF5 file."""
    h5py = require("h5py", "hdf5", path)
    with reading(path, "an HDF5 file"), contextlib.ExitStack() as stack:
        file = stack.enter_context(h5py.File(path, "r"))
        check_own_hdf5(file, path)
        arrays: dict[str, Any] = {}
        stamp = hdf5_stamp(file)

        def collect(name: str, item: Any) -> None:
            if isinstance(item, h5py.Dataset) and item.shape is not None:
                arrays[name] = Watched(item, stamp)

        file.visititems(collect)
        table = _open_stored(path, "hdf5", arrays, key, label, [file])
        stack.pop_all()  # the file stays open with the table
        return table


def open_zarr(path: Path, *, key: str | None = None, label: str | None = None) -> Table:
    """A table of an array of a Zarr store."""
    require("zarr", "zarr", path)
    with reading(path, "a Zarr store"):
        check_store(path)
        arrays = stored_arrays(path)
        if not isinstance(arrays, dict):
            if key is not None:
                raise DataFileError(f"{str(path)!r} is one array, and has no key {key!r}: leave the key out.")
            arrays, key = {"array": arrays}, "array"
        table = _open_stored(path, "zarr", arrays, key, label, [])
        name, array = _choose(arrays, key, path, label)
        table.notes += missing_chunks(array, name, path)
        return table


def _open_stored(
    path: Path, kind: str, arrays: Mapping[str, Any], key: str | None, label: str | None, holds: list[Any]
) -> Table:
    name, array = _choose(arrays, key, path, label)
    source = f"{path} ({name})"
    check_numeric(array, source)
    return Table(
        rows=ArrayRows(array, source),
        source=path,
        kind=kind,
        label_name=label,
        label_column=_label_array(arrays, label, array.shape[0], path),
        notes=_flattened(array),
        holds=holds,
    )


def _choose(arrays: Mapping[str, Any], key: str | None, path: Path, label: str | None) -> tuple[str, Any]:
    if key is not None:
        key = key.strip("/")
        check_known([key], list(arrays), path, "array")
        return key, arrays[key]
    tables = [
        name for name, array in arrays.items() if len(array.shape) >= 2 and array.dtype.kind in "biuf" and name != label
    ]
    if len(tables) == 1:
        return tables[0], arrays[tables[0]]
    if len(arrays) == 1:
        return next(iter(arrays.items()))  # a later check reports what is wrong with it
    if tables:
        raise DataFileError(f"{str(path)!r} holds several arrays ({listed(tables)}): name one by its key.")
    raise DataFileError(f"{str(path)!r} holds no array of numbers with rows and columns: it has {listed(arrays)}.")


class _Decoded:
    """A label array, read by slice; HDF5 stores text as bytes."""

    def __init__(self, array: Any):
        self._array = array

    def __getitem__(self, rows: slice) -> np.ndarray:
        values = np.asarray(self._array[rows])
        if values.dtype.kind == "S":
            return np.char.decode(values, "utf-8")
        if values.dtype.kind == "O":
            values[:] = [value.decode() if isinstance(value, bytes) else value for value in values]
        return values


def _label_array(arrays: Mapping[str, Any], label: str | None, n_rows: int, path: Path) -> Any:
    if label is None:
        return None
    check_known([label], list(arrays), path, "array")
    array = arrays[label]
    if tuple(array.shape) not in ((n_rows,), (n_rows, 1)):
        raise DataFileError(
            f"The label {label!r} of {str(path)!r} has shape {tuple(array.shape)}, but the data has {n_rows} rows: "
            "name an array with one value per row."
        )
    return _Decoded(array) if len(array.shape) == 1 else _Decoded(np.asarray(array[:])[:, 0])


def check_no_columns(path: Path, **given: Any) -> None:
    """Refuse to choose columns of a file whose columns have no names."""
    for name, value in given.items():
        if value:
            raise UnnamedColumnsError(
                f"{str(path)!r} has no named columns, so {name}={value!r} has no meaning: leave it out."
            )


def in_order(paths: Sequence[Path]) -> list[Path]:
    """Files by name, with the numbers in it as numbers: part-2 comes before part-10."""

    def pieces(path: Path) -> list[tuple[int, str]]:
        return [(int(piece), "") if piece.isdecimal() else (-1, piece) for piece in re.split(r"(\d+)", str(path))]

    return sorted(paths, key=pieces)


def _map_npy(path: Path) -> Any:
    check_plain(path)
    with reading(path, "an .npy file"):
        with open(path, "rb") as file:
            stamp = Stamp(path)
            shape, fortran, dtype = _read_npy_header(file)
            offset, size = file.tell(), os.fstat(file.fileno()).st_size
        array = _stored_array(path, shape, fortran, dtype, offset, size - offset, stamp)
    check_numeric(array, path)
    return array


def _read_npy_header(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array in NumPy's format. Afterwards the file is at the first value."""
    version = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if min(shape, default=0) < 0:
        raise ValueError(f"its shape is {shape}")
    return shape, fortran, dtype


def _stored_array(
    path: Path,
    shape: tuple[int, ...],
    fortran: bool,
    dtype: np.dtype[Any],
    offset: int,
    size: int,
    stamp: Stamp | None = None,
) -> Any:
    """An array in a file, of which it has ``size`` bytes from ``offset`` on."""
    if dtype.hasobject:
        raise DataFileError(
            f"{str(path)!r} holds Python objects, which are not read because they can run code: write numeric rows to "
            "it."
        )
    if 0 in shape or shape == () or dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    missing = math.prod(shape) * dtype.itemsize - size
    if missing > 0:
        raise EOFError(f"it lacks {missing} bytes")
    return FileArray(path, dtype, shape, offset, fortran=fortran and len(shape) > 1, stamp=stamp)


class _Member:
    """An array of an .npz file. Its rows are read from the file itself, or unpacked first if they are compressed."""

    def __init__(self, path: Path, info: zipfile.ZipInfo, archive: zipfile.ZipFile, scratch: Scratch, stamp: Stamp):
        self._path, self._info, self._scratch, self._stamp = path, info, scratch, stamp
        with archive.open(info) as file:
            self.shape, self._fortran, self.dtype = _read_npy_header(file)
            self._header_length = file.tell()
        self._array: Any = None

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> np.ndarray:
        if self._array is None:
            with self._stamp.watch():
                self._array = self._unpacked()
        block: np.ndarray = self._array[rows]
        return block

    def _unpacked(self) -> Any:
        size = self._info.file_size - self._header_length
        stamp: Stamp | None = self._stamp
        if self._info.compress_type == zipfile.ZIP_STORED:
            path, offset = self._path, self._header_length + _data_offset(self._path, self._info)
        else:
            path, offset, stamp = self._scratch.path("array"), self._header_length, None
            with (
                zipfile.ZipFile(self._path) as archive,
                archive.open(self._info) as file,
                open(path, "wb") as out,
                writing(path),
            ):
                shutil.copyfileobj(file, out, 2**20)
        return _stored_array(path, self.shape, self._fortran, self.dtype, offset, size, stamp)


def _data_offset(path: Path, info: zipfile.ZipInfo) -> int:
    """Where the content of an uncompressed member of a zip archive begins."""
    with open(path, "rb") as file:
        file.seek(info.header_offset)
        head = file.read(30)
    name_length, extra_length = struct.unpack("<HH", head[26:30])
    return info.header_offset + 30 + int(name_length) + int(extra_length)


def _open_sparse(
    path: Path, archive: zipfile.ZipFile, members: Mapping[str, str], scratch: Scratch, stamp: Stamp
) -> Table:
    with archive.open(members["format"]) as file:
        name = np.lib.format.read_array(file, allow_pickle=False).item()
    kind = name.decode() if isinstance(name, bytes) else str(name)
    notes = []
    if kind == "csr":
        parts = {
            part: _Member(path, archive.getinfo(members[part]), archive, scratch, stamp)
            for part in ("data", "indices", "indptr")
        }
        with archive.open(members["shape"]) as file:
            shape = np.lib.format.read_array(file, allow_pickle=False)
        rows: Rows = SparseRows(parts["data"], parts["indices"], parts["indptr"], shape, path)
    else:
        matrix = checked_csr(scipy.sparse.load_npz(path), f"The array in {str(path)!r}", DataFileError)
        rows = SparseRows(matrix.data, matrix.indices, matrix.indptr, matrix.shape, path)
        notes.append(f"Sparse, but not stored by row ({kind}): kept in memory.")
    return Table(rows=rows, source=path, kind="npz", notes=notes, holds=[scratch])


def _flattened(array: Any) -> list[str]:
    if len(array.shape) == 2:
        return []
    shape = " x ".join(str(side) for side in array.shape[1:])
    return [f"Each row, of shape {shape}, becomes {math.prod(array.shape[1:])} features."]
