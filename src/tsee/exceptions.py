"""Every error and warning of tsee, and how a warning is reported: at the user's own line."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "CheckpointError",
    "DataFileError",
    "DataWarning",
    "ExportWarning",
    "ModelError",
    "NotAMatrixError",
    "PeerError",
    "RowError",
    "TrainingWarning",
    "UndefinedMeasureError",
    "UnnamedColumnsError",
]


class DataWarning(UserWarning):
    """Something about the data, or a parameter that could not take effect on them as given."""


class ExportWarning(UserWarning):
    """An exported file does not do everything that the model does; the message says what differs."""


class TrainingWarning(UserWarning):
    """Training ended before its last epoch; the weights that were kept are usable."""


class DataFileError(ValueError):
    """A data file cannot be read or written; one sentence says where, why and what to do.

    Rows are counted from 0, without the header, and so are columns that have no name.
    """


class NotAMatrixError(DataFileError):
    """A file is not a matrix of numbers: a value is missing or is not a number, or no column is numeric."""


class UnnamedColumnsError(DataFileError):
    """Columns were asked for by name in a file whose columns have none."""


class RowError(ValueError):
    """A row of the data cannot be placed.

    Parameters
    ----------
    row : int
        The number of the row in X, counted from 0.
    problem : str
        What is wrong with it and what to do: the sentence that begins with "Row 7 of X".
    """

    def __init__(self, row: int, problem: str):
        super().__init__(row, problem)  # both, so that the error can be pickled
        self.row, self.problem = row, problem

    def __str__(self) -> str:
        return f"Row {self.row} of X {self.problem}"


@contextmanager
def rows_from(start: int) -> Iterator[None]:
    """Count the row of a `RowError` from the first row of X: the block at hand begins with row ``start``."""
    try:
        yield
    except RowError as error:
        raise RowError(start + error.row, error.problem) from None


class ModelError(ValueError):
    """A model cannot be read or written; the message says why and what to do."""


class CheckpointError(ValueError):
    """A checkpoint cannot be read or written, or belongs to another fit; the message says what to do."""


class UndefinedMeasureError(ValueError):
    """A measure of a map has no value for these rows, such as a correlation if all distances are equal."""


class PeerError(ConnectionError):
    """Another process of the same fit has ended, is frozen or cannot be reached; the message says what to do."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside tsee, the one that the user wrote."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tsee."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
