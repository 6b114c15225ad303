"""Whatever ``fit(X)`` accepts, as finite numeric rows that are read by slice."""

from tsee import later  # noqa: F401  # first: it imports scipy in half the time
from tsee.data.checks import check_rows, dense
from tsee.data.matrix import check_matrix
from tsee.data.slices import BLOCK_ROWS, apply_padded, blocks, blocks_in_cache, pad_rows, spaced_slices

__all__ = [
    "BLOCK_ROWS",
    "apply_padded",
    "blocks",
    "blocks_in_cache",
    "check_matrix",
    "check_rows",
    "dense",
    "pad_rows",
    "spaced_slices",
]
