"""Progress bars, shown only on a terminal or in a notebook."""

from __future__ import annotations

import sys
from typing import Any

import tqdm
import tqdm.auto

__all__ = ["progress_bar"]


def progress_bar(total: int, description: str, unit: str, *, verbose: bool) -> Any:
    """A tqdm bar, shown if ``verbose`` and if standard error is a terminal or a notebook."""
    in_notebook = tqdm.auto.tqdm is not tqdm.std.tqdm and "ipykernel" in sys.modules
    visible = verbose and (in_notebook or sys.stderr.isatty())
    return tqdm.auto.tqdm(total=total, desc=description, unit=unit, disable=not visible, leave=visible)
