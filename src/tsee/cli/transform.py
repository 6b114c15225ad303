"""``tsee transform``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from tsee.cli.options import (
    Voice,
    data_argument,
    model_argument,
    output_option,
    placing_options,
    reading_options,
    voice_options,
)

__all__ = ["transform"]

# The endings of maps that can have a column more.
WITH_COLUMNS = (".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")


@click.command()
@model_argument
@data_argument
@output_option("OUT", "File for the map: .csv, .tsv (also .gz), .parquet, .npy, .npz or .h5ad; or a folder.")
@click.option("--novelty", is_flag=True, help="Add how unlike the data of fit each row is, from 0 to 1.")
@reading_options
@placing_options
@voice_options
def transform(
    model: Path,
    data: Path,
    output: Path,
    novelty: bool,
    label: str | None,
    columns: list[str] | None,
    drop: list[str],
    key: str | None,
    placement: str | None,
    device: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Place the rows of DATA on the map of MODEL.

    The columns are matched by name with those that the model was fitted with; --columns names others, in that order.
    OUT has the identifiers, the label, and the places as tsee0 and tsee1; an .h5ad file is a copy of DATA with the
    places as obsm["X_tsee"]. Rows are read, placed and written in blocks, so DATA may be larger than memory. OUT is
    there whole or not at all. With --novelty a column of that name says what share of the rows that the model was
    fitted with lie nearer to their exemplars: above 0.99, a row hardly belongs on the map.

    Where DATA is a folder and OUT a name without an ending, OUT becomes a folder with a map for each file of DATA.
    Those that are there already are left alone, so the command can be given again after it was stopped, and any
    number of workers can be given it at once, on one machine or on many that share the disk.
    """
    from tsee.serving.placing import load_model
    from tsee.serving.shards import is_folder_of_maps

    voice = Voice(quiet, as_json)
    estimator = load_model(model, placement=placement, device=device)
    if novelty and not hasattr(estimator, "novelty"):
        raise ValueError(f"A {type(estimator).__name__} has no exemplars by which to tell --novelty.")
    reading: dict[str, Any] = {"label": label, "columns": columns, "drop": drop, "key": key}
    start = time.perf_counter()
    if is_folder_of_maps(data, output):
        _place_folder(voice, estimator, model, data, output, reading, novelty=novelty, start=start)
        return
    rows = _place_file(voice, estimator, data, output, reading, novelty=novelty, quiet=quiet)
    seconds = time.perf_counter() - start
    voice.say(f"Placed {rows:,} rows in {seconds:.1f} s: {output}")
    voice.result({"map": output, "rows": rows, "seconds": round(seconds, 3)})


def _place_file(
    voice: Voice, estimator: Any, data: Path, output: Path, reading: dict[str, Any], *, novelty: bool, quiet: bool
) -> int:
    """Write the map of one file, and give the number of its rows."""
    from tsee.exceptions import DataFileError
    from tsee.files import MapWriter
    from tsee.serving.placing import check_not_input, open_matching, write_places

    if novelty and not output.name.lower().endswith(WITH_COLUMNS):
        raise DataFileError(f"--novelty adds a column, which {str(output)!r} has no place for: use text or Parquet.")
    with open_matching(estimator, data, **reading) as table:
        voice.note(table.notes, data)
        check_not_input(output, table)
        MapWriter(output, table)  # says now what is wrong with the path
        write_places(estimator, table, output, novelty=novelty, quiet=quiet)
        return len(table)


def _place_folder(
    voice: Voice,
    estimator: Any,
    model: Path,
    data: Path,
    output: Path,
    reading: dict[str, Any],
    *,
    novelty: bool,
    start: float,
) -> None:
    """Write a map for each file of a folder."""
    from tsee.exceptions import DataFileError
    from tsee.serving.shards import fingerprint, place_shards

    notes = iter([voice])  # of the first file only: the others are alike
    silent = Voice(quiet=True)
    placement = getattr(estimator, "placement", None) or getattr(estimator, "placement_", "forward")
    made_by = {"model": fingerprint(model), "placement": placement, "novelty": novelty, **reading}

    def place(file: Path, target: Path) -> int:
        return _place_file(next(notes, silent), estimator, file, target, reading, novelty=novelty, quiet=True)

    done = place_shards(place, data, output, made_by, quiet=voice.quiet)
    seconds = time.perf_counter() - start
    if done.failed:
        raise DataFileError(f"{len(done.failed)} of the files could not be placed, all others are. {done.failed[0]}")
    voice.say(f"Placed {done.rows:,} rows of {done.placed:,} files in {seconds:.1f} s: {output}")
    if done.done_before or done.elsewhere:
        voice.say(f"There already: {done.done_before:,} files. In the hands of other workers: {done.elsewhere:,}.")
    counts = {"placed": done.placed, "there_already": done.done_before, "in_other_hands": done.elsewhere}
    voice.result({"maps": output, "rows": done.rows, "files": counts, "seconds": round(seconds, 3)})
