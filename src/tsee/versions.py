"""The versions of a map: the rows of ``fit`` are the first, and each update adds one."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from tsee.values import is_count, is_number, need

__all__ = ["History", "Update", "check_updates", "counted_rows", "versions_of"]


@dataclass(frozen=True)
class History:
    """How training went.

    Attributes
    ----------
    loss : tuple of float
        The mean loss of each epoch.
    learning_rate : tuple of float
        The last learning rate of each epoch; NaN for conjugate gradient.
    refined : tuple of bool
        Whether the epoch learned a layout.
    complete : bool
        Whether training reached its end.
    """

    loss: tuple[float, ...] = ()
    learning_rate: tuple[float, ...] = ()
    refined: tuple[bool, ...] = ()
    complete: bool = True

    def described(self) -> dict[str, Any]:
        """The history as JSON can hold it."""
        rates = [None if math.isnan(rate) else rate for rate in self.learning_rate]
        refined = list(self.refined)
        return {"loss": list(self.loss), "learning_rate": rates, "refined": refined, "complete": self.complete}

    @classmethod
    def restored(cls, entries: dict[str, Any]) -> History:
        """The history that `described` gave."""
        rates = tuple(math.nan if rate is None else rate for rate in entries["learning_rate"])
        return cls(tuple(entries["loss"]), rates, tuple(entries["refined"]), entries["complete"])


@dataclass(frozen=True)
class Update:
    """What an update did. An estimator keeps the last one as ``update_``.

    Attributes
    ----------
    n_rows : int
        New rows.
    n_new_kind : int
        New exemplars of a kind that the map did not have.
    n_exemplars : int
        New rows that became exemplars.
    n_placed : int
        New rows that were only placed among the exemplars.
    n_forgotten : int
        Old exemplars that left.
    n_inputs : int
        Inputs that were added because new rows differ from old ones in what the old inputs leave out.
    moved_median, moved_95 : float
        How far the old exemplars moved: the median and the 95th percentile, as shares of the extent of the old map, the
        longest side of the box around its exemplars.
    """

    n_rows: int
    n_new_kind: int
    n_exemplars: int
    n_placed: int
    n_forgotten: int
    n_inputs: int
    moved_median: float
    moved_95: float

    def described(self) -> dict[str, Any]:
        """As JSON can hold it."""
        return asdict(self)


def versions_of(rows: np.ndarray, row_counts: tuple[int, ...]) -> np.ndarray:
    """The versions that rows of these numbers came with: 0 for ``fit``, 1 for the first update.

    Parameters
    ----------
    rows : ndarray of int
        Row numbers, counted over all versions.
    row_counts : tuple of int
        The rows of each version.

    Examples
    --------
    >>> import numpy as np
    >>> versions_of(np.array([0, 4, 5, 6]), (5, 0, 2)).tolist()
    [0, 0, 2, 2]
    """
    return np.searchsorted(np.array(list(accumulate(row_counts))), rows, side="right")


def counted_rows(tensors: Mapping[str, Any]) -> int:
    """How many rows the tensors of a model know of."""
    if "embedding" in tensors:
        return len(tensors["embedding"])
    return int(tensors["exemplars.indices"][-1]) + 1 if "exemplars.indices" in tensors else 0


def check_updates(row_counts: Any, updates: Any) -> None:
    """Raise ValueError, with a short reason, if what JSON gave cannot be the versions of a map."""
    need(
        isinstance(row_counts, list) and len(row_counts) > 0 and all(is_count(count, 0) for count in row_counts),
        "'row_counts' must be counts",
    )
    need(isinstance(updates, list) and len(updates) == len(row_counts) - 1, "'updates' and 'row_counts' differ")
    for update in updates:
        need(
            isinstance(update, dict) and set(update) == set(Update.__dataclass_fields__), "an update has other entries"
        )
        for name, value in update.items():
            if name.startswith("n_"):
                need(is_count(value, 0), f"{name!r} of an update must be a count")
            else:
                need(is_number(value) and value >= 0, f"{name!r} of an update must be a number of at least 0")
