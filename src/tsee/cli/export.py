"""``tsee export``."""

from __future__ import annotations

from pathlib import Path

import click

from tsee.cli.options import Reporter, model_argument, output_option, placement_option, reporting_options
from tsee.cli.streams import check_not_dash

__all__ = ["export"]


@click.command()
@model_argument
@output_option("FILE", "File to write, such as model.onnx.")
@placement_option
@reporting_options
def export(model: Path, output: Path, placement: str | None, quiet: bool, as_json: bool) -> None:
    """Write MODEL as an ONNX file, which places rows as transform does.

    The file holds the exemplars if rows are placed among them, and the network if it places them alone.
    """
    from tsee.onnx import export as export_onnx
    from tsee.serving import load_model

    check_not_dash(output, "an ONNX file")
    export_onnx(load_model(model, placement=placement, device="cpu"), output)
    reporter = Reporter(quiet, as_json)
    reporter.say(f"Exported: {output}")
    reporter.result({"model": model, "onnx": output, "bytes": output.stat().st_size})
