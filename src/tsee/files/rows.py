"""Rows of a file, read by slice: only the slice that was asked for is in memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse

from tsee.exceptions import DataFileError
from tsee.files.errors import listed, reading
from tsee.files.sparse import csr_fault
from tsee.files.stamps import Stamp

__all__ = [
    "ArrayRows",
    "ChosenColumns",
    "FileArray",
    "JoinedRows",
    "RowRange",
    "Rows",
    "SparseRows",
    "all_finite",
    "check_numeric",
    "first_not_finite",
]

# Rows of a large array that are searched at once for a value that is not finite.
CHECKED_ROWS = 1024


class Rows:
    """Numeric rows that are read by slice: ``rows[a:b]`` is an array, or a CSR matrix if ``sparse``.

    NaN and infinity are refused when they are read; the message names the row and column.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns.
    dtype : numpy.dtype
        The type of every slice.
    span : int
        The number of rows that the file stores together. Slices that are at least as long are read fastest.
    sparse : bool
        Whether slices are CSR matrices.
    """

    span = 1
    sparse = False
    ndim = 2

    def __init__(self, shape: tuple[int, int], dtype: Any, source: Any, names: Sequence[str] | None = None):
        self.shape = (int(shape[0]), int(shape[1]))
        dtype = np.dtype(dtype).newbyteorder("=")
        # torch has no longer floats; what float64 cannot hold becomes infinite, and is refused.
        self.dtype: np.dtype[Any] = np.dtype(np.float64) if dtype.kind == "f" and dtype.itemsize > 8 else dtype
        self.source = str(source)
        self.names = names

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Any:
        if not isinstance(rows, slice):
            raise TypeError(f"Rows of a file are read by slice, such as rows[0:1000]. Got {rows!r} instead.")
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"Rows of a file are read in slices without a step. Got {rows!r} instead.")
        stop = max(start, stop)
        with reading(self.source, "what it was when it was opened"), np.errstate(over="ignore"):
            block = self._read(start, stop)
        self._check_finite(block, start)
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        block = self[:]
        return np.asarray(block.toarray() if self.sparse else block, dtype=dtype)

    def __repr__(self) -> str:
        return f"<{self.shape[0]} rows of {self.shape[1]} {self.dtype} features in {self.source!r}>"

    def _read(self, start: int, stop: int) -> Any:
        raise NotImplementedError  # of a subclass that has a __getitem__ of its own

    def _check_finite(self, block: Any, start: int) -> None:
        found = first_not_finite(block)
        if found is None:
            return
        row, column, what = found
        name = repr(self.names[column]) if self.names is not None else str(column)
        advice = "fill it in" if what == "NaN" else "replace it with a finite number"
        raise DataFileError(
            f"{self.source!r} holds {what} in row {start + row}, column {name}: {advice}, remove that row, "
            "or drop the column."
        )


def first_not_finite(block: Any) -> tuple[int, int, str] | None:
    """The first value of an array or a CSR matrix that is not finite; None if all are finite.

    Returns its row, its column, both from 0, and what it is: "NaN" or "infinity".
    """
    sparse = scipy.sparse.issparse(block)
    values = block.data if sparse else block
    if values.dtype.kind != "f" or _sum_is_finite(values):
        return None
    for start in range(0, len(values), CHECKED_ROWS):
        part = values[start : start + CHECKED_ROWS]
        found = np.argwhere(~np.isfinite(part))
        if len(found) == 0:
            continue
        what = "NaN" if np.isnan(part[tuple(found[0])]) else "infinity"
        position = start + int(found[0][0])
        if sparse:
            return int(np.searchsorted(block.indptr, position, side="right")) - 1, int(block.indices[position]), what
        return position, int(found[0][1]), what
    return None


def all_finite(values: np.ndarray) -> bool:
    """Whether an array of floats has neither NaN nor infinity."""
    return _sum_is_finite(values) or bool(np.isfinite(values).all())


def _sum_is_finite(values: np.ndarray) -> bool:
    """Whether the sum is finite: then all values are, and the check took no memory. Otherwise it may only overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(values.sum()))


class FileArray:
    """An array in a file, by rows or (``fortran``) by columns, read by slice.

    These are plain reads instead of a memory map: pages of a map count as memory long after they were read, and the
    process ends if the file becomes shorter.
    """

    def __init__(
        self,
        path: Any,
        dtype: Any,
        shape: Sequence[int],
        offset: int = 0,
        keep: Any = None,
        *,
        fortran: bool = False,
        stamp: Stamp | None = None,
    ) -> None:
        self._path, self._offset, self._keep, self._fortran, self._stamp = path, offset, keep, fortran, stamp
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.shape = tuple(int(side) for side in shape)
        self.ndim = len(self.shape)
        self._items = math.prod(self.shape[1:])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, step = rows.indices(len(self))
        if step != 1:
            raise ValueError(f"Rows of a file are read in slices without a step. Got {rows!r} instead.")
        count = max(0, stop - start)
        shape = (count, *self.shape[1:])
        if not self._fortran:
            return self._values([start * self._items], count * self._items).reshape(shape)
        # Each column is one piece of the file, of which the slice is a part.
        begins = range(start, self._items * len(self) + start, len(self))
        return self._values(begins, count).T.reshape(shape, order="F")

    def _values(self, begins: Sequence[int], count: int) -> np.ndarray:
        """``count`` values from each of these places in the array."""
        buffer = np.empty((len(begins), count * self.dtype.itemsize), np.uint8)
        if buffer.size:
            whole = True
            with open(self._path, "rb", buffering=0) as file:
                for begin, part in zip(begins, buffer, strict=True):
                    file.seek(self._offset + begin * self.dtype.itemsize)
                    whole = whole and _read_into(file, part.data)
                if self._stamp is not None:
                    self._stamp.check(file.fileno())
            if not whole:
                raise EOFError("it ends before its last row")
        return buffer.view(self.dtype) if buffer.size else np.empty((len(begins), count), self.dtype)


def _read_into(file: Any, buffer: memoryview) -> bool:
    """Fill a buffer from a raw file, and say whether there was enough."""
    while len(buffer):
        size = file.readinto(buffer)
        if not size:
            return False
        buffer = buffer[size:]
    return True


class ArrayRows(Rows):
    """Rows of an array that is read by slice (a memory map, h5py, zarr); rows of several axes are flattened."""

    def __init__(
        self, array: Any, source: Any, names: Sequence[str] | None = None, columns: Any = None, keep: Any = None
    ):
        self._width = math.prod(int(side) for side in array.shape[1:])
        width = self._width if columns is None else len(columns)
        super().__init__((array.shape[0], width), array.dtype, source, names)
        self._array, self._keep = array, keep  # ``keep`` must exist as long as the rows
        self._columns = None if columns is None else _as_slice(list(columns))
        self.span = int((getattr(array, "chunks", None) or (1,))[0])

    def _read(self, start: int, stop: int) -> np.ndarray:
        block = np.asarray(self._array[start:stop]).reshape(stop - start, self._width)
        if self._columns is not None:
            block = block[:, self._columns]
        return block.astype(self.dtype, copy=False)


class SparseRows(Rows):
    """Rows of a CSR matrix whose three arrays are read by slice."""

    sparse = True

    def __init__(
        self, data: Any, indices: Any, indptr: Any, shape: Any, source: Any, names: Sequence[str] | None = None
    ):
        super().__init__((shape[0], shape[1]), data.dtype, source, names)
        self._data, self._indices, self._indptr = data, indices, indptr
        if data.dtype.kind not in "biuf":
            raise DataFileError(f"{self.source!r} holds {data.dtype}, not numbers: write numeric rows to it.")
        kinds = indices.dtype.kind + indptr.dtype.kind
        if (
            min(self.shape) < 0
            or indptr.shape != (self.shape[0] + 1,)
            or len(data.shape) != 1
            or data.shape != indices.shape
            or not set(kinds) <= set("iu")
        ):
            raise DataFileError(f"{self.source!r} holds a sparse matrix whose parts do not match: write it again.")

    def _read(self, start: int, stop: int) -> scipy.sparse.csr_matrix:
        indptr = np.asarray(self._indptr[start : stop + 1]).astype(np.int64)
        first, last = int(indptr[0]), int(indptr[-1])
        if not 0 <= first <= last <= self._data.shape[0]:
            raise self._damaged(start, stop, f"their values are {first} to {last} of {self._data.shape[0]}")
        data = np.asarray(self._data[first:last]).astype(self.dtype, copy=False)
        indices, indptr, shape = np.asarray(self._indices[first:last]), indptr - first, (stop - start, self.shape[1])
        what = csr_fault(data, indices, indptr, shape)
        if what is not None:
            raise self._damaged(start, stop, what)
        return scipy.sparse.csr_matrix((data, indices, indptr), shape=shape)

    def _damaged(self, start: int, stop: int, what: str) -> DataFileError:
        return DataFileError(
            f"{self.source!r} holds a damaged sparse matrix (rows {start} to {stop - 1}): {what}. Write it again."
        )


class ChosenColumns(Rows):
    """Some columns of other rows, in the given order."""

    def __init__(self, rows: Rows, columns: Sequence[int], names: Sequence[str] | None = None):
        super().__init__((len(rows), len(columns)), rows.dtype, rows.source, names)
        self._rows, self._columns = rows, list(columns)
        self.span, self.sparse = rows.span, rows.sparse

    def _read(self, start: int, stop: int) -> Any:
        return self._rows._read(start, stop)[:, self._columns]


class RowRange(Rows):
    """Rows ``start`` to ``stop`` of other rows."""

    def __init__(self, rows: Rows, start: int, stop: int):
        super().__init__((stop - start, rows.shape[1]), rows.dtype, rows.source, rows.names)
        self._rows, self._start = rows, start
        self.span, self.sparse = rows.span, rows.sparse

    def __getitem__(self, rows: slice) -> Any:
        start, stop, _ = rows.indices(len(self))
        return self._rows[self._start + start : self._start + max(start, stop)]


class JoinedRows(Rows):
    """Rows of several files, joined in order."""

    def __init__(self, parts: Sequence[Rows], source: Any):
        widths = {part.shape[1] for part in parts}
        if len(widths) > 1:
            odd = next(part for part in parts if part.shape[1] != parts[0].shape[1])
            raise DataFileError(
                f"{odd.source!r} has {odd.shape[1]} columns, but {parts[0].source!r} has {parts[0].shape[1]}: "
                "the files of a folder must have the same columns."
            )
        dtype = np.result_type(*(part.dtype for part in parts))
        super().__init__((sum(len(part) for part in parts), parts[0].shape[1]), dtype, source)
        self._parts = list(parts)
        self._starts = np.cumsum([0] + [len(part) for part in parts])
        self.span = max(part.span for part in parts)

    def _read(self, start: int, stop: int) -> np.ndarray:
        block = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        part = int(np.searchsorted(self._starts, start, side="right")) - 1
        done = start
        while done < stop:
            first = int(self._starts[part])
            end = min(stop, int(self._starts[part + 1]))
            block[done - start : end - start] = self._parts[part]._read(done - first, end - first)
            done, part = end, part + 1
        return block


def check_numeric(array: Any, source: Any) -> None:
    """Refuse an array that is not numeric rows."""
    if array.dtype.kind not in "biuf":
        names = f" of {listed(array.dtype.names)}" if array.dtype.names else ""
        what = (
            "Python objects, which are not read because they can run code" if array.dtype.kind == "O" else array.dtype
        )
        raise DataFileError(f"{str(source)!r} holds {what}{names}, not numbers: write numeric rows to it.")
    if len(array.shape) < 2:
        raise DataFileError(
            f"{str(source)!r} holds an array of shape {tuple(array.shape)}, but rows and columns are needed: "
            "write it with shape (rows, columns)."
        )


def _as_slice(columns: list[int]) -> Any:
    """A slice if the columns are adjacent, because a slice needs no copy."""
    if columns and columns == list(range(columns[0], columns[0] + len(columns))):
        return slice(columns[0], columns[0] + len(columns))
    return columns
