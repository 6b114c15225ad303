"""The steps of `tsee.files.atomic.replacing`, one by one."""

from __future__ import annotations

import os
import secrets
import shutil
from pathlib import Path

from tsee.files.atomic import _sync_folder

__all__ = ["beside", "put_in_place"]


def beside(target: Path) -> Path:
    """A temporary path in the folder of ``target``, for the file that will replace it."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.writing")


def put_in_place(temporary: Path, target: Path) -> None:
    """Replace ``target`` with a complete file, so that it is the old file or the new one at any moment."""
    with open(temporary, "rb+") as file:
        os.fsync(file.fileno())
    if target.exists():
        shutil.copymode(target, temporary)
    os.replace(temporary, target)
    _sync_folder(target.parent)
