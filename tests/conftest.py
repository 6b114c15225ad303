"""Data that several test files share."""

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    """Digits: 600 rows to fit, 200 to place, with their labels."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:800]
    return X[order[:600]], y[order[:600]], X[order[600:]], y[order[600:]]
