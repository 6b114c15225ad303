"""``tsee plot``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tsee.cli.options import PATH, Voice, output_option, placing_options, reading_options

__all__ = ["plot"]

ENDINGS = (".png", ".svg", ".pdf")


@click.command()
@click.argument("model", type=PATH, metavar="MODEL|MAP")
@click.argument("data", type=PATH, required=False)
@output_option("PICTURE", "Picture to write: .png, .svg or .pdf.")
@click.option("--title", help="Title of the picture.")
@click.option("--point-size", type=float, help="Diameter of a point in 1/72 inch. [default: by their number]")
@reading_options
@placing_options
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
def plot(
    model: Path,
    data: Path | None,
    output: Path,
    title: str | None,
    point_size: float | None,
    label: str | None,
    columns: list[str] | None,
    drop: list[str],
    key: str | None,
    placement: str | None,
    device: str,
    quiet: bool,
) -> None:
    """Draw a map, its points colored by --label.

    The map is that of MODEL's own rows, that of the rows of DATA on it, or a file MAP that transform wrote.
    """
    from tsee.plots import scatter

    _check_picture(output)
    voice = Voice(quiet)
    reading = dict(label=label, columns=columns, drop=drop, key=key)
    if (model / "config.json").exists() or not model.exists():
        places, labels = _map_of_model(model, data, voice, placement, device, reading)
    elif data is not None:
        raise click.UsageError(f"'{model}' is not a model. Of a map, name the file alone; DATA goes with a model.")
    else:
        places, labels = _map_of_file(model, voice, reading)
    if places.shape[1] != 2:
        raise ValueError(f"The map has {places.shape[1]} dimensions, and a picture two: fit with --n-components 2.")
    output.parent.mkdir(parents=True, exist_ok=True)
    scatter(places, labels, path=output, title=title, point_size=point_size)
    voice.say(f"Drew {len(places):,} points: {output}")


def _map_of_model(
    folder: Path, data: Path | None, voice: Voice, placement: str | None, device: str, reading: dict[str, Any]
) -> tuple[Any, Any]:
    import numpy as np

    from tsee.exceptions import ModelError
    from tsee.serving.placing import load_model, open_matching, placed

    model = load_model(folder, placement=placement, device=device)
    if data is None:
        if any(reading.values()):
            raise click.UsageError("A model keeps no labels and columns: name the DATA that has them, after the model.")
        if not hasattr(model, "embedding_"):
            raise ModelError(
                f"The model in {str(folder)!r} keeps no positions of the rows that it was fitted with: name the DATA "
                "to draw, after the model."
            )
        return model.embedding_, None
    with open_matching(model, data, **reading) as table:
        voice.note(table.notes, data)
        return np.concatenate([places for _, _, places in placed(model, table, quiet=voice.quiet)]), table.label


def _map_of_file(path: Path, voice: Voice, reading: dict[str, Any]) -> tuple[Any, Any]:
    from tsee.exceptions import UnnamedColumnsError
    from tsee.files import open_table

    given = {name: value for name, value in reading.items() if name != "columns"}
    columns = reading["columns"] or ["tsee0", "tsee1"]
    if reading["key"] is None and path.suffix.lower() == ".h5ad":
        given["key"] = "X_tsee"
    try:
        table = open_table(path, columns=columns, **given)
    except UnnamedColumnsError:
        table = open_table(path, **given)
    with table:
        block = table.rows[:]
        return block.toarray() if table.rows.sparse else block, table.label


def _check_picture(path: Path) -> None:
    """Say what is wrong with the path before the work, not after it."""
    from tsee.files.errors import obstacle

    if path.suffix.lower() not in ENDINGS:
        raise click.BadParameter(f"{str(path)!r} must end in .png, .svg or .pdf.", param_hint="'-o' / '--output'")
    reason = "it is a folder" if path.is_dir() else obstacle(path.resolve())
    if reason is not None:
        raise ValueError(f"The picture cannot be written to {str(path)!r} ({reason}): choose another place.")
