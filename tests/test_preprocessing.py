"""Centering, scale and principal axes against scikit-learn's, in blocks against whole."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.decomposition import PCA

from tsee import data, preprocessing
from tsee.data import apply_padded
from tsee.preprocessing import Inputs, fit_preprocessing


def inputs_of(X, n_inputs):
    return Inputs(X, fit_preprocessing(X, n_inputs, generator()))[:]


def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(500, 40)) @ rng.normal(size=(40, 40)) * rng.uniform(0.1, 3, 40) + rng.normal(size=40)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(data.blocks, "__defaults__", (64,))


def test_without_axes_the_features_keep_their_proportions(X):
    fitted = fit_preprocessing(X, None, generator())
    U = Inputs(X, fitted)[:].numpy()
    np.testing.assert_allclose(U.mean(0), 0, atol=1e-5)
    assert U.var(0).mean() == pytest.approx(1, rel=1e-4)
    ratio = np.linalg.norm(X[:20, None] - X[:20], axis=2)[np.triu_indices(20, 1)]
    ratio = ratio / np.linalg.norm(U[:20, None] - U[:20], axis=2)[np.triu_indices(20, 1)]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    np.testing.assert_allclose(fitted.inverse(torch.tensor(U)), X, atol=1e-3)


@pytest.mark.parametrize("most", [3000, 10])  # by the covariance matrix, and by iterating the subspace
def test_axes_are_the_principal_ones(X, most, monkeypatch):
    monkeypatch.setattr(preprocessing, "MAX_COVARIANCE", most)
    monkeypatch.setattr(preprocessing, "OVERSAMPLING", 10)
    fitted = fit_preprocessing(X, 6, generator())
    U = Inputs(X, fitted)[:].numpy()
    expected = PCA(6).fit_transform(X)
    expected /= np.sqrt(expected.var(0).mean())
    signs = np.sign((U * expected).sum(0))
    np.testing.assert_allclose(U, expected * signs, atol=0.02 if most == 10 else 1e-4)
    np.testing.assert_allclose(fitted.basis.T @ fitted.basis, np.eye(6), atol=1e-5)


def test_the_unit_and_the_offset_do_not_matter(X):
    plain = inputs_of(X, 5)
    for unit, offset in ((255.0, 0.0), (1e-200, 0.0), (1e200, 0.0), (1.0, 1e6), (1.0, -1e9)):
        other = X * unit + offset
        torch.testing.assert_close(inputs_of(other, 5), plain, atol=1e-3, rtol=1e-3)


def test_sparse_rows_are_made_dense_by_the_block(X):
    X = np.where(X > 1, X, 0)
    sparse = scipy.sparse.csr_matrix(X)
    expected = inputs_of(X, 5)
    torch.testing.assert_close(inputs_of(sparse, 5), expected)


def test_fewer_rows_than_axes(X):
    fitted = fit_preprocessing(X[:4], 10, generator())
    assert fitted.n_inputs == 3
    assert torch.isfinite(Inputs(X, fitted)[:]).all()


def test_data_that_do_not_vary():
    X = np.full((30, 8), 7.0)
    for n_inputs in (None, 3):
        assert inputs_of(X, n_inputs).abs().max() < 1e-12


def test_evenly_hides_how_many_rows_came():
    seen = []

    def double(block):
        seen.append(len(block))
        return block * 2

    for n in (1, 31, 32, 33, 100):
        rows = torch.arange(3.0 * n).view(n, 3)
        assert torch.equal(apply_padded(double, rows), rows * 2)
    assert all(n % 32 == 0 for n in seen)


@pytest.mark.parametrize("n_inputs", [None, 5])
def test_a_constant_column_of_large_numbers_changes_nothing(X, n_inputs):
    """As a time stamp that is the same in every row."""
    plain = inputs_of(X, n_inputs)
    stamped = np.c_[X, np.full(len(X), 1.7e9)]
    other = inputs_of(stamped, n_inputs)
    if n_inputs is None:
        other = other[:, :-1] * np.sqrt(40 / 41)  # the mean variance is over one feature more
    torch.testing.assert_close(other, plain, atol=1e-3, rtol=1e-3)
