"""The nearest of a set of candidates, found by blocks of matrix products."""

from torch import Tensor

from tsee.neighbors.cells import CellIndex, build_index
from tsee.neighbors.exact import ExactIndex
from tsee.neighbors.index import Index

__all__ = ["CellIndex", "ExactIndex", "Index", "build_index"]

Candidates = ExactIndex
Cells = CellIndex
candidates_of = build_index


def nearest(X: Tensor, E: Tensor | Index, k: int, *, exclude: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """`Index.query` of ``E``."""
    return (E if isinstance(E, Index) else ExactIndex(E)).query(X, k, exclude)
