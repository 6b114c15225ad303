"""``tsee reproduce``."""

from __future__ import annotations

from pathlib import Path

import click

from tsee.cli.group import INTERRUPTED
from tsee.cli.options import folder_option

__all__ = ["reproduce"]


@click.command()
@click.argument("names", nargs=-1, metavar="NAME...|all|report")
@folder_option("--folder", default="reproduction", help="Folder of the experiments and their results.")
@folder_option("--docs", default="docs", help="Folder for the report.")
@click.option("--list", "listed", is_flag=True, help="Name the experiments, and say how far they are.")
def reproduce(names: tuple[str, ...], folder: Path, docs: Path, listed: bool) -> None:
    """Run the paper's experiments, and report on them.

    What is finished is kept: the same command goes on where it stopped.
    """
    from tsee.reproduction.experiments import read_book
    from tsee.reproduction.runner import check_names, progress, run_experiments

    book = read_book(folder)
    if listed or not names:
        for line in progress(book):
            click.echo(line)
        return
    chosen = check_names(book, [name for name in names if name != "report"])
    try:
        run_experiments(book, chosen, click.echo)
    except KeyboardInterrupt:
        click.echo(f"Stopped. Finished runs are kept in {folder / 'results'}: the same command goes on from there.")
        click.get_current_context().exit(INTERRUPTED)
    if "report" in names:
        from tsee.reproduction.report import write_report

        click.echo(f"The report: {write_report(book, docs)}")
