"""Whether the parts of a saved model fit together.

A checksum only shows that the files are as somebody wrote them. What they say is checked here, before anything is built
from it: every value in its range, every tensor of its type and shape, every number finite.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from tsee.fitted import METHODS, NETWORKS, PLACEMENTS
from tsee.metric import METRICS, PRECOMPUTED, compares_features
from tsee.tables import TableEncoder
from tsee.values import is_count, is_list_of, is_number, is_text, need
from tsee.versions import check_updates
from tsee.words import ACTIVATIONS, NORMALIZATIONS

__all__ = ["check_model"]

KEYS = {"format", "format_version", "tsee_version", "parameters", "method", "n_components", "n_features"}
KEYS |= {"feature_names", "network", "scale", "perplexity", "placement", "history", "checksum", "config_checksum"}
# Models that were saved before there was a choice of metrics, or updates, a known PCA, or one length, do not have them.
LATER_KEYS = {"metric", "row_counts", "updates", "loadings", "length"}
KEYS |= LATER_KEYS

# Each tensor besides the network's: its type and its shape. A size is the same wherever its name stands.
TENSORS: dict[str, tuple[torch.dtype, tuple[str, ...]]] = {
    "preprocessing.mean": (torch.float64, ("features",)),
    "preprocessing.spread": (torch.float64, ("features",)),
    "preprocessing.basis": (torch.float32, ("features", "inputs")),
    "preprocessing.margin": (torch.float32, ("inputs",)),
    "embedding": (torch.float32, ("rows", "components")),
    "exemplars.inputs": (torch.float32, ("exemplars", "inputs")),
    "exemplars.positions": (torch.float32, ("exemplars", "components")),
    "exemplars.indices": (torch.int64, ("exemplars",)),
    "novelty.distances": (torch.float32, ("sample",)),
    "novelty.subsample_distances": (torch.float32, ("sample",)),
}
OF_EXEMPLARS = ("exemplars.inputs", "exemplars.positions", "novelty.distances", "novelty.subsample_distances")
NETWORK = "network."
SCALES = (1e-300, 1e300)
MAX_ORDER = 1000
# Halves of characters, which no file can hold.
SURROGATES = re.compile("[\ud800-\udfff]")


def check_model(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    """Raise ValueError, with a short reason, if a configuration and tensors are not a whole model."""
    need(set(config) - {"table"} | LATER_KEYS == KEYS, "it must have the entries of a model")
    need(is_text(config["tsee_version"]), "'tsee_version' must be text")
    need(isinstance(config["parameters"], dict), "'parameters' must be named")
    method = config["method"]
    need(
        isinstance(method, str) and method in METHODS,
        f"{method!r:.80} is a method that this version of tsee does not know",
    )
    _check_count(config, "n_components")
    _check_count(config, "n_features")
    names = config["feature_names"]
    if names is not None:
        need(is_list_of(names, str), "'feature_names' must be a list of names")
        need(not any(SURROGATES.search(name) for name in names), "'feature_names' must be text that UTF-8 can hold")
        need(len(names) == config["n_features"], "'feature_names' and 'n_features' differ")
    known = (*METRICS, PRECOMPUTED)
    need(config.get("metric", "euclidean") in known, f"'metric' must be one of {known}")
    need(is_number(config["scale"]) and config["scale"] > 0, "'scale' must be a number above 0")
    need(SCALES[0] < config["scale"] < SCALES[1], "'scale' must be between 1e-300 and 1e300")
    length = config.get("length")
    need(length is None or (is_number(length) and 0 < length < SCALES[1]), "'length' must be a number above 0, or null")
    need(is_number(config["perplexity"]) and config["perplexity"] >= 1, "'perplexity' must be at least 1")
    need(config["placement"] in PLACEMENTS, f"'placement' must be one of {PLACEMENTS}")
    _check_history(config["history"])
    need(config.get("loadings") is None or is_text(config["loadings"]), "'loadings' must be text")
    table = {name: tensor for name, tensor in tensors.items() if name.startswith("table.")}
    need(("table" in config) == bool(table), "a table and its tensors belong together")
    if "table" in config:
        width = TableEncoder.from_json(config["table"], table).width
        need(set(table) == {"table.mean", "table.axes"}, "it has other tensors of a table")
        need(width == config["n_features"], "'n_features' is not what the columns of 'table' become")
    if "row_counts" in config or "updates" in config:
        check_updates(config.get("row_counts"), config.get("updates"))
    sizes = _check_tensors(config, {name: tensor for name, tensor in tensors.items() if name not in table})
    # One of several processes has the positions of its own rows only.
    n_rows = sum(config.get("row_counts", [sizes.get("rows", 0)]))
    need(sizes.get("rows", 0) <= n_rows, "'embedding' and 'row_counts' differ")
    _check_exemplars(config, tensors)
    _check_network(config, {name: t for name, t in tensors.items() if name.startswith(NETWORK)}, sizes["inputs"])


def _check_count(config: dict[str, Any], name: str) -> None:
    need(is_count(config.get(name)), f"{name!r} must be an integer of at least 1")


def _check_history(history: Any) -> None:
    entries = {"loss", "learning_rate", "refined", "complete"}
    need(isinstance(history, dict) and set(history) == entries, "'history' must hold losses and rates")
    loss, rates, refined = history["loss"], history["learning_rate"], history["refined"]
    need(isinstance(loss, list) and all(map(is_number, loss)), "the losses in 'history' must be numbers")
    need(
        isinstance(rates, list) and all(rate is None or is_number(rate) for rate in rates),
        "the rates in 'history' must be numbers",
    )
    need(is_list_of(refined, bool) and isinstance(history["complete"], bool), "'history' must say what was refined")
    need(len(loss) == len(rates) == len(refined), "the lists in 'history' differ in length")


def _check_tensors(config: dict[str, Any], tensors: dict[str, Tensor]) -> dict[str, int]:
    """Check all tensors, the network's only for finite values, and return the sizes that they have in common."""
    sizes = {"features": config["n_features"], "components": config["n_components"]}
    need("preprocessing.mean" in tensors, "it lacks 'preprocessing.mean'")
    projected = "preprocessing.basis" in tensors
    need(not projected or not compares_features(config.get("metric", "")), "its metric has no principal components")
    if not projected:
        sizes["inputs"] = sizes["features"]
    for name in [*TENSORS, *tensors]:
        if name not in tensors or name.startswith(NETWORK):
            continue
        need(name in TENSORS, f"{name!r} is not part of a model")
        dtype, shape = TENSORS[name]
        found = tensors[name]
        need(found.dtype == dtype, f"{name!r} has type {found.dtype} instead of {dtype}")
        need(found.ndim == len(shape) and found.numel() > 0, f"{name!r} has shape {tuple(found.shape)}")
        expected = tuple(sizes.setdefault(size, length) for size, length in zip(shape, found.shape, strict=True))
        need(found.shape == expected, f"{name!r} has shape {tuple(found.shape)} instead of {expected}")
    for name, found in tensors.items():
        if found.is_floating_point() or found.is_complex():
            need(bool(torch.isfinite(found).all()), f"{name!r} holds NaN or infinity")
    if "preprocessing.spread" in tensors:
        need(bool((tensors["preprocessing.spread"] > 0).all()), "'preprocessing.spread' must be above 0")
    if "preprocessing.margin" in tensors:
        need(bool((tensors["preprocessing.margin"] >= 0).all()), "'preprocessing.margin' must not be below 0")
    return sizes


def _check_exemplars(config: dict[str, Any], tensors: dict[str, Tensor]) -> None:
    present = [name for name in OF_EXEMPLARS if name in tensors]
    if not METHODS[config["method"]]:
        need(not present and "exemplars.indices" not in tensors, f"a {config['method']} has no exemplars")
        need(config["placement"] == "forward", f"a {config['method']} places rows forward")
        return
    need(len(present) == len(OF_EXEMPLARS), "it lacks exemplars, their positions or their distances")
    for name in OF_EXEMPLARS[2:]:
        distances = tensors[name]
        need(bool((distances[:1] >= 0).all() and (distances.diff() >= 0).all()), f"{name!r} must ascend from 0")
    if "exemplars.indices" in tensors:
        indices = tensors["exemplars.indices"]
        ascending = bool((indices[:1] >= 0).all() and (indices.diff() > 0).all())
        need(ascending, "'exemplars.indices' must ascend from 0")
        n_rows = sum(config.get("row_counts", [int(indices[-1]) + 1]))
        need(int(indices[-1]) < n_rows, "'exemplars.indices' and 'row_counts' differ")


def _check_network(config: dict[str, Any], tensors: dict[str, Tensor], n_inputs: int) -> None:
    """Check what a network is made from, and that the file has as many weights as it takes.

    Otherwise a line of text could ask for gigabytes, or for a hundred thousand layers.
    """
    network = config["network"]
    need(isinstance(network, dict) and set(network) == {"kind", "config"}, "'network' must have a kind and a config")
    kind, made_from = network["kind"], network["config"]
    need(is_text(kind) and len(kind) < 200, "the kind of the network must be text")
    without = config.get("metric") == PRECOMPUTED
    need(without == (kind == "NoNetwork"), "a map has a network, unless it is one of distances")
    if without:
        need(made_from == {} and not tensors and config["placement"] == "refined", "a map of distances has no network")
        return
    if kind not in NETWORKS:
        return  # a network of the user's own, who gives it to `load`
    counts = ["n_inputs", "n_components"] + (["n_factors", "n_hidden", "order"] if kind == "HighOrderNetwork" else [])
    counts += ["n_places"] if isinstance(made_from, dict) and "n_places" in made_from else []
    entries = {*counts, "normalization"} | ({"hidden_layers", "activation"} if kind == "DeepNetwork" else set())
    need(isinstance(made_from, dict) and set(made_from) == entries, f"the config of a {kind} has other entries")
    for name in counts:
        _check_count(made_from, name)
    need(made_from["n_inputs"] == n_inputs, f"the network takes {made_from['n_inputs']} inputs instead of {n_inputs}")
    need(made_from["n_components"] == config["n_components"], "the network's 'n_components' differs")
    normalization = made_from["normalization"]
    need(normalization is None or normalization in _texts(NORMALIZATIONS), "an unknown normalization")
    if kind == "DeepNetwork":
        need(made_from["activation"] in _texts(ACTIVATIONS), "an unknown activation")
        layers = made_from["hidden_layers"]
        need(isinstance(layers, list) and all(map(is_count, layers)), "'hidden_layers' must be integers")
        layers = [*layers, *([made_from["n_places"]] if "n_places" in made_from else [])]
    else:
        need(made_from["order"] <= MAX_ORDER, f"'order' must be at most {MAX_ORDER}")
        layers = [made_from["n_factors"], made_from.get("n_places", made_from["n_hidden"])]
    need(len(layers) <= len(tensors), "the network has more layers than the file")
    widths = [made_from["n_inputs"], *layers, made_from["n_components"]]
    n_weights = sum(fewer * more for fewer, more in pairwise(widths))
    need(n_weights <= sum(t.numel() for t in tensors.values()), "the network has more weights than the file")
    expected = {NETWORK + name: (t.dtype, t.shape) for name, t in NETWORKS[kind](**made_from).state_dict().items()}
    for name in expected | tensors:
        found = (tensors[name].dtype, tensors[name].shape) if name in tensors else None
        need(found == expected.get(name), f"{name!r} is not as the config of the network has it")


def _texts(options: Any) -> list[str]:
    return [option for option in options if isinstance(option, str)]
