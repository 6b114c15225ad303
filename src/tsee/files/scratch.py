"""Temporary files for unpacked data that may not fit in memory."""

from __future__ import annotations

import errno
import math
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tsee.exceptions import DataFileError
from tsee.files.fields import is_number, pointed
from tsee.files.rows import FileArray

__all__ = ["NumberSpill", "Scratch", "TextColumn", "TextSpill", "writing"]


class Scratch:
    """A temporary folder, created when first needed, and removed together with its table."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._count = 0

    def path(self, name: str) -> Path:
        """A new path in the folder."""
        if self._folder is None:
            self._folder = tempfile.mkdtemp(prefix="tsee-")
            self._end = weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._count += 1
        return Path(self._folder) / f"{self._count}-{name}"

    def close(self) -> None:
        """Remove the folder."""
        if self._folder is not None:
            self._end()
            self._folder = None


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Report a full disk while a temporary file is written."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise DataFileError(
                f"There is no room to unpack the data in {str(path.parent.parent)!r}: set TMPDIR to a folder on a "
                "larger disk."
            ) from error
        raise


class NumberSpill:
    """Blocks of numbers, appended to a file and read back by slice.

    They are stored as float32 if that is exact for all of them, otherwise as float64.
    """

    def __init__(self, scratch: Scratch, width: int, dtype: Any = np.float32, *, widen: bool = True):
        self._scratch = scratch
        self._path = scratch.path("numbers")
        self._file = open(self._path, "wb", buffering=0)  # noqa: SIM115
        self.width, self.rows, self.dtype, self._widen = width, 0, np.dtype(dtype), widen

    def append(self, block: np.ndarray) -> None:
        """Add rows."""
        kept = block.astype(self.dtype, copy=False)
        if self._widen and self.dtype == np.float32 and not np.array_equal(kept, block):
            self._to_double()
            kept = block
        with writing(self._path):
            _write_all(self._file, np.ascontiguousarray(kept))
        self.rows += len(block)

    def close(self) -> None:
        """Write no more."""
        self._file.close()

    def finish(self) -> FileArray:
        """All rows."""
        self.close()
        return FileArray(self._path, self.dtype, (self.rows, self.width), keep=self._scratch)

    def _to_double(self) -> None:
        single, rows = self.finish(), self.rows
        path, self._path = self._path, self._scratch.path("numbers")
        self.dtype = np.dtype(np.float64)
        self._file = open(self._path, "wb", buffering=0)  # noqa: SIM115
        step = max(1, 2**20 // max(1, self.width))
        with writing(self._path):
            for start in range(0, rows, step):
                _write_all(self._file, single[start : start + step].astype(np.float64))
        path.unlink()


class TextSpill:
    """Text values of a column, appended to a file and read back by slice."""

    def __init__(self, scratch: Scratch, decimal: str = "."):
        self._path, self._scratch, self._decimal = scratch.path("text"), scratch, decimal
        self._file = open(self._path, "wb")  # noqa: SIM115
        self._ends = NumberSpill(scratch, 1, np.int64, widen=False)
        self._end = 0
        self._integers = self._numbers = True

    def append(self, values: Sequence[str]) -> None:
        """Add values."""
        encoded = [value.encode() for value in values]
        ends = self._end + np.cumsum([len(value) for value in encoded], dtype=np.int64)
        with writing(self._path):
            self._file.write(b"".join(encoded))
        self._ends.append(ends[:, None])
        self._end = int(ends[-1]) if len(ends) else self._end
        if self._numbers and self._decimal == ",":
            values = [pointed(value) for value in values]
        self._integers = self._integers and all(map(_is_plain_integer, values))
        self._numbers = self._numbers and (self._integers or all(map(_is_finite_number, values)))

    def close(self) -> None:
        """Write no more."""
        self._file.close()
        self._ends.close()

    def finish(self) -> TextColumn:
        """All values: as integers or as floats if all of them are, otherwise as text."""
        with writing(self._path):
            self._file.close()
        ends = self._ends.finish()
        dtype = np.int64 if self._integers else np.float64 if self._numbers else object
        return TextColumn(self._path, ends, np.dtype(dtype), self._scratch, self._decimal)


class TextColumn:
    """A column that `TextSpill` wrote, read by slice."""

    def __init__(self, path: Path, ends: FileArray, dtype: np.dtype[Any], keep: Any = None, decimal: str = "."):
        self._keep = keep  # the folder must exist as long as the column
        self._path, self._ends, self.dtype, self.shape = path, ends, dtype, (len(ends),)
        self._decimal = decimal

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, rows: slice) -> np.ndarray:
        start, stop, _ = rows.indices(len(self))
        out = np.empty(max(0, stop - start), dtype=self.dtype)
        if stop <= start:
            return out
        ends = self._ends[start:stop][:, 0].tolist()
        first = int(self._ends[start - 1 : start][0, 0]) if start else 0
        with open(self._path, "rb") as file:
            file.seek(first)
            text = file.read(ends[-1] - first)
        values = [
            text[begin - first : end - first].decode() for begin, end in zip([first, *ends[:-1]], ends, strict=True)
        ]
        if self.dtype != object:
            values = [self.dtype.type(pointed(value, self._decimal)) for value in values]
        out[:] = values
        return out


def _is_plain_integer(value: str) -> bool:
    """Whether a text is the same after conversion to an integer and back: the identifier 007 is not."""
    digits = value[1:] if value[:1] == "-" else value
    if not (digits.isdecimal() and digits.isascii() and len(digits) < 20 and (digits[0] != "0" or value == "0")):
        return False
    return len(digits) < 19 or -(2**63) <= int(value) < 2**63


def _is_finite_number(value: str) -> bool:
    if value.isdecimal() and (len(value) > 18 or (value[0] == "0" and len(value) > 1)):
        return False  # 007 is a name, and so is what neither int64 nor float64 holds
    return is_number(value) and math.isfinite(float(value))


def _write_all(file: Any, array: np.ndarray) -> None:
    """Write every byte: a raw file may write only some of them, for example if the disk is nearly full."""
    left = array.data.cast("B") if array.size else memoryview(b"")
    while len(left):
        left = left[file.write(left) :]
