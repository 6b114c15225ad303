"""The four methods: a network (deep or high-order) and an objective (pairwise or over exemplars) each."""

from tsee.estimators.exemplar import DtSEE, HotSEE
from tsee.estimators.pairwise import HotSNE, PtSNE

__all__ = ["DtSEE", "HotSEE", "HotSNE", "PtSNE"]
