"""Warnings, in the name of the user's own line."""

from __future__ import annotations

import inspect
import warnings

__all__ = ["DataWarning", "ExportWarning", "TrainingWarning", "warn"]


class DataWarning(UserWarning):
    """A parameter could not take effect as given on these data; what was used instead is said."""


class ExportWarning(UserWarning):
    """A file does not do all that the model does; what it does is said."""


class TrainingWarning(UserWarning):
    """Training ended before its last epoch; the weights kept are usable."""


def warn(message: str, category: type[Warning]) -> None:
    """Warn at the first line outside tsee, which is the one that the user knows."""
    level, frame = 1, inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").startswith("tsee."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
