"""``tsee fit``."""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsee.cli.group import INTERRUPTED, noticing_interrupts
from tsee.cli.options import Reporter, data_argument, names, read_options, reporting_options
from tsee.cli.parameters import ParameterCommand, make_estimator
from tsee.cli.streams import PATH, MapTarget, check_not_dash, received
from tsee.words import METHODS

if TYPE_CHECKING:
    from tsee.serving import ReadOptions

__all__ = ["check_resume", "fit", "share_of_rows"]


@click.command(cls=ParameterCommand)
@data_argument
@click.option(
    "-o",
    "--output",
    type=PATH,
    metavar="MODEL",
    help="Folder for the model; a model that is there is replaced. Needed except with --dry-run.",
)
@click.option(
    "--method",
    type=click.Choice(list(METHODS), case_sensitive=False),
    default="dt-see",
    show_default=True,
    help="Method, by its name in the paper.",
)
@click.option("--fast", is_flag=True, help="Settings for speed: a smaller network and a shorter layout.")
@click.option(
    "--paper", is_flag=True, help="Settings of the paper, and no others; parameters given here override them."
)
@click.option("--map", "map_", type=PATH, metavar="OUT", help="Also write the map of DATA, as transform does.")
@click.option(
    "--neighbors",
    type=PATH,
    metavar="FILE",
    help="Keep these neighbors of the rows: a sparse matrix of their distances, .npz of scipy. For dt-see and hot-see.",
)
@click.option("--resume", is_flag=True, help="Continue a stopped fit from the state that it left in --checkpoint.")
@click.option("--categorical", type=names, default="", metavar="A,B,...", help="Columns that hold categories.")
@click.option("--numeric", type=names, default="", metavar="A,B,...", help="Columns that hold numbers.")
@click.option("--weight", multiple=True, metavar="COLUMN=NUMBER", help="A factor on how much a column counts.")
@click.option("--dry-run", is_flag=True, help="Print what the columns are taken for, and stop.")
@read_options
@reporting_options
def fit(
    data: Path,
    output: Path | None,
    method: str,
    fast: bool,
    paper: bool,
    map_: Path | None,
    neighbors: Path | None,
    resume: bool,
    categorical: list[str],
    numeric: list[str],
    weight: tuple[str, ...],
    dry_run: bool,
    options: ReadOptions,
    quiet: bool,
    as_json: bool,
    **given: str | None,
) -> None:
    """Learn a map of DATA and save it as the folder MODEL.

    DATA is .csv, .tsv (also .gz), .parquet, .npy, .npz, .h5ad, .h5 or .zarr, or a folder of .parquet or .npy files;
    - is standard input.
    Every column is a feature, except the label and identifiers: numbers, categories, dates, tags (a|b|c) and short
    text, each recognized by its content, with or without gaps. A table that has only numbers keeps their units.

    A parameter that is none is chosen from the data, and the seed at random; help(tsee.DtSEE) in Python describes each
    parameter in full. Ctrl-C ends the training: what was learned is saved, and the exit code is 130.

    torchrun --nproc-per-node=N -m tsee fit ... spreads the rows over N processes, on one machine or many.
    """
    from tsee.distributed import all_max, joined_peers, rank, world_size
    from tsee.files import write_map
    from tsee.files.identifiers import advised, options_to_keep
    from tsee.fitted import fitted_map
    from tsee.persistence import check_target
    from tsee.serving import place_table
    from tsee.serving.matching import open_for_fit
    from tsee.serving.placing import check_map_path
    from tsee.tables import EncodedRows, as_frame, check_columns, learn_table

    estimator = make_estimator(method, given, fast=fast, paper=paper, verbose=not quiet)
    if neighbors is not None and not hasattr(estimator, "exemplars"):
        raise click.UsageError(f"--neighbors is for dt-see and hot-see, not for {method}: choose another --method.")
    check_resume(estimator.checkpoint, resume)
    if output is None and not dry_run:
        raise click.UsageError("Missing option '-o' / '--output': the folder for the model.")
    if output is not None:
        check_not_dash(output, "a model, which is a folder")
        check_target(output)
    target = None if map_ is None else MapTarget(map_)
    estimator.set_params(columns=_choices(categorical, numeric, weight) or None)
    choices = check_columns(estimator.columns)
    with joined_peers(), open_for_fit(received(data), options, choices, estimator.missing) as table:
        reporter = Reporter(quiet or rank() > 0, as_json and rank() == 0, map_to=map_)
        # A column that was not chosen by --columns is not missed.
        missed = table.identifiers if options.columns is None else []
        reporter.note(advised(table.notes, missed, options_to_keep), data)
        encoder = table.rows.encoder if isinstance(table.rows, EncodedRows) else None
        if dry_run:
            found = encoder or learn_table(as_frame(table))
            reporter.say(*found.lines())
            reporter.result({"rows": len(table.rows), **found.described()})
            return
        assert output is not None
        if encoder is not None:
            reporter.show(encoder.lines())
        if getattr(estimator, "supervised", 0) and table.label_name is None:
            raise click.UsageError("--supervised needs --label, the column of the labels.")
        if target is not None:
            check_map_path(target.path, table)
        start = time.perf_counter()
        with noticing_interrupts() as interrupts:
            estimator.fit(share_of_rows(table.rows), _labels(estimator, table), **_given(neighbors, len(table.rows)))
        interrupted = bool(all_max(len(interrupts)))  # in any process
        seconds = time.perf_counter() - start
        # These two were for this command and are not for the model.
        estimator.set_params(verbose=False, checkpoint=None)
        if table.loadings is not None:
            estimator._adopt(dataclasses.replace(estimator.map_, loadings=table.loadings))
        if world_size() > 1:  # each process has the positions of its own rows only
            estimator._adopt(dataclasses.replace(estimator.map_, embedding=None))
        fitted = fitted_map(estimator)
        rows, features = len(table.rows), estimator.n_features_in_
        losses = fitted.history.loss
        if rank() == 0:
            estimator.save(output)
            if interrupted:
                reporter.say(f"Interrupted after {len(losses)} epochs. What was learned is saved: {output}")
            else:
                described = fitted.preprocessing.describe()
                reporter.say(f"Learned a map of {rows:,} rows by {described} in {seconds:.1f} s: {output}")
            if target is not None:
                if fitted.embedding is not None:
                    write_map(target.path, fitted.embedding, table)
                else:
                    place_table(fitted, table, target.path, verbose=not quiet)
                target.deliver()
                reporter.say(f"The map: {map_}")
    reporter.result(
        {
            "model": output,
            "map": map_,
            "method": method,
            "rows": rows,
            "features": features,
            "inputs": fitted.preprocessing.n_inputs,
            "epochs": len(losses),
            "loss": losses[-1] if losses else None,
            "seconds": round(seconds, 3),
            "interrupted": interrupted,
        }
    )
    if interrupted:
        click.get_current_context().exit(INTERRUPTED)


def share_of_rows(rows: Any) -> Any:
    """The rows of this process: all rows, or an equal share if there are other processes."""
    from tsee.distributed import rank, world_size
    from tsee.files.rows import RowRange

    if world_size() == 1:
        return rows
    return RowRange(rows, len(rows) * rank() // world_size(), len(rows) * (rank() + 1) // world_size())


def _choices(categorical: list[str], numeric: list[str], weight: tuple[str, ...]) -> dict[str, Any]:
    """The 'columns' parameter from options."""
    kinds: dict[str, list[Any]] = {name: ["category"] for name in categorical}
    for name in numeric:
        if name in kinds:
            raise click.UsageError(f"Column {name!r} is in --categorical and in --numeric: choose one of the two.")
        kinds[name] = ["number"]
    for item in weight:
        name, _, number = item.rpartition("=")
        try:
            kinds.setdefault(name, []).append(float(number))
        except ValueError as error:
            raise click.UsageError(f"--weight needs COLUMN=NUMBER, such as age=2. Got {item!r} instead.") from error
    return {name: tuple(parts) for name, parts in kinds.items()}


def _given(path: Path | None, n_rows: int) -> dict[str, Any]:
    """The neighbors of the rows of this process, if there is a file of them, as an argument of ``fit``."""
    from tsee.files import open_table
    from tsee.files.rows import SparseRows

    if path is None:
        return {}
    with open_table(received(path)) as table:
        rows = table.rows
        if not isinstance(rows, SparseRows) or len(rows) != n_rows:
            raise click.UsageError(
                f"--neighbors must be a sparse matrix with a line for each of the {n_rows:,} rows of DATA, written by "
                f"scipy.sparse.save_npz. {str(path)!r} is another kind of data, or has {len(rows):,} lines."
            )
        share = share_of_rows(rows)
        return {"neighbors": share[0 : len(share)]}


def _labels(estimator: Any, table: Any) -> Any:
    """The labels of the rows of this process, if they count."""
    from tsee.distributed import rank, world_size

    if not getattr(estimator, "supervised", 0):
        return None
    n = len(table.rows)
    return table.label[n * rank() // world_size() : n * (rank() + 1) // world_size()]


def check_resume(checkpoint: str | None, resume: bool) -> None:
    """Continue from a state only with --resume, or if torchrun has restarted the command; never by accident."""
    from tsee.training.checkpoint import holds_state

    if checkpoint is None:
        if resume:
            raise click.UsageError("--resume needs --checkpoint, the folder of the state to continue from.")
        return
    restarted = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    if holds_state(Path(checkpoint)) and not (resume or restarted):
        raise click.UsageError(
            f"{checkpoint!r} holds the state of a fit that was stopped: add --resume to continue it, or remove it."
        )
