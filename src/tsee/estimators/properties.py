"""What a fitted estimator says of its map."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from tsee.exemplars import Exemplars
from tsee.fitted import FittedMap
from tsee.scikit import ClassNamePrefixFeaturesOutMixin, check_is_fitted

__all__ = ["ExemplarProperties", "FittedProperties"]


class FittedProperties(ClassNamePrefixFeaturesOutMixin):
    """Attributes with a trailing underscore, and the names of the map's columns, read from the fitted map."""

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

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The names of the map's columns: ``tsee0``, ``tsee1`` and so on, as in the files that tsee writes.

        Parameters
        ----------
        input_features : array-like of str, optional
            The features of ``fit``; other names are refused.

        Returns
        -------
        numpy.ndarray of str

        Examples
        --------
        >>> import numpy as np
        >>> from tsee import DtSEE
        >>> X = np.random.default_rng(0).normal(size=(90, 4))
        >>> DtSEE(max_epochs=1, random_state=0).fit(X).get_feature_names_out()
        array(['tsee0', 'tsee1'], dtype=object)
        """
        names = super().get_feature_names_out(input_features)  # by the class: dtsee0, hotsee0
        return np.array([f"tsee{component}" for component in range(len(names))], dtype=object)

    @property
    def _n_features_out(self) -> int:
        return self.map_.n_components


class ExemplarProperties:
    """What the fitted map of an exemplar method says of its exemplars, and of rows beside them."""

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

    def novelty(self: Any, X: Any) -> np.ndarray:
        """How unlike the rows of ``fit`` other rows are: whether they belong on the map at all.

        Every row gets a position, even a row that is unlike all the rows the map was made of. Its distance from its
        nearest exemplars, in all features, reveals it.

        Parameters
        ----------
        X : array, DataFrame, Arrow table, tensor, sparse matrix or path, of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), float32
            The share of the rows of ``fit`` that lie nearer to their nearest exemplars: evenly from 0 to 1 for rows
            of the same kind, above 0.99 for one in a hundred of them, and 1 for a row farther out than all.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_digits
        >>> from tsee import DtSEE
        >>> X = load_digits().data
        >>> see = DtSEE(max_epochs=1, random_state=0).fit(X[:1500])
        >>> bool(see.novelty(X[1500:]).mean() < 0.7)
        True
        >>> see.novelty(np.random.default_rng(0).permuted(X[:3], axis=1))
        array([1., 1., 1.], dtype=float32)
        """
        check_is_fitted(self)
        return self.map_.novelty(self._check_new(X))

    @property
    def _fitted_exemplars(self) -> Exemplars:
        check_is_fitted(self)
        assert self.map_.exemplars is not None
        return self.map_.exemplars
