"""What a fitted estimator says of its map."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from tsee.exemplars import Exemplars
from tsee.fitted import FittedMap
from tsee.scikit import check_is_fitted

__all__ = ["ExemplarProperties", "FittedProperties"]


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


class ExemplarProperties:
    """What the fitted map of an exemplar method says of its exemplars."""

    map_: FittedMap
    placement: str | None

    @property
    def n_exemplars_(self) -> int:
        """The number of exemplars."""
        return len(self._fitted_exemplars)

    @property
    def exemplars_(self) -> np.ndarray:
        """The exemplars in the units of the data, shape (n_exemplars_, n_features_in_)."""
        return self.map_.preprocessing.inverse(self._fitted_exemplars.inputs)

    @property
    def exemplar_indices_(self) -> np.ndarray | None:
        """Which rows of ``fit`` the exemplars are; None for centers."""
        indices = self._fitted_exemplars.indices
        return None if indices is None else indices.numpy()

    @property
    def exemplar_embedding_(self) -> np.ndarray:
        """The positions of the exemplars, shape (n_exemplars_, n_components)."""
        check_is_fitted(self)
        return self.map_.exemplar_positions(self.placement).numpy().copy()

    @property
    def placement_(self) -> str:
        """What ``placement=None`` stands for."""
        check_is_fitted(self)
        return self.map_.placement

    @property
    def _fitted_exemplars(self) -> Exemplars:
        check_is_fitted(self)
        assert self.map_.exemplars is not None
        return self.map_.exemplars
