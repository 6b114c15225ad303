"""Data and a map that keeps some of it, with held-out rows or without."""

import numpy as np
import pytest


@pytest.fixture
def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """X_train, Y_train, X_test and Y_test: seven columns, and a map of the first two and noise."""
    X = np.random.default_rng(0).normal(size=(130, 7))
    Y = X[:, :2] + np.random.default_rng(1).normal(size=(130, 2)) / 2
    return X[:90], Y[:90], X[90:], Y[90:]


@pytest.fixture(params=["held out", "leave one out"])
def held_out(request: pytest.FixtureRequest) -> bool:
    return request.param == "held out"
