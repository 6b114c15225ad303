"""The loop that all four methods share: batches, steps, history, and what happens when it goes wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from tsee.messages import TrainingWarning, warn
from tsee.optimizers import ConjugateGradient, scheduled_rate
from tsee.progress import progress_bar
from tsee.store import Batch, Store

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
    batch_size: int,
    max_epochs: int,
    learning_rate: float,
    optimizer: str,
    at_step: Callable[[float], None] = lambda progress: None,
    verbose: bool = False,
) -> History:
    """Lower ``loss_of(network, batch)`` over the random batches of a store, in place.

    ``at_step`` is told before each step what share of all steps has been taken.

    A keyboard interrupt ends training and keeps what was learned; a loss that is not finite or that
    diverges ends it and restores the last good weights. Either says so in a `TrainingWarning`.
    """
    history = History()
    n_batches = store.n_steps(batch_size)
    n_steps = n_batches * max_epochs
    parameters = [p for p in network.parameters() if p.requires_grad]
    adam = torch.optim.Adam(parameters, lr=learning_rate, betas=BETAS) if optimizer == "adam" else None
    conjugate = ConjugateGradient(parameters) if optimizer == "cg" else None
    # The weights that an epoch ended with are good once a loss has been computed from them.
    good: tuple[int, dict[str, Tensor]] = (0, _copy(network))
    ended = good
    lowest = math.inf
    network.train()
    bar = progress_bar(n_steps, "training", "step", verbose=verbose)
    try:
        for epoch in range(max_epochs):
            total, rate, loss = 0.0, math.nan, math.nan
            for i, batch in enumerate(store.batches(batch_size, epoch)):
                at_step((epoch * n_batches + i) / n_steps)
                if adam is not None:
                    rate = scheduled_rate(epoch * n_batches + i, n_steps, learning_rate)
                    loss = _adam_step(adam, rate, network, loss_of, batch)
                else:
                    assert conjugate is not None
                    loss = conjugate.step(_repeatable(network, loss_of, batch, store.generator))
                if not _sound(loss, lowest):
                    break
                if i == 0:
                    good = ended
                total += loss * len(batch)
                bar.update()
            if not _sound(loss, lowest):
                _give_up(network, good, epoch, loss, adam is not None)
                history.complete = False
                break
            lowest = min(lowest, total / store.n_rows)
            history.loss.append(total / store.n_rows)
            history.learning_rate.append(rate)
            ended = (epoch + 1, _copy(network))
            bar.set_postfix(epoch=f"{epoch + 1}/{max_epochs}", loss=f"{total / store.n_rows:.4f}")
        else:
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
    optimizer: torch.optim.Optimizer,
    rate: float,
    network: nn.Module,
    loss_of: Loss,
    batch: Batch,
) -> float:
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(network, batch)
    value = float(loss.detach())
    if math.isfinite(value):
        loss.backward()
        optimizer.step()
    return value


def _repeatable(network: nn.Module, loss_of: Loss, batch: Batch, generator: torch.Generator) -> Callable[[], Tensor]:
    """The loss of one batch with the same draws at every call: a line search needs one function, not many."""
    state = generator.get_state()

    def closure() -> Tensor:
        generator.set_state(state)
        return loss_of(network, batch)

    return closure


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
