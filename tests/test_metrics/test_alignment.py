"""`map_disparity` against scipy."""

import numpy as np
import pytest
import scipy.spatial
import scipy.stats
import torch

from tsee.metrics import map_disparity


def maps(columns, seed=0):
    generator = np.random.default_rng(seed)
    first = generator.normal(size=(50, columns)) * [5, 2, 1, 1, 1][:columns]
    return first, 0.01 * (first[:, ::-1] + generator.normal(size=(50, columns))) - 7


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_equals_scipy(columns):
    first, second = maps(columns)
    expected = scipy.spatial.procrustes(first, second)[2]
    assert 0.01 < expected < 0.9
    assert map_disparity(first, second) == pytest.approx(expected, abs=1e-12)
    assert map_disparity(second, first) == pytest.approx(expected, abs=1e-12)
    assert map_disparity(torch.from_numpy(first).float(), second.tolist()) == pytest.approx(expected, abs=1e-6)


def test_another_number_of_columns_is_flat():
    first, second = maps(3)
    flat = np.column_stack([second[:, :2], np.zeros(50)])
    assert map_disparity(first, second[:, :2]) == pytest.approx(scipy.spatial.procrustes(first, flat)[2], abs=1e-12)


def test_extremes():
    Y = maps(2)[0]
    turned = Y @ scipy.stats.ortho_group.rvs(2, random_state=0) * [1, -1]
    assert map_disparity(Y, 1e-150 * turned) == pytest.approx(0, abs=1e-12)
    assert map_disparity(Y, 1e-3 * turned + 1e6) == pytest.approx(0, abs=1e-12)
    unrelated = np.random.default_rng(1).normal(size=(2, 10_000, 2))
    assert map_disparity(*unrelated) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    "second, message",
    [
        (np.full((50, 2), 0.1), "Y2 must have at least two different points.* Got 50 equal ones instead"),
        (np.eye(49), "Y1 and Y2 must be maps of the same rows. Got 50 and 49 rows instead"),
        (np.full((50, 2), np.nan), "Y2 must not contain NaN or infinity"),
        (np.arange(50.0), r"Y2 must be a matrix .* Got shape \(50,\) instead"),
    ],
)
def test_bad_input(second, message):
    with pytest.raises(ValueError, match=message):
        map_disparity(maps(2)[0], second)
