"""Perplexities are met, and the probabilities equal a naive loop."""

import math

import pytest
import torch

from tsee.affinities import conditional_probabilities, gaussian, joint_probabilities, precisions
from tsee.data import slices as data


def perplexities(P):
    return torch.exp(-torch.xlogy(P.double(), P.double()).sum(1))


def naive_row(distances, perplexity):
    """Bisection on the precision of one row, in Python floats."""
    low, high = 0.0, 1e12
    for _ in range(300):
        beta = math.sqrt(low * high) if low > 0 else min(high, 1.0) / 2
        weights = [math.exp(-beta * (d - min(distances))) for d in distances]
        p = [w / sum(weights) for w in weights]
        entropy = -sum(q * math.log(q) for q in p if q > 0)
        low, high = (beta, high) if entropy > math.log(perplexity) else (low, beta)
    return p


@pytest.mark.parametrize("perplexity", [1.5, 5.0, 30.0, 99.0])
@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_perplexity_is_met_for_every_row(perplexity, scale):
    distances = scale * torch.rand(200, 100, generator=torch.Generator().manual_seed(0)) ** 2
    P = conditional_probabilities(distances, perplexity)
    assert (perplexities(P) - perplexity).abs().max() < 1e-4
    torch.testing.assert_close(P.sum(1), torch.ones(200))


def test_equals_a_naive_bisection():
    distances = torch.rand(5, 12, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    P = conditional_probabilities(distances, 4.0)
    expected = torch.tensor([naive_row(row.tolist(), 4.0) for row in distances], dtype=torch.float64)
    torch.testing.assert_close(P, expected, rtol=1e-4, atol=1e-7)


def test_ties_give_the_honest_limit():
    distances = torch.ones(3, 20)
    distances[0, 8:] = 2.0  # eight ties: no perplexity below 8
    distances[1] = 1.0  # all tie
    distances[2] = torch.linspace(0, 1, 20)
    P = conditional_probabilities(distances, 5.0)
    torch.testing.assert_close(perplexities(P), torch.tensor([8.0, 20.0, 5.0], dtype=torch.float64), rtol=1e-4, atol=0)
    torch.testing.assert_close(P[0, :8], torch.full((8,), 1 / 8))


def test_outliers_and_duplicates_stay_finite():
    distances = torch.tensor([[0.0, 0.0, 1e30, 1e30], [1e-30, 1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 0.0]])
    P = conditional_probabilities(distances, 2.0)
    assert torch.isfinite(P).all()
    torch.testing.assert_close(P.sum(1), torch.ones(3))
    torch.testing.assert_close(P[0], torch.tensor([0.5, 0.5, 0.0, 0.0]))


def test_candidates_at_infinity_get_nothing():
    distances = torch.rand(6, 9, generator=torch.Generator().manual_seed(2))
    distances[:, 4] = torch.inf
    P = conditional_probabilities(distances, 3.0)
    assert (P[:, 4] == 0).all()
    assert (perplexities(P) - 3).abs().max() < 1e-4


def test_joint_probabilities_follow_equations_1_to_3():
    X = torch.randn(15, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    n = len(X)
    conditional = torch.zeros(n, n, dtype=torch.float64)
    for i in range(n):
        others = [j for j in range(n) if j != i]
        row = naive_row([float((X[i] - X[j]).square().sum()) for j in others], 4.0)
        conditional[i, others] = torch.tensor(row, dtype=torch.float64)
    P = joint_probabilities(X, 4.0)
    torch.testing.assert_close(P, (conditional + conditional.T) / (2 * n), rtol=1e-4, atol=1e-8)
    assert (P.diagonal() == 0).all()
    assert float(P.sum()) == pytest.approx(1)


def test_probabilities_follow_from_the_precisions():
    """The dense form can be computed again from one number per row."""
    distances = torch.rand(50, 30, generator=torch.Generator().manual_seed(4))
    beta = precisions(distances, 6.0)
    torch.testing.assert_close(gaussian(distances, beta), conditional_probabilities(distances, 6.0))
    naive = torch.exp(-beta[:, None] * distances.double())
    torch.testing.assert_close(
        gaussian(distances, beta).double(), naive / naive.sum(1, keepdim=True), rtol=1e-4, atol=1e-7
    )


def test_the_nearest_candidates_are_a_dense_row_cut_and_rescaled():
    distances = torch.rand(40, 200, generator=torch.Generator().manual_seed(5), dtype=torch.float64).sort(dim=1).values
    cut = conditional_probabilities(distances[:, :60], 5.0)
    whole = conditional_probabilities(distances, 5.0)
    # The fewer candidates, the smaller the precision that gives the same perplexity, but not by much.
    assert (precisions(distances[:, :60], 5.0) <= precisions(distances, 5.0) * (1 + 1e-6)).all()
    torch.testing.assert_close(cut, whole[:, :60] / whole[:, :60].sum(1, keepdim=True), atol=2e-3, rtol=0.05)


def test_joint_probabilities_within_tight_clusters():
    generator = torch.Generator().manual_seed(6)
    X = torch.randn(5, 20, generator=generator).repeat(20, 1) + 1e-4 * torch.randn(100, 20, generator=generator)
    torch.testing.assert_close(
        joint_probabilities(X, 5.0).double(), joint_probabilities(X.double(), 5.0), atol=1e-6, rtol=1e-2
    )


def naive_joint(X, perplexity):
    """Bisection on the precisions of all rows, with distances summed from differences."""
    distances = (X[:, None] - X).square().sum(2).fill_diagonal_(torch.inf)
    gaps = distances - distances.amin(1, keepdim=True)
    low, high = torch.full((len(X), 1), -60.0, dtype=X.dtype), torch.full((len(X), 1), 60.0, dtype=X.dtype)
    for _ in range(100):
        middle = (low + high) / 2
        P = torch.softmax(-middle.exp() * gaps, dim=1)
        above = -torch.xlogy(P, P).sum(1, keepdim=True) > math.log(perplexity)
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return (P + P.T) / (2 * len(X))


def draw(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(7), dtype=torch.float64)


@pytest.mark.parametrize("perplexity", [1.5, 3.0, 30.0, 150.0, 238.5])
@pytest.mark.parametrize(
    "X",
    [
        pytest.param(draw(240, 3), id="few dimensions"),
        pytest.param(1e4 + 1e3 * draw(240, 200), id="all candidates about as far"),
        pytest.param(draw(240, 4) * torch.logspace(-3, 3, 240, dtype=torch.float64)[:, None], id="scales"),
        pytest.param(draw(240, 1).exp(), id="outliers"),
    ],
)
def test_joint_probabilities_of_blocks_equal_a_naive_bisection(monkeypatch, X, perplexity):
    monkeypatch.setattr(data, "BLOCK_ENTRIES", 100 * len(X))  # two whole blocks and a part
    P = joint_probabilities(X, perplexity)
    torch.testing.assert_close(P, naive_joint(X, perplexity), rtol=1e-4, atol=1e-9)
    assert torch.equal(P, P.T)
    torch.testing.assert_close(joint_probabilities(X.float(), perplexity).double(), P, rtol=1e-3, atol=1e-7)


@pytest.mark.parametrize("perplexity", [5.0, 40.0])
def test_joint_probabilities_of_rows_that_tie_or_repeat(perplexity):
    """Twenty of each row: no perplexity below 19. On a grid the distances tie, more or fewer than wanted."""
    again = draw(12, 5).repeat(20, 1)
    grid = torch.cartesian_prod(torch.arange(15.0), torch.arange(16.0)).double()
    for X in (again, grid):
        torch.testing.assert_close(joint_probabilities(X, perplexity), naive_joint(X, perplexity), rtol=1e-4, atol=1e-9)


def test_rows_of_one_table_that_differ_in_kind():
    """Ties, excluded candidates and distances of many sizes, each row as if it were alone."""
    distances = draw(7, 40).square()
    distances[1] *= 1e20
    distances[2] *= 1e-20
    distances[3, 5:] = torch.inf  # five left, and four wanted
    distances[4, ::2] = torch.inf
    distances[5, :9] = 0.0  # nine tie
    distances[6, 1:] += 1e30  # one far nearer than all others
    P = conditional_probabilities(distances, 4.0)
    for row, p in zip(distances, P, strict=True):
        torch.testing.assert_close(conditional_probabilities(row[None], 4.0)[0], p, rtol=1e-6, atol=0)
        assert (p[row.isinf()] == 0).all()
    torch.testing.assert_close(
        perplexities(P[:6]), torch.tensor([4, 4, 4, 4, 4, 9], dtype=torch.float64), rtol=1e-6, atol=0
    )
    assert torch.isfinite(P).all()


def test_a_large_offset_of_all_distances_costs_no_digits():
    """Only differences count, and they are exact here in float32."""
    steps = torch.arange(12.0).repeat(3, 1)
    beta = torch.tensor([0.1, 0.7, 3.0], dtype=torch.float64)
    naive = torch.exp(-beta[:, None] * steps.double())
    expected = naive / naive.sum(1, keepdim=True)
    for offset in (0.0, 1e6, -1e6):
        torch.testing.assert_close(gaussian(steps + offset, beta).double(), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-15, 1e-6, 1e6, 1e15])
def test_probabilities_do_not_depend_on_the_unit_of_the_data(unit):
    """Nor do they if candidates are excluded, whose distance is infinite in any unit."""
    X = draw(40, 3)
    torch.testing.assert_close(joint_probabilities(unit * X, 6.0), joint_probabilities(X, 6.0), rtol=1e-5, atol=1e-12)
    distances = draw(9, 30).square()
    distances[:, ::3] = torch.inf
    torch.testing.assert_close(precisions(unit * distances, 6.0), precisions(distances, 6.0) / unit, rtol=1e-5, atol=0)
