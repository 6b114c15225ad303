"""``tsee plot``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsee.cli.options import (
    Reporter,
    check_writable,
    output_option,
    placing_options,
    read_options,
    reporting_options,
)
from tsee.cli.streams import DASH, PATH, received

if TYPE_CHECKING:
    from tsee.serving import ReadOptions

__all__ = ["plot"]


@click.command()
@click.argument("model", type=PATH, metavar="MODEL|MAP")
@click.argument("data", type=PATH, required=False)
@output_option("PICTURE", "Picture to write: .png, .svg or .pdf.")
@click.option("--title", help="Title of the picture.")
@click.option("--point-size", type=float, help="Diameter of a point in 1/72 inch. [default: by their number]")
@read_options
@placing_options
@reporting_options
def plot(
    model: Path,
    data: Path | None,
    output: Path,
    title: str | None,
    point_size: float | None,
    options: ReadOptions,
    placement: str | None,
    device: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Draw a map, its points colored by --label.

    With MODEL alone, the map shows the rows that the model was fitted with; with MODEL and DATA, the rows of DATA. MAP
    is a file that transform wrote.
    """
    from tsee.plots import scatter

    check_writable(output, "picture", (".png", ".svg", ".pdf"))
    reporter = Reporter(quiet, as_json)
    if (model / "config.json").exists() or not (model == DASH or model.exists()):
        if data is None:
            positions, labels = _rows_of_fit(model, options), None
        else:
            positions, labels = _rows_of_data(model, data, options, placement, device, reporter)
    elif data is not None:
        raise click.UsageError(f"'{model}' is not a model. To draw a map, name its file alone; DATA goes with a model.")
    else:
        positions, labels = _rows_of_map(received(model), options)
    if positions.shape[1] != 2:
        raise ValueError(
            f"The map has {positions.shape[1]} dimensions, but a picture has two: fit with --n-components 2."
        )
    output.parent.mkdir(parents=True, exist_ok=True)
    scatter(positions, labels, path=output, title=title, point_size=point_size)
    reporter.say(f"Drew {len(positions):,} points: {output}")
    reporter.result({"picture": output, "rows": len(positions)})


def _rows_of_fit(folder: Path, options: ReadOptions) -> Any:
    """The positions that a model keeps."""
    from tsee.exceptions import ModelError
    from tsee.serving import load_model

    if any(dataclasses.astuple(options)):
        raise click.UsageError("A model keeps no labels or columns: name the DATA that has them, after the model.")
    embedding = load_model(folder, device="cpu").embedding
    if embedding is None:
        raise ModelError(
            f"The model in {str(folder)!r} keeps no positions of the rows that it was fitted with: name the DATA to "
            "draw, after the model."
        )
    return embedding


def _rows_of_data(
    folder: Path, data: Path, options: ReadOptions, placement: str | None, device: str, reporter: Reporter
) -> tuple[Any, Any]:
    """The positions of the rows of a file, and their labels."""
    import numpy as np

    from tsee.serving import load_model, open_matching, place_blocks

    fitted = load_model(folder, placement=placement, device=device)
    with open_matching(fitted, received(data), options) as table:
        reporter.note(table.notes, data)
        blocks = place_blocks(fitted, table, verbose=not reporter.quiet)
        return np.concatenate([block.positions for block in blocks]), table.label


def _rows_of_map(path: Path, options: ReadOptions) -> tuple[Any, Any]:
    """The positions and labels in a file that transform wrote."""
    from tsee.exceptions import UnnamedColumnsError

    if options.key is None and path.suffix.lower() == ".h5ad":
        options = dataclasses.replace(options, key="X_tsee")
    try:
        table = dataclasses.replace(options, columns=options.columns or ["tsee0", "tsee1"]).open(path)
    except UnnamedColumnsError:
        table = dataclasses.replace(options, columns=None).open(path)
    with table:
        block = table.rows[:]
        return block.toarray() if table.rows.sparse else block, table.label
