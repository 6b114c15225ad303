"""The command ``tsee``: argument handling only; the library does the work.

Each command imports what it needs inside its function, so that help and completion need no torch.
"""

from __future__ import annotations

import click

from tsee.cli.demo import demo
from tsee.cli.evaluate import evaluate
from tsee.cli.export import export
from tsee.cli.fit import fit
from tsee.cli.group import Commands
from tsee.cli.info import info
from tsee.cli.map import map_page
from tsee.cli.plot import plot
from tsee.cli.transform import transform
from tsee.cli.update import update

__all__ = ["main"]


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nEach command has --help. Before a command: --version, --debug for tracebacks.\n"
    "Exit codes: 0 done, 1 failed (a sentence says why), 2 wrong usage, 130 Ctrl-C.\n"
    'Completion: eval "$(_TSEE_COMPLETE=bash_source tsee)" (or zsh, fish).',
)
@click.version_option(package_name="tsee")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
def main(debug: bool) -> None:
    """Maps of high-dimensional data that also take new rows.

    \b
      tsee fit flowers.csv --label kind -o model
      tsee transform model more-flowers.csv -o map.csv
      tsee plot model flowers.csv --label kind -o map.png
    """


# In the order in which they are used; the help keeps it.
for command in (fit, transform, update, evaluate, plot, map_page, info, export, demo):
    main.add_command(command)
