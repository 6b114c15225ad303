"""What the network learns again: neighbors of old exemplars, without a search where new ones know them."""

import numpy as np
import torch

from tsee import DtSEE
from tsee.exemplars import Exemplars
from tsee.growing.lesson import GrownNeighborhoods, find_neighbors
from tsee.neighbors import build_index
from tsee.placement.novelty import NEIGHBORS, exemplar_distances

K, PERPLEXITY = 8, 4.0


def grown(n_old=40, n_new=60):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(n_old + n_new, 3, generator=generator)
    rows[:3] += 50  # no new row has these among its neighbors
    exemplars = Exemplars(rows, torch.arange(len(rows)))
    known, squared = find_neighbors(build_index(rows, K), n_old, K, PERPLEXITY)
    return exemplars, known, squared


def test_neighbors_of_old_ones_are_those_who_have_them_as_neighbors():
    exemplars, known, _ = grown()
    own = torch.cat([torch.arange(20), torch.arange(40, 70), torch.full((5,), -1)])
    inputs = torch.cat([exemplars.inputs[own[:50]], torch.zeros(5, 3)])
    found, _ = GrownNeighborhoods(exemplars, PERPLEXITY, own, known).find(inputs, slice(0, 55))
    torch.testing.assert_close(found.probabilities.sum(1), torch.ones(55))
    for i in range(3, 20):
        weights = {40 + j: float(known.probabilities[j][known.indices[j] == i].sum()) for j in range(60)}
        choosers = [j for j, weight in weights.items() if weight > 0][:K]
        if not choosers:
            continue
        total = sum(weights[j] for j in choosers)
        given = dict(zip(found.indices[i].tolist(), found.probabilities[i].tolist(), strict=True))
        for j in choosers:
            assert abs(given[j] - weights[j] / total) < 1e-5
    assert set(found.indices[:3].flatten().tolist()) >= {0, 1, 2}  # searched for
    assert torch.equal(found.indices[20:50], known.indices[:30])
    nearest = (exemplars.inputs.square().sum(1)).argsort()[:K]
    assert torch.equal(found.indices[54], nearest)


def test_without_old_ones_among_the_neighbors_all_are_searched_for():
    exemplars, known, _ = grown()
    known.indices.clamp_min_(40)
    own = torch.arange(10)
    found, _ = GrownNeighborhoods(exemplars, PERPLEXITY, own, known).find(exemplars.inputs[:10], slice(0, 10))
    expected, _ = find_neighbors(build_index(exemplars.inputs, K), 0, K, PERPLEXITY)
    assert torch.equal(found.indices, expected.indices[:10])


def test_how_far_exemplars_are_need_not_be_found_twice():
    exemplars, _, squared = grown()
    near = torch.full((100,), torch.nan)
    near[40:] = squared[:, :NEIGHBORS].mean(1)
    own = torch.tensor([3, 45, -1, 99, 0, -1])
    inputs, outside = exemplars.inputs[own.clamp_min(7)], torch.rand(6, generator=torch.Generator().manual_seed(1))
    inputs = torch.where(own[:, None] >= 0, exemplars.inputs[own], inputs)
    expected = exemplar_distances(inputs, outside, exemplars.index, own)
    torch.testing.assert_close(exemplar_distances(inputs, outside, exemplars.index, own, near), expected)


def test_a_map_of_fewer_exemplars_than_rows_whose_network_chooses_among_places():
    X = np.random.default_rng(0).normal(size=(600, 10)).astype(np.float32)
    see = DtSEE(n_exemplars=100, max_epochs=1, refinement=20, random_state=0).fit(X)
    grown = see.update(X[:100] + np.float32(0.1))
    assert len(grown.embedding_) == 700
    assert np.isfinite(grown.transform(X)).all()
