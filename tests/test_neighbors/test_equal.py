"""Rows that are equal, found without a search."""

import pytest
import torch

from tsee.neighbors import CellIndex, ExactIndex, equal


def test_rows_that_equal_candidates_are_found_without_a_search(clustered):
    index = CellIndex(torch.cat([clustered, clustered[:50]]))
    queries = torch.cat([clustered[40:60], clustered[:10] + 1e-6])
    assert index.equal_to(queries).tolist() == [*range(40, 60), *[-1] * 10]
    assert ExactIndex(clustered).equal_to(queries) is None


def test_equal_rows_are_told_from_rows_with_the_same_hash(monkeypatch):
    monkeypatch.setattr(equal, "hashes", lambda rows: torch.zeros(len(rows), dtype=torch.int64))
    found = equal.EqualRows(torch.tensor([[1.0], [2.0]])).find(torch.tensor([[2.0], [1.0], [-0.0]]))
    assert found.tolist() == [-1, 0, -1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_equal_rows_of_any_type(dtype):
    rows = torch.tensor([[0.0, 1.0], [3.0, -2.0], [-0.0, 1.0]], dtype=dtype)
    assert equal.EqualRows(rows).find(rows).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rows_of_small_whole_numbers_have_hashes_of_their_own(dtype):
    rows = torch.randint(0, 4, (50_000, 30), generator=torch.Generator().manual_seed(0)).to(dtype)
    assert len(equal.hashes(rows).unique()) == len(rows)


def test_zeros_of_either_sign_have_one_hash():
    assert equal.hashes(torch.tensor([[0.0, 1.0]])) == equal.hashes(torch.tensor([[-0.0, 1.0]]))
