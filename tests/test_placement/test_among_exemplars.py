"""Positions among exemplars, and distances from them, equal naive loops in float64."""

import pytest
import torch

from tsee.neighbors import ExactIndex
from tsee.placement import refined
from tsee.placement.novelty import SUBSAMPLE_SIZE, exemplar_distances, share_nearer, subsample
from tsee.placement.refined import neighbor_weights, refined_positions, settle


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def naive_weights(squared, precision=2.2):
    """The weights of one row's neighbors; the distance a third down the list is the unit."""
    gap = squared[len(squared) // 3] - squared[0]
    weights = torch.exp(-precision * (squared - squared[0]) / gap)
    return weights / weights.sum()


def naive_attraction(position, neighbors, weights):
    return float((weights * torch.log1p((position - neighbors).square().sum(1))).sum())


def naive_settled(neighbors, weights):
    """The position of one row: from the best of its neighbors, step by step toward the weighted mean."""
    position = min(neighbors, key=lambda start: naive_attraction(start, neighbors, weights))
    for factor in refined.SETTLING:
        pull = weights / (1 + (position - neighbors).square().sum(1))
        position = position + factor * ((pull[:, None] * neighbors).sum(0) / pull.sum() - position)
    return position


def naive_position(row, exemplars, positions):
    squared, order = (row.double() - exemplars.double()).square().sum(1).sort()
    k = min(refined.NEIGHBORS, len(exemplars))
    return naive_settled(
        positions.double()[order[:k]], naive_weights(squared[:k], 2.2 * (16384 / len(exemplars)) ** 0.125)
    )


def test_weights_are_those_of_a_naive_loop():
    squared = draw(20, 15).square().cumsum(1).double()
    expected = torch.stack([naive_weights(row) for row in squared])
    torch.testing.assert_close(neighbor_weights(squared), expected)
    # The smallest lists: the unit is the second of three, and the third of seven.
    torch.testing.assert_close(neighbor_weights(squared[:1, :3])[0], naive_weights(squared[0, :3]))
    torch.testing.assert_close(neighbor_weights(squared[:1, :7])[0], naive_weights(squared[0, :7]))


@pytest.mark.parametrize("components", [1, 2, 3])
def test_a_position_settles_as_in_a_naive_loop(components):
    neighbors = 3 * draw(30, 9, components).double()
    weights = torch.softmax(2 * draw(30, 9, seed=1).double(), 1)
    expected = torch.stack([naive_settled(v, p) for v, p in zip(neighbors, weights, strict=True)])
    torch.testing.assert_close(settle(neighbors, weights), expected)


@pytest.mark.parametrize("n_exemplars", [4, 15, 60])
def test_positions_among_exemplars_equal_a_naive_loop(monkeypatch, n_exemplars):
    monkeypatch.setattr(refined, "SETTLED_ROWS", 32)  # two whole blocks and a part
    rows, exemplars, positions = draw(70, 5), draw(n_exemplars, 5, seed=1), 4 * draw(n_exemplars, 2, seed=2)
    found = refined_positions(rows, ExactIndex(exemplars), positions)
    expected = torch.stack([naive_position(row, exemplars, positions) for row in rows])
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("components", [1, 2, 3])
def test_a_row_that_equals_an_exemplar_gets_its_position_and_a_near_one_does_not(components):
    exemplars, positions = draw(40, 5), 4 * draw(40, components, seed=2)
    index = ExactIndex(exemplars)
    assert torch.equal(refined_positions(exemplars, index, positions), positions)
    near = exemplars + 1e-3
    found = refined_positions(near, index, positions)
    assert not (found == positions).all(1).any()
    expected = torch.stack([naive_position(row, exemplars, positions) for row in near])
    torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("unit", [2.0**-20, 2.0**20])
def test_positions_do_not_depend_on_the_unit_of_the_inputs(unit):
    rows, exemplars, positions = draw(40, 5), draw(30, 5, seed=1), draw(30, 2, seed=2)
    expected = refined_positions(rows, ExactIndex(exemplars), positions)
    torch.testing.assert_close(refined_positions(unit * rows, ExactIndex(unit * exemplars), positions), expected)


def test_among_exemplars_that_are_all_equal_the_nearest_is_the_row_itself():
    exemplars, positions = torch.ones(4, 5), draw(4, 2)
    found = refined_positions(torch.ones(3, 5), ExactIndex(exemplars), positions)
    nearest, _ = ExactIndex(exemplars).query(torch.ones(3, 5), 4)
    assert torch.equal(found, positions[nearest[:, 0]])


def test_only_a_row_too_far_for_a_distance_has_no_position():
    rows, exemplars, positions = draw(40, 5), draw(30, 5, seed=1), draw(30, 2, seed=2)
    expected = refined_positions(rows, ExactIndex(exemplars), positions)
    rows[[3, 38]] = 1e30
    found = refined_positions(rows, ExactIndex(exemplars), positions)
    assert torch.nonzero(found.isnan().all(1)).flatten().tolist() == [3, 38]
    kept = [i for i in range(40) if i not in (3, 38)]
    assert torch.equal(found[kept], expected[kept])


def test_the_share_that_is_nearer_does_not_count_ties():
    reference = torch.tensor([0.0, 1.0, 1.0, 2.0])
    distances = torch.tensor([-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0])
    shares = share_nearer(reference, distances)
    assert shares.dtype == torch.float32
    assert shares.tolist() == [float((reference < d).float().mean()) for d in distances]


@pytest.mark.parametrize("n_exemplars", [2, 5, 6, 30])
@pytest.mark.parametrize("known", [False, True])
def test_distances_from_few_exemplars(n_exemplars, known):
    """The mean over the five nearest, or over all there are, without the row itself."""
    exemplars = draw(n_exemplars, 4, seed=1)
    rows, own = torch.cat([exemplars, draw(3, 4)]), torch.cat([torch.arange(n_exemplars), torch.full((3,), -1)])
    outside = draw(len(rows), seed=3).square()
    expected = []
    for row, itself, left_out in zip(rows.double(), own.tolist(), outside.double(), strict=True):
        others = [e for j, e in enumerate(exemplars.double()) if not (known and j == itself)]
        squared = sorted(float((row - e).square().sum()) for e in others)
        k = min(5, n_exemplars - known)
        expected.append((sum(squared[:k]) / k + float(left_out)) ** 0.5)
    found = exemplar_distances(rows, outside, ExactIndex(exemplars), own if known else None)
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("n", "step"), [(1, 1), (SUBSAMPLE_SIZE, 1), (SUBSAMPLE_SIZE + 1, 2), (4000, 2), (4001, 3)])
def test_a_subsample_is_every_so_manieth_exemplar(n, step):
    rows = torch.arange(float(n))[:, None]
    found = subsample(rows)
    assert found[:, 0].tolist() == list(range(0, n, step))
    assert len(found) <= 2000
    assert found.is_contiguous()
