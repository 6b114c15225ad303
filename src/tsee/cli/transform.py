"""``tsee transform``."""

from __future__ import annotations

import time
from pathlib import Path

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


@click.command()
@model_argument
@data_argument
@output_option("OUT", "File for the map: .csv, .tsv (also .gz), .parquet, .npy, .npz or .h5ad.")
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
    """
    from tsee.cli.placing import check_not_input, load_model, open_matching, write_places
    from tsee.files import MapWriter

    if novelty and not output.name.lower().endswith((".csv", ".tsv", ".csv.gz", ".tsv.gz", ".parquet")):
        raise click.UsageError("--novelty adds a column, and so goes with text and Parquet only.")
    voice = Voice(quiet, as_json)
    estimator = load_model(model, placement=placement, device=device)
    with open_matching(estimator, data, label=label, columns=columns, drop=drop, key=key) as table:
        voice.note(table.notes, data)
        check_not_input(output, table)
        MapWriter(output, table)  # says now what is wrong with the path
        if novelty and not hasattr(estimator, "novelty"):
            raise ValueError(f"A {type(estimator).__name__} has no exemplars by which to tell --novelty.")
        start = time.perf_counter()
        write_places(estimator, table, output, novelty=novelty, quiet=quiet)
        seconds, rows = time.perf_counter() - start, len(table)
    voice.say(f"Placed {rows:,} rows in {seconds:.1f} s: {output}")
    voice.result({"map": output, "rows": rows, "seconds": round(seconds, 3)})
