"""Measures of sparse rows, by sparse products, are those of the same rows with their zeros written out."""

import numpy as np
import pytest
import scipy.sparse

from tsee.metrics import continuity, quality_score, trustworthiness
from tsee.metrics.spaces import Space
from tsee.metrics.sparse import SparseSpace, space_of

RANDOM = np.random.default_rng(0)
X = np.where(RANDOM.random((300, 100)) < 0.06, RANDOM.normal(2, 1, (300, 100)), 0)
X[:, 0] = 1
X[40] = X[41]  # rows that tie
Y = X[:, :12] @ RANDOM.normal(size=(12, 2))
ROWS = scipy.sparse.csr_matrix(X)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "correlation", "jaccard"])
@pytest.mark.parametrize("held_out", [False, True])
def test_the_same_as_dense(metric, held_out, monkeypatch):
    data, sparse = (X != 0, ROWS.astype(bool)) if metric == "jaccard" else (X, ROWS)
    given = [(A[:200], Y[:200], A[200:], Y[200:]) if held_out else (A, Y) for A in (data, sparse)]
    for block in (2**24, 700):
        monkeypatch.setattr("tsee.metrics.sparse.BLOCK_ENTRIES", block)
        dense, found = (quality_score(*rows, k=(1, 10, 50), metric=metric) for rows in given)
        assert found == pytest.approx(dense, abs=1e-12)
        for measure in (trustworthiness, continuity):
            assert measure(*given[1], metric=metric) == pytest.approx(measure(*given[0], metric=metric), abs=1e-12)


def test_the_first_of_equally_near_rows_come_first():
    from tsee.metrics.inputs import check_sides

    sides = check_sides(ROWS, None, "X", "X")
    found, expected = space_of(sides), Space.of(check_sides(X, None, "X", "X"))
    assert isinstance(found, SparseSpace)
    assert (found.nearest(20) == expected.nearest(20)).all()
    chosen = expected.nearest(7)
    assert (found.ranks(chosen) == expected.ranks(chosen)).all()
    full = check_sides(scipy.sparse.csr_matrix(np.ones((20, 5))), None, "X", "X")
    assert isinstance(space_of(full), Space)


def test_rows_that_cannot_be_compared_are_named():
    empty = scipy.sparse.vstack([ROWS, scipy.sparse.csr_matrix((1, 100))]).tocsr()
    with pytest.raises(ValueError, match="^Row 300 of X_train is all zeros"):
        quality_score(empty, np.r_[Y, Y[:1]], metric="cosine")
    with pytest.raises(ValueError, match="^Row 0 of X_test holds 3 in column"):
        quality_score(ROWS.astype(bool), Y, 3 * ROWS.astype(bool).astype(float), Y, metric="jaccard")
