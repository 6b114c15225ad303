"""What the measures refuse before they compute."""

import numpy as np
import pytest
import scipy.sparse

from tsee.metrics import quality_score, trustworthiness

Y = np.random.default_rng(0).normal(size=(30, 2))


@pytest.mark.parametrize("measure", [quality_score, trustworthiness])
def test_a_damaged_sparse_matrix_is_refused(measure):
    X = scipy.sparse.random(30, 8, 0.5, format="csc", random_state=0)
    X.indices[5] = 10**9 - 1
    with pytest.raises(ValueError, match="X_train.*indices reach 999999999"):
        measure(X, Y, k=3)


def test_masked_values_are_refused():
    X = np.ma.masked_greater(np.arange(90.0).reshape(30, 3), 70)
    with pytest.raises(ValueError, match="X_train is masked in row 23, column 2"):
        quality_score(X, Y, k=3)
