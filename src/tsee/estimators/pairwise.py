"""What pt-SNE and hot-SNE share: every row of a mini-batch against every other."""

from __future__ import annotations

from torch import Tensor

from tsee.batches import smallest_batch
from tsee.distributed import all_sum
from tsee.estimators.base import ParametricMap
from tsee.estimators.paper import PaperSettings
from tsee.exemplars import Exemplars
from tsee.labels import Labels
from tsee.metric import metric_of
from tsee.objectives import Keeper, Pairwise
from tsee.training.plan import Plan, resolve_perplexity

__all__ = ["PairwiseMap"]


class PairwiseMap(PaperSettings, ParametricMap):
    """Keeps the probabilities of neighboring among the rows of each mini-batch (equations 1 to 6)."""

    _n_batches = 8  # few and large: a row's neighbors must be in its batch

    perplexity: float

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
