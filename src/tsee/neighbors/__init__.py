"""The nearest of a set of candidates, found by blocks of matrix products."""

from tsee.neighbors.cells import CellIndex, build_index
from tsee.neighbors.exact import ExactIndex
from tsee.neighbors.index import Index

__all__ = ["CellIndex", "ExactIndex", "Index", "build_index"]
