"""What tsee takes from scikit-learn, imported in a fraction of the time.

scikit-learn's base classes import scipy.stats and pandas, for helpers that tsee does not call: as long as torch itself.
Here both are imported when something of them is first used.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any


class _Later(ModuleType):
    """Stands for a module in the namespace of another one, and imports it when an attribute is asked for."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # asked for by the import system, not by a user
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _later(*names: str) -> Iterator[None]:
    """Within it, importing these modules costs nothing; after it, importing them is as it ever was."""
    absent = [name for name in names if name not in sys.modules and find_spec(name.partition(".")[0]) is not None]
    places = {name: _Later(name) for name in absent}
    sys.modules.update(places)
    try:
        yield
    finally:
        for name, place in places.items():
            if sys.modules.get(name) is place:
                del sys.modules[name]


with _later("scipy.stats", "scipy.special", "pandas"):
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags, check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data

__all__ = [
    "BaseEstimator",
    "ClassNamePrefixFeaturesOutMixin",
    "Tags",
    "TransformerMixin",
    "check_is_fitted",
    "check_random_state",
    "validate_data",
]
