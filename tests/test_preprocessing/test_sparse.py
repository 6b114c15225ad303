"""Sparse rows whose zeros are never written out give what dense rows give."""

import numpy as np
import pytest
import scipy.sparse
import torch

import tsee
from tests.quick import quick
from tsee.exceptions import RowError
from tsee.metric import compared_rows, of_unit_length
from tsee.preprocessing import Inputs, Preprocessing, fit_preprocessing, principal, sparse

RANDOM = np.random.default_rng(0)
DENSE = np.where(RANDOM.random((400, 200)) < 0.1, RANDOM.normal(2, 1, (400, 200)), 0)
DENSE[:, 7] = 3.5  # a constant column
DENSE[:, 9] = 0
DENSE[np.arange(400), RANDOM.integers(10, 200, 400)] += 1
SPARSE = scipy.sparse.csr_matrix(DENSE)


def with_duplicates(X):
    """The same matrix, in which every value is stored as two halves."""
    coo = X.tocoo()
    parts = [np.concatenate([part, part]) for part in (coo.data / 2, coo.row, coo.col)]
    order = np.argsort(parts[1], kind="stable")
    data, row, column = (part[order] for part in parts)
    starts = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=X.shape[0]))])
    return scipy.sparse.csr_matrix((data, column, starts), shape=X.shape)


def test_statistics():
    mean = DENSE.mean(0)
    for X in (SPARSE, with_duplicates(SPARSE)):
        np.testing.assert_allclose(DENSE[0] + sparse.mean_parts(X, DENSE[0], 400), mean, rtol=1e-12, atol=1e-14)
    apart, row, column = sparse.deviations(SPARSE, mean)
    np.testing.assert_allclose(apart, np.abs(DENSE - mean).max(0), rtol=1e-12)
    assert np.abs(DENSE - mean)[row, column] == apart.max() == apart[column]
    divisor = 1 + np.arange(200) % 7
    for unit in (2.5, divisor):
        expected = np.square((DENSE - mean) / unit).sum(0)
        np.testing.assert_allclose(sparse.square_sums(SPARSE, mean, unit), expected, rtol=1e-9, atol=1e-9)


def test_the_largest_deviation_may_be_a_zero():
    X = scipy.sparse.csr_matrix(np.array([[5.0, 1.0], [5.0, 0.0], [0.0, 1.0], [5.0, 1.0]]))
    apart, row, column = sparse.deviations(X, np.array([5.0, 1.0]))
    assert (apart.tolist(), row, column) == ([5.0, 1.0], 2, 0)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation"])
@pytest.mark.parametrize("n_inputs", [None, 12])
@pytest.mark.parametrize("most", [50, 3000], ids=["iterated", "covariance"])
def test_inputs_of_sparse_rows(metric, n_inputs, most, monkeypatch):
    monkeypatch.setattr(principal, "MAX_COVARIANCE", most)
    found = []
    for X in (DENSE, SPARSE):
        fitted = fit_preprocessing(X, n_inputs, torch.Generator().manual_seed(0), metric=metric)
        found.append(Inputs(X, fitted)[:])
        # Of either kind, by the same preprocessing, and independent of the other rows.
        torch.testing.assert_close(Inputs(DENSE, fitted)[:], Inputs(SPARSE, fitted)[:], atol=1e-5, rtol=1e-4)
        assert torch.equal(Inputs(SPARSE[37:40], fitted)[1:2], Inputs(SPARSE, fitted)[38:39])
    torch.testing.assert_close(*found, atol=2e-3, rtol=1e-3)


def test_a_new_row_in_which_a_constant_column_differs():
    """The mean of such a column is exact: a rounding error would count as its spread."""
    dense, sparse = (quick(tsee.DtSEE, n_inputs=20, standardize=True).fit(X) for X in (DENSE, SPARSE))
    assert sparse.map_.preprocessing.mean[7] == 3.5
    assert sparse.map_.preprocessing.spread[7] == dense.map_.preprocessing.spread[7] == 1
    row = DENSE[:1].copy()
    row[0, 7] += 0.001
    extent = np.ptp(sparse.embedding_)
    np.testing.assert_allclose(sparse.transform(row), sparse.embedding_[:1], atol=1e-3 * extent)


def test_unit_length():
    expected = compared_rows(DENSE, "cosine")
    for X in (SPARSE, with_duplicates(SPARSE), SPARSE * 1e-200, SPARSE * 1e200):
        before = X.copy()
        np.testing.assert_allclose(of_unit_length(X).toarray(), expected, atol=1e-12)
        assert (before != X).nnz == 0
    assert of_unit_length(SPARSE.astype(np.float32)).dtype == np.float32
    empty = SPARSE.copy()
    empty.data[empty.indptr[5] : empty.indptr[6]] = 0
    with pytest.raises(RowError, match="^Row 5 of X is all zeros, so it has no direction"):
        of_unit_length(empty)


def test_a_map_of_sparse_rows_by_cosine():
    see = quick(tsee.DtSEE, metric="cosine", n_inputs=20).fit(SPARSE)
    dense = see.transform(DENSE)
    np.testing.assert_allclose(see.transform(SPARSE), dense, atol=1e-4 * np.ptp(dense))
    np.testing.assert_array_equal(see.transform(SPARSE), see.embedding_)
    np.testing.assert_array_equal(see.transform(SPARSE[7]), see.embedding_[7:8])
    empty = scipy.sparse.vstack([SPARSE[:3], scipy.sparse.csr_matrix((1, 200))]).tocsr()
    for call in (see.transform, quick(tsee.DtSEE, metric="cosine", n_inputs=20).fit):
        with pytest.raises(RowError, match="^Row 3 of X is all zeros"):
            call(empty)


WIDE = RANDOM.random((300, 8)) @ np.where(RANDOM.random((8, 3500)) < 0.3, RANDOM.random((8, 3500)), 0)
WIDE[RANDOM.random(WIDE.shape) > 0.05] = 0


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_wide_rows_at_scales_that_float32_does_not_hold(kind):
    def mapped(factor):
        see = quick(tsee.DtSEE, hidden_layers=(8,), n_exemplars=60, perplexity=5).fit(kind(WIDE * factor))
        return see.n_inputs_, see.embedding_

    def inputs(factor):
        X = kind(WIDE * factor)
        return Inputs(X, fit_preprocessing(X, "auto", torch.Generator().manual_seed(0)))[:]

    n_inputs, positions = mapped(1)
    assert n_inputs == 150
    for exponent in (-900, -150, -130, 127, 130, 900):
        found = mapped(2.0**exponent)
        assert found[0] == 150
        np.testing.assert_array_equal(found[1], positions)
    for factor in (1e-280, 1e-46, 1e-40, 1e39, 1e100, 1e290):
        torch.testing.assert_close(inputs(factor), inputs(1), atol=1e-5, rtol=1e-5)


def test_products_of_columns_in_different_units():
    """With one divisor per column, and with the precision of the data."""
    divisor = 2.0 ** (37 * np.arange(200) % 300 - 150)
    unit = Preprocessing(DENSE.mean(0) * divisor, 1.0, None, divisor)
    span = RANDOM.normal(size=(200, 12)).astype(np.float32)
    centered = DENSE - DENSE.mean(0)
    expected = centered.T @ (centered @ span)
    found = principal._sparse_product(SPARSE.multiply(divisor).tocsr(), unit, span)
    assert found.dtype == torch.float64
    np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
    narrow = principal._sparse_product(SPARSE.astype(np.float32), Preprocessing(DENSE.mean(0), 1.0, None), span)
    assert narrow.dtype == torch.float32
    np.testing.assert_allclose(narrow, expected, atol=1e-4 * np.abs(expected).max())
