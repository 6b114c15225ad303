"""The four methods: each has a network (deep or high-order) and an objective (pairwise or over exemplars).

They are imported when first used: the table of their parameters, which help and completion need, has no use for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tsee import words

if TYPE_CHECKING:
    from tsee.estimators.dtsee import DtSEE
    from tsee.estimators.hotsee import HotSEE
    from tsee.estimators.hotsne import HotSNE
    from tsee.estimators.ptsne import PtSNE

    METHODS: dict[str, Any]  # by their names in the paper
    ESTIMATORS: dict[str, Any]  # by the names of their classes

__all__ = ["ESTIMATORS", "METHODS", "DtSEE", "HotSEE", "HotSNE", "PtSNE"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'tsee.estimators' has no attribute {name!r}")
    classes = {
        found: getattr(import_module(f"tsee.estimators.{found.lower()}"), found) for found in words.METHODS.values()
    }
    globals().update(classes)
    globals()["METHODS"] = {method: classes[found] for method, found in words.METHODS.items()}
    globals()["ESTIMATORS"] = classes
    return globals()[name]
