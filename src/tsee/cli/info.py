"""``tsee info``."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import click

from tsee.cli.options import Reporter, json_option, model_argument

__all__ = ["info"]


@click.command()
@model_argument
@json_option
def info(model: Path, as_json: bool) -> None:
    """Describe MODEL: its method, its data and its parameters."""
    facts = _facts(model)
    reporter = Reporter(quiet=False, as_json=as_json)
    reporter.result(facts)
    reporter.say(*(f"{name:14}{value}" for name, value in _lines(facts)))


def _facts(folder: Path) -> dict[str, Any]:
    from tsee.estimators import METHODS
    from tsee.estimators.loading import configured
    from tsee.persistence import read_model

    saved = read_model(folder)
    config, tensors = saved.config, saved.tensors
    estimator = type(configured(folder, saved))
    method = next(name for name, known in METHODS.items() if known is estimator)
    defaults = estimator().get_params(deep=False)
    losses = config["history"]["loss"]
    embedding, exemplars = tensors.get("embedding"), tensors.get("exemplars.inputs")
    basis = tensors.get("preprocessing.basis")
    return {
        "model": str(folder),
        "method": method,
        "tsee_version": config["tsee_version"],
        "saved": datetime.fromtimestamp(saved.saved).astimezone().isoformat(timespec="seconds"),
        "rows": None if embedding is None else len(embedding),
        "features": config["n_features"],
        "feature_names": config["feature_names"],
        "inputs": config["n_features"] if basis is None else basis.shape[1],
        "principal_components": basis is not None,
        "dimensions": config["n_components"],
        "exemplars": None if exemplars is None else len(exemplars),
        "placement": config["parameters"].get("placement") or config["placement"],
        "perplexity": config["perplexity"],
        "epochs": len(losses),
        "loss": losses[-1] if losses else None,
        "network": None if config["network"]["kind"] == "NoNetwork" else config["network"]["kind"],
        "parameters": {name: value for name, value in config["parameters"].items() if not _same(value, defaults[name])},
        "bytes": saved.n_bytes,
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
