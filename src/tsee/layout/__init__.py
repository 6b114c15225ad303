"""Positions free of any network: the large shape of the data, and the forces that lay exemplars out from it."""

from tsee.layout.attraction import Attraction
from tsee.layout.descent import Descent, Guide, Movement, lay_out
from tsee.layout.growth import Growth
from tsee.layout.repulsion import Repulsion
from tsee.layout.shape import large_shape

__all__ = ["Attraction", "Descent", "Growth", "Guide", "Movement", "Repulsion", "large_shape", "lay_out"]
