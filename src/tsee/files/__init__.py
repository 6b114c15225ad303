"""Data files of every kind, opened as tables whose rows are read by slice; and maps, written to files."""

from tsee import later  # noqa: F401  # first: it imports scipy in half the time
from tsee.exceptions import DataFileError
from tsee.files.opening import open_table
from tsee.files.table import Table
from tsee.files.writing import MapWriter, write_map

__all__ = ["DataFileError", "MapWriter", "Table", "open_table", "write_map"]
