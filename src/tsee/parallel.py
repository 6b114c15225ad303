"""This process among its peers: rank, size, and sums over all of them. Alone, each function gives back what it got.

The peers are those of `torch.distributed`, in whatever way they were started: torchrun, Slurm, Ray Train, Accelerate or
Spark's TorchDistributor. Every process calls these functions at the same points and in the same order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = ["count", "first_of", "gathered", "joined", "largest", "rank", "share", "size", "summed", "total"]


@contextmanager
def joined() -> Iterator[None]:
    """Join the peers that torchrun, or what else sets ``RANK`` and ``WORLD_SIZE``, has started, if there are any."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
    if not several or not dist.is_available() or dist.is_initialized():
        yield
        return
    # What it defines takes the group that there is when it is imported for a default argument, and so keeps it, and its
    # threads, to the end, which Python does not always survive. Adam imports it: so before there is a group.
    import_module("torch.distributed.nn.functional")
    store, own_rank, n_processes = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    # Of processes that were started again, those before them have left addresses in the store, where nobody answers.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"tsee/{attempt}", store)  # type: ignore[attr-defined]
    dist.init_process_group(store=store, rank=own_rank, world_size=n_processes)
    try:
        yield
        dist.barrier()  # they part together: one that leaves early may take the others' connections with it
    finally:
        dist.destroy_process_group()


def size() -> int:
    """How many processes there are."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if size() > 1 else 0


def total(values: Tensor) -> Tensor:
    """The sum over all processes, the same on each of them; no gradient."""
    if size() == 1:
        return values
    return _reduced(values, dist.ReduceOp.SUM)


def largest(value: float) -> float:
    """The largest over all processes."""
    if size() == 1:
        return value
    return float(_reduced(torch.tensor(value, dtype=torch.float64), dist.ReduceOp.MAX))


def count(n: int) -> int:
    """The sum of whole numbers over all processes."""
    return n if size() == 1 else int(total(torch.tensor(n)))


def share(n: int) -> tuple[int, int]:
    """Of rows numbered over all processes in the order of their ranks: where those of this one begin, and how many
    there are in all, if this one has ``n``."""
    if size() == 1:
        return 0, n
    counts = torch.zeros(size(), dtype=torch.int64)
    counts[rank()] = n
    counts = total(counts)
    return int(counts[: rank()].sum()), int(counts.sum())


def first_of(values: Tensor) -> Tensor:
    """What the first process has: the others give values of the same shape and type, which are not used."""
    return values if size() == 1 else total(values if rank() == 0 else torch.zeros_like(values))


def summed(values: Tensor) -> Tensor:
    """The sum over all processes, through which gradients pass as they are.

    A loss made of such sums is the same on every process, and the sum over the processes of the gradients that
    each finds is its gradient.
    """
    if size() == 1:
        return values
    found: Tensor = _Summed.apply(values)
    return found


def gathered(rows: Tensor) -> Tensor:
    """The rows of all processes, in the order of their ranks; gradients go back to whose the rows are."""
    if size() == 1:
        return rows
    found: Tensor = _Gathered.apply(rows)
    return found


class _Summed(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return total(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class _Gathered(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        start, n = share(len(rows))
        ctx.mine = slice(start, start + len(rows))
        everyone = rows.new_zeros((n, *rows.shape[1:]))
        everyone[ctx.mine] = rows
        return total(everyone)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return total(gradient)[ctx.mine]


def _reduced(values: Tensor, operation: Any) -> Tensor:
    # NCCL takes tensors of its device only.
    on = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    moved = values.detach().to(on, copy=True).contiguous()
    dist.all_reduce(moved, operation)
    return moved.to(values.device)
