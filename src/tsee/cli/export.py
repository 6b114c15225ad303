"""``tsee export``."""

from __future__ import annotations

from pathlib import Path

import click

from tsee.cli.options import Reporter, model_argument, output_option, quiet_option

__all__ = ["export"]


@click.command()
@model_argument
@output_option("FILE", "File for the network, such as model.onnx.")
@quiet_option
def export(model: Path, output: Path, quiet: bool) -> None:
    """Write the network of MODEL as an ONNX file."""
    from tsee.onnx import export as export_onnx
    from tsee.serving import load_model

    export_onnx(load_model(model, device="cpu"), output)
    Reporter(quiet).say(f"Exported: {output}")
