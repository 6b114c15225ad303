"""A map that starts from another one: where other rows would be on that map."""

from __future__ import annotations

import hashlib
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tsee.data import dense
from tsee.distributed import all_agree
from tsee.exceptions import DataWarning, warn
from tsee.exemplars import Exemplars, take
from tsee.files.errors import listed
from tsee.fitted import FittedMap, fitted_map
from tsee.layout import Guide
from tsee.metric import PRECOMPUTED
from tsee.persistence import read_model

__all__ = ["LEAST_WEIGHT", "Started", "map_digest", "starting_map"]

# Rows up to this novelty on the other map are drawn to where they would be there; the weight falls to 0 at 1.
TRUSTED = 0.95
# The least weight of that map in a layout. Between halves of the digits, rows were then 5 % of the map apart, in the
# median, without more errors; at the usual 0.25 they were 11 % apart, and independent maps 8 % after Procrustes.
LEAST_WEIGHT = 0.75


class Started:
    """What an estimator with a layout does with ``start``."""

    def _guide(self: Any, rows: Any, names: tuple[str, ...] | None, exemplars: Exemplars | None) -> Guide | None:
        """Where the exemplars are on the map that this one starts from, if there is one. A collective."""
        other = starting_map(self.start, self.n_components)
        all_agree({"the map of the 'start' parameter": None if other is None else map_digest(other)})
        if other is None:
            return None
        if exemplars is None or not self._is_refined(exemplars) or self.metric == PRECOMPUTED:
            raise ValueError(
                f"The 'start' parameter of {type(self).__name__} must be None for a map that is not laid out from "
                'features: it needs exemplars="points", contrast="sampled", refinement above 0, and features.'
            )
        assert exemplars.indices is not None
        matched = MatchedRows(other, rows, names)
        placed = take(matched, exemplars.indices)
        positions, novelty = placed[:, : other.n_components].contiguous(), placed[:, -1]
        return Guide(positions, ((1 - novelty) / (1 - TRUSTED)).clamp(0, 1))


def starting_map(start: Any, n_components: int) -> FittedMap | None:
    """The map that ``start`` stands for: a fitted estimator, its ``map_``, or the path of a model."""
    if start is None:
        return None
    if isinstance(start, str | PathLike):
        saved = read_model(start)
        other = FittedMap.from_tensors(saved.config, saved.tensors)
    else:
        if not isinstance(start, FittedMap) and not hasattr(start, "map_"):
            raise ValueError(
                "The 'start' parameter is an estimator that is not fitted: fit it. If this is a clone, which forgets "
                "the map of an estimator, pass start=other.map_ or the path of a model instead."
            )
        other = fitted_map(start)
    if other.exemplars is None or other.exemplars.positions is None:
        raise ValueError(
            f"The 'start' parameter is a {other.method}, which has no exemplars: start from DtSEE or HotSEE."
        )
    if other.table is not None:
        raise ValueError(
            "The 'start' parameter is a map of a table with words or gaps, whose encoding another fit does not share: "
            "update that map instead, or encode both tables yourself."
        )
    if other.preprocessing.metric == PRECOMPUTED:
        raise ValueError("The 'start' parameter is a map of given distances, on which other rows cannot be placed.")
    if other.n_components != n_components:
        raise ValueError(
            f"The 'start' parameter is a map of {other.n_components} dimensions, and this one has "
            f"n_components={n_components}: make them equal."
        )
    return other


def map_digest(fitted: FittedMap) -> str:
    """Tells a map from another one."""
    exemplars = fitted.exemplars
    assert exemplars is not None
    assert exemplars.positions is not None
    digest = hashlib.sha256(exemplars.positions.numpy().tobytes())
    digest.update(exemplars.inputs.numpy().tobytes())
    return digest.hexdigest()[:16]


class MatchedRows:
    """Rows as positions on another map, and their novelty there, as the last column: ``matched[a:b]``.

    Features are matched by name; those that rows lack have the mean that they have on the other map, which is said.

    Parameters
    ----------
    other : FittedMap
    rows : array, CSR matrix or Rows
    names : tuple of str or None
        The names of their features.
    """

    def __init__(self, other: FittedMap, rows: Any, names: tuple[str, ...] | None) -> None:
        self.other, self._rows = other, rows
        self.shape = (int(rows.shape[0]), other.n_components + 1)
        self._found: list[int] = list(range(other.n_features))
        self._taken: list[int] = list(range(other.n_features))
        if names is None or other.feature_names is None:
            if rows.shape[1] != other.n_features:
                raise ValueError(
                    f"X has {rows.shape[1]} features, and the map of the 'start' parameter {other.n_features}. They "
                    "are matched by name if both have names: pass a DataFrame."
                )
            return
        column_of = {name: column for column, name in enumerate(names)}
        self._found = [i for i, name in enumerate(other.feature_names) if name in column_of]
        self._taken = [column_of[other.feature_names[i]] for i in self._found]
        missing = [name for name in other.feature_names if name not in column_of]
        extra = [name for name in names if name not in set(other.feature_names)]
        if not self._found:
            raise ValueError("X and the map of 'start' have no feature of the same name: rename the columns.")
        if missing:
            warn(
                f"X lacks {len(missing)} of the {other.n_features} features of the map of 'start' ({listed(missing)}): "
                "on that map, they count as their mean.",
                DataWarning,
            )
        if extra:
            warn(f"The map of 'start' lacks {len(extra)} features of X ({listed(extra)}).", DataWarning)

    def __getitem__(self, rows: slice) -> Tensor:
        block = dense(self._rows, rows)
        full = np.repeat(self.other.preprocessing.mean[None].astype(block.dtype), len(block), 0)
        full[:, self._found] = block[:, self._taken]
        placed = torch.from_numpy(self.other.place(full, "refined"))
        return torch.cat([placed, torch.from_numpy(self.other.novelty(full))[:, None]], 1)
