"""How a fit goes: its plan, what is read of each row, the two stages of training, and what parameters come to."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsee.batches import Columns, MemoryStore, Store, new_store, seed_of
from tsee.checkpoint import State
from tsee.data import apply_padded, blocks
from tsee.distributed import all_max, broadcast, rank
from tsee.exceptions import DataWarning, TrainingWarning, warn
from tsee.networks import FlatteningNetwork, Network
from tsee.preprocessing import Inputs
from tsee.progress import progress_bar
from tsee.training import History, Loss

__all__ = [
    "PLACED_ROWS",
    "TRANSFORM_ROWS",
    "Objective",
    "Plan",
    "check_network",
    "has_bfloat16",
    "learn_in_stages",
    "places_by",
    "quick_layers",
    "read_rows",
    "resolve_batch_size",
    "resolve_device",
    "resolve_epochs",
    "resolve_perplexity",
]

# Training is a matter of steps, of seeing the data a few times at the least, and not too often. A network has learned
# what it can from so many rows that a few passes over them make many thousand steps.
AUTO_STEPS, MANY_STEPS = 1800, 20000
LEAST_EPOCHS, MIN_EPOCHS, MAX_EPOCHS = 2, 10, 100
MIN_BATCH, MAX_BATCH = 128, 1024
# Rows that pass the network together, and rows whose inputs are in memory when new rows are placed.
TRANSFORM_ROWS = 1024
PLACED_ROWS = 2**14
# Numbers that are read at a time, and the rows these are at the least and at the most.
READ_ENTRIES, LEAST_READ, MOST_READ = 2**22, 2**10, 2**14
# The share of training after which the spare dimensions are gone.
FLAT_AFTER = 0.5

# The share of training that is left for the network to learn places that were found without it.
SECOND_SHARE = 0.5


@dataclass
class Objective:
    """What a subclass trains for.

    Attributes
    ----------
    loss : callable
        The loss of a batch of rows as a function of the network.
    columns : callable
        What the loss needs of each row besides its inputs, as a function of a block of inputs and its slice. It is
        called with consecutive blocks.
    fitted : dict
        Attributes of the fitted estimator.
    second : callable, optional
        Given the trained network, and places if they were found before, finds better places than its own, and returns
        attributes that hold them, ``"_exemplar_places"`` among them, and the loss by which the network learns them,
        None if it was interrupted.
    """

    loss: Loss
    columns: Callable[[Tensor, slice], Columns]
    fitted: dict[str, Any]
    second: Callable[[nn.Module, Tensor | None], tuple[dict[str, Any], Loss | None]] | None = None


@dataclass
class Plan:
    """What a fit has to go by.

    Attributes
    ----------
    inputs : Inputs
        The rows of this process.
    start, n_rows : int
        Where they begin among the rows of all processes, and how many these are.
    n_steps, n_epochs : int
        Batches an epoch, and epochs.
    device : torch.device
        Where the network is trained.
    seed : int
        What everything that is drawn hangs on.
    generator : torch.Generator
        For what all processes draw alike, in the same order.
    draws : torch.Generator
        For what is drawn for the rows of this process.
    """

    inputs: Inputs
    start: int
    n_rows: int
    n_steps: int
    n_epochs: int
    device: torch.device
    seed: int
    generator: torch.Generator
    draws: torch.Generator


def read_rows(plan: Plan, objective: Objective, *, on_disk: bool, verbose: bool) -> Store:
    """What training needs of each row, read once."""
    store: Store | None = None
    inputs, varies = plan.inputs, False
    first = broadcast(inputs[0:1])
    size = max(LEAST_READ, min(MOST_READ, READ_ENTRIES // inputs.shape[1]))
    with progress_bar(len(inputs), "reading", "row", verbose=verbose) as bar:
        for rows in blocks(len(inputs), size):
            block = inputs[rows]
            varies = varies or bool((block != first).any())
            columns = {"inputs": block, **objective.columns(block, rows)}
            if store is None:
                store = new_store(len(inputs), columns, seed_of(plan.seed, rank()), on_disk=on_disk)
                if isinstance(store, MemoryStore) and inputs.cheap_to_recompute:
                    store.made["inputs"] = inputs.take
            store.append(columns)
            bar.update(len(block))
    assert store is not None
    if not all_max(varies):
        warn("All rows of X are equal: the map is a single place.", DataWarning)
    return store


def learn_in_stages(
    learn: Callable[..., History], network: nn.Module, objective: Objective, plan: Plan, state: State | None
) -> tuple[nn.Module, History, int, dict[str, Any]]:
    """Train in two stages, the second with places that were found after the first; or go on from where it was.

    Returns the network, the history, how many epochs of it are those of the first stage, and what was found.
    """
    flattening = network if isinstance(network, FlatteningNetwork) else None

    def flatten(progress: float) -> None:
        if flattening is not None:
            flattening.height = max(0.0, 1 - progress / FLAT_AFTER)

    n_second = int(SECOND_SHARE * plan.n_epochs) if objective.second is not None else 0
    if state is None or state.stage == 0:
        history = learn(network, objective.loss, max_epochs=plan.n_epochs - n_second, at_step=flatten, state=state)
        places = None
    else:
        before = len(state.loss) - state.epoch
        history = History(state.loss[:before], state.learning_rate[:before])
        places = state.tensors["fixed.places"]
    if flattening is not None:
        network = flattening.flat()
    if objective.second is None or not history.complete:
        return network, history, len(history.loss), {}
    try:
        found, second = objective.second(network, places)
    except KeyboardInterrupt:
        warn("The refinement was interrupted: the places are the network's.", TrainingWarning)
        history.complete = False
        return network, history, len(history.loss), {}
    n_first = len(history.loss)
    if second is None:
        history.complete = False
    elif n_second:
        if places is None:
            fixed = {"fixed.places": found["_exemplar_places"]}
            state = State(1, loss=history.loss, learning_rate=history.learning_rate, tensors=fixed)
        rest = learn(network, second, max_epochs=n_second, state=state)
        loss, rates = history.loss + rest.loss, history.learning_rate + rest.learning_rate
        history = History(loss, rates, rest.complete)
    return network, history, n_first, found


@torch.inference_mode()
def places_by(network: nn.Module, inputs: Tensor) -> np.ndarray:
    """The places that a network gives to inputs, each of them whatever the others are."""
    device = next((p.device for p in network.parameters()), torch.device("cpu"))
    parts = [apply_padded(network, inputs[rows].to(device)).cpu() for rows in blocks(len(inputs), TRANSFORM_ROWS)]
    return torch.cat(parts).float().numpy()


def resolve_device(device: str | torch.device) -> torch.device:
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        resolved = torch.device(device)
        torch.empty(1, device=resolved)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"The 'device' parameter is {device!r}, which torch cannot use here "
            f'({str(error).splitlines()[0]}): use "auto" or "cpu".'
        ) from None
    return resolved


@contextmanager
def quick_layers(network: nn.Module, device: torch.device) -> Iterator[None]:
    """The hidden layers of our networks in bfloat16 while training, where the processor is faster with it.

    The draws of a step are a far greater noise than the rounding.
    """
    ours = [part for part in network.modules() if isinstance(part, Network)]
    quick = has_bfloat16(device)
    try:
        for part in ours:
            part.quick = quick
        yield
    finally:
        for part in ours:
            part.quick = False


def has_bfloat16(device: torch.device) -> bool:
    """Whether products of bfloat16 are known to be about twice as fast as those of float32, or more."""
    if device.type == "cuda":
        with torch.cuda.device(device):
            return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    capabilities: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # not in every torch
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16"))


def resolve_batch_size(batch_size: int | None, n_rows: int, n_batches: int) -> int:
    """The power of two of which there are so many batches or up to twice as many, within bounds."""
    if batch_size is not None:
        return int(batch_size)
    return min(MAX_BATCH, max(MIN_BATCH, 2 ** int(math.log2(max(1.0, n_rows / n_batches)))))


def resolve_epochs(max_epochs: int | None, n_steps: int, automatic: int) -> int:
    """As many as make enough steps; for batches smaller than the ``automatic`` steps', as many as these would have."""
    if max_epochs is not None:
        return int(max_epochs)
    n_steps = min(n_steps, automatic)
    few = min(MIN_EPOCHS, max(LEAST_EPOCHS, math.ceil(MANY_STEPS / n_steps)))
    return min(MAX_EPOCHS, max(few, math.ceil(AUTO_STEPS / n_steps)))


def resolve_perplexity(perplexity: float, n_candidates: int, candidates: str) -> float:
    """The perplexity, or a third of the candidates where it is more than that."""
    limit = max(1.0, n_candidates / 3)
    if perplexity <= limit:
        return float(perplexity)
    warn(
        f"The 'perplexity' parameter is {perplexity:g}, too large for {n_candidates} {candidates}: "
        f"{limit:.4g} is used.",
        DataWarning,
    )
    return limit


def check_network(network: nn.Module, rows: Tensor, n_components: int) -> None:
    """Say that a network of the user's does not fit before an hour of neighbors has been computed."""
    if not any(p.requires_grad for p in network.parameters()):
        raise ValueError("The 'network' parameter must have weights to train; it has none.")
    try:
        with torch.no_grad():
            places = network.eval()(rows)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ValueError(
            f"The 'network' parameter must take rows of {rows.shape[1]} inputs (see n_inputs), "
            f"but it failed on them: {str(error).splitlines()[0]}."
        ) from error
    shape = tuple(places.shape) if isinstance(places, Tensor) else type(places).__name__
    if shape != (len(rows), n_components):
        raise ValueError(
            f"The 'network' parameter must map rows to n_components={n_components} numbers, "
            f"but it maps {tuple(rows.shape)} to {shape}."
        )
