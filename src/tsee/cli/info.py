"""``tsee info``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsee.cli.options import Reporter, json_option, model_argument
from tsee.words import METHODS

if TYPE_CHECKING:
    from tsee.persistence import ModelFiles

__all__ = ["info"]


@click.command()
@model_argument
@json_option
def info(model: Path, as_json: bool) -> None:
    """Describe MODEL: its method, its data and its parameters."""
    from tsee.persistence import inconsistent, read_files, read_model

    files = read_files(model)
    reporter = Reporter(quiet=False, as_json=as_json)
    try:
        facts = {"model": str(model), **_described(files)}
        lines = [f"{name:14}{value}" for name, value in _lines(facts)]
        if not "".join(lines).isprintable():
            raise ValueError("it holds characters that cannot be printed")
        reporter.result(facts)
    except (AttributeError, IndexError, KeyError, OverflowError, StopIteration, TypeError, ValueError) as error:
        read_model(model)  # checks what the files say, number by number, and says what is wrong
        raise inconsistent(model, error) from error
    reporter.say(*lines)


def _described(files: ModelFiles) -> dict[str, Any]:
    """What the configuration and the shapes of the tensors say, without torch: that takes longer than to read them."""
    from tsee.estimators.signatures import defaults_of

    config, shapes = files.config, files.shapes()
    method = next(name for name, cls in METHODS.items() if cls == config["method"])
    defaults = defaults_of(method)
    losses = config["history"]["loss"]
    embedding, exemplars = shapes.get("embedding"), shapes.get("exemplars.inputs")
    basis = shapes.get("preprocessing.basis")
    return {
        "method": method,
        "tsee_version": config["tsee_version"],
        "saved": datetime.fromtimestamp(files.saved).astimezone().isoformat(timespec="seconds"),
        "rows": None if embedding is None else embedding[0],
        "features": config["n_features"],
        "feature_names": config["feature_names"],
        "inputs": config["n_features"] if basis is None else basis[1],
        "principal_components": basis is not None,
        "dimensions": config["n_components"],
        "exemplars": None if exemplars is None else exemplars[0],
        "placement": config["parameters"].get("placement") or config["placement"],
        "perplexity": config["perplexity"],
        "epochs": len(losses),
        "loss": losses[-1] if losses else None,
        "network": None if config["network"]["kind"] == "NoNetwork" else config["network"]["kind"],
        "parameters": {name: value for name, value in config["parameters"].items() if not _same(value, defaults[name])},
        "bytes": files.n_bytes,
    }


def _lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    names = facts["feature_names"]
    features = f"{facts['features']:,}" + ("" if names is None else f", {names[0]!r} to {names[-1]!r}")
    loss = "" if facts["loss"] is None else f", the last with loss {facts['loss']:.4g}"
    lines = {
        "method": facts["method"],
        "saved": f"{facts['saved'].replace('T', ' ')} by tsee {facts['tsee_version']}",
        "rows": "unknown: their positions were not kept" if facts["rows"] is None else f"{facts['rows']:,}",
        "features": features,
        "inputs": f"{facts['inputs']:,}" + (" principal components" if facts["principal_components"] else ""),
        "dimensions": str(facts["dimensions"]),
        "exemplars": None if facts["exemplars"] is None else f"{facts['exemplars']:,}",
        "placement": facts["placement"],
        "perplexity": f"{facts['perplexity']:g}",
        "epochs": f"{facts['epochs']}{loss}",
        "network": facts["network"],
        "parameters": ", ".join(f"{name}={value!r}" for name, value in facts["parameters"].items()) or "the defaults",
        "size on disk": _size(facts["bytes"]),
    }
    return [(name, value) for name, value in lines.items() if value is not None]


def _same(saved: Any, default: Any) -> bool:
    """Whether a saved parameter has its default value; JSON has turned tuples into lists."""
    return bool(saved == (list(default) if isinstance(default, tuple) else default))


def _size(n_bytes: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if n_bytes < 1000:
            return f"{n_bytes:.3g} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.3g} GB"
