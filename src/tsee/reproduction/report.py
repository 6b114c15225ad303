"""The report: placeholder until the next commit."""

from __future__ import annotations

from pathlib import Path

from tsee.reproduction.experiments import Book

__all__ = ["write_report"]


def write_report(book: Book, docs: Path) -> Path:
    """Not there yet."""
    raise ValueError("The report is not written yet.")
