"""A fitted estimator as a page carries it: the network as a list of steps, and exemplars to compare new rows with."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsee.explorer.packing import Arrays
from tsee.fitted import FittedMap
from tsee.networks import ACTIVATIONS, DeepNetwork, HighOrderNetwork
from tsee.placement.forward import forward_positions
from tsee.placement.novelty import NEIGHBORS, subsample
from tsee.placement.refined import NEIGHBORS as PLACE_NEIGHBORS
from tsee.placement.refined import PRECISION, ROUNDING, SETTLING

__all__ = ["describe_model"]

# Weights are written in half precision where this moves no place by more than this share of the map.
MOVED = 3e-4
TRIED_ROWS = 1000
# Exemplars are carried whole up to this many numbers (4 bytes each); of more, only enough to tell what is new.
MOST_EXEMPLAR_NUMBERS = 500_000
# Of the distances of known rows, what is kept: the distance that each of these shares is below.
SHARES = np.concatenate([np.linspace(0, 0.9, 19), np.linspace(0.91, 1, 19)])


def describe_model(
    fitted: FittedMap, features: Sequence[str] | None, extent: float
) -> tuple[dict[str, Any] | None, Arrays]:
    """What a page needs to place new rows; None where the network is one of the user's."""
    network = fitted.network
    if not isinstance(network, DeepNetwork | HighOrderNetwork):
        return None, {}
    names = fitted.feature_names if features is None else features
    preprocessing = fitted.preprocessing
    network = copy.deepcopy(network).cpu()
    halved = _halves(network, _some_inputs(fitted), extent)
    steps, arrays = _steps(network, np.float16 if halved else np.float32)
    arrays["mean"] = preprocessing.mean.astype(np.float64)
    if preprocessing.basis is not None:
        steps.insert(0, {"kind": "linear", "weight": "basis"})
        arrays["basis"] = np.ascontiguousarray(preprocessing.basis.T, dtype=np.float32)
    description: dict[str, Any] = {
        "features": None if names is None else [str(name) for name in names],
        "nFeatures": fitted.n_features,
        "nInputs": preprocessing.n_inputs,
        "scale": preprocessing.scale,
        "steps": steps,
        "placement": "forward",
        "placedElsewhere": False,
    }
    if fitted.exemplars is not None:
        compared, own = _describe_exemplars(fitted)
        description |= compared
        arrays |= own
    return description, arrays


def _describe_exemplars(fitted: FittedMap) -> tuple[dict[str, Any], Arrays]:
    exemplars, novelty = fitted.exemplars, fitted.novelty_reference
    assert exemplars is not None
    assert exemplars.positions is not None
    assert novelty is not None
    inputs, wanted = exemplars.inputs, fitted.placement
    whole = inputs.numel() <= MOST_EXEMPLAR_NUMBERS
    distances = novelty.distances if whole else novelty.subsample_distances
    description: dict[str, Any] = {
        "placement": "refined" if wanted == "refined" and whole else "forward",
        "placedElsewhere": wanted == "refined" and not whole,
        "among": {
            "neighbors": min(PLACE_NEIGHBORS, len(inputs)),
            "precision": PRECISION,
            "rounding": ROUNDING,
            "settling": list(SETTLING),
        },
        "noveltyNeighbors": NEIGHBORS,
    }
    arrays: Arrays = {}
    if whole:
        arrays["exemplarPlaces"] = exemplars.positions.numpy()
    arrays["noveltyDistances"] = np.quantile(distances.numpy(), SHARES).astype(np.float32)
    arrays["noveltyShares"] = SHARES.astype(np.float32)
    arrays["exemplarInputs"] = (inputs if whole else subsample(inputs)).numpy()
    return description, arrays


def _steps(network: DeepNetwork | HighOrderNetwork, dtype: type[np.floating[Any]]) -> tuple[list[Any], Arrays]:
    """The network's steps in order, and their weights."""
    if isinstance(network, DeepNetwork):
        modules: list[Any] = [*network.layers, network.readout]
    else:
        modules = [network.factors, int(network.order), network.power_norm, network.mixing]
        modules += [*network.hidden_norm, nn.Sigmoid(), network.readout]
    names = {kind: name for name, kind in ACTIVATIONS.items()}
    steps: list[Any] = []
    arrays: Arrays = {}
    for place, module in enumerate(modules):
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
                key = step[name] = f"step{place}.{name}"
                arrays[key] = weights.detach().numpy().astype(dtype)
        else:
            step = {"kind": names[type(module)]}
        steps.append(step)
    return steps, arrays


def _some_inputs(fitted: FittedMap) -> Tensor:
    """Inputs like those that the network was trained on."""
    generator = torch.Generator().manual_seed(0)
    if fitted.exemplars is None:
        return torch.randn(TRIED_ROWS, fitted.preprocessing.n_inputs, generator=generator)
    known = fitted.exemplars.inputs
    return known[torch.randperm(len(known), generator=generator)[:TRIED_ROWS]].cpu().float()


def _halves(network: nn.Module, inputs: Tensor, extent: float) -> bool:
    """Whether the network may be written in half precision."""
    rounded = copy.deepcopy(network)
    with torch.no_grad():
        for weights in rounded.parameters():
            weights.copy_(weights.half().float())
    moved = (forward_positions(network, inputs) - forward_positions(rounded, inputs)).abs().max()
    return bool(moved <= MOVED * extent)
