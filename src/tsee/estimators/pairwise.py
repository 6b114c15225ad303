"""What pt-SNE and hot-SNE share: every row of a mini-batch against every other."""

from __future__ import annotations

from tsee.batches import smallest_batch
from tsee.distributed import all_max
from tsee.estimators.base import ParametricMap
from tsee.exemplars import Exemplars
from tsee.objectives import Pairwise
from tsee.training.plan import Plan, resolve_perplexity

__all__ = ["PairwiseMap"]


class PairwiseMap(ParametricMap):
    """Keeps the probabilities of neighboring among the rows of each mini-batch (equations 1 to 6).

    With several processes, each one has a share of the batch, and looks for neighbors among its own rows.
    """

    _n_batches = 8  # few and large: a row's neighbors must be in its batch

    perplexity: float

    def _make_objective(self, exemplars: Exemplars | None, plan: Plan, n_own_rows: int) -> Pairwise:
        smallest = -int(all_max(-smallest_batch(n_own_rows, plan.n_steps)))
        perplexity = resolve_perplexity(self.perplexity, smallest - 1, "neighbors in a batch (see batch_size)")
        return Pairwise(perplexity, plan.device)
