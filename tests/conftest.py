"""Data that several test files share."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    """Digits: 600 rows to fit, 200 to place, with their labels."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:800]
    return X[order[:600]], y[order[:600]], X[order[600:]], y[order[600:]]


@pytest.fixture
def anndata():
    """AnnData, which does not yet know the text type of pandas 3."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import anndata

        with pd.option_context("future.infer_string", False):
            yield anndata
