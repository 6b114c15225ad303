"""A fitted map as a page carries it: the network as a list of steps, and exemplars to compare new rows with."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsee.exemplars import Exemplars
from tsee.explorer.packing import Arrays
from tsee.fitted import FittedMap
from tsee.networks import ACTIVATIONS, DeepNetwork, HighOrderNetwork
from tsee.placement import novelty, refined
from tsee.placement.forward import forward_positions
from tsee.tables import TableEncoder

__all__ = ["describe_model"]

# Weights are written in half precision if this moves no test row by more than this share of the map's extent.
MAX_MOVED = 3e-4
TRIED_ROWS = 1000
# A page carries all exemplars if they are at most this many numbers (4 bytes each). Of more exemplars it carries a
# subsample, which is enough to tell how novel a row is.
MAX_EXEMPLAR_NUMBERS = 500_000
# A page knows the distances below which these shares of the known rows lie.
SHARES = np.concatenate([np.linspace(0, 0.9, 19), np.linspace(0.91, 1, 19)])


def describe_model(
    fitted: FittedMap, features: Sequence[str] | None, extent: float
) -> tuple[dict[str, Any] | None, Arrays]:
    """A description and arrays with which a page places new rows; None if it cannot.

    It can neither run a network of the user's own nor one that is missing. Of a table with words or gaps, it has the
    encoders.

    Parameters
    ----------
    fitted : FittedMap
    features : sequence of str or None
        Names of the features; None takes the map's own. A table has its own names.
    extent : float
        The longer side of the map.
    """
    if not isinstance(fitted.network, DeepNetwork | HighOrderNetwork):
        return None, {}
    network = copy.deepcopy(fitted.network).cpu()
    halved = _can_be_halved(network, _typical_inputs(fitted), extent)
    steps, arrays = _steps(network, np.float16 if halved else np.float32)
    preprocessing = fitted.preprocessing
    arrays["mean"] = preprocessing.mean.astype(np.float64)
    spread = getattr(preprocessing, "spread", None)
    if spread is not None:
        arrays["spread"] = spread.astype(np.float64)
    if preprocessing.basis is not None:
        steps.insert(0, {"kind": "linear", "weight": "basis"})
        arrays["basis"] = np.ascontiguousarray(preprocessing.basis.T, dtype=np.float32)
    if preprocessing.margin is not None:
        arrays["margin"] = preprocessing.margin
    names = fitted.feature_names if features is None else features
    description: dict[str, Any] = {
        "features": None if names is None else [str(name) for name in names],
        "nFeatures": fitted.n_features,
        "nInputs": preprocessing.n_inputs,
        "scale": preprocessing.scale,
        "length": preprocessing.length,
        "metric": preprocessing.metric,
        "steps": steps,
        "placement": "forward",
        "forwardOnly": False,
    }
    if fitted.table is not None:
        encoders, own = _describe_table(fitted.table)
        description |= encoders
        arrays |= own
    if fitted.exemplars is not None:
        compared, own = _describe_exemplars(fitted, fitted.exemplars)
        description |= compared
        arrays |= own
    return description, arrays


def _describe_table(table: TableEncoder) -> tuple[dict[str, Any], Arrays]:
    """What a page needs to encode a table as `TableEncoder.encode` does."""
    description = table.to_json()
    columns = [
        {name: column[name] for name in ("name", "kind", "weight", "mark", "encoder")}
        for column in description["columns"]
    ]
    carried = {"columns": columns, "order": description["order"], "named": description["named"]}
    arrays: Arrays = {name: tensor.numpy() for name, tensor in table.tensors().items()}
    return {"table": carried, "features": table.names if table.named else None}, arrays


def _describe_exemplars(fitted: FittedMap, exemplars: Exemplars) -> tuple[dict[str, Any], Arrays]:
    """What a page needs to place rows among exemplars and to judge their novelty."""
    assert exemplars.positions is not None
    assert fitted.novelty_reference is not None
    inputs = exemplars.inputs.cpu().float()
    whole = inputs.numel() <= MAX_EXEMPLAR_NUMBERS
    reference = fitted.novelty_reference
    distances = reference.distances if whole else reference.subsample_distances
    description: dict[str, Any] = {
        "placement": fitted.placement if whole else "forward",
        "forwardOnly": fitted.placement == "refined" and not whole,
        "refined": {
            "neighbors": min(refined.NEIGHBORS, len(inputs)),
            "precision": refined.precision_among(len(inputs)),
            "rounding": refined.ROUNDING,
            "settling": list(refined.SETTLING),
        },
        "noveltyNeighbors": novelty.NEIGHBORS,
    }
    arrays: Arrays = {
        "exemplarInputs": (inputs if whole else novelty.subsample(inputs)).numpy(),
        "noveltyDistances": np.quantile(distances.cpu().numpy(), SHARES).astype(np.float32),
        "noveltyShares": SHARES.astype(np.float32),
    }
    if whole:
        arrays["exemplarPositions"] = exemplars.positions.cpu().numpy().astype(np.float32)
    return description, arrays


def _steps(network: DeepNetwork | HighOrderNetwork, dtype: type[np.floating[Any]]) -> tuple[list[Any], Arrays]:
    """The network's steps in order, and their weights."""
    choice: list[nn.Module] = [nn.Softmax(1)] if network.n_places else []
    if isinstance(network, DeepNetwork):
        modules: list[Any] = [*network.layers, *choice, network.readout]
    else:
        modules = [network.factors, int(network.order), network.power_norm, network.mixing]
        modules += [*network.hidden_norm, *(choice or [nn.Sigmoid()]), network.readout]
    names: dict[type, str] = {kind: name for name, kind in ACTIVATIONS.items()} | {nn.Softmax: "softmax"}
    steps: list[Any] = []
    arrays: Arrays = {}
    for index, module in enumerate(modules):
        step: dict[str, Any]
        if isinstance(module, int):
            step = {"kind": "power", "order": module}
        elif isinstance(module, nn.Identity):
            continue
        elif isinstance(module, nn.Linear | nn.LayerNorm):
            step = {"kind": "linear" if isinstance(module, nn.Linear) else "layer norm"}
            if isinstance(module, nn.LayerNorm):
                step["epsilon"] = module.eps
            for name, weights in module.named_parameters():
                key = step[name] = f"step{index}.{name}"
                arrays[key] = weights.detach().numpy().astype(dtype)
        else:
            step = {"kind": names[type(module)]}
        steps.append(step)
    return steps, arrays


def _typical_inputs(fitted: FittedMap) -> Tensor:
    """Inputs similar to the inputs that the network was trained on."""
    generator = torch.Generator().manual_seed(0)
    if fitted.exemplars is None:
        return torch.randn(TRIED_ROWS, fitted.preprocessing.n_inputs, generator=generator)
    known = fitted.exemplars.inputs
    return known[torch.randperm(len(known), generator=generator)[:TRIED_ROWS]].cpu().float()


def _can_be_halved(network: nn.Module, inputs: Tensor, extent: float) -> bool:
    """Whether weights in half precision are precise enough."""
    rounded = copy.deepcopy(network)
    with torch.no_grad():
        for weights in rounded.parameters():
            weights.copy_(weights.half().float())
    moved = (forward_positions(network, inputs) - forward_positions(rounded, inputs)).abs().max()
    return bool(moved <= MAX_MOVED * extent)
