"""What a fit will do, decided before it starts: seed, device, batches and epochs; no data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch

from tsee.batches import seed_of, steps_per_epoch
from tsee.distributed import all_max, all_offset, broadcast, rank, world_size
from tsee.exceptions import DataWarning, warn

__all__ = ["AUTO_STEPS", "Plan", "resolve_batch_size", "resolve_device", "resolve_epochs", "resolve_perplexity"]

# Training takes a certain number of steps, and has to see the data a few times, but not too often. If the data are so
# large that a few passes over them make many thousand steps, the network has learned what it can by then.
AUTO_STEPS, ENOUGH_STEPS = 1800, 20000
# The epochs of very large data, of data of ordinary size, and of small data.
FEWEST_EPOCHS, MIN_EPOCHS, MAX_EPOCHS = 2, 10, 100
MIN_BATCH, MAX_BATCH = 128, 1024


@dataclass(frozen=True)
class Plan:
    """What a fit will do.

    Attributes
    ----------
    seed : int
        Decides everything that is drawn.
    device : torch.device
        Where the network is trained.
    start, n_rows : int
        The number of this process's first row, and the rows of all processes.
    n_steps, n_epochs : int
        Batches per epoch, and epochs.
    optimizer : {"adam", "cg"}
    learning_rate : float
        The highest learning rate.
    generator : torch.Generator
        For draws that are the same on all processes, in the same order.
    draws : torch.Generator
        For draws that concern only the rows of this process.
    verbose : bool
        Whether this process shows progress.
    """

    seed: int
    device: torch.device
    start: int
    n_rows: int
    n_steps: int
    n_epochs: int
    optimizer: str
    learning_rate: float
    generator: torch.Generator
    draws: torch.Generator
    verbose: bool

    @classmethod
    def make(
        cls,
        n_own_rows: int,
        *,
        seed: int,
        device: torch.device,
        batch_size: int | None,
        n_batches: int,
        max_epochs: int | None,
        optimizer: str,
        learning_rate: float,
        verbose: bool,
    ) -> Plan:
        """Plan for ``n_own_rows`` rows of this process and the rows of its peers. A collective.

        ``n_batches`` is the smallest number of automatic batches per epoch, unless their sizes would be out of bounds.
        """
        seed = int(broadcast(torch.tensor(seed)))
        start, n_rows = all_offset(n_own_rows)
        automatic, n_steps = (
            steps_per_epoch(n_rows, resolve_batch_size(size, n_rows, n_batches)) for size in (None, batch_size)
        )
        if all_max(n_steps - n_own_rows // 2) > 0 and n_rows > n_own_rows:
            raise ValueError(f"A process has too few of the {n_rows} rows for the {n_steps} batches of an epoch.")
        return cls(
            seed=seed,
            device=device,
            start=start,
            n_rows=n_rows,
            n_steps=n_steps,
            n_epochs=resolve_epochs(max_epochs, n_steps, automatic),
            optimizer=optimizer,
            learning_rate=learning_rate,
            generator=torch.Generator().manual_seed(seed),
            draws=torch.Generator().manual_seed(seed_of(seed, rank())),
            verbose=verbose and rank() == 0,
        )

    def identity(self) -> dict[str, Any]:
        """What tells this fit from another one of the same method and data."""
        return {
            "n_rows": self.n_rows,
            "n_processes": world_size(),
            "n_steps": self.n_steps,
            "n_epochs": self.n_epochs,
            "seed": self.seed,
        }


def resolve_device(device: str | torch.device) -> torch.device:
    """The device that a parameter stands for."""
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


def resolve_batch_size(batch_size: int | None, n_rows: int, n_batches: int) -> int:
    """The power of two that makes ``n_batches`` batches, or up to twice as many, within bounds."""
    if batch_size is not None:
        return int(batch_size)
    return min(MAX_BATCH, max(MIN_BATCH, 2 ** int(math.log2(max(1.0, n_rows / n_batches)))))


def resolve_epochs(max_epochs: int | None, n_steps: int, automatic: int) -> int:
    """Enough epochs for enough steps; batches smaller than the automatic ones get the same number of epochs."""
    if max_epochs is not None:
        return int(max_epochs)
    n_steps = min(n_steps, automatic)
    fewest = min(MIN_EPOCHS, max(FEWEST_EPOCHS, math.ceil(ENOUGH_STEPS / n_steps)))
    return min(MAX_EPOCHS, max(fewest, math.ceil(AUTO_STEPS / n_steps)))


def resolve_perplexity(
    perplexity: float, n_candidates: int, candidates: str, default: float | None = None, *, share: float = 1 / 3
) -> float:
    """The perplexity, or a share of the candidates if that is less, with a warning unless it is the default."""
    limit = max(1.0, n_candidates * share)
    if perplexity <= limit or perplexity == default:
        return min(float(perplexity), limit)
    warn(
        f"The 'perplexity' parameter is {perplexity:g}, too large for {n_candidates} {candidates}: "
        f"{limit:.4g} is used.",
        DataWarning,
    )
    return limit
