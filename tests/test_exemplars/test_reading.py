"""Rows are read in order, a bounded number at a time, and bad values are refused."""

import pytest
import torch

from tsee import exemplars
from tsee.exemplars import choose_centers, choose_points


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(n, d, seed=0):
    return torch.randn(n, d, generator=seeded(seed))


class InOrder:
    """Rows that can only be read by consecutive slices, from the start on, a bounded number at a time."""

    def __init__(self, X):
        self.shape = tuple(X.shape)
        self.passes = 0
        self._X = X
        self._next = 0

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        assert rows.step is None
        if rows.start == 0:
            self._next = 0
            self.passes += 1
        assert rows.start == self._next < rows.stop <= self.shape[0]
        assert rows.stop - rows.start <= exemplars.MAX_ROWS
        self._next = rows.stop
        return self._X[rows]


@pytest.mark.parametrize("seeding", ["k-means||", "random"])
def test_rows_read_in_order_equal_a_tensor(seeding):
    X = normal(20_000, 3)
    source = InOrder(X)
    read = choose_centers(source, 64, seeding=seeding, n_iterations=3, generator=seeded())
    whole = choose_centers(X, 64, seeding=seeding, n_iterations=3, generator=seeded())
    assert source.passes > 3
    assert torch.equal(read.positions, whole.positions)
    assert torch.equal(read.counts, whole.counts)
    assert read.inertia == whole.inertia


def test_the_size_of_a_block_does_not_matter(monkeypatch):
    X = normal(1000, 5)
    large = choose_centers(X, 30, n_iterations=3, generator=seeded())
    monkeypatch.setattr(exemplars, "MAX_ROWS", 97)
    small = choose_centers(InOrder(X), 30, n_iterations=3, generator=seeded())
    torch.testing.assert_close(small.positions, large.positions)
    assert small.counts.tolist() == large.counts.tolist()


def test_the_data_is_not_changed():
    X = normal(500, 4)
    before = X.clone()
    choose_centers(X, 20, generator=seeded())
    assert torch.equal(X, before)


# --- bad values


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"seeding": "kmeans"},
            r"The 'seeding' parameter must be one of \['k-means\|\|', 'random'\]. Got 'kmeans' instead\.",
        ),
        ({"n_exemplars": 0}, r"The 'n_exemplars' parameter must be at least 1\. Got 0 instead\."),
        ({"n_iterations": -1}, r"The 'n_iterations' parameter must be at least 0\. Got -1 instead\."),
        ({"X": torch.zeros(0, 3)}, r"at least one row\. Got \(0, 3\) instead\."),
        ({"X": torch.zeros(5)}, r"two dimensions .* Got \(5,\) instead\."),
    ],
)
def test_bad_values_are_named(changes, message):
    arguments = {"X": normal(10, 2), "n_exemplars": 3, "generator": seeded()} | changes
    with pytest.raises(ValueError, match=message):
        choose_centers(arguments.pop("X"), arguments.pop("n_exemplars"), **arguments)


def test_no_points_at_all():
    with pytest.raises(ValueError, match=r"'n_exemplars' parameter must be at least 1\. Got 0 instead"):
        choose_points(10, 0, seeded())
