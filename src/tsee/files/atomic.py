"""Atomic writing: a file is replaced in one step, or stays as it was."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from os import PathLike
from pathlib import Path

__all__ = ["replacing"]


@contextlib.contextmanager
def replacing(path: str | PathLike[str]) -> Iterator[Path]:
    """A temporary path in the folder of ``path``, for the file that will replace it.

    Write the new file there and close it. When the block ends without an error, that file is flushed to the disk, gets
    the permissions of the old file if there is one, and takes its name in one step: at any moment, even if the
    process is killed, ``path`` is the old file or the new one. If the block or any of these steps fails, the
    temporary file is removed. If ``path`` is a link, the file that it points to is replaced.

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
    target = Path(path).resolve()
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.writing")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())  # otherwise the rename could reach the disk before the content
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Flush a rename to the disk, if the system can sync folders."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
