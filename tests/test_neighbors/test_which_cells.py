"""Which cells are searched, in what order, and what is found in them."""

import pickle

import pytest
import torch

from tests.test_neighbors.naive import nearest, share_found
from tsee.neighbors import CellIndex, ExactIndex, cells
from tsee.neighbors.cells import MIN_CANDIDATES
from tsee.neighbors.traced import Cells, TracedIndex


def test_so_many_cells_are_searched_that_enough_is_found(monkeypatch):
    """Of very many cells few are searched, and more if a sample of the candidates would miss too much."""
    X = torch.randn(20_000, 12, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(cells, "MOST_BY_SHARE", 20)
    monkeypatch.setattr(cells, "LEAST_RECALL", 0.0)
    least = CellIndex(X)
    assert least.n_searched == 2
    monkeypatch.setattr(cells, "LEAST_RECALL", 0.9)
    index = CellIndex(X)
    assert 2 < index.n_searched < len(index.centers)
    own = torch.arange(0, 20_000, 10)
    expected, _ = nearest(X[own], X, 15, exclude=own)
    found = [share_found(nearest(X[own], of, 15, exclude=own)[0], expected) for of in (least, index)]
    assert least.recall == pytest.approx(float(found[0]), abs=0.05)
    assert index.recall == pytest.approx(float(found[1]), abs=0.05)
    assert index.recall >= 0.9 > least.recall


def test_a_rough_search_is_of_fewer_cells_and_misses_little(monkeypatch):
    X = torch.randn(20_000, 12, generator=torch.Generator().manual_seed(0))
    monkeypatch.setattr(cells, "MOST_BY_SHARE", 20)
    index = CellIndex(X)
    assert 0 < index.roughly.n_searched < index.n_searched < len(index.centers)
    assert (index.roughly.n_searched, index.roughly.roughly) == (index.n_roughly, index.roughly)
    queries = X[::10] + 0.01
    expected, _ = nearest(queries, X, 15)
    rough, thorough = (share_found(nearest(queries, of, 15)[0], expected) for of in (index.roughly, index))
    assert thorough > 0.95 > rough > 0.85
    torch.testing.assert_close(pickle.loads(pickle.dumps(index.roughly)).query(queries, 15), index.query(queries, 15))


def test_a_rough_search_serves_rows_between_small_clusters_too(monkeypatch):
    """A sample of the candidates lies within cells: one or two of them would be enough for it."""
    monkeypatch.setattr(cells, "MOST_BY_SHARE", 70)
    generator = torch.Generator().manual_seed(0)
    centers = 6 * torch.randn(1000, 20, generator=generator)
    own = (1.5 * torch.randn(1000, generator=generator)).exp().multinomial(20_000, True, generator=generator)
    X = centers[own] + torch.randn(20_000, 20, generator=generator)
    between = (centers[:500] + centers[500:]) / 2
    index = CellIndex(X)
    expected, _ = nearest(between, X, 1)
    rough, thorough = (share_found(nearest(between, of, 1)[0], expected) for of in (index.roughly, index))
    assert index.n_roughly < index.n_searched
    assert rough > thorough - 0.15


def test_few_cells_and_no_cells_are_searched_as_thoroughly_for_positions(clustered):
    for index in (CellIndex(clustered), ExactIndex(clustered)):
        assert index.roughly is index


def test_cells_that_are_near_each_other_have_near_numbers(clustered):
    centers = CellIndex(clustered).centers
    steps = centers.diff(dim=0).norm(dim=1).mean()
    anywhere = torch.cdist(centers, centers).mean()
    assert steps < 0.8 * anywhere


def test_queries_come_in_the_order_of_their_cells():
    """Queries of one cell come one after the other, and near cells too, although only one group is looked into."""
    X = 10 * torch.rand(MIN_CANDIDATES, 2, generator=torch.Generator().manual_seed(0))
    index = CellIndex(X)
    rows = X[torch.randperm(20_000, generator=torch.Generator().manual_seed(1))] + 0.01
    order = index.order(rows)
    assert torch.equal(order.sort().values, torch.arange(len(rows)))
    assert rows[order].diff(dim=0).norm(dim=1).mean() < 0.1 * rows.diff(dim=0).norm(dim=1).mean()


def few_groups(monkeypatch):
    """A query is compared with the cells of a third of the groups, as in an index of very many cells."""
    monkeypatch.setattr(cells, "MANY_CELLS", 50)
    monkeypatch.setattr(cells, "LEAST_GROUPS", 4)
    monkeypatch.setattr(cells, "SPARE_CELLS", 2)


def test_cells_of_the_nearest_groups_are_nearly_all_of_the_nearest(clustered, monkeypatch):
    few_groups(monkeypatch)
    index = CellIndex(clustered)
    assert index.n_near < len(index.groups) / 2
    queries = clustered[:2000] + 0.01
    indices, distances = index.query(queries, 30)
    assert share_found(indices, nearest(queries, clustered, 30)[0]) > 0.98
    assert (indices.sort(1).values.diff(dim=1) > 0).all()
    exact = (queries[:, None] - clustered[indices]).square().sum(2)
    torch.testing.assert_close(distances, exact)


def test_what_cells_of_groups_find_does_not_hang_on_the_other_rows(clustered, monkeypatch):
    few_groups(monkeypatch)
    index = CellIndex(clustered)
    together = index.query(clustered[:1500] + 0.01, 20)
    for rows in (slice(0, 1), slice(3, 20), slice(100, 149), slice(200, 1200)):
        alone = index.query(clustered[rows] + 0.01, 20)
        assert torch.equal(alone[0], together[0][rows])
        assert torch.equal(alone[1], together[1][rows])


def test_the_smallest_groups_hold_enough_cells(clustered, monkeypatch):
    few_groups(monkeypatch)
    monkeypatch.setattr(cells, "LEAST_GROUPS", 1)
    monkeypatch.setattr(cells, "SPARE_CELLS", 0)
    index = CellIndex(clustered)
    assert index.group_sizes.sort().values[: index.n_near].sum() >= index.n_searched
    _, distances = index.query(clustered[:100], 20)
    assert torch.isfinite(distances).all()
    assert (distances[:, 0] == 0).all()


@pytest.mark.parametrize("apart", [1e3, 3e3, 1e4, 1e5])
def test_cells_of_far_clusters_find_the_nearest(apart):
    """Float32 hides which cell of a far cluster is nearest, and to which cell a row belongs."""
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(41_000, 6, generator=generator)
    X[:, 0] += apart * (2 * torch.randint(0, 2, (41_000,), generator=generator) - 1)
    index, queries = CellIndex(X[:40_000]), X[39_500:40_500]
    assert index.centers.dtype == torch.float64
    found, _ = index.query(queries, 15)
    assert (found[:500, 0] == torch.arange(39_500, 40_000)).all()
    D = (queries.double()[:, None] - X[:40_000].double()).square().sum(2)
    assert share_found(found, D.topk(15, largest=False).indices) > 0.97
    traced = TracedIndex(index.rows, index.metric, Cells.of(index))
    assert torch.equal(traced.query(queries[::20].clone(), 15)[0], found[::20])


def test_cells_are_found_in_float32_where_it_tells_rows_apart(clustered):
    for rows in (clustered, torch.cat([clustered, torch.full((1, 10), 1e4)]), clustered.repeat(2, 1)):
        assert CellIndex(rows).centers.dtype == torch.float32
