"""The blocked search against a search over all distances."""

import copy
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from tests.test_neighbors.naive import naive, nearest, share_found, small_blocks
from tsee.neighbors import CellIndex, ExactIndex, build_index, cells
from tsee.neighbors import index as index_module
from tsee.neighbors.cells import MIN_CANDIDATES
from tsee.neighbors.smallest import Scratch
from tsee.neighbors.traced import Cells, TracedIndex


@pytest.mark.parametrize(("n", "z", "k"), [(5, 7, 3), (300, 1000, 4), (40, 5000, 30), (3, 4, 4)])
def test_equals_all_distances(n, z, k, monkeypatch):
    small_blocks(monkeypatch)
    generator = torch.Generator().manual_seed(n)
    X, E = torch.randn(n, 6, generator=generator), torch.randn(z, 6, generator=generator)
    indices, distances = nearest(X, E, k)
    expected_indices, expected = naive(X, E, k)
    assert torch.equal(indices, expected_indices)
    torch.testing.assert_close(distances.double(), expected, rtol=1e-5, atol=1e-6)


def test_a_row_is_not_its_own_neighbor(monkeypatch):
    small_blocks(monkeypatch)
    X = torch.randn(500, 3, generator=torch.Generator().manual_seed(0))
    own = torch.arange(500)
    own[::3] = -1
    indices, distances = nearest(X, X, 5, exclude=own)
    assert (indices[own >= 0] != own[own >= 0, None]).all()
    assert (indices[own < 0, 0] == torch.arange(500)[own < 0]).all()
    assert (distances[own < 0, 0] == 0).all()
    torch.testing.assert_close(indices, naive(X, X, 5, own)[0])


def test_equal_rows_far_from_the_origin_are_at_distance_zero():
    X = torch.full((4, 3), 1e4) + torch.tensor([[0.0], [0.0], [1.0], [2.0]])
    _, distances = nearest(X, X, 2, exclude=torch.arange(4))
    assert distances[0, 0] == 0
    assert distances[1, 0] == 0
    assert distances[2].tolist() == [3.0, 3.0]


@pytest.mark.parametrize("radius", [1e-2, 1e-3, 1e-4, 1e-6])
def test_tight_clusters_far_apart(radius):
    """Even if products of float32 rows have lost the distances within a cluster."""
    generator = torch.Generator().manual_seed(0)
    centers = torch.randn(20, 50, generator=generator)
    X = centers.repeat(50, 1) + radius * torch.randn(1000, 50, generator=generator)
    indices, distances = nearest(X, X, 10, exclude=torch.arange(1000))
    _, expected = naive(X, X, 10, torch.arange(1000))
    torch.testing.assert_close(distances.double(), expected, rtol=1e-3, atol=0)
    chosen = (X.double()[:, None] - X.double()[indices]).square().sum(2)
    torch.testing.assert_close(chosen, expected, rtol=1e-3, atol=0)


def test_cells_find_nearly_all_of_the_nearest(clustered):
    own = torch.arange(2000)
    own[::3] = -1
    indices, distances = nearest(clustered[:2000], build_index(clustered, 30), 30, exclude=own)
    expected, _ = nearest(clustered[:2000], clustered, 30, exclude=own)
    assert share_found(indices, expected) > 0.99
    assert (indices != own[:, None]).all()
    assert (indices[::3, 0] == torch.arange(2000)[::3]).all()
    assert (distances.diff(dim=1) >= 0).all()
    exact = (clustered[:2000, None] - clustered[indices]).square().sum(2)
    torch.testing.assert_close(distances, exact)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("n_candidates", [1000, 5000])  # all scores at once, and in groups
def test_what_is_found_does_not_hang_on_the_other_rows(n_candidates, ties):
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(n_candidates + 200, 12, generator=generator)
    rows = (rows > 0).float() if ties else rows
    searched, queries = ExactIndex(rows[200:]), rows[:200]
    indices, distances = nearest(queries, searched, 15)
    for start, stop in ((0, 1), (7, 8), (30, 60), (100, 200)):
        again, same = nearest(queries[start:stop], searched, 15)
        assert torch.equal(again, indices[start:stop])
        assert torch.equal(same, distances[start:stop])


def test_what_cells_find_does_not_hang_on_the_other_rows(clustered):
    searched = CellIndex(clustered)
    queries = clustered[:1500] + 0.01
    indices, distances = nearest(queries, searched, 15)
    own = torch.arange(1500)
    own[::3] = -1
    others, farther = nearest(queries, searched, 15, exclude=own)
    for few in (1, 5, 100):  # searched one by one, and cell by cell
        again, same = nearest(queries[:few], searched, 15)
        assert torch.equal(again, indices[:few])
        assert torch.equal(same, distances[:few])
        again, same = nearest(queries[:few], searched, 15, exclude=own[:few])
        assert torch.equal(again, others[:few])
        assert torch.equal(same, farther[:few])


@pytest.mark.parametrize("roughly", [False, True])
def test_what_cells_find_in_far_clusters_does_not_hang_on_the_other_rows(roughly, monkeypatch):
    """Products in float32 cannot order rows this far from their mean, and round differently for few rows."""
    monkeypatch.setattr(cells, "MOST_BY_SHARE", 20)
    generator = torch.Generator().manual_seed(0)
    sides = 80 * (2 * torch.randint(2, (12_600, 1), generator=generator) - 1)
    rows, queries = (torch.randn(12_600, 16, generator=generator) + sides).split([12_000, 600])
    index = CellIndex(rows).roughly if roughly else CellIndex(rows)
    _, _, certain = index._nearest_by_products(queries, 15, None, Scratch())
    assert 0 < certain.sum() < len(queries)
    indices, distances = nearest(queries, index, 15)
    parts = [nearest(part, index, 15) for part in queries.split(3)]
    for whole, part in zip((indices, distances), zip(*parts, strict=True), strict=True):
        assert torch.equal(whole, torch.cat(part))


def test_several_threads_find_what_one_finds(clustered):
    before = torch.get_num_threads()
    clustered[:30] = clustered[0]  # more equal rows than are searched for: certain in float64 only
    searched, found = CellIndex(clustered), []
    try:
        for n_threads in (1, 3):
            torch.set_num_threads(n_threads)
            with torch.inference_mode(n_threads == 3):
                found.append(nearest(clustered[:5000], searched, 10, exclude=torch.arange(5000)))
            with ThreadPoolExecutor(1) as later:
                assert later.submit(torch.get_num_threads).result() == n_threads
            assert torch.get_num_threads() == n_threads
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_an_interrupt_ends_the_search(clustered, monkeypatch):
    monkeypatch.setattr(cells, "CELL_QUERIES", 32)
    searched = []

    class Interrupted(CellIndex):
        n_threads = 2

        def smallest_scores(self, *arguments):
            searched.append(1)
            if len(searched) == 3:
                raise KeyboardInterrupt
            return super().smallest_scores(*arguments)

    with pytest.raises(KeyboardInterrupt):
        nearest(clustered, Interrupted(clustered), 10)
    assert len(searched) < len(clustered) / 32 / 2


def test_all_are_searched_where_the_nearest_cells_hold_too_few(monkeypatch):
    """Few rows in cells of their own, near each other and far from the thousands of others."""
    monkeypatch.setattr(cells, "SEARCHED_SHARE", 1000)  # one cell only
    generator = torch.Generator().manual_seed(0)
    lonely = 100 + 10 * torch.randn(40, 40, generator=generator)
    crowd = torch.randn(MIN_CANDIDATES, 40, generator=generator)
    rows = torch.cat([lonely, crowd])
    for n in (40, 3):
        indices, distances = nearest(lonely[:n], CellIndex(rows), 30)
        expected, exact = naive(lonely[:n], rows, 30)
        assert torch.equal(indices, expected)
        torch.testing.assert_close(distances.double(), exact, rtol=1e-5, atol=0)


@pytest.mark.parametrize("rows", [torch.zeros(MIN_CANDIDATES, 3), torch.arange(float(MIN_CANDIDATES))[:, None] % 2])
def test_cells_of_rows_that_are_equal(rows):
    indices, distances = nearest(rows[:40], CellIndex(rows), 15, exclude=torch.arange(40))
    assert (distances == 0).all()
    assert (indices != torch.arange(40)[:, None]).all()
    assert all(len(set(row)) == 15 for row in indices.tolist())


def test_cells_only_where_they_pay(clustered):
    assert isinstance(build_index(clustered, 30), CellIndex)
    assert not isinstance(build_index(clustered[:-1], 30), CellIndex)
    assert not isinstance(build_index(clustered, 1000), CellIndex)
    assert isinstance(copy.deepcopy(CellIndex(clustered)), CellIndex)


@pytest.mark.parametrize("size", [1e-6, 1e-9])
def test_a_row_far_away_does_not_hide_the_distances_between_the_others(size):
    """Products of float64 cannot tell the rows apart if they are centered on the mean, which the last row moves."""
    near = torch.randn(300, 10, generator=torch.Generator().manual_seed(0))
    rows = torch.cat([size * near, torch.full((1, 10), 50.0)])
    rows[:300, 0] = -0.2
    indices, distances = nearest(rows, rows, 5)
    expected, _ = naive(rows, rows, 5)
    assert torch.equal(indices[:, 0], torch.arange(301))
    assert (distances[:, 0] == 0).all()
    assert (indices == expected).float().mean() > 0.99  # some are equally near in float32


@pytest.mark.parametrize("kind", ["spread", "tied", "equal", "few"])
@pytest.mark.parametrize("in_cells", [False, True, "groups"])
def test_a_search_without_branches_finds_the_same(kind, in_cells, clustered, monkeypatch):
    if in_cells == "groups":
        monkeypatch.setattr(cells, "MANY_CELLS", 8)
        monkeypatch.setattr(cells, "LEAST_GROUPS", 1)
        monkeypatch.setattr(cells, "SPARE_CELLS", 1)
    rows = clustered[: 20 if kind == "few" else 3000]
    if kind == "tied":
        rows = (rows > 0).float()
    elif kind == "equal":
        rows = rows[torch.arange(3000) % 30]
    queries = torch.cat([rows[::37], rows[:100] + 0.01, torch.full((1, 10), 1e4)])
    index = CellIndex(rows) if in_cells else ExactIndex(rows)
    traced = TracedIndex(rows, index.metric, Cells.of(index) if isinstance(index, CellIndex) else None)
    indices, distances = traced.query(queries, 15)
    expected, exact = index.query(queries, 15)
    torch.testing.assert_close(distances, exact, rtol=1e-6, atol=0)
    assert torch.equal(indices, expected)


def test_the_parts_of_an_index_are_all_candidates(clustered):
    for index in (CellIndex(clustered), ExactIndex(clustered)):
        parts = [index.part(number, 3) for number in range(3)]
        assert torch.equal(torch.cat(parts).sort().values, torch.arange(len(clustered)))


def test_very_many_candidates_are_not_kept_in_float64(monkeypatch):
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(20, 50, generator=generator).repeat(50, 1) + 1e-6 * torch.randn(1000, 50, generator=generator)
    expected = ExactIndex(X).query(X, 10, exclude=torch.arange(1000))
    monkeypatch.setattr(index_module, "PRECISE_KEPT", 100)
    monkeypatch.setattr(index_module, "PASSING_ROWS", 300)
    index = ExactIndex(X)
    found = index.query(X, 10, exclude=torch.arange(1000))
    assert isinstance(index._precise_factors, index_module.PassingFactors)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])
