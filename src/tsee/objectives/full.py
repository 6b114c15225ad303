"""dt-SEE and hot-SEE as in the paper: every point against all exemplars."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tsee.affinities import gaussian, precisions, to_double
from tsee.batches import Batch, Columns
from tsee.data import blocks_in_cache
from tsee.distributed import all_sum, all_sum_with_gradient
from tsee.exemplars import Exemplars
from tsee.metric import exclude_from
from tsee.objectives.embedding import embed_in_parts
from tsee.objectives.kernels import dense_pairs, entropy_term

__all__ = ["Full", "exemplar_loss"]


def exemplar_loss(
    Y: Tensor, V: Tensor, P: Tensor, own: Tensor | None = None, negative_entropy: Tensor | None = None
) -> Tensor:
    r"""KL divergence from points to exemplars, the objective of dt-SEE and hot-SEE (equations 9 to 12).

    .. math:: \ell = \sum_{i=1}^{n} \sum_{j=1}^{z} p_{j|i} \log \frac{p_{j|i}}{q_{j|i}}, \qquad
        q_{j|i} = \frac{(1 + d_{ij})^{-1}}{\sum_i \sum_k (1 + d_{ik})^{-1}}

    Parameters
    ----------
    Y : Tensor of shape (n, h)
        The positions of the batch.
    V : Tensor of shape (z, h)
        The positions of all exemplars.
    P : Tensor of shape (n, z)
        Each row sums to 1 (equation 8), and is divided by n here (equation 9).
    own : Tensor of shape (n,), optional
        For each point the exemplar that is the point itself, or -1: such a pair does not count.
    negative_entropy : Tensor of shape (), optional
        The sum of p log p for these points, if it is known.
    """
    pull, z = dense_pairs(Y, V, P, own)
    n = all_sum(len(Y))
    constant = entropy_term(P, n) if negative_entropy is None else negative_entropy
    return all_sum_with_gradient(constant + pull / n) + all_sum_with_gradient(z).log()


class Full:
    """All exemplars in every batch, on the map and in the probabilities.

    Only the precision of each row is kept, and the probabilities of a batch are computed again from it. They cost a
    product of the batch with the exemplars, and memory for n numbers instead of n x z.

    Parameters
    ----------
    exemplars : Exemplars
    start : int
        The number of this process's first row, over all processes.
    perplexity : float
    device : torch.device
        Where the network is trained.
    """

    def __init__(self, exemplars: Exemplars, start: int, perplexity: float, device: torch.device) -> None:
        self.exemplars, self.start, self.perplexity, self.device = exemplars, start, perplexity, device
        self.inputs = exemplars.inputs.to(device)
        candidates = to_double(self.inputs)
        self.metric = exemplars.metric
        self.origin = self.metric.origin(candidates)
        self.candidates = self.metric.prepare(candidates, self.origin)

    def columns(self, inputs: Tensor, rows: slice) -> Columns:
        """The precision of each row, and which exemplar the row is."""
        beta = torch.empty(len(inputs), dtype=torch.float64)
        own = self.exemplars.own(rows, self.start)
        for part in blocks_in_cache(len(inputs), len(self.inputs)):
            distances = self._distances(inputs[part], None if own is None else own[part])
            beta[part] = precisions(distances, self.perplexity).cpu()
        return {"beta": beta} if own is None else {"beta": beta, "own": own.int()}

    def prepared(self, batch: Batch) -> Batch:
        """The probabilities of the batch, their entropy, and the rows of one pass: the batch and all exemplars."""
        own = batch["own"].long() if "own" in batch else None
        rows = batch["inputs"].to(self.device)
        distances = self._distances(rows, own)
        P = gaussian(distances, batch["beta"].to(distances.device)).to(device=self.device, dtype=rows.dtype)
        columns = {"P": P, "rows": torch.cat([rows, self.inputs]), "entropy": entropy_term(P, all_sum(len(P)))}
        return Batch(columns if own is None else columns | {"own": own.to(self.device)}, batch.epoch)

    def loss(self, network: nn.Module, batch: Batch) -> Tensor:
        """Equation 12."""
        Y, V = embed_in_parts(network, batch["rows"], len(batch))
        return exemplar_loss(Y, V, batch["P"], batch.columns.get("own"), batch["entropy"])

    def _distances(self, inputs: Tensor, own: Tensor | None) -> Tensor:
        """Squared distances minus a constant per row, on which probabilities do not depend: (rows, exemplars)."""
        rows = self.metric.prepare(to_double(inputs.to(self.device)), self.origin)
        return exclude_from(self.metric.scores(rows, self.candidates), own)
