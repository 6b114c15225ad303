"""tsee: maps of high-dimensional data that take new points.

The four methods of "Parametric t-Distributed Stochastic Exemplar-centered Embedding" as scikit-learn
estimators; `DtSEE` is the one to start with.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tsee import anndata, datasets, exceptions, explorer, files, metrics, onnx, plots, serving
    from tsee.estimators import DtSEE, HotSEE, HotSNE, PtSNE
    from tsee.estimators.loading import load
    from tsee.exceptions import (
        CheckpointError,
        DataFileError,
        DataWarning,
        ExportWarning,
        ModelError,
        TrainingWarning,
    )
    from tsee.fitted import FittedMap
    from tsee.serving.batches import transform_batches

    __version__: str

__all__ = [
    "CheckpointError",
    "DataFileError",
    "DataWarning",
    "DtSEE",
    "ExportWarning",
    "FittedMap",
    "HotSEE",
    "HotSNE",
    "ModelError",
    "PtSNE",
    "TrainingWarning",
    "anndata",
    "datasets",
    "exceptions",
    "explorer",
    "files",
    "load",
    "metrics",
    "onnx",
    "plots",
    "serving",
    "transform_batches",
]

# The module of each public name that is not a module itself. They are imported when first used: torch takes seconds,
# and the command's help and completion have no use for it.
_HOMES = {
    **dict.fromkeys(("DtSEE", "HotSEE", "HotSNE", "PtSNE"), "estimators"),
    **dict.fromkeys(("CheckpointError", "DataFileError", "ModelError"), "exceptions"),
    **dict.fromkeys(("DataWarning", "ExportWarning", "TrainingWarning"), "exceptions"),
    "FittedMap": "fitted",
    "load": "estimators.loading",
    "transform_batches": "serving.batches",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        globals()[name] = import_module("importlib.metadata").version("tsee")
        return globals()[name]
    if name not in __all__:
        raise AttributeError(f"module 'tsee' has no attribute {name!r}")
    module = import_module(f"tsee.{_HOMES.get(name, name)}")
    value = globals()[name] = getattr(module, name) if name in _HOMES else module
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
