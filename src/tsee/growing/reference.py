"""What novelty is measured against after an update."""

from __future__ import annotations

import torch
from torch import Tensor

from tsee.exemplars import Exemplars
from tsee.placement.novelty import NoveltyReference, exemplar_distances, subsample

__all__ = ["grown_reference"]

# Old exemplars by which the distances of old rows are corrected.
SAMPLE = 1000


def grown_reference(
    old: Exemplars, grown: Exemplars, reference: NoveltyReference, of_new: NoveltyReference, share: float
) -> NoveltyReference:
    """The distances of rows from their exemplars after an update, in ascending order.

    New rows were measured. The old rows are gone: what is known of them are their distances from the old exemplars.
    They are now as much nearer to exemplars as the old exemplars are in the median.

    Parameters
    ----------
    old, grown : Exemplars
        Before and after the update; the old ones that are left come first in both.
    reference : NoveltyReference
        The distances of old rows from the old exemplars.
    of_new : NoveltyReference
        The distances of new rows from the grown exemplars.
    share : float
        The share of old rows among all.
    """
    return NoveltyReference(
        _mixed(reference.distances * _factor(old, grown, fewer=False), of_new.distances, share),
        _mixed(reference.subsample_distances * _factor(old, grown, fewer=True), of_new.subsample_distances, share),
    )


def _mixed(old: Tensor, new: Tensor, share: float) -> Tensor:
    """So many quantiles of the mixture as there are old values, in ascending order."""
    n = len(old)
    n_old = min(n, max(0, round(share * n)))
    return torch.cat([_quantiles(old, n_old), _quantiles(new, n - n_old)]).sort().values


def _quantiles(ascending: Tensor, n: int) -> Tensor:
    """n values, evenly spaced among ascending ones: the smallest and the largest are among them."""
    return ascending[torch.linspace(0, len(ascending) - 1, n).round().long()]


def _factor(old: Exemplars, grown: Exemplars, *, fewer: bool) -> float:
    """How near old exemplars are to their nearest others after an update, compared with before; at most 1."""
    sample = torch.arange(0, len(old), -(-len(old) // SAMPLE))
    medians = []
    for exemplars in (old, grown):
        own = sample
        if fewer:
            kept = subsample(torch.arange(len(exemplars)))
            exemplars = Exemplars(subsample(exemplars.inputs), metric=exemplars.metric)
            own = torch.where(torch.isin(sample, kept), torch.searchsorted(kept, sample), -1)
        nothing = torch.zeros(len(sample))
        distances = exemplar_distances(old.inputs[sample], nothing, exemplars.index, own)
        medians.append(float(distances.median()))
    before, after = medians
    return min(1.0, after / before) if before > 0 else 1.0
