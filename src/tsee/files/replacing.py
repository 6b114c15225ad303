"""A file that takes the place of another in one step: what was there is whole until the new one is."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from pathlib import Path

__all__ = ["beside", "put_in_place"]


def beside(target: Path) -> Path:
    """A name for a file in the making, in the folder of the one that it will replace."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.writing")


def put_in_place(temporary: Path, target: Path) -> None:
    """Rename a file that is complete, so that ``target`` is the old file or the new one at any moment."""
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())  # or the rename could overtake the content
    if target.exists():
        shutil.copymode(target, temporary)
    os.replace(temporary, target)
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """See a rename to the disk, where the system lets folders be synced."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
