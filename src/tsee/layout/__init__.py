"""Positions free of any network: the large shape of the data, and exact forces that lay exemplars out from it."""

from tsee.layout.attraction import Attraction
from tsee.layout.descent import Descent, Guide, lay_out
from tsee.layout.growth import grow
from tsee.layout.repulsion import Repulsion
from tsee.layout.shape import large_shape

__all__ = ["Attraction", "Descent", "Guide", "Repulsion", "grow", "large_shape", "lay_out"]
