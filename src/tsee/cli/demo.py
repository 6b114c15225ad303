"""``tsee demo``."""

from __future__ import annotations

from pathlib import Path

import click

from tsee.cli.options import Reporter, folder_option, reporting_options
from tsee.cli.streams import check_not_dash

__all__ = ["demo"]


@click.command(short_help="Map the bundled digits, and measure how good the maps are.")
@folder_option("-o", "--output", default="tsee-demo", help="Folder for what it writes.")
@reporting_options
def demo(output: Path, quiet: bool, as_json: bool) -> None:
    """Map the bundled digits, with a third held out, and measure how good the maps are.

    Writes a model, a picture, a page, and the digits as CSV files, to try the other commands on.
    """
    from tsee.demo import run_demo
    from tsee.persistence import check_target

    check_not_dash(output, "a model, which is a folder")
    check_target(output / "model")
    reporter = Reporter(quiet, as_json)
    reporter.result(run_demo(output, reporter.say))
