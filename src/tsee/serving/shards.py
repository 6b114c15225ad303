"""A folder of data files placed one file after another, with a map file for each; many workers can share the work."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from tsee.exceptions import DataFileError
from tsee.files import Table
from tsee.files.atomic import replacing
from tsee.files.errors import listed
from tsee.files.opening import data_files, is_zarr
from tsee.files.writing import can_write
from tsee.persistence import read_model
from tsee.progress import progress_bar
from tsee.serving.matching import ReadOptions, open_matching
from tsee.serving.placing import check_novelty, load_model, place_table

__all__ = ["FolderResult", "becomes_folder_of_maps", "place_folder"]

# The settings that the maps of a folder were made with. Readers of the folder skip names that begin with "_".
SETTINGS = "_tsee.json"


@dataclass
class FolderResult:
    """What `place_folder` did.

    Attributes
    ----------
    n_placed, n_rows : int
        How many files this worker placed, and how many rows they have.
    n_already_placed : int
        Files that had a map before.
    n_elsewhere : int
        Files that another worker was placing at the same time.
    failures : list of str
        Why a file could not be placed, one sentence for each such file.
    """

    n_placed: int = 0
    n_rows: int = 0
    n_already_placed: int = 0
    n_elsewhere: int = 0
    failures: list[str] = field(default_factory=list)


def becomes_folder_of_maps(data: str | PathLike[str], output: str | PathLike[str]) -> bool:
    """Whether each file of ``data`` gets a map of its own: ``data`` is a folder, and ``output`` has no extension."""
    data, output = Path(data), Path(output)
    return data.is_dir() and not is_zarr(data) and (output.is_dir() or not output.suffix)


def place_folder(
    model: str | PathLike[str],
    data: str | PathLike[str],
    output: str | PathLike[str],
    options: ReadOptions | None = None,
    *,
    placement: str | None = None,
    novelty: bool = False,
    device: str = "auto",
    verbose: bool = False,
    on_first_table: Callable[[Table], None] | None = None,
) -> FolderResult:
    """Place each data file of a folder, and write its map under the same name to another folder.

    A file is skipped if its map exists and is not older than the file, so a run that was stopped can be repeated. Any
    number of workers can run at once, on one machine or on many that share the disk: a worker locks a file while it
    places it, and the system releases the lock when the worker ends, however it ends. A file that cannot be read does
    not stop the others.

    Parameters
    ----------
    model : str or path
        The folder of the model.
    data : str or path
        The folder of the data files.
    output : str or path
        The folder for the maps: a new one, an empty one, or one that was made with the same settings.
    options : ReadOptions, optional
        How the data files are read.
    placement : {"refined", "forward"}, optional
        How rows are placed. By default as saved in the model.
    novelty : bool
        Add a column ``novelty`` to the maps.
    device : str
        Where the network runs.
    verbose : bool
        Show a progress bar.
    on_first_table : callable, optional
        Called with the first table that is opened, for example to show its ``notes``; the other files are alike.

    Returns
    -------
    FolderResult

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import tsee
    >>> X = np.random.default_rng(0).normal(size=(60, 4))
    >>> place = tempfile.TemporaryDirectory()
    >>> tsee.DtSEE(max_epochs=1, random_state=0).fit(X).save(f"{place.name}/model")
    >>> Path(f"{place.name}/shards").mkdir()
    >>> for number in range(2):
    ...     np.save(f"{place.name}/shards/{number}.npy", X)
    >>> result = place_folder(f"{place.name}/model", f"{place.name}/shards", f"{place.name}/maps")
    >>> result.n_placed, result.n_rows, result.failures
    (2, 120, [])
    >>> sorted(path.name for path in Path(f"{place.name}/maps").glob("*.npy"))
    ['0.npy', '1.npy']
    >>> place.cleanup()
    """
    data, output, options = Path(data), Path(output), options or ReadOptions()
    if output.resolve().is_relative_to(data.resolve()):
        raise DataFileError(
            f"{str(output)!r} is inside the folder of the data, where maps would be taken for data: name another one."
        )
    targets = _targets(data, output)
    fitted = load_model(model, placement=placement, device=device)
    if novelty:
        check_novelty(fitted)
    settings = {
        "model": _fingerprint(Path(model)),
        "placement": fitted.placement,
        "novelty": novelty,
        **asdict(options),
    }
    _check_settings(output, settings)
    result = FolderResult()
    on_tables = iter([on_first_table] if on_first_table else [])

    def place(file: Path, target: Path) -> None:
        with open_matching(fitted, file, options) as table:
            for on_table in on_tables:
                on_table(table)
            place_table(fitted, table, target, novelty=novelty)
            result.n_placed += 1
            result.n_rows += len(table)

    with progress_bar(len(targets), "placing", "file", verbose=verbose) as bar:
        for file, target in targets.items():
            with _claimed(file, target) as claim:
                if claim == "mine":
                    try:
                        place(file, target)
                    except ValueError as error:
                        result.failures.append(str(error))
                elif claim == "done":
                    result.n_already_placed += 1
                else:
                    result.n_elsewhere += 1
            bar.update()
    return result


def _targets(data: Path, output: Path) -> dict[Path, Path]:
    """The map file of each data file: the same name, with the extension .parquet if a map cannot have its own."""
    targets = {}
    for file in data_files(data):
        name = file.relative_to(data)
        targets[file] = output / (name if can_write(name) else name.with_suffix(".parquet"))
    if len(set(targets.values())) < len(targets):
        raise DataFileError(
            f"Files in {str(data)!r} differ only in their extensions, and would share a map: rename one of them."
        )
    return targets


@contextlib.contextmanager
def _claimed(file: Path, target: Path) -> Iterator[str]:
    """Lock a map file against other workers: "mine" to place it now, "done", or "elsewhere" if another has it."""
    if _is_done(file, target) and not _claim(target).exists():  # a killed worker may have left its claim
        yield "done"
        return
    with _locked(target) as locked:
        # Another worker may have placed the file since.
        yield "elsewhere" if not locked else "done" if _is_done(file, target) else "mine"


def _is_done(file: Path, target: Path) -> bool:
    return target.exists() and target.stat().st_mtime_ns >= file.stat().st_mtime_ns


@contextlib.contextmanager
def _locked(target: Path) -> Iterator[bool]:
    """Hold the lock of a map file, and say whether this worker got it."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks: a file may be placed twice there, with the same result
        yield True
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = _claim(target)
    if lock.exists() and not lock.is_file():
        raise DataFileError(f"{str(lock)!r} is not a plain file: remove it, or name another folder.")
    with open(lock, "ab") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
            return
        except OSError:  # a file system without locks
            yield True
            return
        if not _is_same_file(handle.fileno(), lock):  # another worker has just finished and removed it
            yield False
            return
        try:
            yield True
        finally:
            lock.unlink(missing_ok=True)


def _claim(target: Path) -> Path:
    return target.with_name(f".{target.name}.claim")


def _is_same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _check_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Record the settings of the maps in a folder, and refuse to mix maps of different settings."""
    settings = json.loads(json.dumps(settings))  # as they will be read back: tuples become lists
    record = folder / SETTINGS
    if not record.exists():
        folder.mkdir(parents=True, exist_ok=True)
        has_others = any(not entry.name.startswith(".") for entry in folder.iterdir())
        if has_others and not record.exists():  # another worker may have written it just now
            raise DataFileError(f"The folder {str(folder)!r} holds other files: name a new or an empty one.")
        with replacing(record) as temporary:
            temporary.write_text(json.dumps(settings, indent=2) + "\n")
    try:
        recorded = json.loads(record.read_text()) if record.is_file() else None
    except ValueError:
        recorded = None
    if not isinstance(recorded, dict):
        raise DataFileError(f"{str(record)!r} is damaged: remove the folder, or name another.")
    different = [name for name in settings if recorded.get(name) != settings[name]]
    if different:
        raise DataFileError(
            f"The maps in {str(folder)!r} were made with a different "
            f"{listed(different)}: name another folder, or remove this one."
        )


def _fingerprint(model: Path) -> str:
    """A checksum that identifies a saved model."""
    checksum: str = read_model(model).config["config_checksum"]
    return checksum
