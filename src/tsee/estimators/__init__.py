"""The four methods: each has a network (deep or high-order) and an objective (pairwise or over exemplars)."""

from typing import Any

from tsee.estimators.dtsee import DtSEE
from tsee.estimators.hotsee import HotSEE
from tsee.estimators.hotsne import HotSNE
from tsee.estimators.ptsne import PtSNE

__all__ = ["ESTIMATORS", "METHODS", "DtSEE", "HotSEE", "HotSNE", "PtSNE"]

# By their names in the paper.
METHODS: dict[str, Any] = {"dt-see": DtSEE, "hot-see": HotSEE, "pt-sne": PtSNE, "hot-sne": HotSNE}
# By the names of their classes.
ESTIMATORS: dict[str, Any] = {cls.__name__: cls for cls in METHODS.values()}
