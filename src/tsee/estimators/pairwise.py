"""What pt-SNE and hot-SNE share: every row of a mini-batch against every other."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from torch import Tensor

from tsee.batches import smallest_batch
from tsee.distributed import all_sum
from tsee.estimators.base import ParametricMap
from tsee.estimators.paper import PaperSettings
from tsee.estimators.parameters import PAIRWISE_PARAMETERS
from tsee.exemplars import Exemplars
from tsee.labels import Labels
from tsee.metric import metric_of
from tsee.objectives import Keeper, Pairwise
from tsee.training.plan import Plan, resolve_perplexity

__all__ = ["PairwiseMap"]


class PairwiseMap(PaperSettings, ParametricMap):
    """Keeps the probabilities of neighboring among the rows of each mini-batch (equations 1 to 6)."""

    _n_batches = 8  # few and large: a row's neighbors must be in its batch

    _described = PAIRWISE_PARAMETERS

    perplexity: float

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the map of ``X``.

        Parameters
        ----------
        X : array, DataFrame, Arrow table, tensor, sparse matrix or path, of shape (n_samples, n_features)
            Numbers of any dtype, or a table with words, dates or gaps (see ``columns``). The unit that all features
            share does not matter; features in different units count by their variance, unless ``standardize=True``.
            Memory maps, arrays of h5py, zarr and dask, the rows of `tsee.files.open_table`, and paths to files that it
            can open are read by slice, and may be larger than memory: what training needs of them is then kept in a
            temporary file.
        y : object, optional
            Ignored: these methods have no use for labels. Pipelines pass them.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from tsee import HotSNE, PtSNE
        >>> X = np.random.default_rng(0).normal(size=(90, 4))
        >>> PtSNE(max_epochs=1, random_state=0).fit(X).embedding_.shape
        (90, 2)
        >>> HotSNE(max_epochs=1, random_state=0).fit(X).perplexity_
        10.0
        """
        return self._fit(X, y)

    def fit_transform(self, X: Any, y: Any = None) -> np.ndarray:
        """Learn the map of ``X`` and return the positions of its rows, as ``transform(X)`` gives them.

        Parameters
        ----------
        X : array, DataFrame, Arrow table, tensor, sparse matrix or path, of shape (n_samples, n_features)
            As in ``fit``.
        y : object, optional
            Ignored.

        Returns
        -------
        ndarray of shape (n_samples, n_components), float32

        Examples
        --------
        >>> import numpy as np
        >>> from tsee import PtSNE
        >>> X = np.random.default_rng(0).normal(size=(90, 4))
        >>> PtSNE(max_epochs=1, random_state=0).fit_transform(X).shape
        (90, 2)
        """
        return self._fit(X, y)._first_positions(X)

    def _make_objective(
        self,
        exemplars: Exemplars | None,
        plan: Plan,
        n_own_rows: int,
        labels: Labels | None,
        learners: Tensor | None = None,
        keeper: Keeper | None = None,
    ) -> Pairwise:
        smallest = all_sum(smallest_batch(n_own_rows, plan.n_steps))  # every process has a part of each batch
        perplexity = resolve_perplexity(self.perplexity, smallest - 1, "neighbors in a batch (see batch_size)")
        return Pairwise(perplexity, plan.device, metric_of(self.metric))
