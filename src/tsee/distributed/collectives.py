"""Collectives: sums, maxima, broadcasts and gathers over all processes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, overload

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from tsee.distributed.peers import ADVICE, finish, first_line, pressed, rank, world_size
from tsee.exceptions import PeerError

__all__ = [
    "all_agree",
    "all_gather",
    "all_interrupted",
    "all_max",
    "all_offset",
    "all_sum",
    "all_sum_together",
    "all_sum_with_gradient",
    "all_told",
    "broadcast",
]


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


def all_sum_together(tensors: Sequence[Tensor]) -> list[Tensor]:
    """The sums over all processes of several tensors of one type, in one message; no gradient passes."""
    if world_size() == 1:
        return list(tensors)
    sums = all_sum(torch.cat([values.reshape(-1) for values in tensors]))
    parts = sums.split([values.numel() for values in tensors])
    return [part.view_as(values) for part, values in zip(parts, tensors, strict=True)]


def all_max(value: float) -> float:
    """The largest value over all processes."""
    if world_size() == 1:
        return value
    return float(_reduced(torch.tensor(value, dtype=torch.float64), dist.ReduceOp.MAX))


def all_interrupted() -> bool:
    """Whether Ctrl-C was pressed in any process since the last call; without peers it raises at once instead.

    One process that stopped at its own Ctrl-C would leave the others with a collective that it never enters.
    """
    if world_size() == 1 or not all_max(pressed()):
        return False
    pressed(reset=True)
    return True


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


def all_agree(facts: Mapping[str, Any]) -> None:
    """Raise the same ValueError on all processes if one of the ``facts`` is not the same everywhere.

    Collectives of different sizes, or in a different order, would end the processes without a word.

    Parameters
    ----------
    facts : mapping from str
        What must be the same, by names that can stand in a sentence; values are compared by their text.
    """
    if world_size() == 1:
        return
    text = json.dumps({name: str(value) for name, value in facts.items()}).encode()
    digests = _table(np.frombuffer(hashlib.sha256(text).digest(), dtype=np.int64))
    if bool((digests == digests[0]).all()):
        return
    known = all_told({name: str(value) for name, value in facts.items()})
    for name in dict.fromkeys(name for one in known for name in one):
        for other, one in enumerate(known):
            if one.get(name) != known[0].get(name):
                raise ValueError(
                    f"The processes of the fit differ: {name} is {_shown(known[0].get(name))} in process 0, and "
                    f"{_shown(one.get(name))} in process {other}. Start all of them with the same parameters, columns "
                    "and versions."
                )


def all_told(facts: Any) -> list[Any]:
    """What every process says of itself, in rank order: any values that JSON holds."""
    if world_size() == 1:
        return [facts]
    text = json.dumps(facts).encode()
    lengths = _table(np.array([len(text)]))[:, 0]
    texts = _table(np.frombuffer(text.ljust(int(lengths.max())), dtype=np.uint8))
    return [json.loads(row.numpy().tobytes()) for row in texts]


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


def _table(own: np.ndarray) -> Tensor:
    """One row of numbers from each process."""
    table = torch.zeros(world_size(), len(own), dtype=torch.from_numpy(own.copy()).dtype)
    table[rank()] = torch.from_numpy(own.copy())
    return all_sum(table)


def _shown(value: str | None) -> str:
    text = "not given" if value is None else value
    return text if len(text) <= 60 else f"{text[:57]}..."


def _reduced(values: Tensor, operation: Any) -> Tensor:
    # NCCL only accepts tensors on its own device.
    on = torch.device("cuda", torch.cuda.current_device()) if dist.get_backend() == "nccl" else torch.device("cpu")
    moved = values.detach().to(on, copy=True).contiguous()
    try:
        finish(dist.all_reduce, moved, operation)
    except RuntimeError as error:
        raise PeerError(
            f"Another process of the fit has ended or cannot be reached (noticed by process {rank()}: "
            f"{first_line(error)}): its own message says why, if it had time for one. {ADVICE}"
        ) from error
    return moved.to(values.device)
