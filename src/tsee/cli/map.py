"""``tsee map``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsee.cli.options import (
    Reporter,
    check_writable,
    data_argument,
    model_argument,
    output_option,
    placing_options,
    read_options,
    reporting_options,
)
from tsee.cli.streams import received

if TYPE_CHECKING:
    from tsee.serving import ReadOptions

__all__ = ["map_page"]


def _shape(text: str) -> tuple[int, int]:
    """Height and width of pictures, such as 28x28."""
    try:
        height, width = (int(side) for side in text.lower().split("x"))
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a height and a width, such as 28x28.") from None
    return height, width


@click.command("map")
@model_argument
@data_argument
@output_option("PAGE", "Page to write: .html.")
@click.option("--title", help="Title of the page.")
@click.option("--images", type=_shape, metavar="HxW", help="Rows are gray pictures of this size: show them.")
@read_options
@placing_options
@reporting_options
def map_page(
    model: Path,
    data: Path,
    output: Path,
    title: str | None,
    images: tuple[int, int] | None,
    options: ReadOptions,
    placement: str | None,
    device: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Write the map of DATA as one page to look at, search and select in.

    PAGE is one file that opens in any browser, offline. It contains the map, the label and the other columns of DATA
    that are not features, and the network of MODEL. Drop a CSV file on the page to place its rows: they stay in the
    browser.
    """
    import numpy as np
    import scipy.sparse

    from tsee.explorer import write_map_page
    from tsee.explorer.trust import MAX_ROWS
    from tsee.serving import load_model, open_matching, place_blocks

    check_writable(output, "page", (".html", ".htm"))
    reporter = Reporter(quiet, as_json)
    fitted = load_model(model, placement=placement, device=device)
    with open_matching(fitted, received(data), options) as table:
        reporter.note(table.notes, data)
        if images is not None and images[0] * images[1] != table.rows.shape[1]:
            raise click.BadParameter(
                f"{images[0]}x{images[1]} pictures have {images[0] * images[1]} features, but the rows have "
                f"{table.rows.shape[1]}.",
                param_hint="'--images'",
            )
        positions: list[np.ndarray] = []
        pictures: list[Any] = []
        rows: list[Any] = []  # from which the page knows neighbors
        for block in place_blocks(fitted, table, verbose=not quiet):
            positions.append(block.positions)
            if len(table) <= MAX_ROWS:
                rows.append(scipy.sparse.csr_matrix(block.values) if table.rows.sparse else np.asarray(block.values))
            if images is not None:
                dense = block.values.toarray() if table.rows.sparse else np.asarray(block.values)
                pictures.append(dense.reshape(-1, *images))
        columns = table.kept(0, len(table))
        label_first = {name: columns[name] for name in sorted(columns, key=lambda name: name != table.label_name)}
        output.parent.mkdir(parents=True, exist_ok=True)
        write_map_page(
            fitted,
            np.concatenate(positions),
            output,
            columns=label_first or None,
            features=table.feature_names,
            images=np.concatenate(pictures) if pictures else None,
            title=title,
            X=None if not rows else scipy.sparse.vstack(rows) if table.rows.sparse else np.concatenate(rows),
        )
    n_bytes = output.stat().st_size
    reporter.say(f"Wrote {len(table):,} points: {output} ({n_bytes / 1e6:.1f} MB)")
    reporter.result({"page": output, "rows": len(table), "bytes": n_bytes})
