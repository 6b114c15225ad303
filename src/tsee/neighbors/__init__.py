"""The nearest of a set of candidates: found by blocks of matrix products or distances, or given."""

from tsee.neighbors.cells import MOST_IN_CELLS, CellIndex, build_index
from tsee.neighbors.equal import EqualRows, hashes
from tsee.neighbors.exact import ExactIndex
from tsee.neighbors.given import GivenIndex, GivenNeighbors
from tsee.neighbors.index import Index, part_of
from tsee.neighbors.scanned import ScannedIndex

__all__ = [
    "MOST_IN_CELLS",
    "CellIndex",
    "EqualRows",
    "ExactIndex",
    "GivenIndex",
    "GivenNeighbors",
    "Index",
    "ScannedIndex",
    "build_index",
    "hashes",
    "part_of",
]
