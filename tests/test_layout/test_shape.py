"""The large shape of the data: the principal plane, or a scaling with less stress."""

import numpy as np
import pytest
import torch
from sklearn.decomposition import PCA

import tsee.data
from tests.test_layout.naive import clusters
from tsee.layout import large_shape
from tsee.layout.shape import _scaled, classical_scaling, landmark_plane, principal_plane, turned
from tsee.metric import euclidean, metric_of
from tsee.metrics import distance_correlation, map_disparity


def test_the_principal_plane_is_scikit_learns():
    X = torch.randn(300, 7, generator=torch.Generator().manual_seed(0)) * torch.arange(1.0, 8)
    expected = PCA(2).fit_transform(X.numpy())
    found = principal_plane(X, 2).numpy()
    np.testing.assert_allclose(np.abs(found), np.abs(expected), atol=1e-3)


def test_with_many_features_the_plane_is_of_some_rows():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(100, 2, generator=generator) @ torch.randn(2, 3000, generator=generator)
    expected = PCA(2).fit_transform(X.numpy())
    np.testing.assert_allclose(np.abs(principal_plane(X, 2).numpy()), np.abs(expected), rtol=1e-2, atol=0.2)


@pytest.mark.parametrize("d", [7, 3000])
def test_the_plane_is_the_same_in_blocks_of_few_entries(d, monkeypatch):
    X = torch.randn(300, d, generator=torch.Generator().manual_seed(0)) * torch.linspace(1, 8, d) ** 2
    expected = principal_plane(X, 2)
    sizes = []

    def blocks(n, size):
        sizes.append(size * d)
        return tsee.data.blocks(n, size)

    monkeypatch.setattr("tsee.layout.shape.blocks", blocks)
    monkeypatch.setattr("tsee.layout.shape.PLANE_ENTRIES", 50 * d + d - 1)
    torch.testing.assert_close(principal_plane(X, 2), expected, rtol=1e-5, atol=1e-4 * float(expected.abs().max()))
    assert set(sizes) == {50 * d}


def test_scaling_finds_a_plane_that_is_there():
    X = clusters(200, 10.0)
    found = _scaled(torch.cdist(X, X), X + torch.randn(X.shape, generator=torch.Generator().manual_seed(0)))
    torch.testing.assert_close(torch.cdist(found, found), torch.cdist(X, X), rtol=0.02, atol=0.05)


def test_scaling_is_chosen_where_it_keeps_distances_better():
    X = torch.randn(900, 20, generator=torch.Generator().manual_seed(0))  # no plane is better than another
    shape = large_shape(X, 2)
    plane = principal_plane(X, 2)
    assert distance_correlation(X.numpy(), shape.numpy()) > distance_correlation(X.numpy(), plane.numpy()) + 0.05
    X = torch.cat([10 * clusters(900, 5.0), 0.1 * X[:, :5]], 1)  # a plane with a little noise
    assert map_disparity(large_shape(X, 2).numpy(), principal_plane(X, 2).numpy()) < 1e-6


def test_it_is_centered_has_size_one_and_lies_as_the_principal_plane():
    X = 100 + torch.randn(800, 20, generator=torch.Generator().manual_seed(0))
    shape = large_shape(X, 3)
    assert shape.mean(0).abs().max() < 1e-4
    assert abs(float(shape.square().sum(1).mean()) - 1) < 1e-4
    torch.testing.assert_close(turned(shape, principal_plane(X, 3)), shape, rtol=1e-3, atol=1e-3)


def test_the_order_of_rows_and_a_tenth_of_them_change_it_little():
    X = clusters(1500, 10.0, 6, seed=2)
    rows = torch.randperm(1500, generator=torch.Generator().manual_seed(1))[:1350]
    assert map_disparity(large_shape(X[rows], 2).numpy(), large_shape(X, 2)[rows].numpy()) < 0.05


def test_other_landmarks_do_not_change_it_where_no_plane_is_good():
    X = torch.randn(1500, 40, generator=torch.Generator().manual_seed(0)) * 0.97 ** torch.arange(40)
    rows = torch.randperm(1500, generator=torch.Generator().manual_seed(1))[:1350].sort().values
    part, whole = large_shape(X[rows], 2), large_shape(X, 2)
    assert map_disparity(whole.numpy(), principal_plane(X, 2).numpy()) > 0.01  # it is a scaling
    assert map_disparity(part.numpy(), whole[rows].numpy()) < 0.05


def test_landmarks_and_rows_that_coincide_stay_near_the_others():
    """A row at a landmark is at no distance from it, up to rounding: it must not be thrown out of the picture."""
    X = torch.randn(700, 30, generator=torch.Generator().manual_seed(0))
    shape = large_shape(torch.cat([X, X]), 2)
    assert torch.isfinite(shape).all()
    assert shape.norm(dim=1).max() < 4


def test_rows_that_are_all_the_same_have_no_shape():
    assert torch.equal(large_shape(torch.ones(20, 5), 2), torch.zeros(20, 2))
    assert large_shape(torch.randn(15, 1), 3).shape == (15, 3)


def test_classical_scaling_finds_what_has_such_distances():
    X = clusters(200, 10.0)
    found = classical_scaling(torch.cdist(X, X), 2)
    torch.testing.assert_close(torch.cdist(found, found), torch.cdist(X, X), rtol=1e-3, atol=1e-2)
    flat = classical_scaling(torch.cdist(X[:2], X[:2]), 3)  # fewer points than dimensions
    torch.testing.assert_close(torch.cdist(flat, flat), torch.cdist(X[:2], X[:2]), rtol=1e-3, atol=1e-3)
    assert not classical_scaling(torch.zeros(5, 5), 2).any()


def test_the_shape_has_the_distances_of_the_metric():
    """In a space with a few columns of far larger numbers, which only the Euclidean metric looks at."""
    generator = torch.Generator().manual_seed(0)
    bits = (torch.rand(8, 300, generator=generator) < 0.2).float().repeat_interleave(100, 0)
    X = torch.where(torch.rand(bits.shape, generator=generator) < 0.02, 1 - bits, bits)
    X[:, :2] *= 50  # of no account to Jaccard
    metric = metric_of("jaccard")
    lengths = metric.lengths(X, X).numpy()
    found = {name: large_shape(X, 2, metric_of(name)).numpy() for name in ("euclidean", "jaccard")}
    upper = np.triu_indices(len(X), 1)
    agreement = {
        name: np.corrcoef(lengths[upper], np.linalg.norm(shape[:, None] - shape, axis=2)[upper])[0, 1]
        for name, shape in found.items()
    }
    assert agreement["jaccard"] > agreement["euclidean"] + 0.1
    assert np.allclose(found["jaccard"].mean(0), 0, atol=1e-4)
    assert np.square(found["jaccard"]).sum(1).mean() == pytest.approx(1, rel=1e-4)


def test_beside_landmarks_rows_lie_as_on_the_principal_plane():
    X = torch.randn(300, 6, generator=torch.Generator().manual_seed(0)) * torch.tensor([5.0, 3, 0.1, 0.1, 0.1, 0.1])
    landmarks = X[:120]
    found = landmark_plane(X, torch.arange(120), torch.cdist(landmarks, landmarks), 2, euclidean)
    torch.testing.assert_close(found[:120], classical_scaling(torch.cdist(landmarks, landmarks), 2), rtol=0, atol=1e-3)
    assert map_disparity(found.numpy(), principal_plane(X, 2).numpy()) < 1e-3
