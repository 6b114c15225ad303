"""Data that several test files share."""

import os
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    """Digits: 600 rows to fit, 200 to place, with their labels."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))[:800]
    return X[order[:600]], y[order[:600]], X[order[600:]], y[order[600:]]


@pytest.fixture(scope="session")
def data_folder():
    """The folder of large data sets, for tests that need one."""
    folder = os.environ.get("TSEE_DATA")
    if not folder:
        pytest.skip("TSEE_DATA names no folder with mnist.npz")
    return Path(folder)
