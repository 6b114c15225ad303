"""Atomic writing: a file is replaced in one step, or stays as it was."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

__all__ = ["replacing"]

# Errors of a disk, which do not say of which file.
DISK = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}


@contextlib.contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary path in the folder of ``path``, for the file that will replace it.

    Write the new file there and close it. When the block ends without an error, that file is flushed to the disk, gets
    the permissions of the old file if there is one, and takes its name in one step: at any moment, even if the
    process is killed, ``path`` is the old file or the new one. If the block or any of these steps fails, the
    temporary file is removed; what a killed process left behind is removed when the same file is written again. If
    ``path`` is a link, the file that it points to is replaced.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from tsee.files.atomic import replacing
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(f"{folder}/notes.txt") as temporary:
    ...         _ = temporary.write_text("new")
    ...     [(file.name, file.read_text()) for file in Path(folder).iterdir()]
    [('notes.txt', 'new')]
    """
    target = Path(os.path.realpath(path))  # unlike `resolve`, it takes a link to itself
    if target.exists() and not target.is_file():
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    temporary, handle = None, None
    try:
        _remove_left(target)
        temporary, handle = _create(target)
        yield temporary
        if os.stat(temporary).st_size == 0:  # `_create` has made it
            raise FileNotFoundError(errno.ENOENT, "nothing was written", str(path))
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())  # otherwise the rename could reach the disk before the content
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException as error:
        if temporary is not None:
            with contextlib.suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError) and (error.errno in DISK or str(error.filename) == str(temporary)):
            raise OSError(error.errno, error.strerror, str(path)) from error  # not the name of the temporary file
        raise
    finally:
        if handle is not None:
            os.close(handle)
    _sync_folder(target.parent)


def _create(target: Path) -> tuple[Path, int | None]:
    """A temporary file beside ``target``, and the open file that locks it as long as this process lives."""
    while True:
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.writing")
        if fcntl is None:  # Windows, where an open file could not be renamed
            temporary.touch(exist_ok=False)
            return temporary, None
        handle = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), os.stat(temporary)):
                return temporary, handle
        except (BlockingIOError, FileNotFoundError):
            pass  # another process took it for one that was left behind, before it was locked
        except OSError:  # a file system without locks
            os.close(handle)
            return temporary, None
        os.close(handle)


def _remove_left(target: Path) -> None:
    """Remove temporary files for ``target`` that killed processes left behind; a living process has locked its own."""
    if fcntl is None or not os.access(target.parent, os.R_OK):
        return
    name = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{8}}\.writing")
    for entry in os.listdir(target.parent):
        if name.fullmatch(entry):
            left = target.parent / entry
            # One that is locked, belongs to another user, or is on a file system without locks, stays.
            with contextlib.suppress(OSError), open(left, "rb+") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()


def _sync_folder(folder: Path) -> None:
    """Flush a rename to the disk, if the system can sync folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
