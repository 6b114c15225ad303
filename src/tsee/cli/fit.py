"""``tsee fit``."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import click

from tsee.cli.group import INTERRUPTED, noticing_interrupts
from tsee.cli.options import METHODS, PATH, Voice, data_argument, output_option, reading_options, voice_options
from tsee.cli.parameters import ParameterCommand, make_estimator

__all__ = ["fit"]


@click.command(cls=ParameterCommand)
@data_argument
@output_option("MODEL", "Folder for the model; a model that is there is replaced.")
@click.option(
    "--method",
    type=click.Choice(list(METHODS), case_sensitive=False),
    default=next(iter(METHODS)),
    show_default=True,
    help="Method, by its name in the paper.",
)
@click.option("--fast", is_flag=True, help="Settings for speed: a smaller network and a shorter refinement.")
@click.option("--map", "map_", type=PATH, metavar="OUT", help="Also write the map of DATA, as transform does.")
@click.option("--resume", is_flag=True, help="Go on from the state in --checkpoint that a stopped fit has left.")
@reading_options
@voice_options
def fit(
    data: Path,
    output: Path,
    method: str,
    fast: bool,
    map_: Path | None,
    resume: bool,
    label: str | None,
    columns: list[str] | None,
    drop: list[str],
    key: str | None,
    quiet: bool,
    as_json: bool,
    **given: str | None,
) -> None:
    """Learn a map of DATA and save it as the folder MODEL.

    DATA is .csv, .tsv (also .gz), .parquet, .npy, .npz, .h5ad, .h5 or .zarr, or a folder of .parquet or .npy files.
    Every numeric column is a feature, but for the label and identifiers.

    A parameter that is none is chosen by the data, and the seed by chance; help(tsee.DtSEE) in Python has the whole
    text of each. Ctrl-C ends the training: what was learned is saved, and the exit code is 130.

    torchrun --nproc-per-node=N -m tsee fit ... spreads the rows over N processes, on one machine or many.
    """
    from tsee.distributed import joined_peers, rank, world_size
    from tsee.files import MapWriter, open_table
    from tsee.persistence import check_target
    from tsee.serving.placing import check_not_input, write_places

    estimator = make_estimator(method, given, fast=fast, verbose=not quiet)
    _check_resume(estimator.checkpoint, resume)
    check_target(output)
    with joined_peers(), open_table(data, label=label, columns=columns, drop=drop, key=key) as table:
        voice = Voice(quiet or rank() > 0, as_json and rank() == 0)
        voice.note(table.notes, data)
        if map_ is not None:
            check_not_input(map_, table)
            MapWriter(map_, table)  # says now what is wrong with the path
        start = time.perf_counter()
        with noticing_interrupts() as interrupts:
            estimator.fit(_share(table.rows))
        seconds = time.perf_counter() - start
        # That was for this command, not for the model; and one process knows the places of its own rows only.
        estimator.set_params(verbose=False, checkpoint=None)
        if world_size() > 1:
            estimator.__dict__.pop("embedding_", None)
        rows, features = table.rows.shape
        if rank() == 0:
            estimator.save(output)
            if interrupts:
                voice.say(f"Interrupted after {estimator.n_iter_} epochs. What was learned is saved: {output}")
            else:
                voice.say(f"Learned a map of {rows:,} rows with {features:,} features in {seconds:.1f} s: {output}")
            if map_ is not None:
                write_places(estimator, table, map_, fitted=True, quiet=quiet)
                voice.say(f"The map: {map_}")
    voice.result(
        {
            "model": output,
            "map": map_,
            "method": method,
            "rows": rows,
            "features": features,
            "epochs": estimator.n_iter_,
            "loss": estimator.history_["loss"][-1] if estimator.n_iter_ else None,
            "seconds": round(seconds, 3),
            "interrupted": bool(interrupts),
        }
    )
    if interrupts:
        click.get_current_context().exit(INTERRUPTED)


def _share(rows: Any) -> Any:
    """The rows of this process: all of them, or as many as each of its peers has."""
    from tsee.distributed import rank, world_size
    from tsee.files.rows import RowRange

    if world_size() == 1:
        return rows
    return RowRange(rows, len(rows) * rank() // world_size(), len(rows) * (rank() + 1) // world_size())


def _check_resume(checkpoint: str | None, resume: bool) -> None:
    """A state that was left is taken up when told to, or when torchrun starts the command again; never by chance."""
    from tsee.training.checkpoint import FILE_NAME

    if checkpoint is None:
        if resume:
            raise click.UsageError("--resume goes with --checkpoint, the folder of the state to go on from.")
        return
    again = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") != "0"
    if (Path(checkpoint) / FILE_NAME).exists() and not (resume or again):
        raise click.UsageError(
            f"{checkpoint!r} holds the state of a fit that was stopped: add --resume to go on from it, or remove it."
        )
