"""Arguments and options that several commands share, and how they speak."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

__all__ = [
    "METHODS",
    "PATH",
    "Voice",
    "data_argument",
    "folder_option",
    "model_argument",
    "output_option",
    "placing_options",
    "reading_options",
    "voice_options",
]

# The methods by the paper's names, and the estimators that implement them.
METHODS = {"dt-see": "DtSEE", "hot-see": "HotSEE", "pt-sne": "PtSNE", "hot-sne": "HotSNE"}
PATH = click.Path(path_type=Path)

Function = Callable[..., Any]


def _names(text: str) -> list[str]:
    """Names with commas between; one that has a comma in it stands in quotes.

    >>> _names('width, "length, in cm"')
    ['width', 'length, in cm']
    """
    return [name for row in csv.reader([text], skipinitialspace=True) for name in row if name]


def _together(*options: Callable[[Function], Function]) -> Callable[[Function], Function]:
    """Several options as one decorator, in the order in which the help names them."""

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
    """The option that names what is written."""
    return click.option("-o", "--output", type=PATH, required=True, metavar=metavar, help=help)


data_argument = click.argument("data", type=PATH)
model_argument = click.argument("model", type=PATH)

reading_options = _together(
    click.option("--label", metavar="COLUMN", help="Column that is no feature and goes beside the map."),
    click.option("--columns", type=_names, metavar="A,B,...", help="The features, in this order."),
    click.option("--drop", type=_names, default="", metavar="A,B,...", help="Columns to leave out altogether."),
    click.option(
        "--key",
        help="Which array of an .npz, .h5 or .zarr file; of an .h5ad file X, X_pca, layers/counts and the like.",
    ),
)

placing_options = _together(
    click.option(
        "--placement",
        type=click.Choice(["refined", "forward"]),
        help="Place rows among their nearest exemplars, or by the network alone. [default: the model's]",
    ),
    click.option("--device", default="auto", show_default=True, help="Where the network runs, such as cpu or cuda."),
)

voice_options = _together(
    click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors."),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON object in place of text."),
)


class Voice:
    """How a command speaks: results to standard output, as text or as one JSON object; notes to standard error.

    Parameters
    ----------
    quiet : bool
        Only warnings and errors, and the JSON object if asked for.
    as_json : bool
        A JSON object in place of text.
    """

    def __init__(self, quiet: bool, as_json: bool = False) -> None:
        self.quiet, self.as_json = quiet, as_json

    def note(self, notes: Sequence[str], source: object) -> None:
        """What should be known of a file, in one line."""
        if notes and not self.quiet:
            click.echo(f"Note on {str(source)!r}: {' '.join(notes)}", err=True)

    def say(self, *lines: str) -> None:
        """Text for a human."""
        if not (self.quiet or self.as_json):
            for line in lines:
                click.echo(line)

    def result(self, values: dict[str, Any]) -> None:
        """The whole result for a machine."""
        if self.as_json:
            click.echo(json.dumps(values, default=str, allow_nan=False))
