"""Very many exemplars are laid out in the order of their cells, in which neighbors are near each other in memory."""

import numpy as np
import pytest
import torch

from tsee import DtSEE
from tsee.neighbors import cells
from tsee.objectives import neighborhoods


@pytest.fixture
def rows(monkeypatch):
    monkeypatch.setattr(cells, "MIN_CANDIDATES", 1000)
    random = np.random.default_rng(0)
    return (4 * random.normal(size=(10, 8)))[random.integers(10, size=3000)] + random.normal(size=(3000, 8))


def fitted(X):
    return DtSEE(max_epochs=1, refinement=12, random_state=0).fit(X)


def test_the_order_of_exemplars_in_memory_does_not_change_the_map(rows, monkeypatch):
    usual = fitted(rows)
    monkeypatch.setattr(neighborhoods, "SCATTERED", 1000)
    orders = []

    def order(self, before=neighborhoods.Neighborhoods.order):
        orders.append(before(self))
        return orders[-1]

    monkeypatch.setattr(neighborhoods.Neighborhoods, "order", order)
    scattered = fitted(rows)
    assert torch.equal(orders[0].sort().values, torch.arange(3000))
    assert not torch.equal(orders[0], torch.arange(3000))
    extent = np.ptp(usual.embedding_, axis=0).max()
    np.testing.assert_allclose(scattered.embedding_, usual.embedding_, atol=1e-3 * extent)
