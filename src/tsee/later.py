"""Modules that are imported when something of them is first used; and scipy's sparse matrices, imported that way.

scipy takes every name that numpy has. One of them is numpy.f2py, a reader of Fortran, which takes longer to import than
scipy.sparse itself.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from types import ModuleType
from typing import Any

__all__ = ["later"]


class _Later(ModuleType):
    """Stands for a module in the namespace of another one, and imports it when an attribute is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name == "__version__" and "." not in self.__name__:  # scikit-learn 1.6, imported, asks pandas for it
            return version(self.__name__)
        if name.startswith("__"):  # asked for by the import system, not by a user
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def later(*names: str) -> Iterator[None]:
    """Within it, importing these modules costs nothing; after it, importing them is as it ever was."""
    absent = [name for name in names if name not in sys.modules and find_spec(name.partition(".")[0]) is not None]
    places = {name: _Later(name) for name in absent}
    sys.modules.update(places)
    within = [(*name.rpartition("."), place) for name, place in places.items() if "." in name]
    parts = [(import_module(package), part, place) for package, _, part, place in within]
    for package, part, place in parts:
        setattr(package, part, place)  # as an import does
    try:
        yield
    finally:
        for name, place in places.items():
            if sys.modules.get(name) is place:
                del sys.modules[name]
        for package, part, place in parts:
            if vars(package).get(part) is place:
                delattr(package, part)


with later("numpy.f2py"):
    import scipy.sparse  # noqa: F401
