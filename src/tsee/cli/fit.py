"""``tsee fit``."""

from __future__ import annotations

import time
from pathlib import Path

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
@click.option("--map", "map_", type=PATH, metavar="OUT", help="Also write the map of DATA, as transform does.")
@reading_options
@voice_options
def fit(
    data: Path,
    output: Path,
    method: str,
    map_: Path | None,
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
    """
    from tsee.cli.placing import check_not_input, write_places
    from tsee.files import MapWriter, open_table
    from tsee.persistence import check_target

    voice = Voice(quiet, as_json)
    estimator = make_estimator(method, given, verbose=not quiet)
    check_target(output)
    with open_table(data, label=label, columns=columns, drop=drop, key=key) as table:
        voice.note(table.notes, data)
        if map_ is not None:
            check_not_input(map_, table)
            MapWriter(map_, table)  # says now what is wrong with the path
        start = time.perf_counter()
        with noticing_interrupts() as interrupts:
            estimator.fit(table.rows)
        seconds = time.perf_counter() - start
        estimator.set_params(verbose=False)  # that was for this command, not for the model
        estimator.save(output)
        rows, features = table.rows.shape
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
