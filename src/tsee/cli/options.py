"""Arguments and options that several commands share, and how commands report what they did."""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from tsee.cli.streams import DASH, PATH, check_not_dash, spoken

__all__ = [
    "Reporter",
    "check_writable",
    "data_argument",
    "folder_option",
    "json_option",
    "model_argument",
    "names",
    "output_option",
    "placement_option",
    "placing_options",
    "quiet_option",
    "read_options",
    "reporting_options",
]

Function = Callable[..., Any]


def names(text: str) -> list[str]:
    """Names separated by commas; a name that contains a comma is in quotes.

    >>> names('width, "length, in cm"')
    ['width', 'length, in cm']
    """
    return [name for row in csv.reader([text], skipinitialspace=True) for name in row if name]


def _together(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options as one decorator, in the order in which the help lists them."""

    def decorate(function: Function) -> Function:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def folder_option(*names: str, default: str, help: str) -> Callable[[Function], Function]:
    """An option that names a folder."""
    kind = click.Path(file_okay=False, path_type=Path)
    return click.option(*names, type=kind, default=Path(default), show_default=True, help=help)


def output_option(metavar: str, help: str) -> Callable[[Function], Function]:
    """The option that names the output."""
    return click.option("-o", "--output", type=PATH, required=True, metavar=metavar, help=help)


data_argument = click.argument("data", type=PATH)
model_argument = click.argument("model", type=PATH)


def read_options(command: Function) -> Function:
    """The options for reading a data file, which the command gets as one argument ``options``."""

    @functools.wraps(command)
    def collected(
        *, label: str | None, columns: list[str] | None, drop: list[str], key: str | None, **others: Any
    ) -> Any:
        from tsee.serving.matching import ReadOptions

        return command(options=ReadOptions(label, columns, drop, key), **others)

    return _together(
        click.option("--label", metavar="COLUMN", help="Column that is not a feature and goes with the map."),
        click.option("--columns", type=names, metavar="A,B,...", help="The features, in this order."),
        click.option("--drop", type=names, default="", metavar="A,B,...", help="Columns to leave out."),
        click.option(
            "--key",
            help="Which array of an .npz, .h5 or .zarr file; for an .h5ad file X, X_pca, layers/counts and so on.",
        ),
    )(collected)


placement_option = click.option(
    "--placement",
    type=click.Choice(["refined", "forward"]),
    help="Place rows among their nearest exemplars, or by the network alone. [default: the model's]",
)
placing_options = _together(
    placement_option,
    click.option("--device", default="auto", show_default=True, help="Where the network runs, such as cpu or cuda."),
)

quiet_option = click.option("-q", "--quiet", is_flag=True, help="Print only warnings and errors.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
reporting_options = _together(quiet_option, json_option)


class Reporter:
    """Prints what a command did: results to standard output, as text or as one JSON object; notes to standard error.

    Parameters
    ----------
    quiet : bool
        Print only warnings and errors, and the JSON object if it was asked for.
    as_json : bool
        Print a JSON object instead of text.
    map_to : pathlib.Path, optional
        Where the command writes a map. If that is standard output, text goes to standard error, and there can be no
        JSON object.
    """

    def __init__(self, quiet: bool, as_json: bool = False, map_to: Path | None = None) -> None:
        self.quiet, self.as_json, self._map_on_stdout = quiet, as_json, map_to == DASH
        if self.as_json and self._map_on_stdout:
            raise click.UsageError("--json and a map to '-' would mix on standard output: name a file for the map.")

    def note(self, notes: Sequence[str], source: object) -> None:
        """Print what a user should know about a file, in one line."""
        if notes and not self.quiet:
            click.echo(f"Note on {spoken(source)!r}: {' '.join(notes)}", err=True)

    def show(self, lines: Sequence[str]) -> None:
        """Print what was found in a file, before the work."""
        if not self.quiet:
            click.echo("\n".join(f"  {line}" for line in lines), err=True)

    def say(self, *lines: str) -> None:
        """Print text for a person."""
        if not (self.quiet or self.as_json):
            for line in lines:
                click.echo(line, err=self._map_on_stdout)

    def result(self, values: dict[str, Any]) -> None:
        """Print the whole result for a program."""
        if self.as_json:
            click.echo(json.dumps(values, default=str, allow_nan=False))


def check_writable(path: Path, what: str, extensions: Sequence[str]) -> None:
    """Raise an error, before the work, if a picture or page cannot be written to ``path``."""
    from tsee.files.errors import obstacle

    check_not_dash(path, f"a {what}")
    if path.suffix.lower() not in extensions:
        *others, last = extensions
        allowed = f"{', '.join(others)} or {last}" if others else last
        raise click.BadParameter(f"{str(path)!r} must end in {allowed}.", param_hint="'-o' / '--output'")
    reason = "it is a folder" if path.is_dir() else obstacle(path.resolve())
    if reason is not None:
        raise ValueError(f"The {what} cannot be written to {str(path)!r} ({reason}): choose another path.")
