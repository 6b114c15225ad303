"""Rows taken by their numbers, exemplars that are rows, and indices drawn by weight, each against a naive loop."""

import pytest
import torch

from tsee import exemplars
from tsee.exemplars import Exemplars, take, take_own
from tsee.neighbors import ExactIndex


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(n, d, seed=0):
    return torch.randn(n, d, generator=seeded(seed))


@pytest.mark.parametrize("function", [take, take_own])
@pytest.mark.parametrize("numbers", [[], [0], [99], [9, 10], [0, 1, 19, 20, 57, 99], [3, 3, 40, 40, 41], range(100)])
def test_rows_taken_by_number_equal_indexing(monkeypatch, function, numbers):
    monkeypatch.setattr(exemplars, "MAX_ROWS", 10)
    X, numbers = normal(100, 3), torch.tensor(list(numbers), dtype=torch.int64)
    assert torch.equal(function(X, numbers), X[numbers])


def test_nothing_is_read_after_the_last_row_taken(monkeypatch):
    monkeypatch.setattr(exemplars, "MAX_ROWS", 10)
    read = []

    class Noting:
        shape = (100, 3)

        def __getitem__(self, rows):
            read.append(rows)
            return normal(100, 3)[rows]

    assert torch.equal(take_own(Noting(), torch.tensor([4, 25])), normal(100, 3)[[4, 25]])
    assert read == [slice(0, 10), slice(10, 20), slice(20, 30)]


@pytest.mark.parametrize("n_columns", [1, 100, 1000, 10**6])
def test_blocks_cover_all_rows_and_hold_no_more_scores_than_a_tile(n_columns):
    X = torch.arange(20_000.0).reshape(-1, 2).double()
    parts = list(exemplars._blocks(X, n_columns))
    assert torch.equal(torch.cat([block for _, block in parts]), X.float())
    for rows, block in parts:
        assert torch.equal(block, X[rows].float())
        assert len(block) <= exemplars.MAX_ROWS
        assert len(block) * n_columns <= exemplars.TILE or len(block) <= exemplars.MIN_ROWS
    sizes = {len(block) for _, block in parts[:-1]}
    assert sizes <= {min(max(2**20 // max(n_columns, 2), 256), 8192)}


@pytest.mark.parametrize("start", [0, 7, 40])
@pytest.mark.parametrize("rows", [slice(0, 20), slice(0, 0), slice(5, 6), slice(13, 50)])
def test_own_is_found_by_a_naive_search(start, rows):
    indices = torch.tensor([0, 3, 5, 12, 13, 40, 47, 53, 89])
    chosen = Exemplars(normal(9, 2), indices)
    expected = [indices.tolist().index(i) if i in indices else -1 for i in range(start + rows.start, start + rows.stop)]
    found = chosen.own(rows, start)
    assert found.dtype == torch.int64
    assert found.tolist() == expected
    if start == 0:
        assert torch.equal(chosen.own(rows), found)
    assert Exemplars(normal(9, 2)).own(rows, start) is None


def test_the_index_of_exemplars_finds_the_nearest():
    chosen = Exemplars(normal(50, 4))
    found, squared = chosen.index.query(normal(20, 4, seed=1), 15)
    expected, distances = ExactIndex(chosen.inputs).query(normal(20, 4, seed=1), 15)
    assert len(chosen) == 50
    assert torch.equal(found, expected)
    torch.testing.assert_close(squared, distances)
    assert chosen.index is chosen.index


def test_indices_are_drawn_in_proportion_to_their_weights():
    weights = torch.tensor([0.0, 3.0, 0.0, 1.0, 6.0])
    drawn = exemplars._draw(weights, 20_000, seeded())
    shares = torch.bincount(drawn, minlength=5) / 20_000
    assert shares[weights == 0].sum() == 0
    expected = weights / weights.sum()
    assert ((shares - expected).abs() <= 5 * (expected * (1 - expected) / 20_000).sqrt()).all()


def test_an_index_of_weight_0_is_not_drawn_at_the_ends_of_the_interval(monkeypatch):
    weights = torch.tensor([0.0, 2.0, 0.0, 2.0, 0.0])
    edges = torch.tensor([0.0, 0.5, 1 - 2.0**-53], dtype=torch.float64)  # the numbers drawn are from [0, 1)
    monkeypatch.setattr(exemplars, "_uniform", lambda n, generator: edges)
    assert exemplars._draw(weights, 3, seeded()).tolist() == [3, 1, 1]
