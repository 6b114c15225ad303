"""The command ``tsee``: argument handling only; the work is the library's."""

from __future__ import annotations

from pathlib import Path

import click

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tsee")
def main() -> None:
    """Maps of high-dimensional data that take new points."""


@main.command()
@click.option(
    "-o",
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("tsee-demo"),
    show_default=True,
    help="Folder for the picture and the model.",
)
def demo(output: Path) -> None:
    """Map the bundled digits, part of them held out, and say how good the maps are."""
    from tsee.demo import run_demo

    try:
        run_demo(output, click.echo)
    except ValueError as error:
        raise click.ClickException(str(error)) from error
