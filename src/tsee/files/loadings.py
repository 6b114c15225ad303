"""The PCA that made an entry of obsm, by a checksum of its loadings: positions mean nothing with another one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

__all__ = ["PROJECT", "loadings_checksum", "loadings_key"]

# What to do about another PCA.
PROJECT = "project the new observations with the loadings of the old ones (scanpy.tl.ingest), or fit the model of X"


def loadings_key(entry: str) -> str:
    """The key in varm of the loadings of an entry of obsm: scanpy's "PCs", or the name of the entry."""
    return "PCs" if entry == "X_pca" else entry


def loadings_checksum(names: Iterable[Any], loadings: Any) -> str:
    """A checksum of the loadings of a PCA, the same in whatever order the variables are.

    Variables that the PCA left out have loadings of 0, and may be missing elsewhere.
    """
    values = np.ascontiguousarray(np.asarray(loadings), dtype="<f4")
    digest = hashlib.sha256()
    for name, row in sorted(zip(map(str, names), values, strict=True), key=lambda item: item[0]):
        if row.any():
            digest.update(name.encode() + b"\0" + row.tobytes())
    return digest.hexdigest()
