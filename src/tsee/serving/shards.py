"""A folder of data files placed one by one, a map file for each; any number of workers can share the work."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tsee.exceptions import DataFileError
from tsee.files.errors import listed
from tsee.files.opening import data_files, is_zarr
from tsee.files.replacing import beside, put_in_place
from tsee.files.writing import can_write
from tsee.persistence import CONFIG
from tsee.progress import progress_bar

__all__ = ["Outcome", "fingerprint", "is_folder_of_maps", "place_shards"]

# What the maps of a folder were made by. Files whose name begins so are no data to those who read the folder.
RECORD = "_tsee.json"


@dataclass
class Outcome:
    """What came of a folder: how many files were placed, were there already, or are in other workers' hands."""

    placed: int = 0
    rows: int = 0
    done_before: int = 0
    elsewhere: int = 0
    failed: list[str] = field(default_factory=list)


def is_folder_of_maps(data: Path, output: Path) -> bool:
    """Whether a folder of files is to become a folder of maps: the output's name has no ending of a file."""
    return data.is_dir() and not is_zarr(data) and (output.is_dir() or not output.suffix)


def place_shards(
    place: Callable[[Path, Path], int], data: Path, output: Path, made_by: dict[str, Any], *, quiet: bool
) -> Outcome:
    """Place each file of a folder, ``place(file, map)`` giving the number of its rows.

    A file whose map is there, and not older than the file, is left alone. One that another worker has in hand is left
    to it: a worker holds a lock while it works on a file, and loses it when it ends, however it ends. A file that
    cannot be read does not keep the others from being placed.
    """
    if output.resolve().is_relative_to(data.resolve()):
        raise DataFileError(f"{str(output)!r} is in the folder of the data, of which its maps would become a part.")
    files = data_files(data)
    targets = {file: output / _map_name(file.relative_to(data)) for file in files}
    if len(set(targets.values())) < len(targets):
        raise DataFileError(f"Files in {str(data)!r} differ by their ending alone, and would share a map: rename one.")
    _check_record(output, made_by)
    outcome = Outcome()
    with progress_bar(len(files), "placing", "file", verbose=not quiet) as bar:
        for file, target in targets.items():
            if _is_done(file, target):
                outcome.done_before += 1
            else:
                with _claimed(target) as mine:
                    if not mine:
                        outcome.elsewhere += 1
                    elif _is_done(file, target):  # another worker has just done it
                        outcome.done_before += 1
                    else:
                        _place_one(place, file, target, outcome)
            bar.update()
    return outcome


def _place_one(place: Callable[[Path, Path], int], file: Path, target: Path, outcome: Outcome) -> None:
    try:
        outcome.rows += place(file, target)
        outcome.placed += 1
    except (DataFileError, ValueError) as error:
        outcome.failed.append(str(error))


def _map_name(file: Path) -> Path:
    """The name of a file's map: its own, where a map can be written so."""
    return file if can_write(file) else file.with_suffix(".parquet")


def _is_done(file: Path, target: Path) -> bool:
    return target.exists() and target.stat().st_mtime_ns >= file.stat().st_mtime_ns


@contextlib.contextmanager
def _claimed(target: Path) -> Iterator[bool]:
    """Hold a file against other workers, and say whether this one has it."""
    try:
        import fcntl
    except ImportError:  # no such locks on Windows: work may be done twice there, never wrongly
        yield True
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    claim = target.with_name(f".{target.name}.claim")
    with open(claim, "ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            yield True
            return
        if not _is_the_same(file.fileno(), claim):  # another worker has just let it go
            yield False
            return
        for left in target.parent.glob(f".{target.name}.*.writing"):  # by a worker that was killed
            left.unlink(missing_ok=True)
        try:
            yield True
        finally:
            claim.unlink(missing_ok=True)


def _is_the_same(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _check_record(folder: Path, made_by: dict[str, Any]) -> None:
    """Keep what the maps of a folder are made by, and refuse to mix them with others."""
    record = folder / RECORD
    if not record.exists():
        folder.mkdir(parents=True, exist_ok=True)
        foreign = any(not entry.name.startswith(".") for entry in folder.iterdir())
        if foreign and not record.exists():  # which another worker may have written just now
            raise DataFileError(f"The folder {str(folder)!r} holds other files: name a new or an empty one.")
        temporary = beside(record)
        temporary.write_text(json.dumps(made_by, indent=2) + "\n")
        put_in_place(temporary, record)
    try:
        kept = json.loads(record.read_text())
    except ValueError:
        kept = None
    if not isinstance(kept, dict):
        raise DataFileError(f"{str(record)!r} is damaged: remove the folder, or name another.")
    other = [name for name in made_by if kept.get(name) != made_by[name]]
    if other:
        raise DataFileError(
            f"The maps in {str(folder)!r} were made with another {listed(other)}: name another folder, or remove it."
        )


def fingerprint(model: Path) -> str:
    """What tells a saved model from any other."""
    return hashlib.sha256((model / CONFIG).read_bytes()).hexdigest()
