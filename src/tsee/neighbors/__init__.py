"""The nearest of a set of points in blocks of matrix products."""

from tsee.neighbors.candidates import Candidates
from tsee.neighbors.cells import Cells, candidates_of
from tsee.neighbors.search import nearest

__all__ = ["Candidates", "Cells", "candidates_of", "nearest"]
