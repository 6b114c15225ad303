"""This process among its peers. Every function named ``all_...``, and `broadcast`, is a collective.

A collective must be called by every process, at the same points and in the same order: one that is skipped on one
process leaves the others waiting. Without peers each collective returns what it was given.

The peers are the processes of `torch.distributed`, however they were started: torchrun, Slurm, Ray Train, Accelerate or
Spark's TorchDistributor.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any, overload

import torch
import torch.distributed as dist
from torch import Tensor

__all__ = [
    "all_gather",
    "all_max",
    "all_offset",
    "all_sum",
    "all_sum_with_gradient",
    "broadcast",
    "joined_peers",
    "rank",
    "world_size",
]


@contextmanager
def joined_peers() -> Iterator[None]:
    """Join the peers, if any, started by torchrun or anything else that sets ``RANK`` and ``WORLD_SIZE``."""
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ
    if not several or not dist.is_available() or dist.is_initialized():
        yield
        return
    # This module keeps the process group that exists when it is imported as a default argument, and with it the group's
    # threads until exit, which Python does not always survive. Adam imports it: import it before there is a group.
    import_module("torch.distributed.nn.functional")
    store, own_rank, n_processes = next(dist.rendezvous("env://"))  # type: ignore[attr-defined]
    # After a restart the store still holds addresses from the previous attempt, where nobody answers.
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    store = dist.PrefixStore(f"tsee/{attempt}", store)  # type: ignore[attr-defined]
    dist.init_process_group(store=store, rank=own_rank, world_size=n_processes)
    try:
        yield
        dist.barrier()  # all leave together: one that leaves early can break the others' connections
    finally:
        dist.destroy_process_group()


def world_size() -> int:
    """The number of processes."""
    return dist.get_world_size() if dist.is_available() and dist.is_initialized() else 1


def rank() -> int:
    """The number of this process, from 0."""
    return dist.get_rank() if world_size() > 1 else 0


@overload
def all_sum(values: int) -> int: ...
@overload
def all_sum(values: Tensor) -> Tensor: ...
def all_sum(values: int | Tensor) -> int | Tensor:
    """The sum over all processes of an integer or a tensor; no gradient passes."""
    if world_size() == 1:
        return values
    if isinstance(values, Tensor):
        return _reduced(values, dist.ReduceOp.SUM)
    return int(_reduced(torch.tensor(values), dist.ReduceOp.SUM))


def all_max(value: float) -> float:
    """The largest value over all processes."""
    if world_size() == 1:
        return value
    return float(_reduced(torch.tensor(value, dtype=torch.float64), dist.ReduceOp.MAX))


def all_offset(n: int) -> tuple[int, int]:
    """The number of this process's first row, counted over all processes in rank order, and the number of all rows."""
    if world_size() == 1:
        return 0, n
    counts = torch.zeros(world_size(), dtype=torch.int64)
    counts[rank()] = n
    counts = all_sum(counts)
    return int(counts[: rank()].sum()), int(counts.sum())


def broadcast(values: Tensor) -> Tensor:
    """The values of process 0. The others pass a tensor of the same shape and type, which is ignored."""
    return values if world_size() == 1 else all_sum(values if rank() == 0 else torch.zeros_like(values))


def all_sum_with_gradient(values: Tensor) -> Tensor:
    """The sum over all processes, with gradients passed on unchanged.

    A loss made of such sums is the same on every process, and its gradient is the sum over the processes of the
    gradients that each one computes.
    """
    if world_size() == 1:
        return values
    found: Tensor = _Sum.apply(values)
    return found


def all_gather(rows: Tensor) -> Tensor:
    """The rows of all processes in rank order; gradients return to the process that owns the rows."""
    if world_size() == 1:
        return rows
    found: Tensor = _Gather.apply(rows)
    return found


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        return all_sum(values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        start, n = all_offset(len(rows))
        ctx.mine = slice(start, start + len(rows))
        everyone = rows.new_zeros((n, *rows.shape[1:]))
        everyone[ctx.mine] = rows
        return all_sum(everyone)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return all_sum(gradient)[ctx.mine]


def _reduced(values: Tensor, operation: Any) -> Tensor:
    # NCCL only accepts tensors on its own device.
    on = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    moved = values.detach().to(on, copy=True).contiguous()
    dist.all_reduce(moved, operation)
    return moved.to(values.device)
