"""Rows that are equal, found by a hash of each row: to sort the rows themselves would take their memory twice."""

from __future__ import annotations

import torch
from torch import Tensor

from tsee.data import blocks_in_cache

__all__ = ["EqualRows", "hashes"]


class EqualRows:
    """Finds the rows that are equal to others, value by value.

    Parameters
    ----------
    rows : Tensor of shape (z, d)

    Examples
    --------
    >>> import torch
    >>> EqualRows(torch.tensor([[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])).find(torch.tensor([[0.0, -0.0], [2.0, 1.0]]))
    tensor([ 1, -1])
    """

    def __init__(self, rows: Tensor) -> None:
        self.rows = rows
        self.hashes, self.order = hashes(rows).sort(stable=True)

    def find(self, queries: Tensor) -> Tensor:
        """The number of the first row that equals each query, or -1: of shape (n,), int64."""
        place = torch.searchsorted(self.hashes, hashes(queries)).clamp_max_(len(self.hashes) - 1)
        found = self.order[place]
        for part in blocks_in_cache(len(queries), queries.shape[1]):
            equal = (self.rows.index_select(0, found[part]) == queries[part]).all(1)
            found[part].masked_fill_(~equal, -1)
        return found


def hashes(rows: Tensor) -> Tensor:
    """A number for each row, int64: equal rows have the same, others hardly ever."""
    factors = torch.randint(-(2**62), 2**62, (rows.shape[1],), generator=torch.Generator().manual_seed(0)) | 1
    found = torch.empty(len(rows), dtype=torch.int64)
    for part in blocks_in_cache(len(rows), rows.shape[1]):
        bits = (rows[part].cpu() + 0.0).view(torch.int32 if rows.element_size() == 4 else torch.int64)  # -0.0 is 0.0
        bits = bits.long()
        # Whole numbers have zeros in their last bits, which no factor would fill.
        found[part] = ((bits ^ (bits >> 32) ^ (bits >> 16)) * factors).sum(1)
    return found
