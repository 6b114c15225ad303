"""Checks of what figures are drawn from: maps, single or by name, and labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tsee.plots.canvas import drawable
from tsee.plots.coloring import Floats

__all__ = ["as_array", "check_labels", "check_map", "map_of", "named_maps"]


def as_array(values: Any) -> NDArray[Any]:
    """An array of whatever numpy takes, and of tensors on any device."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def check_map(Y: Any, name: str) -> Floats:
    """A map in the plane as float64; ``name`` is how errors call it."""
    Y = as_array(Y)
    if Y.ndim != 2 or Y.shape[1] != 2 or not len(Y) or Y.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} must be numbers in two columns. Got {Y.dtype} of shape {Y.shape} instead. "
            "A map in the plane has n_components=2."
        )
    if not np.isfinite(Y).all():
        raise ValueError(f"{name} must not contain NaN or infinity.")
    return Y.astype(np.float64)


def check_labels(labels: Any, n_points: int) -> NDArray[Any]:
    """One label per point; None and NaN are missing."""
    values = np.full(n_points, None) if labels is None else as_array(labels)
    if values.dtype == object and hasattr(labels, "isna"):  # comparing with pandas.NA gives neither True nor False
        numeric = labels.dtype.kind in "iuf"
        values = values.copy()
        values[labels.isna()] = np.nan if numeric else None
        values = values.astype(float if numeric else object)
    if values.shape != (n_points,):
        raise ValueError(f"labels must have one value for each of {n_points} points. Got shape {values.shape} instead.")
    return values


def map_of(value: Any) -> Any:
    """A map as it is, or the positions of the rows of ``fit`` that a fitted estimator keeps."""
    if hasattr(value, "fit"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(value)
        return value.embedding_
    return value


def named_maps(maps: Mapping[str, Any]) -> dict[str, Floats]:
    """Maps of the same points by name, each in two columns."""
    named = {drawable(name): check_map(map_of(value), f"maps[{name!r}]") for name, value in maps.items()}
    if not named:
        raise ValueError("maps must hold at least one map. It is empty.")
    first, *others = named
    for name in others:
        if len(named[name]) != len(named[first]):
            raise ValueError(
                f"maps must show the same points. maps[{first!r}] has {len(named[first])} and "
                f"maps[{name!r}] has {len(named[name])}."
            )
    return named
