"""The four methods: a network (deep or high-order) and an objective (pairwise or over exemplars) each."""

from tsee.estimators.exemplar import DtSEE, HotSEE
from tsee.estimators.pairwise import HotSNE, PtSNE

__all__ = ["METHODS", "DtSEE", "HotSEE", "HotSNE", "PtSNE"]

# As the paper writes them, where a method is named in text.
METHODS = {"dt-see": DtSEE, "hot-see": HotSEE, "pt-sne": PtSNE, "hot-sne": HotSNE}
