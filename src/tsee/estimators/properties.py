"""What a fitted estimator says of its map."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from tsee.fitted import FittedMap
from tsee.scikit import check_is_fitted

__all__ = ["FittedProperties"]


class FittedProperties:
    """Attributes with a trailing underscore, read from the fitted map."""

    map_: FittedMap

    @property
    def embedding_(self) -> np.ndarray:
        """The positions of the rows of ``fit``."""
        check_is_fitted(self)
        if self.map_.embedding is None:
            raise AttributeError(
                "There is no 'embedding_': the rows of fit are many and lie on disk, so their positions were not "
                "kept. transform(X) gives them."
            )
        return self.map_.embedding

    @property
    def network_(self) -> nn.Module:
        """The trained network."""
        check_is_fitted(self)
        return self.map_.network

    @property
    def n_inputs_(self) -> int:
        """The number of inputs that took effect."""
        check_is_fitted(self)
        return self.map_.preprocessing.n_inputs

    @property
    def perplexity_(self) -> float:
        """The perplexity that took effect."""
        check_is_fitted(self)
        return self.map_.perplexity

    @property
    def history_(self) -> dict[str, list[Any]]:
        """How training went, by epoch."""
        check_is_fitted(self)
        history = self.map_.history
        return {name: list(getattr(history, name)) for name in ("loss", "learning_rate", "refined")}

    @property
    def n_iter_(self) -> int:
        """Epochs run."""
        check_is_fitted(self)
        return len(self.map_.history.loss)
