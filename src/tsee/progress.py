"""Progress bars and what is said among them, shown only on a terminal or in a notebook."""

from __future__ import annotations

import sys
from typing import Any

import tqdm
import tqdm.auto

__all__ = ["progress_bar", "say"]


def progress_bar(total: int, description: str, unit: str, *, verbose: bool) -> Any:
    """A tqdm bar, shown if ``verbose`` and if standard error is a terminal or a notebook."""
    visible = verbose and _somebody_looks()
    return tqdm.auto.tqdm(total=total, desc=description, unit=unit, disable=not visible, leave=visible)


def say(sentence: str, *, verbose: bool) -> None:
    """A line among the progress bars, shown where and when they are."""
    if verbose and _somebody_looks():
        tqdm.auto.tqdm.write(sentence, file=sys.stderr)


def _somebody_looks() -> bool:
    return _in_notebook() or sys.stderr.isatty()


def _in_notebook() -> bool:
    """Whether this process is the kernel of a notebook, and not only one that imported such things."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")
