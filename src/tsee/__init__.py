"""tsee: maps of high-dimensional data that take new points.

The four methods of "Parametric t-Distributed Stochastic Exemplar-centered Embedding" as scikit-learn
estimators; `DtSEE` is the one to start with.
"""

from importlib.metadata import version

from tsee import anndata, datasets, metrics, onnx, plots
from tsee.estimators import DtSEE, HotSEE, HotSNE, PtSNE
from tsee.messages import DataWarning, ExportWarning, TrainingWarning
from tsee.persistence import ModelError, load

__version__ = version("tsee")

__all__ = [
    "DataWarning",
    "DtSEE",
    "ExportWarning",
    "HotSEE",
    "HotSNE",
    "ModelError",
    "PtSNE",
    "TrainingWarning",
    "anndata",
    "datasets",
    "load",
    "metrics",
    "onnx",
    "plots",
]
