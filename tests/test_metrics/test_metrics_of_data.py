"""Measures of data that another metric compares, against scikit-learn's distances."""

import numpy as np
import pytest
import scipy.sparse
import scipy.stats
import torch
from sklearn.metrics import pairwise_distances
from sklearn.preprocessing import normalize

from tsee.exceptions import UndefinedMeasureError
from tsee.metric import METRICS
from tsee.metrics import (
    centroid_scores,
    continuity,
    density_correlation,
    distance_correlation,
    quality_score,
    triplet_accuracy,
    trustworthiness,
)

rng = np.random.default_rng(0)
X = {
    name: rng.random((90, 40)) < 0.3
    if name == "jaccard"
    else rng.integers(0, 5, (90, 40)).astype(float)
    if name == "hamming"
    else rng.normal(size=(90, 40))
    for name in METRICS
}
Y = rng.normal(size=(90, 2))


def distances(name, test=slice(60, 90)):
    metric = "cityblock" if name == "manhattan" else name
    return pairwise_distances(X[name][test], X[name][:60], metric=metric), np.linalg.norm(
        Y[test, None] - Y[:60], axis=2
    )


def held_out(name):
    return X[name][:60], Y[:60], X[name][60:], Y[60:]


@pytest.mark.parametrize("kind", [np.asarray, lambda X: scipy.sparse.csr_matrix(X.astype(float)), torch.tensor])
@pytest.mark.parametrize("name", METRICS)
def test_neighbors_are_those_of_the_metric(name, kind):
    in_data, on_map = distances(name)
    train, Y_train, test, Y_test = held_out(name)
    found = quality_score(kind(train), Y_train, kind(test), Y_test, k=[1, 7], metric=name)
    nearest = [np.argsort(D, axis=1, kind="stable") for D in (in_data, on_map)]
    for k, score in found.items():
        shared = [len({*a[:k]} & {*b[:k]}) / k for a, b in zip(*nearest, strict=True)]
        assert score == pytest.approx(np.mean(shared), abs=0.02 if name in ("hamming", "jaccard") else 1e-9)


@pytest.mark.parametrize("name", METRICS)
def test_ranks_are_those_of_the_metric(name):
    D = np.round(pairwise_distances(X[name], metric="cityblock" if name == "manhattan" else name), 9)
    np.fill_diagonal(D, np.inf)
    excess = 0
    for i, row in enumerate(D):
        near = [j for j in np.argsort(np.linalg.norm(Y - Y[i], axis=1)) if j != i][:5]
        excess += sum(max(0, 1 + int((row < row[j]).sum()) - 5) for j in near)
    expected = 1 - 2 * excess / (90 * 5 * (2 * 89 - 15 + 1))
    assert trustworthiness(X[name], Y, k=5, metric=name) == pytest.approx(expected)
    assert 0 < continuity(X[name], Y, k=5, metric=name) < 1


@pytest.mark.parametrize("name", METRICS)
def test_the_large_shape_is_of_the_distances_of_the_metric(name):
    in_data, on_map = distances(name)
    given = dict(zip(("X_train", "Y_train", "X_test", "Y_test"), held_out(name), strict=True))
    expected = scipy.stats.spearmanr(np.round(in_data.ravel(), 9), on_map.ravel()).statistic
    assert distance_correlation(**given, metric=name) == pytest.approx(expected, abs=1e-6)
    radii = [np.log(np.sqrt(np.square(np.sort(D, 1)[:, :4]).mean(1))) for D in (in_data, on_map)]
    if name in ("cosine", "correlation"):  # the squared Euclidean distance of such rows is twice theirs
        radii[0] = np.log(np.sqrt(np.sort(in_data, 1)[:, :4].mean(1)))
    expected = np.corrcoef(*radii)[0, 1]
    assert density_correlation(**given, k=4, metric=name) == pytest.approx(expected, abs=1e-6)
    alike = orders = 0.0
    for i in range(30):
        order = np.sign(np.round(in_data[i, :, None] - in_data[i], 9))
        alike += (order * np.sign(on_map[i, :, None] - on_map[i])).sum()
        orders += np.abs(order).sum()
    found = triplet_accuracy(**given, n_triplets=10**6, metric=name)
    assert found == pytest.approx((1 + alike / orders) / 2, abs=1e-6)


def test_centroids_are_means_of_rows_of_unit_length():
    labels = np.arange(90) % 6
    expected = centroid_scores(normalize(X["cosine"]), Y, labels)
    assert centroid_scores(X["cosine"], Y, labels, metric="cosine") == pytest.approx(expected)
    for name in ("hamming", "jaccard"):
        with pytest.raises(UndefinedMeasureError, match=f"Rows have no centroids with metric='{name}': "):
            centroid_scores(X[name], Y, labels, metric=name)


def test_rows_that_cannot_be_compared_are_named():
    bad = X["cosine"].copy()
    bad[61] = 0
    with pytest.raises(ValueError, match="^Row 1 of X_test is all zeros, so it has no direction"):
        quality_score(bad[:60], Y[:60], bad[60:], Y[60:], metric="cosine")
    with pytest.raises(ValueError, match="^Row 0 of X_train holds .* metric='jaccard' compares booleans"):
        triplet_accuracy(X["cosine"], Y, metric="jaccard")
    with pytest.raises(ValueError, match=r"The 'metric' parameter of continuity must be one of \('euclidean', .*'l2'"):
        continuity(X["cosine"], Y, metric="l2")
