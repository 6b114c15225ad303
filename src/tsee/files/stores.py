"""Zarr stores: folders of metadata and chunks."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tsee.exceptions import DataFileError
from tsee.files.errors import reading, require
from tsee.files.stamps import Stamp, Watched, check_plain

__all__ = ["METADATA", "check_store", "is_zarr", "missing_chunks", "stored_arrays"]

# Files that describe an array or a group.
METADATA = (".zarray", ".zgroup", "zarr.json")
# Codecs of Python objects that only make text, bytes and numbers of what they read.
SAFE_OBJECTS = {"vlen-utf8", "vlen-bytes", "vlen-array", "json2", "msgpack2"}


def is_zarr(folder: Path) -> bool:
    """Whether a folder is a Zarr store, which is one table."""
    return any((folder / name).exists() for name in METADATA)


def check_store(store: Path) -> None:
    """Refuse, before anything is decoded, a store that would be unpickled or that holds a pipe or a device."""
    for folder, _, names in os.walk(store):
        for name in names:
            path = Path(folder, name)
            if not path.is_file():
                check_plain(path)
            if name in (*METADATA, ".zmetadata"):
                with reading(path, "the metadata of a Zarr store"):
                    _check_codecs(json.loads(path.read_bytes()), path)


def stored_arrays(path: Path) -> dict[str, Any] | Any:
    """The arrays of a store by name, or the array if the store is one."""
    zarr = require("zarr", "zarr", path)
    store = zarr.open(str(path), mode="r")
    if isinstance(store, zarr.Array):
        return _watched(store, path)
    return {name: _watched(array, path) for name, array in _arrays(store)}


def _arrays(group: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, array in group.arrays():
        yield f"{prefix}{name}", array
    for name, inner in group.groups():
        yield from _arrays(inner, f"{prefix}{name}/")


def _watched(array: Any, store: Path) -> Watched:
    _check_codecs(array.metadata.to_dict(), store)
    folder = store / array.path
    metadata = next((folder / name for name in METADATA if (folder / name).exists()), folder)
    watched = Watched(array, Stamp(metadata))
    watched.chunks = array.shards or array.chunks
    return watched


def _check_codecs(metadata: Any, source: Path) -> None:
    """Refuse codecs that unpickle, in the metadata of an array or of all arrays of a store."""
    if isinstance(metadata, list | tuple):
        for item in metadata:
            _check_codecs(item, source)
    if not isinstance(metadata, dict):
        return
    names = [str(metadata.get(key, "")) for key in ("id", "name")]
    codecs = {filter_.get("id") for filter_ in metadata.get("filters") or () if isinstance(filter_, dict)}
    objects = metadata.get("dtype") == "|O" and not (codecs and codecs <= SAFE_OBJECTS)
    if objects or any("pickle" in name.lower() for name in names):
        raise DataFileError(
            f"{str(source)!r} describes Python objects, which are not read because they can run code: write numbers "
            "or text to the store."
        )
    for key, item in metadata.items():
        if key != "attributes" and not key.endswith(".zattrs"):  # what the user wrote about the array
            _check_codecs(item, source)


def missing_chunks(array: Watched, name: str, store: Path) -> list[str]:
    """A note if chunks are not there: they are read as the fill value, also if they were lost."""
    sides = [math.ceil(side / chunk) for side, chunk in zip(array.shape, array.chunks or array.shape, strict=True)]
    stored = array.array.path
    n_files = sum(
        not file.startswith(".") and file != "zarr.json" for _, _, files in os.walk(store / stored) for file in files
    )
    n_missing = math.prod(sides) - n_files
    if n_missing <= 0:
        return []
    return [
        f"{n_missing:,} of the {math.prod(sides):,} chunks of {name!r} are not in the store, and are read as "
        f"{array.array.fill_value}: if these rows should hold other values, write the store again."
    ]
