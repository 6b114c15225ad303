"""``python -m reproduction``: run the paper's experiments from a checkout, and write the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

FOLDER = Path(__file__).parent
INTERRUPTED = 130  # the exit code that a shell gives to a program ended by Ctrl-C


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("names", nargs=-1, metavar="[EXPERIMENT|all|report]...")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=FOLDER,
    help="Folder of the experiments and their results. [default: reproduction]",
)
@click.option(
    "--docs",
    type=click.Path(file_okay=False, path_type=Path),
    default=FOLDER.parent / "docs",
    help="Folder for the report. [default: docs]",
)
@click.option("--paper", is_flag=True, help="Run the paper's own method instead of tsee's recipe.")
@click.option("--minutes", type=float, help="With --paper: the time limit of a run. [default: in common.toml]")
@click.option("--only", multiple=True, metavar="KEY=VALUE", help="Only runs with this setting, such as data=mnist.")
@click.option("--list", "listed", is_flag=True, help="List the experiments and how many of their runs are done.")
def main(
    names: tuple[str, ...],
    folder: Path,
    docs: Path,
    paper: bool,
    minutes: float | None,
    only: tuple[str, ...],
    listed: bool,
) -> None:
    """Run the paper's experiments, and report on them.

    Finished runs are kept: the same command resumes where it stopped. "report" writes the report from the
    results that exist. Without a name, the experiments are listed.

    With --paper, a run trains as long as its loss falls, within a time limit; a run that was stopped is resumed.
    """
    try:
        _reproduce(names, folder, docs, listed, faithful=paper, minutes=minutes, only=dict(map(_setting, only)))
    except KeyboardInterrupt:
        click.echo(f"Stopped. Finished runs are kept in {folder / 'results'}: the same command resumes from there.")
        click.get_current_context().exit(INTERRUPTED)
    except (ValueError, ImportError, OSError) as error:
        raise click.ClickException(str(error)) from error


def _setting(text: str) -> tuple[str, Any]:
    """A setting given as KEY=VALUE; a value that is a number is one."""
    key, _, value = text.partition("=")
    return key, int(value) if value.isdigit() else value


def _reproduce(names: tuple[str, ...], folder: Path, docs: Path, listed: bool, **chosen: Any) -> None:
    # Imported only here, so that --help does not wait for torch.
    from reproduction.experiments import read_catalog
    from reproduction.runner import check_names, progress, run_experiments

    catalog = read_catalog(folder)
    if listed or not names:
        for line in progress(catalog):
            click.echo(line)
        return
    run_experiments(catalog, check_names(catalog, [name for name in names if name != "report"]), click.echo, **chosen)
    if "report" in names:
        from reproduction.report import write_report

        click.echo(f"The report: {write_report(catalog, docs)}")


if __name__ == "__main__":
    main(prog_name="python -m reproduction")
