"""``tsee map``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tsee.cli.options import Voice, data_argument, model_argument, output_option, placing_options, reading_options

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
@reading_options
@placing_options
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
def map_page(
    model: Path,
    data: Path,
    output: Path,
    title: str | None,
    images: tuple[int, int] | None,
    label: str | None,
    columns: list[str] | None,
    drop: list[str],
    key: str | None,
    placement: str | None,
    device: str,
    quiet: bool,
) -> None:
    """Write the map of DATA as one page to look at, search and select in.

    PAGE is one file that opens in any browser, offline. It has the label and what was kept aside of DATA, and the
    network of MODEL: rows of a CSV file that is dropped on it are placed there, and leave it no more than the map does.
    """
    import numpy as np

    from tsee.explorer import write_map_page
    from tsee.files.errors import obstacle
    from tsee.serving.placing import load_model, open_matching, placed

    if output.suffix.lower() not in (".html", ".htm"):
        raise click.BadParameter(f"{str(output)!r} must end in .html.", param_hint="'-o' / '--output'")
    reason = "it is a folder" if output.is_dir() else obstacle(output.resolve())
    if reason is not None:
        raise ValueError(f"The page cannot be written to {str(output)!r} ({reason}): choose another place.")
    voice = Voice(quiet)
    estimator = load_model(model, placement=placement, device=device)
    with open_matching(estimator, data, label=label, columns=columns, drop=drop, key=key) as table:
        voice.note(table.notes, data)
        if images is not None and images[0] * images[1] != table.rows.shape[1]:
            raise click.BadParameter(
                f"{images[0]}x{images[1]} pictures have {images[0] * images[1]} features, and the rows have "
                f"{table.rows.shape[1]}.",
                param_hint="'--images'",
            )
        places: list[np.ndarray] = []
        pictures: list[Any] = []
        for _, block, found in placed(estimator, table, quiet=quiet):
            places.append(found)
            if images is not None:
                dense = block.toarray() if table.rows.sparse else np.asarray(block)
                pictures.append(dense.reshape(-1, *images))
        known = table.kept(0, len(table))
        ordered = {name: known[name] for name in sorted(known, key=lambda name: name != table.label_name)}
        output.parent.mkdir(parents=True, exist_ok=True)
        write_map_page(
            estimator,
            np.concatenate(places),
            output,
            columns=ordered or None,
            features=table.feature_names,
            images=np.concatenate(pictures) if pictures else None,
            title=title,
        )
    voice.say(f"Wrote {len(table):,} points: {output} ({output.stat().st_size / 1e6:.1f} MB)")
