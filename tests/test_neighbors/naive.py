"""Searches over all distances, and rows in clusters."""

import torch

from tsee.neighbors import ExactIndex, Index, exact


def nearest(X, E, k, exclude=None):
    """The nearest of an index, or of all rows."""
    return (E if isinstance(E, Index) else ExactIndex(E)).query(X, k, exclude)


def naive(X, E, k, exclude=None):
    D = (X.double()[:, None] - E.double()).square().sum(2)
    if exclude is not None:
        rows = torch.nonzero(exclude >= 0).squeeze(1)
        D[rows, exclude[rows]] = torch.inf
    distances, indices = D.sort(dim=1, stable=True)
    return indices[:, :k], distances[:, :k]


def small_blocks(monkeypatch):
    monkeypatch.setattr(exact, "MOST_ROWS", 64)


def share_found(found, expected):
    return (found[:, :, None] == expected[:, None, :]).any(2).double().mean()
