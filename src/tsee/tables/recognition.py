"""Which data are a table that needs encoders, and which are a plain matrix of numbers, which needs none."""

from __future__ import annotations

from numbers import Real
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch

from tsee.data import blocks
from tsee.distributed import world_size
from tsee.exceptions import DataWarning, NotAMatrixError, warn
from tsee.files import Table, open_table
from tsee.files.errors import listed
from tsee.files.identifiers import kept_aside, to_keep
from tsee.files.mixed import MixedTable, has_gaps, open_mixed
from tsee.tables.encoding import EncodedRows, TableEncoder, learn_table, sample_of
from tsee.tables.frames import Frame, as_frame, gaps_of, is_frame, is_gap
from tsee.tables.kinds import ASIDE_KINDS, Choice, recognized

__all__ = ["encode_new", "encoded_file", "encoded_rows", "open_encoded", "table_of"]


def table_of(X: Any, choices: dict[str, Choice], missing: str) -> EncodedRows | None:
    """The rows of a table with words, dates or gaps, encoded as they were learned; None if ``X`` is a plain matrix.

    Parameters
    ----------
    X : array, DataFrame, tensor, sparse matrix, Rows or path
    choices : dict of str to Choice
        Kinds and weights of columns; if there are some, any table is encoded.
    missing : {"allow", "error"}
        Whether gaps are refused.
    """
    if isinstance(X, EncodedRows):
        return X
    if isinstance(X, str | PathLike):
        X = open_encoded(X, missing=missing, forced=bool(choices))
    elif not (is_frame(X) or isinstance(X, np.ndarray | torch.Tensor | list | tuple)) or isinstance(X, np.memmap):
        if choices:
            raise ValueError("The 'columns' parameter needs a DataFrame, an array or a file with columns.")
        return None
    if X is None or type(X).__name__ == "LazyFrame":
        return None
    if not is_frame(X):
        if isinstance(X, torch.Tensor):
            X = _from_tensor(X, forced=bool(choices))
        if X is None or (not choices and not _array_with_gaps(X, missing)):
            return None
    elif not choices and not isinstance(X, Table) and not _needs_encoders(X, missing):
        return None
    file = isinstance(X, MixedTable)
    rows = encoded_file(X, choices, missing) if file else encoded_rows(as_frame(X), choices, missing)
    if found := rows.encoder.identifiers:
        warn(f"{kept_aside(found)} {to_keep(found)}", DataWarning)
    return rows


def encoded_file(table: MixedTable, choices: dict[str, Choice], missing: str) -> EncodedRows:
    """A file as `open_encoded` opens it, encoded. A word among numbers is reported with its line."""
    try:
        return encoded_rows(as_frame(table), choices, missing, table.source)
    except ValueError as error:
        if table.refused is not None and "not a" in str(table.refused) and "which is no" in str(error):
            raise table.refused from error
        raise


def check_no_gaps(rows: EncodedRows) -> None:
    """Refuse gaps in the columns that are encoded."""
    gaps: dict[str, None] = {}
    for part in blocks(rows.frame.n_rows):
        block = rows.frame.block(part.start, part.stop)
        gaps |= dict.fromkeys(name for name in rows.encoder.names if gaps_of(block[name]).any())
    if gaps:
        raise ValueError(f"X has gaps in {listed(gaps)}: fill them in, or set missing='allow'.")


def encoded_rows(frame: Frame, choices: dict[str, Choice], missing: str = "allow", source: Any = "X") -> EncodedRows:
    """A table, encoded as it is learned from its own rows."""
    if world_size() > 1:
        raise ValueError("A table with words or gaps is fitted by one process: encode it as numbers to use several.")
    if frame.n_rows < 2:
        raise ValueError(f"Found array with {frame.n_rows} sample(s) while a minimum of 2 is required.")
    rows = EncodedRows(frame, learn_table(frame, choices), source)
    if missing == "error":
        check_no_gaps(rows)
    return rows


def encode_new(encoder: TableEncoder, X: Any, missing: str = "allow") -> Any:
    """New rows of a table, encoded as the rows of fit were: those of a file as they are read."""
    if isinstance(X, EncodedRows):
        return X
    if isinstance(X, str | PathLike):
        X = open_mixed(Path(X))
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()
    if scipy.sparse.issparse(X):
        X = X.toarray()
    frame = as_frame(X, encoder.order)
    if is_frame(X) and not encoder.named and len(frame.names) == len(encoder.order):  # fitted without names
        frame = frame.renamed(encoder.order)
    if frame.n_rows == 0:
        raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required: X has no rows.")
    rows = EncodedRows(frame, encoder)
    if missing == "error":
        check_no_gaps(rows)
    return rows if isinstance(X, MixedTable) else rows[:]


def open_encoded(path: str | PathLike[str], *, missing: str = "allow", forced: bool = False, **options: Any) -> Any:
    """A file as a table with words or gaps; None if its features are a plain matrix of numbers.

    Parameters
    ----------
    path : str or path
    missing : {"allow", "error"}
    forced : bool
        Whether it is a table in any case.
    **options
        As those of `tsee.files.open_table`.
    """
    refused: NotAMatrixError | None = None
    try:
        with open_table(path, **options) as table:
            if table.kind not in ("text", "parquet"):
                return None
            words = options.get("columns") is None and _has_words(table)
            if not forced and not words and (missing == "error" or not has_gaps(table)):
                return None
    except NotAMatrixError as error:
        if missing == "error":
            raise
        refused = error
    mixed = open_mixed(Path(path), **options)
    mixed.refused = refused
    return mixed


def _has_words(table: Table) -> bool:
    """Whether a column that is not numeric is more than an identifier."""
    names = [name for name in table.other_columns if name not in table.identifiers]
    if not names:
        return False
    frame = as_frame(table)
    sample = sample_of(frame)
    return any(recognized(name, sample[name], frame) not in ASIDE_KINDS for name in names)


def _from_tensor(X: torch.Tensor, *, forced: bool) -> np.ndarray | None:
    """A tensor with a gap as an array; None for one without, and for one that is refused elsewhere."""
    if X.is_nested or X.layout != torch.strided or X.is_complex() or X.is_quantized or X.device.type == "meta":
        return None
    X = X.detach().cpu().double()
    return X.numpy() if forced or bool(X.isnan().any()) else None


def _array_with_gaps(X: Any, missing: str) -> bool:
    """Whether ``X`` is a matrix of floats with NaN, or of numbers and None, and gaps are allowed."""
    if missing == "error" or scipy.sparse.issparse(X):
        return False
    try:
        X = np.asarray(X)
    except ValueError:
        return False
    if isinstance(X, np.ma.MaskedArray) or X.ndim != 2 or X.dtype.kind not in "fO" or X.size == 0:
        return False
    if X.dtype.kind == "O":
        if not all(is_gap(value) or isinstance(value, Real) for value in X.ravel().tolist()):
            return False
        X = np.array([[np.nan if is_gap(value) else float(value) for value in row] for row in X.tolist()])
    return bool(np.isnan(X).any()) and not bool(np.isinf(X).any())


def _needs_encoders(X: Any, missing: str) -> bool:
    """Whether a DataFrame has a column that is not numeric, or a gap."""
    frame = as_frame(X)
    gaps = []
    for name, values in frame.block(0, frame.n_rows).items():
        if values.dtype.kind != "f" and not all(isinstance(value, bool | np.bool_) for value in values.tolist()):
            return True
        if frame.types.get(name) in ("category", "date", "duration"):
            return True
        if values.dtype.kind == "f" and bool(np.isnan(values).any()):
            gaps.append(name)
    return bool(gaps) and missing == "allow"  # otherwise they are refused where numbers are checked
