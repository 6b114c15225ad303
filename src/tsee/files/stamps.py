"""What a path leads to: a plain file, and later still the same one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tsee.exceptions import DataFileError
from tsee.files.errors import listed, reading, require

__all__ = ["Stamp", "Watched", "check_own_hdf5", "check_plain", "hdf5_stamp"]

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def check_plain(path: Path) -> None:
    """Refuse what is not a plain file before it is opened: a pipe would be waited for, and a device never ends."""
    with reading(path, "a file that can be read"):
        mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        what = _KINDS.get(stat.S_IFMT(mode), "not a plain file")
        raise DataFileError(f"{str(path)!r} is {what}, which cannot be read in parts: write the data to a plain file.")


class Stamp:
    """The size of a file and the time of its last change, to tell later whether it is still the same.

    Parameters
    ----------
    path : path
        The file.
    handle : int, optional
        The open file. Then a new file of that name is no change: the old one is still read.
    """

    def __init__(self, path: Any, handle: int | None = None):
        self._path, self._handle = path, handle
        self._first = self._now(handle)

    def check(self, handle: int | None = None) -> None:
        """Refuse a file that has changed; ``handle`` is the file, if it was opened again."""
        if self._now(self._handle if handle is None else handle) != self._first:
            raise DataFileError(
                f"{str(self._path)!r} changed while it was being read: wait until it is written completely, and begin "
                "again."
            )

    @contextmanager
    def watch(self) -> Iterator[None]:
        """Check the file after a block that reads it, also after an error, which the change may have caused."""
        try:
            yield
        finally:
            self.check()

    def _now(self, handle: int | None) -> tuple[int, ...] | None:
        try:
            now = os.stat(self._path) if handle is None else os.fstat(handle)
        except OSError:
            return None  # removed
        return now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns


class Watched:
    """An array of a library, read by slice; each time the file must be the one that was opened."""

    def __init__(self, array: Any, stamp: Stamp):
        self.array, self._stamp = array, stamp
        self.shape, self.dtype = array.shape, array.dtype
        self.chunks = getattr(array, "chunks", None)

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, rows: Any) -> Any:
        with self._stamp.watch():
            return self.array[rows]


def hdf5_stamp(file: Any) -> Stamp:
    """The stamp of an open file of h5py."""
    try:
        handle = int(file.id.get_vfd_handle())
    except (RuntimeError, ValueError, NotImplementedError):  # not a file of the system, or not one only
        return Stamp(file.filename)
    return Stamp(file.filename, handle)


def check_own_hdf5(file: Any, path: Any) -> None:
    """Refuse an HDF5 file that would have other files read: somebody may have sent it for their content."""
    h5py = require("h5py", "hdf5", path)
    others: list[str] = []

    def look(name: str, link: Any) -> None:
        if isinstance(link, h5py.ExternalLink):
            others.append(name)
        elif isinstance(link, h5py.HardLink):
            item = file[name]
            if isinstance(item, h5py.Dataset) and (item.external or item.is_virtual):
                others.append(name)

    file.visititems_links(look)
    if others:
        raise DataFileError(
            f"{str(path)!r} takes {listed(others)} from other files: copy the data into it, or read it with h5py and "
            "pass the array."
        )
