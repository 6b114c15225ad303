"""The words that parameters take. The command's help needs them, and has no time to import what they stand for."""

from __future__ import annotations

__all__ = ["ACTIVATIONS", "METHODS", "METRICS", "NORMALIZATIONS", "PRECOMPUTED", "UNIT_LENGTH"]

# The methods by their names in the paper, and the names of their classes.
METHODS = {"dt-see": "DtSEE", "hot-see": "HotSEE", "pt-sne": "PtSNE", "hot-sne": "HotSNE"}
# Euclidean distances between rows of unit length.
UNIT_LENGTH = ("cosine", "correlation")
# All metrics that compare rows: `tsee.metric.names` says how.
METRICS = ("euclidean", *UNIT_LENGTH, "manhattan", "hamming", "jaccard")
# Not one of them: rows are distances already.
PRECOMPUTED = "precomputed"
# The nonlinearities of a network, and what normalizes the values before them: `tsee.networks` has their modules.
ACTIVATIONS = ("relu", "silu", "gelu", "tanh", "sigmoid")
NORMALIZATIONS = ("layer", "batch", None)
