"""The training loop that all methods share."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tsee.batches import Batch, Store, seed_of
from tsee.distributed import all_interrupted, all_sum, rank
from tsee.progress import progress_bar
from tsee.training.optimizers import scheduled_rate
from tsee.training.run import Run

__all__ = ["Loss", "train"]

Loss = Callable[[nn.Module, Batch], Tensor]


def train(
    run: Run,
    loss_of: Loss,
    store: Store,
    *,
    learning_rate: float,
    generator: torch.Generator,
    number: int = 0,
    prepare: Callable[[Batch], Batch] = lambda batch: batch,
    before_step: Callable[[float], None] = lambda progress: None,
    after_step: Callable[[Run], None] = lambda run: None,
    verbose: bool = False,
) -> bool:
    """Lower ``loss_of(network, batch)`` over the random batches of a store, and say whether training reached its end.

    With several processes, each one has a store of its own rows, and all of them take every step together.

    A keyboard interrupt ends training and keeps what was learned. A loss that is not finite or that diverges ends it
    and restores the last good weights, with a `TrainingWarning`.

    Parameters
    ----------
    run : Run
        The network, and where its training stands.
    loss_of : callable
        The loss of a batch that was prepared.
    store : Store
        The rows.
    learning_rate : float
        The highest rate.
    generator : torch.Generator
        What the loss draws from. It and torch's global generator are seeded before each step, so that the draws of a
        step do not depend on anything that came before.
    number : int
        Makes the draws of two trainings differ.
    prepare : callable
        Called once with each batch, for what all evaluations of its loss share.
    before_step : callable
        Called before each step with the share of all steps that have been taken.
    after_step : callable
        Called after each step with the run, which counts it already.
    verbose : bool
        Whether to show progress.
    """
    network = run.network
    network.train()
    ready: Batch | None = None
    with progress_bar(run.n_steps * run.n_epochs, "training", "step", verbose=verbose) as bar:
        bar.update(run.steps_done)
        try:
            while run.epoch < run.n_epochs:
                for batch in store.batches(run.n_steps, run.epoch, skip=run.step):
                    before_step(run.progress)
                    run.rate = scheduled_rate(run.steps_done, run.n_steps * run.n_epochs, learning_rate)
                    seed = seed_of(store.seed, rank(), number, run.steps_done)
                    generator.manual_seed(seed)
                    ready = prepare(batch)
                    loss = run.optimizer.step(_seeded(network, loss_of, ready, generator, seed), run.rate)
                    if not run.is_sound(loss):
                        run.roll_back(loss)
                        return False
                    run.count_step(loss, all_sum(len(batch)))
                    bar.update()
                    if all_interrupted():
                        raise KeyboardInterrupt
                    if run.step < run.n_steps:
                        after_step(run)
                run.end_epoch()
                bar.set_postfix(epoch=f"{run.epoch}/{run.n_epochs}", loss=f"{run.loss[-1]:.4f}")
                after_step(run)
            if ready is not None:  # the last weights are good if their loss is
                with torch.no_grad():
                    loss = float(loss_of(network, ready))
                if not run.is_sound(loss):
                    run.roll_back(loss)
                    return False
        except KeyboardInterrupt:
            run.interrupt()
            return False
        finally:
            network.eval()
    return True


def _seeded(
    network: nn.Module, loss_of: Loss, batch: Batch, generator: torch.Generator, seed: int
) -> Callable[[], Tensor]:
    """The loss of one batch with the same draws at every call: a line search needs one function, not many."""

    def closure() -> Tensor:
        generator.manual_seed(seed)
        _seed_global(seed)
        return loss_of(network, batch)

    return closure


def _seed_global(seed: int) -> None:
    """What ``torch.manual_seed`` does, without the note on the call that it writes for each kind of missing device."""
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
    if torch.backends.mps.is_available():
        torch.mps.manual_seed(seed)
