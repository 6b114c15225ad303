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


@main.command()
@click.argument("names", nargs=-1, metavar="NAME...|all|report")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("reproduction"),
    show_default=True,
    help="Folder of the experiments and their results.",
)
@click.option(
    "--docs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("docs"),
    show_default=True,
    help="Folder for the report.",
)
@click.option("--list", "listed", is_flag=True, help="Name the experiments, and say how far they are.")
def reproduce(names: tuple[str, ...], folder: Path, docs: Path, listed: bool) -> None:
    """Run the paper's experiments, and report on them.

    What is finished is kept: the same command goes on where it stopped.
    """
    from tsee.reproduction.experiments import read_book
    from tsee.reproduction.runner import check_names, progress, run_experiments

    try:
        book = read_book(folder)
        if listed or not names:
            for line in progress(book):
                click.echo(line)
            return
        chosen = check_names(book, [name for name in names if name != "report"])
        run_experiments(book, chosen, click.echo)
        if "report" in names:
            from tsee.reproduction.report import write_report

            click.echo(f"The report: {write_report(book, docs)}")
    except KeyboardInterrupt:
        click.echo(f"Stopped. Finished runs are kept in {folder / 'results'}: the same command goes on from there.")
        raise SystemExit(130) from None
    except (ValueError, OSError, ImportError) as error:
        raise click.ClickException(str(error)) from error
