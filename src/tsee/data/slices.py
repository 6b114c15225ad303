"""Rows in blocks: slices that cover them, and padding that keeps a row's result independent of the other rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

__all__ = ["apply_padded", "blocks", "blocks_in_cache", "pad_rows", "spaced_slices"]

# Rows in a block: enough to fill matrix products, few enough for wide data to stay small in memory.
BLOCK_ROWS = 1024
# Entries in a block of a large matrix that is worked on in many steps.
BLOCK_ENTRIES = 2**19
# Blocks are padded to a multiple of this many rows.
PADDED_ROWS = 32


def blocks(n_rows: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Slices that cover ``n_rows`` rows in order, each of at most ``size`` rows."""
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def blocks_in_cache(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Slices of the rows of a matrix, short enough for a block to stay in cache from one step to the next."""
    return blocks(n_rows, max(1, BLOCK_ENTRIES // max(1, n_columns)))


def spaced_slices(n_rows: int, n_slices: int, slice_rows: int) -> Iterator[slice]:
    """Slices of a sample, evenly spaced over all rows, in order; they cover all rows if these are few."""
    if n_rows <= n_slices * slice_rows:
        yield from blocks(n_rows)
        return
    for i in range(n_slices):
        start = i * (n_rows - slice_rows) // max(1, n_slices - 1)
        yield slice(start, start + slice_rows)


def apply_padded(function: Callable[[Tensor], Tensor], block: Tensor) -> Tensor:
    """``function`` of the rows of a block, padded to a multiple of 32 rows.

    Matrix products of a few rows use other routines than products of many rows and round differently. With padding,
    a row's result does not depend on how many others came with it.
    """
    return function(pad_rows(block))[: len(block)]


def pad_rows(block: Tensor) -> Tensor:
    """A block with its first row repeated after the last, up to a multiple of 32 rows."""
    missing = -len(block) % PADDED_ROWS
    return torch.cat([block, block[:1].expand(missing, *block.shape[1:])]) if missing else block
