"""Axes that new rows need and the principal axes of a map lack."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tsee.data import dense, spaced_slices
from tsee.distributed import all_gather, all_sum, broadcast
from tsee.fitted import FittedMap
from tsee.networks import DeepNetwork, HighOrderNetwork, put_before
from tsee.preprocessing import Preprocessing

__all__ = ["missing_axes", "widened"]

# Axes are found from half of a sample of the new rows, in slices of all processes, and judged by the other half.
SLICES, SLICE_ROWS = 64, 32
SAMPLE_VALUES = 2**25
FEWEST_ROWS = 20
# Old rows vary along a new axis no more than along the least of their own, but how far each of them is along it is not
# known. A row that is nearer to the mean than so many times their standard deviation counts as one that is at the mean.
MARGIN = 4.0
# An axis is added if new rows beyond that vary along it so many times as much as the old ones along the least of their
# axes; at most so many.
MORE_VARIANCE = 1.5
MOST_AXES = 50


def widened(fitted: FittedMap, X: Any) -> FittedMap:
    """The map with more inputs, if new rows differ from old ones in what its principal axes leave out. A collective.

    The old exemplars have the mean, 0, along the new axes, and so has any row that is not farther from it than old rows
    can be thought to be (`Preprocessing.margin`). The network does not look at the new axes yet.
    """
    basis, exemplars = fitted.preprocessing.basis, fitted.exemplars
    network = fitted.network
    ours = isinstance(network, HighOrderNetwork) or (
        isinstance(network, DeepNetwork) and len(network.config["hidden_layers"]) > 0
    )
    # Inputs of one length cannot take more axes: all old ones would become shorter.
    if basis is None or exemplars is None or not ours or fitted.preprocessing.length is not None:
        return fitted
    axes, margin = missing_axes(fitted.preprocessing, exemplars.inputs, X)
    if axes.shape[1] == 0:
        return fitted
    n_before, n_more = basis.shape[1], axes.shape[1]
    network = copy.deepcopy(network)
    put_before(network, torch.eye(n_before + n_more, n_before), torch.zeros(n_before))
    wider = torch.cat([torch.from_numpy(basis), axes.float()], 1).numpy()
    before = fitted.preprocessing.margin
    margins = np.append(np.zeros(n_before) if before is None else before, np.full(n_more, margin)).astype(np.float32)
    inputs = torch.cat([exemplars.inputs, exemplars.inputs.new_zeros(len(exemplars), n_more)], 1)
    return replace(
        fitted,
        preprocessing=replace(fitted.preprocessing, basis=wider, margin=margins),
        network=network,
        exemplars=replace(exemplars, inputs=inputs),
    )


def missing_axes(preprocessing: Preprocessing, old: Tensor, X: Any) -> tuple[Tensor, float]:
    """Axes along which new rows vary more than the old ones along their least axis.

    Parameters
    ----------
    preprocessing : Preprocessing
        With a basis.
    old : Tensor of shape (z, d)
        The old exemplars as inputs.
    X : array, CSR matrix or Rows
        The new rows.

    Returns
    -------
    axes : Tensor of shape (n_features, k)
        At right angles to the principal axes, and as long as the shortest of these.
    margin : float
        How far from the mean inputs along these axes must be to count.
    """
    assert preprocessing.basis is not None
    basis = torch.from_numpy(preprocessing.basis)
    lengths = basis.norm(dim=0)
    unit = basis / lengths
    sample = _sample(preprocessing, X)
    # Along axes that an update added, exemplars from before it have no inputs.
    own = slice(None) if preprocessing.margin is None else torch.from_numpy(preprocessing.margin == 0)
    least = broadcast((old / lengths)[:, own].square().mean(0).min())
    margin = MARGIN * float(least) ** 0.5
    left_out = sample - (sample @ unit) @ unit.T
    first, second = left_out[::2], left_out[1::2]
    if len(second) < FEWEST_ROWS:
        return basis[:, :0], 0.0
    # Of rows fewer than features, the products with each other have the same variances, and are fewer.
    squares, weights = torch.linalg.eigh((first @ first.T).double())  # ascending
    squares, weights = squares[-MOST_AXES:].flip(0), weights[:, -MOST_AXES:].flip(1)
    axes = (first.T.double() @ weights / squares.clamp_min(1e-30).sqrt()).float()
    beyond = nn.functional.hardshrink(second @ axes, margin)
    enough = beyond.square().mean(0) > MORE_VARIANCE * least
    # Rounding may differ between processes: one decides for all.
    enough = broadcast(enough & (squares > 1e-12 * squares[0].clamp_min(1e-30)))
    signs = axes.gather(0, axes.abs().argmax(0, keepdim=True)).sign()
    return broadcast((axes * signs * lengths.min())[:, enough].contiguous()), margin * float(lengths.min())


def _sample(preprocessing: Preprocessing, X: Any) -> Tensor:
    """New rows of all processes, evenly spaced, centered and divided in all features."""
    plain = replace(preprocessing, basis=None, margin=None)
    share = X.shape[0] / max(1, all_sum(X.shape[0]))
    n_rows = max(1, round(share * min(SLICES * SLICE_ROWS, SAMPLE_VALUES // X.shape[1])))
    parts = spaced_slices(X.shape[0], -(-n_rows // SLICE_ROWS), SLICE_ROWS)
    return all_gather(torch.cat([plain(dense(X, part)) for part in parts]))
