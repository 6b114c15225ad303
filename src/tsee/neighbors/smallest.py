"""The smallest values of each row of a table, and the memory that tables of scores are made in."""

from __future__ import annotations

import math
import threading

import torch
from torch import Tensor

__all__ = ["Scratch", "columns_of_smallest", "smallest_in_order"]


class Scratch(threading.local):
    """Memory that a thread uses again: allocating this much takes longer than the computation inside it."""

    def __init__(self) -> None:
        self.kept: dict[torch.dtype, Tensor] = {}

    def take(self, size: int, like: Tensor) -> Tensor:
        """A vector of this size, of the dtype of ``like``, with arbitrary contents."""
        kept = self.kept.get(like.dtype)
        if kept is None or len(kept) < size:
            kept = self.kept[like.dtype] = like.new_empty(size)
        return kept[:size]


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


def smallest_in_order(values: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The columns of the ``k`` smallest values of each row, and these values, in order; of equal ones the first."""
    # One more than wanted, to see whether it ties with the last.
    found = columns_of_smallest(values, min(k + 1, values.shape[1])).sort(dim=1).values
    smallest, order = values.gather(1, found).sort(dim=1, stable=True)
    found = found.gather(1, order)  # (rows, k + 1)
    if found.shape[1] > k:
        tied = torch.nonzero(smallest[:, k - 1] == smallest[:, k]).squeeze(1)
        if len(tied):
            found[tied, :k] = _first_of_tied(values[tied], smallest[tied, k - 1 : k], k)
    return found[:, :k], smallest[:, :k]


def _first_of_tied(distances: Tensor, last: Tensor, k: int) -> Tensor:
    """The columns of the k smallest of each row in their order, where more than k are not above the ``last``."""
    row, column = torch.nonzero(distances <= last).unbind(1)
    order = (2 * row + (distances[row, column] == last[row, 0])).argsort(stable=True)
    starts = torch.searchsorted(row, torch.arange(len(distances), device=row.device))
    first = column[order[starts[:, None] + torch.arange(k, device=row.device)]].sort(dim=1).values
    return first.gather(1, distances.gather(1, first).sort(dim=1, stable=True).indices)
