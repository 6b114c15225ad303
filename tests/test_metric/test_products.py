"""The metric against loops over pairs in float64, and indexes of any metric against all distances."""

import copy
import pickle
from dataclasses import dataclass

import pytest
import torch

from tsee.affinities import joint_probabilities
from tsee.exemplars import choose_centers
from tsee.metric import Euclidean, Prepared, euclidean, exclude_from
from tsee.neighbors import CellIndex, ExactIndex, build_index
from tsee.neighbors.cells import MIN_CANDIDATES


def normal(n, d, seed=0, dtype=torch.float32):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def naive(X, E):
    """The squared distance of each pair, one at a time."""
    rows = [[sum((a - b) ** 2 for a, b in zip(x, e, strict=True)) for e in E.tolist()] for x in X.tolist()]
    return torch.tensor(rows, dtype=torch.float64)


@dataclass(frozen=True)
class Weighted:
    """Euclidean distances of rows whose columns are scaled first."""

    weights: tuple[float, ...]

    def scaled(self, rows):
        return rows * torch.tensor(self.weights, dtype=rows.dtype)

    def origin(self, rows):
        return rows.mean(0)

    def prepare(self, rows, origin=None):
        rows = self.scaled(rows if origin is None else rows - origin)
        return Prepared(rows, rows.square().sum(1))

    def lengths(self, rows, others):
        return torch.cdist(self.scaled(rows), self.scaled(others))

    among = Euclidean.among

    def exact(self, rows, others):
        return self.scaled(rows - others).square().sum(-1)

    candidate_factors = Euclidean.candidate_factors
    query_factors = Euclidean.query_factors
    scores = Euclidean.scores
    distances = Euclidean.distances
    rounding = Euclidean.rounding
    means = Euclidean.means


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_all_ways_to_a_distance_agree(offset):
    X, E = normal(7, 5).double() + offset, normal(11, 5, 1).double() + offset
    origin = euclidean.origin(E)
    queries, candidates = euclidean.prepare(X, origin), euclidean.prepare(E, origin)
    expected = naive(X, E)
    torch.testing.assert_close(euclidean.distances(queries, candidates), expected)
    torch.testing.assert_close(euclidean.scores(queries, candidates) + queries.norms[:, None], expected)
    factored = euclidean.query_factors(queries) @ euclidean.candidate_factors(candidates).T
    torch.testing.assert_close(factored + queries.norms[:, None], expected)
    torch.testing.assert_close(euclidean.exact(X[:, None], E), expected)


@pytest.mark.parametrize("offset", [0.0, 100.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_rounding_bounds_the_error_of_scores(scale, offset):
    """Also without subtracting the mean, when products lose most."""
    X, E = scale * normal(50, 30) + offset, scale * normal(400, 30, 1) + offset
    queries, candidates = euclidean.prepare(X), euclidean.prepare(E)
    bound = euclidean.rounding(queries, candidates.norms.max(), torch.tensor(torch.inf))
    exact = (X.double()[:, None] - E.double()).square().sum(2) - X.double().square().sum(1, keepdim=True)
    for scores in (
        euclidean.scores(queries, candidates),
        euclidean.query_factors(queries) @ euclidean.candidate_factors(candidates).T,
    ):
        assert ((scores.double() - exact).abs() <= bound[:, None]).all()


def test_equal_rows_are_at_exactly_zero():
    X = normal(20, 6) + 1e4
    assert (euclidean.exact(X, X.clone()) == 0).all()
    rows = euclidean.prepare(X, euclidean.origin(X))
    assert (euclidean.distances(rows, rows) >= 0).all()


def test_parts_of_prepared_rows():
    rows = euclidean.prepare(normal(10, 3))
    part = rows[2:5]
    assert torch.equal(part.rows, rows.rows[2:5])
    assert torch.equal(part.norms, rows.norms[2:5])
    assert torch.equal(rows[torch.tensor([7, 1])].norms, rows.norms[[7, 1]])


def test_an_empty_cluster_keeps_its_center():
    before = normal(3, 2)
    sums, counts = torch.tensor([[2.0, 4.0], [0.0, 0.0], [3.0, 3.0]]).double(), torch.tensor([2, 0, 3])
    means = euclidean.means(sums, counts, before)
    assert means.dtype == torch.float32
    assert means[[0, 2]].tolist() == [[1.0, 2.0], [1.0, 1.0]]
    assert torch.equal(means[1], before[1])


def test_what_is_excluded_is_infinitely_far():
    scores = torch.zeros(3, 4)
    assert exclude_from(scores, None) is scores
    exclude_from(scores, torch.tensor([2, -1, 0]))
    assert torch.isinf(scores).nonzero().tolist() == [[0, 2], [2, 0]]


@pytest.mark.parametrize("n_queries", [3, 100])
@pytest.mark.parametrize("n", [50, 3000])  # all scores at once, and in groups
def test_an_exact_index_of_another_metric(n, n_queries):
    metric = Weighted((3.0, 1.0, 0.1, 0.0))
    X, E = normal(n_queries, 4) + 10, normal(n, 4, 1) + 10
    exclude = torch.arange(n_queries) % n
    exclude[::2] = -1
    indices, distances = ExactIndex(E, metric).query(X, 5, exclude)
    table = exclude_from((metric.scaled(X.double())[:, None] - metric.scaled(E.double())).square().sum(2), exclude)
    expected, order = table.sort(dim=1, stable=True)
    assert torch.equal(indices, order[:, :5])
    torch.testing.assert_close(distances.double(), expected[:, :5], rtol=1e-4, atol=1e-6)


def test_cells_of_another_metric():
    metric = Weighted((5.0, 1.0, 0.2, 0.2, 0.2))
    rows = normal(MIN_CANDIDATES, 5)
    index = build_index(rows, 10, metric)
    assert isinstance(index, CellIndex)
    found, distances = index.query(rows[:200], 10)
    expected, _ = ExactIndex(rows, metric).query(rows[:200], 10)
    assert (found[:, :, None] == expected[:, None, :]).any(2).double().mean() > 0.95
    assert (distances[:, 0] == 0).all()
    euclidean_neighbors, _ = ExactIndex(rows).query(rows[:200], 10)
    assert (found[:, :, None] == euclidean_neighbors[:, None, :]).any(2).double().mean() < 0.9


def test_copies_of_an_index_keep_its_metric():
    index = ExactIndex(normal(30, 2), Weighted((1.0, 0.0)))
    for again in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert again.metric == index.metric
        assert torch.equal(again.query(normal(4, 2), 3)[0], index.query(normal(4, 2), 3)[0])


def test_centers_and_joint_probabilities_of_another_metric():
    """Columns of weight 2 are columns multiplied by 2: the numbers are the same to the bit."""
    metric, X = Weighted((2.0, 2.0, 2.0)), normal(400, 3)

    def choose(rows, **options):
        return choose_centers(rows, 12, generator=torch.Generator().manual_seed(1), **options)

    ours, theirs = choose(X, metric=metric), choose(2 * X)
    assert torch.equal(2 * ours.positions, theirs.positions)
    assert ours.inertia == theirs.inertia
    assert torch.equal(joint_probabilities(X, 9.0, metric), joint_probabilities(2 * X, 9.0))
    flat = Weighted((1.0, 1.0, 0.0))
    assert not torch.equal(joint_probabilities(X, 9.0, flat), joint_probabilities(X, 9.0))
