"""The smallest values of each row of a table, and the memory that tables of scores are made in."""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor

__all__ = ["Scratch", "columns_of_smallest"]


class Scratch(threading.local):
    """Memory that a thread uses again: allocating this much takes longer than the computation inside it."""

    kept: Tensor | None = None

    def take(self, size: int, like: Tensor) -> Tensor:
        """A vector of this size, of the dtype of ``like``, with arbitrary contents."""
        if self.kept is None or len(self.kept) < size or self.kept.dtype != like.dtype:
            self.kept = like.new_empty(size)
        return self.kept[:size]


def columns_of_smallest(values: Tensor, k: int) -> Tensor:
    """The columns of the ``k`` smallest values of each row, unsorted.

    These values lie in the ``k`` groups of smallest minimum.
    """
    rows, columns = values.shape
    # About as many groups as there are columns in the chosen groups. The size is a power of two.
    size = 2 ** round(math.log2(columns / k) / 2)
    if size == 1:
        return values.topk(k, dim=1, largest=False, sorted=False).indices
    n_groups = columns // size
    whole = n_groups * size
    # A group is every n_groups-th column: in this order the minimum is vectorized.
    minima = values[:, :whole].view(rows, size, n_groups).amin(1)
    chosen = minima.topk(k, dim=1, largest=False, sorted=False).indices  # (rows, k)
    members = chosen[:, :, None] + n_groups * torch.arange(size, device=values.device)
    rest = torch.arange(whole, columns, device=values.device).expand(rows, -1)
    left = torch.cat([members.flatten(1), rest], 1)
    position = values.gather(1, left).topk(k, dim=1, largest=False, sorted=False).indices
    return left.gather(1, position)
