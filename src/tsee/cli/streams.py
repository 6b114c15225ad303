"""``-`` instead of a file: data from standard input, and a map as CSV to standard output."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from tsee.files.scratch import Scratch

__all__ = ["DASH", "PATH", "MapTarget", "check_not_dash", "received", "spoken", "with_spoken_names"]

DASH = Path("-")
INPUT, OUTPUT = "standard input", "standard output"
# What a command keeps of its streams in the context of click.
NAMES, SCRATCH = "tsee.streams.names", "tsee.streams.scratch"
CHUNK = 2**20


class _FilePath(click.Path):
    """A path in which only ``-`` itself is a stream: ``./-`` is a file of that name, which pathlib shortens."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path = super().convert(value, param, ctx)
        return Path.cwd() / path if path == DASH and str(value) != "-" else path


PATH = _FilePath(path_type=Path, allow_dash=True)


def received(path: Path) -> Path:
    """The file to read: ``path``, or for ``-`` a copy of standard input, which is removed when the command ends.

    Rows are read several times and in any order, which a stream does not allow. The copy has a name that ends in .csv:
    like any file, it is of another kind if its content says so.
    """
    from tsee.exceptions import DataFileError
    from tsee.files.scratch import writing

    if path != DASH:
        return path
    if INPUT in _names().values():
        raise click.UsageError("Only one input can be '-': standard input can be read only once.")
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise click.UsageError("Several processes cannot read one standard input: write the data to a file.")
    if sys.stdin is None:
        raise DataFileError("Standard input is closed: give the data to it, or name a file.")
    copy = _temporary(INPUT)
    with open(copy, "wb") as file, writing(copy):
        shutil.copyfileobj(sys.stdin.buffer, file, CHUNK)
    return copy


class MapTarget:
    """Where a map is written: a file, or for ``-`` standard output, which gets it as CSV once it is complete.

    Attributes
    ----------
    path : pathlib.Path
        The file to write, which for ``-`` is a temporary one.
    """

    def __init__(self, path: Path) -> None:
        self._is_stream = path == DASH
        self.path = _temporary(OUTPUT) if self._is_stream else path

    def deliver(self) -> None:
        """Copy the complete map to standard output, if that is where it goes."""
        if self._is_stream:
            out = sys.stdout.buffer
            with open(self.path, "rb") as file:
                shutil.copyfileobj(file, out, CHUNK)
            out.flush()


def check_not_dash(path: Path | None, what: str) -> None:
    """Refuse ``-`` for what cannot go to standard output."""
    if path == DASH:
        raise click.BadParameter(f"Standard output takes a map as CSV, but not {what}.", param_hint="'-o' / '--output'")


def spoken(path: object) -> str:
    """A path as messages name it."""
    return INPUT if path == DASH else str(path)


def with_spoken_names(text: str, ctx: click.Context) -> str:
    """A message in which a temporary file has the name of its stream."""
    for path, name in ctx.meta.get(NAMES, {}).items():
        text = text.replace(path, name)
    return text


def _names() -> dict[str, str]:
    """Temporary files, and the names of their streams; click shares them among the contexts of a command."""
    names: dict[str, str] = click.get_current_context().meta.setdefault(NAMES, {})
    return names


def _temporary(name: str) -> Path:
    """A path for the content of a stream."""
    from tsee.files.scratch import Scratch

    context = click.get_current_context()
    if SCRATCH not in context.meta:
        scratch: Scratch = context.meta.setdefault(SCRATCH, Scratch())
        context.call_on_close(scratch.close)
    path: Path = context.meta[SCRATCH].path(f"{name.replace(' ', '-')}.csv")
    _names()[str(path)] = name
    return path
