"""Positions, neighbors and naive sums that the tests of layouts share."""

import torch

from tsee.affinities import Affinities, conditional_probabilities
from tsee.layout import Descent, lay_out
from tsee.neighbors import ExactIndex


def clusters(n, width, n_components=2, seed=0):
    generator = torch.Generator().manual_seed(seed)
    middles = width * torch.rand(10, n_components, generator=generator)
    chosen = middles[torch.randint(10, (n,), generator=generator)]
    return chosen + width / 15 * torch.randn(n, n_components, generator=generator)


def neighbors_of(X, k=15, perplexity=5.0):
    indices, distances = ExactIndex(X).query(X, k, exclude=torch.arange(len(X)))
    return Affinities(indices, conditional_probabilities(distances, perplexity).float())


def laid_out(shape, affinities, *, pull, n_iterations, exaggeration=1.0, **watching):
    descent = Descent(shape, affinities, pull=pull, n_iterations=n_iterations, exaggeration=exaggeration)
    return lay_out(descent, **watching)


def naive_repulsion(Y):
    forces, total = [], -float(len(Y))
    for block in Y.double().split(256):
        differences = block[:, None] - Y.double()
        w = 1 / (1 + differences.square().sum(2))
        forces.append((w.square()[:, :, None] * differences).sum(1))
        total += float(w.sum())
    return torch.cat(forces), total


def naive_loss(Y, affinities, exaggeration, shape=None, pull=0.0, size=1.0):
    """The loss of `tsee.layout.descent`, in float64, from a dense matrix of p."""
    n = len(Y)
    p = torch.zeros(n, n, dtype=torch.float64).scatter_(1, affinities.indices, affinities.probabilities.double())
    p = (p + p.T) / (2 * n)
    d = (Y[:, None] - Y).square().sum(2)
    off = ~torch.eye(n, dtype=torch.bool)
    loss = exaggeration * (p * torch.log1p(d)).sum() + (1 / (1 + d))[off].sum().log()
    return loss if shape is None else loss + 2 * pull / (n * size**2) * (Y - size * shape).square().sum()
