"""Rows that leave a map."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import torch

from tsee.exceptions import ModelError
from tsee.fitted import FittedMap

__all__ = ["check_forget", "forget_rows"]


def check_forget(forget: Any, n_rows: int) -> int | np.ndarray | None:
    """What to forget: an age, ascending row numbers, or nothing. Raises ValueError for anything else."""
    if forget is None:
        return None
    values = np.asarray(forget)
    if values.ndim == 0 and values.dtype.kind in "iu" and values >= 1:
        return int(values)
    if values.ndim == 1 and values.dtype == bool and len(values) == n_rows:
        return np.flatnonzero(values)
    whole = values.ndim == 1 and (values.dtype.kind in "iu" or len(values) == 0)
    if whole and (len(values) == 0 or (values.min() >= 0 and values.max() < n_rows)):
        return np.unique(values.astype(np.int64))
    raise ValueError(
        "The 'forget' parameter of update must be None, an age of at least 1, or a list of row numbers from 0 to "
        f"{n_rows - 1:,} (or as many booleans as there are rows). Got {forget!r:.80} instead."
    )


def forget_rows(fitted: FittedMap, forget: int | np.ndarray | None, least: int) -> FittedMap:
    """The map without some of its rows, which it also counts no more.

    Parameters
    ----------
    fitted : FittedMap
    forget : int, ndarray of int or None
        As `check_forget` returns it. Versions of this age and older leave. The last update, or ``fit`` if there was
        none, has age 1.
    least : int
        The exemplars that must be left.
    """
    exemplars = fitted.exemplars
    assert exemplars is not None
    assert exemplars.indices is not None
    n_rows, counts = sum(fitted.row_counts), fitted.row_counts
    if forget is None:
        return fitted
    if isinstance(forget, int):
        leaves = np.arange(n_rows) < sum(counts[: max(0, len(counts) - forget + 1)])
    else:
        leaves = np.zeros(n_rows, dtype=bool)
        leaves[forget] = True
    stays = ~leaves
    kept = torch.from_numpy(stays)[exemplars.indices]
    if int(kept.sum()) < least:
        raise ModelError(
            f"The 'forget' parameter of update leaves {int(kept.sum())} of {len(exemplars):,} exemplars, and a map "
            f"needs at least {least}: forget less, or fit a new map."
        )
    bounds = [0, *accumulate(counts)]
    number = torch.from_numpy(np.cumsum(stays) - 1)
    positions = exemplars.positions
    embedding = fitted.embedding
    return replace(
        fitted,
        exemplars=replace(
            exemplars,
            inputs=exemplars.inputs[kept],
            indices=number[exemplars.indices[kept]],
            positions=None if positions is None else positions[kept],
        ),
        embedding=embedding[stays] if embedding is not None and len(embedding) == n_rows else None,
        row_counts=tuple(int(stays[start:stop].sum()) for start, stop in pairwise(bounds)),
    )
