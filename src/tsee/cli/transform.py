"""``tsee transform``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tsee.cli.options import (
    Reporter,
    data_argument,
    model_argument,
    output_option,
    placing_options,
    read_options,
    reporting_options,
)
from tsee.cli.streams import MapTarget, received

if TYPE_CHECKING:
    from tsee.serving import FolderResult, ReadOptions

__all__ = ["transform"]


@click.command()
@model_argument
@data_argument
@output_option("OUT", "File for the map: .csv, .tsv (also .gz), .parquet, .npy, .npz or .h5ad; a folder; or -.")
@click.option("--novelty", is_flag=True, help="Add a column: how unlike the data of fit each row is, from 0 to 1.")
@read_options
@placing_options
@reporting_options
def transform(
    model: Path,
    data: Path,
    output: Path,
    novelty: bool,
    options: ReadOptions,
    placement: str | None,
    device: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Place the rows of DATA on the map of MODEL.

    Columns are matched by name with the features of the model. If they have other names, list them with --columns in
    the model's order. OUT has the identifiers, the label, and the positions as tsee0 and tsee1; an .h5ad file is a
    copy of DATA with the positions as obsm["X_tsee"]. Rows are read, placed and written in blocks, so DATA can be
    larger than memory. OUT appears when it is complete. DATA can be -, standard input, and so can OUT: CSV to standard
    output. With --novelty a column of that name says what share of the
    rows of fit lie nearer to their exemplars: above 0.99, a row hardly belongs on the map.

    If DATA is a folder and OUT has no file extension, OUT becomes a folder with a map for each file of DATA. Files
    that have a map already are skipped. So you can run the command again after it was stopped, and any number of
    workers can run it at once, on one machine or on many that share the disk.
    """
    from tsee.serving import load_model, open_matching, place_folder, place_table
    from tsee.serving.shards import becomes_folder_of_maps

    reporter = Reporter(quiet, as_json, map_to=output)
    start = time.perf_counter()
    target = MapTarget(output)
    if becomes_folder_of_maps(data, target.path):
        result = place_folder(
            model,
            data,
            output,
            options,
            placement=placement,
            novelty=novelty,
            device=device,
            verbose=not quiet,
            on_first_table=lambda table: reporter.note(table.notes, table.source),
        )
        _report_folder(reporter, result, output, time.perf_counter() - start)
        return
    fitted = load_model(model, placement=placement, device=device)
    with open_matching(fitted, received(data), options) as table:
        reporter.note(table.notes, data)
        place_table(fitted, table, target.path, novelty=novelty, verbose=not quiet)
        target.deliver()
        n_rows = len(table)
    seconds = time.perf_counter() - start
    reporter.say(f"Placed {n_rows:,} rows in {seconds:.1f} s: {output}")
    reporter.result({"map": output, "rows": n_rows, "seconds": round(seconds, 3)})


def _report_folder(reporter: Reporter, result: FolderResult, output: Path, seconds: float) -> None:
    from tsee.exceptions import DataFileError

    if result.failures:
        raise DataFileError(
            f"{len(result.failures):,} of the files could not be placed; all the others were. {result.failures[0]}"
        )
    reporter.say(f"Placed {result.n_rows:,} rows of {result.n_placed:,} files in {seconds:.1f} s: {output}")
    if result.n_already_placed or result.n_elsewhere:
        reporter.say(
            f"Files that had a map already: {result.n_already_placed:,}. Files that other workers are placing: "
            f"{result.n_elsewhere:,}."
        )
    counts = {"placed": result.n_placed, "already_placed": result.n_already_placed, "elsewhere": result.n_elsewhere}
    reporter.result({"maps": output, "rows": result.n_rows, "files": counts, "seconds": round(seconds, 3)})
