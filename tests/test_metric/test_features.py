"""Manhattan, Hamming and Jaccard distances against scikit-learn, and their index against all distances."""

import copy
import pickle

import numpy as np
import pytest
import torch
from sklearn.metrics import pairwise_distances

from tsee.affinities import conditional_probabilities, joint_probabilities
from tsee.metric import METRICS, OF_FEATURES, Hamming, ProductMetric, compared_rows, euclidean, metric_of
from tsee.metric import features as module
from tsee.neighbors import ScannedIndex, build_index


def booleans(n, d, seed=0, share=0.3):
    return np.random.default_rng(seed).random((n, d)) < share


def categories(n, d, seed=0):
    return np.random.default_rng(seed).integers(0, 4, (n, d)).astype(np.float32)


def reals(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)


def tensor(X, dtype=torch.float32):
    return torch.from_numpy(np.asarray(X)).to(dtype)


CASES = [
    ("manhattan", reals),
    ("manhattan", categories),
    ("hamming", categories),
    ("hamming", booleans),
    ("jaccard", booleans),
]


def expected(X, E, name):
    return pairwise_distances(X, E, metric="cityblock" if name == "manhattan" else name)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("name", "make"), CASES)
def test_all_ways_to_a_distance_agree_with_scikit_learn(name, make, dtype):
    X, E = make(40, 30), make(70, 30, 1)
    metric = metric_of(name)
    lengths = torch.from_numpy(expected(X, E, name))
    rows, others = tensor(X, dtype), tensor(E, dtype)
    queries, candidates = metric.prepare(rows), metric.prepare(others)
    tolerances = {"rtol": 1e-5, "atol": 1e-6} if dtype == torch.float32 else {"rtol": 1e-12, "atol": 1e-12}
    found = {
        "lengths": metric.lengths(rows, others),
        "distances": metric.distances(queries, candidates).sqrt(),
        "scores": metric.scores(queries, candidates).sqrt(),
        "exact": metric.exact(rows[:, None], others).sqrt(),
    }
    for way, values in found.items():
        assert values.dtype == dtype, way
        torch.testing.assert_close(values.double(), lengths, **tolerances, msg=way)
    assert (metric.lengths(rows, rows).diagonal() == 0).all()


def test_rows_without_features_are_at_a_jaccard_distance_of_zero_from_each_other():
    X = booleans(20, 8)
    X[[3, 7]] = False
    found = metric_of("jaccard").lengths(tensor(X), tensor(X))
    np.testing.assert_allclose(found.numpy(), pairwise_distances(X, metric="jaccard"), atol=1e-6)
    assert found[3, 7] == 0
    assert (metric_of("jaccard").exact(tensor(X)[:, None], tensor(X)).sqrt() - found).abs().max() < 1e-6


def test_two_values_are_compared_by_products_and_others_one_by_one(monkeypatch):
    """A query with a third value does not pass for one of two."""
    E = 5 * booleans(50, 12).astype(np.float32)
    X = 5 * booleans(9, 12, 1).astype(np.float32)
    X[4, 2] = 3
    called = []
    monkeypatch.setattr(module, "_common", lambda *given, common=module._common: called.append(1) or common(*given))
    for rows, by_products in ((X[:4], True), (X, False)):
        called.clear()
        found = Hamming().lengths(tensor(rows), tensor(E))
        np.testing.assert_allclose(found.numpy(), pairwise_distances(rows, E, metric="hamming"), atol=1e-6)
        assert bool(called) == by_products


def test_counts_are_the_same_by_bytes_and_by_floats():
    X, E = tensor(booleans(33, 300), torch.bool), tensor(booleans(70, 300, 1), torch.bool)
    bits = [module._bits(rows, torch.float32) for rows in (X, E)]
    floats = [module.Prepared(each.rows.float(), each.norms) for each in bits]
    assert bits[0].rows.dtype == torch.int8
    torch.testing.assert_close(module._common(*bits), module._common(*floats), rtol=0, atol=0)


def naive_nearest(D, k, exclude):
    D = D.clone()
    if exclude is not None:
        rows = torch.nonzero(exclude >= 0).squeeze(1)
        D[rows, exclude[rows]] = torch.inf
    distances, indices = D.sort(dim=1, stable=True)
    return indices[:, :k], distances[:, :k]


@pytest.mark.parametrize("k", [1, 7, 49])
@pytest.mark.parametrize(("name", "make"), CASES)
def test_the_index_finds_the_first_of_equally_near_candidates(name, make, k):
    """Categories and booleans of a few columns tie all the time."""
    metric = metric_of(name)
    E, X = tensor(make(50, 6)), tensor(make(30, 6, 1))
    exclude = torch.arange(30) - 3
    index = build_index(E, k, metric)
    assert isinstance(index, ScannedIndex)
    for excluded in (None, exclude.clamp_min(-1)):
        indices, distances = index.query(X, k, excluded)
        wanted = naive_nearest(metric.lengths(X, E).square(), k, excluded)
        torch.testing.assert_close(indices, wanted[0])
        torch.testing.assert_close(distances, wanted[1])


@pytest.mark.parametrize(("name", "make"), CASES)
def test_what_is_found_depends_on_no_other_query(name, make):
    index = build_index(tensor(make(3000, 40)), 20, metric_of(name))
    X = tensor(make(200, 40, 1))
    together = index.query(X, 20)
    for part in (slice(0, 1), slice(7, 40)):
        for alone, found in zip(index.query(X[part], 20), together, strict=True):
            assert torch.equal(alone, found[part])
    for copied in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert torch.equal(copied.query(X[:5], 20)[0], together[0][:5])


@pytest.mark.parametrize(("name", "make"), CASES)
def test_joint_probabilities_take_the_metric(name, make):
    X = tensor(make(40, 30))
    found = joint_probabilities(X, 5.0, metric_of(name))
    lengths = torch.from_numpy(expected(X.numpy() if name != "jaccard" else X.bool().numpy(), None, name))
    squares = lengths.square().fill_diagonal_(torch.inf)
    conditional = conditional_probabilities(squares, 5.0)
    torch.testing.assert_close(found.double(), (conditional + conditional.T) / 80, rtol=1e-4, atol=1e-7)


def test_every_name_has_a_metric():
    assert METRICS == ("euclidean", "cosine", "correlation", "manhattan", "hamming", "jaccard")
    for name in METRICS:
        assert (metric_of(name) is euclidean) == (name not in OF_FEATURES)
        assert isinstance(metric_of(name), ProductMetric) == (name not in OF_FEATURES)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["cosine", "correlation"])
@pytest.mark.parametrize(("scale", "offset"), [(1, 0), (1e-30, 0), (1e30, 0), (1, 100)])
def test_rows_of_unit_length_have_the_distances_of_scikit_learn(name, dtype, scale, offset):
    X = (scale * reals(30, 12) + offset).astype(dtype)
    found = compared_rows(X, name)
    assert found.dtype == dtype
    halves = pairwise_distances(found.astype(np.float64), metric="sqeuclidean") / 2
    precise = X.astype(np.float64) / scale
    tolerance = 1e-12 if dtype == np.float64 else 2e-4 if offset else 1e-6
    np.testing.assert_allclose(halves, pairwise_distances(precise, metric=name), atol=tolerance)
    for rows in (slice(0, 1), slice(4, 9)):  # each row on its own
        assert (compared_rows(X[rows], name) == found[rows]).all()
