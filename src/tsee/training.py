"""The loop that all four methods share: batches, steps, history, and what happens when it goes wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from tsee.batches import Batch, Store, seed_of
from tsee.checkpoint import Checkpoint, State
from tsee.distributed import all_sum, rank, world_size
from tsee.exceptions import TrainingWarning, warn
from tsee.optimizers import ConjugateGradient, scheduled_rate
from tsee.progress import progress_bar

__all__ = ["History", "Loss", "train"]

Loss = Callable[[nn.Module, Batch], Tensor]

# A loss is a divergence of a few nats: an epoch this far above the best one is not noise.
DIVERGENCE = 10.0
BETAS = (0.9, 0.95)


@dataclass
class History:
    """What each epoch came to: its mean loss and its last learning rate; and whether training came to its end."""

    loss: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    complete: bool = True


def train(
    network: nn.Module,
    loss_of: Loss,
    store: Store,
    *,
    n_steps: int,
    max_epochs: int,
    learning_rate: float,
    optimizer: str,
    generator: torch.Generator,
    at_step: Callable[[float], None] = lambda progress: None,
    checkpoint: Checkpoint | None = None,
    state: State | None = None,
    verbose: bool = False,
) -> History:
    """Lower ``loss_of(network, batch)`` over the random batches of a store, ``n_steps`` an epoch, in place.

    ``generator``, and torch's global one, are seeded before each step, so that what is drawn in it hangs on nothing
    that came before. ``at_step`` is told before each step what share of all steps has been taken.

    With a ``checkpoint`` the state is kept at intervals, and training goes on from the ``state``
    that it is given to the same end. Of several processes each has a store of its own rows, and all of them take
    every step together.

    A keyboard interrupt ends training and keeps what was learned; a loss that is not finite or that
    diverges ends it and restores the last good weights. Either says so in a `TrainingWarning`.
    """
    state = state or State()
    before = len(state.loss) - state.epoch  # epochs of an earlier stage
    history = History()
    n_all, n_rows = n_steps * max_epochs, all_sum(store.n_rows)
    parameters = [p for p in network.parameters() if p.requires_grad]
    adam = torch.optim.Adam(parameters, lr=learning_rate, betas=BETAS) if optimizer == "adam" else None
    conjugate = ConjugateGradient(parameters) if optimizer == "cg" else None
    if state.part("network."):
        network.load_state_dict(state.part("network."))
        _restore_adam(adam, state)
    # The weights that an epoch ended with are good once a loss has been computed from them.
    good: tuple[int, dict[str, Tensor]] = (state.epoch, state.part("ended.") or _copy(network))
    ended = good
    lowest = min(state.loss[before:], default=math.inf)
    network.train()
    bar = progress_bar(n_all, "training", "step", verbose=verbose)
    bar.update(state.epoch * n_steps + state.step)

    def keep(epoch: int, step: int, sum_of_losses: float) -> None:
        assert checkpoint is not None
        tensors = {f"network.{name}": value for name, value in network.state_dict().items()}
        tensors |= {f"ended.{name}": value for name, value in ended[1].items()}
        tensors |= _state_of_adam(adam) | {f"fixed.{name}": value for name, value in state.part("fixed.").items()}
        losses, rates = state.loss[:before] + history.loss, state.learning_rate[:before] + history.learning_rate
        checkpoint.write(State(state.stage, epoch, step, sum_of_losses, losses, rates, tensors))

    history.loss, history.learning_rate = state.loss[before:], state.learning_rate[before:]
    batch: Batch | None = None
    try:
        for epoch in range(state.epoch, max_epochs):
            done, sum_of_losses = (state.step, state.total) if epoch == state.epoch else (0, 0.0)
            rate, loss = math.nan, math.nan
            for i, batch in enumerate(store.batches(n_steps, epoch, skip=done), done):
                step = epoch * n_steps + i
                at_step(step / n_all)
                seed = seed_of(store.seed, rank(), state.stage, step)
                if adam is not None:
                    rate = scheduled_rate(step, n_all, learning_rate)
                    loss = _adam_step(adam, rate, network, _seeded(network, loss_of, batch, generator, seed))
                else:
                    assert conjugate is not None
                    loss = conjugate.step(_seeded(network, loss_of, batch, generator, seed))
                if not _sound(loss, lowest):
                    break
                if i == 0:
                    good = ended
                sum_of_losses += loss * all_sum(len(batch))
                bar.update()
                if checkpoint is not None and i + 1 < n_steps and checkpoint.due():
                    keep(epoch, i + 1, sum_of_losses)
            if not _sound(loss, lowest):
                _give_up(network, good, epoch, loss, adam is not None)
                history.complete = False
                break
            lowest = min(lowest, sum_of_losses / n_rows)
            history.loss.append(sum_of_losses / n_rows)
            history.learning_rate.append(rate)
            ended = (epoch + 1, _copy(network))
            bar.set_postfix(epoch=f"{epoch + 1}/{max_epochs}", loss=f"{sum_of_losses / n_rows:.4f}")
            if checkpoint is not None and checkpoint.due():
                keep(epoch + 1, 0, 0.0)
        else:
            if batch is not None:
                with torch.no_grad():
                    loss = float(loss_of(network, batch))
                if not _sound(loss, lowest):
                    _give_up(network, good, max_epochs - 1, loss, adam is not None)
                    history.complete = False
    except KeyboardInterrupt:
        history.complete = False
        if not _finite(network):  # interrupted between a bad step and its check
            network.load_state_dict(good[1])
        warn(
            f"Training was interrupted after {len(history.loss)} of {max_epochs} epochs: "
            "what was learned until then is kept.",
            TrainingWarning,
        )
    finally:
        bar.close()
        network.eval()
    return history


def _adam_step(
    optimizer: torch.optim.Optimizer, rate: float, network: nn.Module, closure: Callable[[], Tensor]
) -> float:
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    loss = closure()
    value = float(loss.detach())
    if math.isfinite(value):
        loss.backward()
        _sum_gradients(network)
        optimizer.step()
    return value


def _sum_gradients(network: nn.Module) -> None:
    """The gradients of all processes, added up in one message."""
    if world_size() == 1:
        return
    gradients = [p.grad for p in network.parameters() if p.grad is not None]
    sums = all_sum(torch.cat([gradient.flatten() for gradient in gradients]))
    for gradient, found in zip(gradients, sums.split([gradient.numel() for gradient in gradients]), strict=True):
        gradient.copy_(found.view_as(gradient))


def _seeded(
    network: nn.Module, loss_of: Loss, batch: Batch, generator: torch.Generator, seed: int
) -> Callable[[], Tensor]:
    """The loss of one batch with the same draws at every call: a line search needs one function, not many."""

    def closure() -> Tensor:
        generator.manual_seed(seed)
        torch.manual_seed(seed)
        return loss_of(network, batch)

    return closure


def _state_of_adam(adam: torch.optim.Adam | None) -> dict[str, Tensor]:
    if adam is None:
        return {}
    moments = adam.state_dict()["state"]
    return {f"adam.{i}.{name}": value for i, kept in moments.items() for name, value in kept.items()}


def _restore_adam(adam: torch.optim.Adam | None, state: State) -> None:
    if adam is None:
        return
    moments: dict[int, dict[str, Tensor]] = {}
    for name, value in state.part("adam.").items():
        i, _, what = name.partition(".")
        moments.setdefault(int(i), {})[what] = value
    adam.load_state_dict({"state": moments, "param_groups": adam.state_dict()["param_groups"]})


def _sound(loss: float, lowest: float) -> bool:
    return math.isfinite(loss) and loss < lowest + DIVERGENCE


def _give_up(network: nn.Module, good: tuple[int, dict[str, Tensor]], epoch: int, loss: float, has_rate: bool) -> None:
    network.load_state_dict(good[1])
    kept = f"those of epoch {good[0]}" if good[0] else "those of the start"
    advice = "a lower learning_rate may help" if has_rate else 'optimizer="adam" may help'
    warn(
        f"Training diverged in epoch {epoch + 1} (loss {loss:.4g}): the last good weights, {kept}, are kept; {advice}.",
        TrainingWarning,
    )


def _copy(network: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in network.state_dict().items()}


def _finite(network: nn.Module) -> bool:
    return all(bool(torch.isfinite(p).all()) for p in network.parameters())
