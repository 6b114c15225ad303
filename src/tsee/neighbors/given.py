"""Neighbors that the user found: checked, sorted, and as an index that answers by them."""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from tsee.distributed import all_gather
from tsee.files.sparse import checked_csr
from tsee.metric import Metric
from tsee.neighbors.index import Index
from tsee.neighbors.smallest import Scratch

__all__ = ["GivenIndex", "GivenNeighbors"]

NAME = "The 'neighbors' parameter"
# Queries that are answered together.
BLOCK_ROWS = 2**14


class GivenNeighbors:
    """The neighbors of some rows, the nearest first, each row with as many as it was given.

    Attributes
    ----------
    counts, starts : Tensor of shape (n,), int64
        How many neighbors each row has, and the place of its first one in the other two tensors.
    candidates : Tensor of shape (m,), int64
        The numbers of the neighbors.
    squared : Tensor of shape (m,), float32
        Their squared distances. The unit of a row is the power of two above its largest distance: probabilities and
        placements do not depend on it, and so no square overflows or vanishes.
    """

    def __init__(self, counts: np.ndarray, candidates: np.ndarray, squared: np.ndarray) -> None:
        self.counts = torch.from_numpy(counts)
        self.starts = self.counts.cumsum(0) - self.counts
        self.candidates, self.squared = torch.from_numpy(candidates), torch.from_numpy(squared)

    def __len__(self) -> int:
        return len(self.counts)

    @classmethod
    def checked(cls, neighbors: Any, n_rows: int, n_candidates: int, first: int | None = None) -> GivenNeighbors:
        """What a user gave, once it has been checked.

        Parameters
        ----------
        neighbors : sparse matrix of shape (n_rows, n_candidates), or pair of arrays of shape (n_rows, k)
            Distances, all that are stored in the matrix, zeros included; or the numbers of neighbors and their
            distances, in any order. A number of -1, or an infinite distance, stands for a neighbor that is missing.
        n_rows, n_candidates : int
            How many rows have neighbors, and how many rows they can choose from.
        first : int, optional
            The number of the first row among the candidates, if the rows are candidates themselves. A row is not its
            own neighbor.

        Examples
        --------
        >>> import numpy as np
        >>> indices, distances = (
        ...     np.array([[0, 2, 1], [1, 0, -1], [2, 0, 1]]),
        ...     np.array([[0, 3, 1], [0, 1, 9], [0, 3, 5]]),
        ... )
        >>> given = GivenNeighbors.checked((indices, distances), 3, 3, first=0)
        >>> given.nearest(torch.arange(3), k=2)[0]
        tensor([[1, 2],
                [0, 0],
                [0, 1]])
        """
        if scipy.sparse.issparse(neighbors):
            rows, candidates, distances = _of_matrix(neighbors, n_rows, n_candidates)
        else:
            rows, candidates, distances = _of_pair(neighbors, n_rows, n_candidates)
        kept = (candidates >= 0) & (distances != np.inf)
        if first is not None:
            kept &= candidates != rows + first
        if not kept.all():
            rows, candidates, distances = rows[kept], candidates[kept], distances[kept]
        for fault, what, way_out in (
            (np.isnan(distances), "a distance that is NaN", "leave that neighbor out, or correct its distance"),
            (
                distances < 0,
                "a negative distance",
                "give distances, which grow as rows differ, instead of similarities",
            ),
        ):
            if fault.any():
                raise ValueError(f"{NAME} has {what} in row {rows[fault.argmax()]} (counted from 0): {way_out}.")
        _check_distinct(rows, candidates, n_candidates)
        counts = np.bincount(rows, minlength=n_rows)
        if (counts == 0).any():
            besides = "" if first is None else " besides itself"
            raise ValueError(
                f"{NAME} has no neighbor for row {counts.argmin()} (counted from 0){besides}: give it one, or leave "
                "that row out of X and of the neighbors."
            )
        order = np.lexsort((candidates, distances, rows))
        candidates, distances = candidates[order], distances[order]
        unit = np.repeat(np.frexp(distances[np.cumsum(counts) - 1])[1], counts)
        return cls(counts, candidates, np.square(np.ldexp(distances, -unit)).astype(np.float32))

    def nearest(self, rows: Tensor, k: int) -> tuple[Tensor, Tensor]:
        """The first ``k`` neighbors of rows, by the numbers of the rows.

        Returns
        -------
        indices : Tensor of shape (n, k), int64
            A row with fewer neighbors repeats its first one.
        distances : Tensor of shape (n, k), float32
            The squared distances, in ascending order; infinity for a repetition.
        """
        place = torch.arange(k)
        missing = place >= self.counts[rows, None]
        where = self.starts[rows, None] + place.masked_fill(missing, 0)  # (n, k)
        return self.candidates[where], self.squared[where].masked_fill_(missing, torch.inf)

    def digest(self) -> str:
        """A short text that tells these neighbors from others."""
        digest = hashlib.sha256()
        for part in (self.counts, self.candidates, self.squared):
            digest.update(part.numpy().tobytes())
        return digest.hexdigest()[:16]


class GivenIndex(Index):
    """An index that answers by given neighbors. It knows a row by its number, the one that the row must not choose.

    Parameters
    ----------
    rows : Tensor of shape (z, d)
        The candidates.
    metric : Metric
        How they would be compared.
    given : GivenNeighbors
        The neighbors of the candidates, or of those of this process.
    first : int
        The number of the first of them.
    """

    def __init__(self, rows: Tensor, metric: Metric, given: GivenNeighbors, first: int = 0) -> None:
        super().__init__(rows, metric)
        self.given, self.first = given, first

    def __reduce__(self) -> Any:
        return type(self), (self.rows, self.metric, self.given, self.first)

    def part(self, number: int, n_parts: int) -> Tensor:
        """Those whose neighbors were given to this process."""
        return torch.arange(self.first, self.first + len(self.given))

    @property
    def usual_count(self) -> int:
        """The median number of neighbors over the rows of all processes. A collective."""
        return int(all_gather(self.given.counts).median())

    @property
    def block_rows(self) -> int:
        return BLOCK_ROWS

    @property
    def n_threads(self) -> int:
        """One: nothing is computed."""
        return 1

    def nearest(self, block: Tensor, k: int, exclude: Tensor | None, scratch: Scratch) -> tuple[Tensor, Tensor]:
        assert exclude is not None, "rows without a number have no given neighbors"
        return self.given.nearest(exclude.cpu() - self.first, k)


def _of_matrix(matrix: Any, n_rows: int, n_candidates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The row, the candidate and the distance of every value that a sparse matrix stores."""
    if matrix.shape != (n_rows, n_candidates):
        raise ValueError(
            f"{NAME} must be a matrix of shape {(n_rows, n_candidates)}, with a line for each row of X and a column "
            f"for each row of fit. Got shape {matrix.shape} instead."
        )
    _check_real(matrix.dtype)
    checked = checked_csr(matrix, "neighbors")
    if checked.nnz < matrix.nnz:
        raise ValueError(f"{NAME} has several distances for the same two rows: keep one of them.")
    rows = np.repeat(np.arange(n_rows), np.diff(checked.indptr))
    n = len(rows)  # scipy ignores what follows
    return rows, checked.indices[:n].astype(np.int64), checked.data[:n].astype(np.float64)


def _of_pair(pair: Any, n_rows: int, n_candidates: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The row, the candidate and the distance of every entry of a pair of arrays."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        shape = getattr(pair, "shape", None)
        raise ValueError(
            f"{NAME} must be a sparse matrix of distances, as sklearn.neighbors.kneighbors_graph makes it, or a pair "
            f"of arrays (indices, distances). Got {type(pair).__name__}{'' if shape is None else f' of shape {shape}'} "
            'instead: for all distances of all rows, fit that matrix with metric="precomputed".'
        )
    indices, distances = (np.asarray(part) for part in pair)
    if indices.shape != distances.shape or indices.ndim != 2 or len(indices) != n_rows:
        raise ValueError(
            f"{NAME} must be two arrays of the same shape, with a line for each of the {n_rows} rows of X. Got shapes "
            f"{indices.shape} and {distances.shape} instead."
        )
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"{NAME} must be a pair (indices, distances), whose first array holds integers. Got {indices.dtype} "
            "instead: scikit-learn and faiss return the distances first."
        )
    _check_real(distances.dtype)
    rows = np.repeat(np.arange(n_rows), indices.shape[1])
    indices, distances = indices.ravel().astype(np.int64), distances.ravel().astype(np.float64)
    outside = (indices < -1) | (indices >= n_candidates)
    if outside.any():
        at = int(outside.argmax())
        raise ValueError(
            f"{NAME} names row {indices[at]} as a neighbor of row {rows[at]}, but rows of fit have numbers from 0 to "
            f"{n_candidates - 1}: -1 stands for no neighbor."
        )
    return rows, indices, distances


def _check_real(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in "biuf":
        raise ValueError(f"{NAME} must hold distances, which are real numbers. Got {dtype} instead.")


def _check_distinct(rows: np.ndarray, candidates: np.ndarray, n_candidates: int) -> None:
    pairs = rows * n_candidates + candidates
    pairs.sort()
    twice = pairs[1:] == pairs[:-1]
    if twice.any():
        row, candidate = divmod(int(pairs[twice.argmax()]), n_candidates)
        raise ValueError(
            f"{NAME} has row {candidate} twice as a neighbor of row {row} (counted from 0): keep one of the two."
        )
