"""The correlations of distances and of densities against loops and scipy."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
import torch
from scipy.spatial.distance import cdist, pdist

from tsee.exceptions import UndefinedMeasureError
from tsee.metrics import density_correlation, distance_correlation, spaces, triplet_accuracy


def naive_radii(train, test, k):
    """The root mean squared distance to the k nearest, one point after the other."""
    radii = []
    for i, point in enumerate(train if test is None else test):
        squares = sorted(((train[j] - point) ** 2).sum() for j in range(len(train)) if test is not None or j != i)
        radii.append(np.sqrt(np.mean(squares[:k])))
    return np.array(radii)


class TestDistances:
    def test_all_pairs(self, data, held_out):
        X, Y, Z, Q = data
        if held_out:
            expected = scipy.stats.spearmanr(cdist(Z, X).ravel(), cdist(Q, Y).ravel()).statistic
            assert distance_correlation(X, Y, Z, Q) == pytest.approx(expected, abs=1e-12)
        else:
            expected = scipy.stats.spearmanr(pdist(X), pdist(Y)).statistic
            assert distance_correlation(X, Y) == pytest.approx(expected, abs=1e-12)

    def test_ties_share_their_rank(self):
        X = np.random.default_rng(2).integers(2, size=(60, 8)).astype(np.float32)  # few different distances
        expected = scipy.stats.spearmanr(pdist(X, "sqeuclidean"), pdist(X[:, :2], "sqeuclidean")).statistic
        assert distance_correlation(X, X[:, :2]) == pytest.approx(expected, abs=1e-12)

    def test_a_sample(self, data, held_out):
        X, Y, Z, Q = data
        generator = np.random.default_rng(3)
        chosen, others = (np.sort(generator.choice(n, 30, replace=False)) for n in (90, 40))
        if held_out:
            found = distance_correlation(X, Y, Z, Q, n_sample=30, random_state=3)
            assert found == distance_correlation(X[chosen], Y[chosen], Z[others], Q[others])
        else:
            found = distance_correlation(X, Y, n_sample=30, random_state=3)
            assert found == distance_correlation(X[chosen], Y[chosen])

    def test_extremes(self, data):
        X, Y = data[:2]
        assert distance_correlation(X, 3 * X[:, ::-1] + 100) == pytest.approx(1)
        assert distance_correlation(X, Y[::-1]) == pytest.approx(0, abs=0.1)
        for args in ((X, 0 * Y), (np.eye(9), np.eye(9)), (X[:2], Y[:2]), (X[:1], Y[:1])):
            with pytest.raises(UndefinedMeasureError, match="distance_correlation is undefined if all distances"):
                distance_correlation(*args)
        with pytest.raises(ValueError, match=r"'n_sample' parameter of distance_correlation .* Got 1.5 instead"):
            distance_correlation(X, Y, n_sample=1.5)


class TestDensity:
    @pytest.mark.parametrize("columns", [2, 5])  # the map by tree and by products
    @pytest.mark.parametrize("k", [1, 15])
    def test_all_points(self, data, held_out, k, columns):
        X, _, Z, _ = data
        args = [X, X[:, :columns], Z, Z[:, :columns]] if held_out else [X, X[:, :columns], None, None]
        radii = [np.log(naive_radii(train, test, k)) for train, test in (args[::2], args[1::2])]
        expected = scipy.stats.pearsonr(*radii).statistic
        assert density_correlation(*args, k=k) == pytest.approx(expected, abs=1e-12)

    def test_blocks_do_not_matter(self, data, held_out, monkeypatch):
        args = data if held_out else data[:2]
        whole = density_correlation(*args)
        monkeypatch.setattr(spaces, "BLOCK_ENTRIES", 70)  # ten rows, fewer than neighbors
        assert density_correlation(*args) == pytest.approx(whole, abs=1e-12)

    def test_a_sample_is_compared_with_all(self, data):
        X, Y = data[:2]
        chosen = np.sort(np.random.default_rng(3).choice(90, 30, replace=False))
        radii = [np.log(naive_radii(rows, None, 15)[chosen]) for rows in (X, Y)]
        found = density_correlation(X, Y, n_sample=30, random_state=3)
        assert found == pytest.approx(scipy.stats.pearsonr(*radii).statistic, abs=1e-12)

    def test_a_cluster_as_tight_as_in_the_data(self):
        generator = np.random.default_rng(4)
        spread = np.repeat([0.1, 1.0, 10.0], 100)[:, None]
        X = np.repeat([[0.0], [100], [300]], 100, axis=0) + spread * generator.normal(size=(300, 5))
        assert density_correlation(X, X[:, :2]) > 0.9
        assert abs(density_correlation(X, X[:, :2] / spread)) < 0.3  # all clusters of the same size

    def test_copies_have_no_radius(self, data):
        X, Y = data[:2]
        copies = [np.concatenate([rows, np.repeat(rows[:1], 20, axis=0)]) for rows in (X, Y)]
        radii = [naive_radii(rows, None, 15) for rows in copies]
        kept = (radii[0] > 0) & (radii[1] > 0)
        assert kept.sum() < 90
        expected = scipy.stats.pearsonr(*(np.log(radius[kept]) for radius in radii)).statistic
        assert density_correlation(*copies) == pytest.approx(expected, abs=1e-12)
        with pytest.raises(UndefinedMeasureError, match="density_correlation is undefined if all points have the same"):
            density_correlation(X, 0 * Y)
        with pytest.raises(ValueError, match=r"The 'k' parameter of density_correlation .* from 1 to 89, .* Got 90"):
            density_correlation(X, Y, k=90)


MEASURES = [triplet_accuracy, distance_correlation, density_correlation]


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "kind", [torch.from_numpy, scipy.sparse.csr_matrix, scipy.sparse.csc_array, lambda X: X.astype(np.float32), list]
)
@pytest.mark.parametrize("columns", [40, 100])  # neighbors in double and in single precision
def test_images_of_any_kind(measure, kind, columns, data):
    generator = np.random.default_rng(9)
    X, Z = (generator.integers(256, size=(n, columns), dtype=np.uint8) for n in (90, 40))
    expected = measure(X, data[1], Z, data[3])
    assert measure(kind(X), data[1], kind(Z), data[3]) == pytest.approx(expected, abs=1e-6)
    expected = measure(X, data[1])
    assert measure(kind(X), data[1]) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "change, message",
    [
        ({"X_test": None}, "X_test and Y_test must be given together"),
        ({"Y_train": np.eye(30)[:8]}, "X_train and Y_train must have the same .* Got 30 and 8 instead"),
        ({"X_train": np.full((30, 30), np.nan)}, "X_train must not contain NaN or infinity"),
        ({"Y_test": np.full((2, 30), np.inf)}, "Y_test must not contain NaN or infinity"),
    ],
)
def test_bad_input(measure, change, message):
    train, test = np.eye(30), np.eye(30)[:2]
    with pytest.raises(ValueError, match=message):
        measure(**{"X_train": train, "Y_train": train, "X_test": test, "Y_test": test} | change)


@pytest.mark.parametrize("measure", [triplet_accuracy, distance_correlation])
def test_sparse_data_are_never_dense_as_a_whole(measure):
    generator, n = np.random.default_rng(0), 100_000
    places = (np.arange(3 * n) % n, generator.integers(20_000, size=3 * n))
    X = scipy.sparse.csr_matrix((generator.normal(size=3 * n), places), (n, 20_000))  # 16 GB if dense
    Y = generator.normal(size=(n, 2))
    few = {"n_triplets": 2000} if measure is triplet_accuracy else {"n_sample": 300}
    tracemalloc.start()
    try:
        assert -0.1 < measure(X, Y, **few) < 0.6
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()
