"""``tsee export``."""

from __future__ import annotations

from pathlib import Path

import click

from tsee.cli.options import Voice, model_argument, output_option

__all__ = ["export"]


@click.command()
@model_argument
@output_option("FILE", "File for the network, such as model.onnx.")
@click.option("-q", "--quiet", is_flag=True, help="Say nothing but warnings and errors.")
def export(model: Path, output: Path, quiet: bool) -> None:
    """Write the network of MODEL as an ONNX file."""
    from tsee.onnx import export as export_onnx
    from tsee.serving.placing import load_model

    export_onnx(load_model(model, placement=None, device="cpu"), output)
    Voice(quiet).say(f"Exported: {output}")
