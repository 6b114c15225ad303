"""Sparse matrices, checked before scipy's compiled code follows their indices: a wrong one would end the process."""

from __future__ import annotations

from typing import Any

__all__ = ["checked_csr", "csr_fault"]


def checked_csr(matrix: Any, name: str, error: type[ValueError] = ValueError) -> Any:
    """A sparse matrix or array of any format as CSR; one whose indices do not fit its shape is refused.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse
    >>> from tsee.files.sparse import checked_csr
    >>> matrix = scipy.sparse.csc_matrix(np.eye(3))
    >>> matrix.indices[1] = 1000
    >>> checked_csr(matrix, "X")
    Traceback (most recent call last):
    ...
    ValueError: X is a damaged sparse matrix (its row indices reach 1000, but it has 3 rows): build it again.
    """
    what = _fault(matrix)
    if what is None and matrix.format != "csr":
        try:
            matrix = matrix.tocsr()
            what = _fault(matrix)
        except (ValueError, TypeError) as refused:
            what = str(refused)
    if what is not None:
        raise error(f"{name} is a damaged sparse matrix ({what}): build it again.")
    return matrix


def _fault(matrix: Any) -> str | None:
    """What is wrong with the parts of a sparse matrix; None if they fit together."""
    if matrix.ndim != 2:
        return None
    rows, columns = matrix.shape
    if matrix.format in ("csr", "csc"):
        sides = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
        names = ("row", "column") if matrix.format == "csr" else ("column", "row")
        return csr_fault(matrix.data, matrix.indices, matrix.indptr, sides, names)
    if matrix.format == "bsr":
        blocks = matrix.data.shape[1:]
        if len(blocks) != 2 or 0 in blocks or rows % blocks[0] or columns % blocks[1]:
            return f"its shape {matrix.shape} is not a multiple of its blocks"
        sides = rows // blocks[0], columns // blocks[1]
        return csr_fault(matrix.data, matrix.indices, matrix.indptr, sides)
    if matrix.format == "coo":
        if not len(matrix.row) == len(matrix.col) == len(matrix.data):
            return "its parts have different lengths"
        return _index_fault(matrix.row, "row", rows) or _index_fault(matrix.col, "column", columns)
    if matrix.format == "dia":
        fits = matrix.data.ndim == 2 and matrix.offsets.shape == (len(matrix.data),)
        return None if fits else "its parts have different lengths"
    if matrix.format == "lil":
        lengths = [(len(places), len(values)) for places, values in zip(matrix.rows, matrix.data, strict=False)]
        fits = len(matrix.rows) == len(matrix.data) == rows and all(places == values for places, values in lengths)
        return None if fits else "its parts have different lengths"
    return None  # a dictionary of keys: its CSR form is checked


def csr_fault(
    data: Any, indices: Any, indptr: Any, shape: tuple[int, int], names: tuple[str, str] = ("row", "column")
) -> str | None:
    """What is wrong with the three arrays of a CSR matrix; None if they fit together."""
    size, name = shape[0], names[0]
    if indptr.dtype.kind not in "iu" or indptr.shape != (size + 1,) or indices.ndim != 1:
        return f"it has {len(indptr) - 1} {name} pointers, but {size} {name}s"
    if indptr[0] != 0 or (indptr[1:] < indptr[:-1]).any():
        return f"its {name} pointers do not ascend from 0"
    if indptr[-1] > min(len(indices), len(data)):
        return f"its {name}s end at {indptr[-1]}, after the last of its {min(len(indices), len(data))} values"
    return _index_fault(indices[: int(indptr[-1])], names[1], shape[1])  # scipy ignores what follows


def _index_fault(indices: Any, name: str, size: int) -> str | None:
    """What is wrong with the row or column of each value."""
    if indices.dtype.kind not in "iu":
        return f"its {name} indices are of type {indices.dtype}"
    if len(indices) == 0:
        return None
    least, most = int(indices.min()), int(indices.max())
    if least < 0:
        return f"its {name} indices begin at {least}"
    return None if most < size else f"its {name} indices reach {most}, but it has {size} {name}s"
