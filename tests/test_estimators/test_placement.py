"""Where new rows are placed, and that each is placed alone."""

import numpy as np
import pytest

from tests.quick import quick
from tsee import DtSEE, HotSEE
from tsee.metrics import knn_error, quality_score


def test_equal_rows_have_the_same_refined_position(digits):
    X = np.concatenate([digits[0], digits[0][:50]])
    see = quick(DtSEE).fit(X)
    assert see.placement_ == "refined"
    np.testing.assert_array_equal(see.embedding_[:50], see.embedding_[-50:])
    np.testing.assert_array_equal(see.transform(X), see.embedding_)


@pytest.mark.parametrize("kind", ["digits", "zeros and ones", "one-hot"])
def test_new_rows_are_placed_the_same_alone_and_together(kind, digits):
    """Even if many distances tie, a row's neighbors must not depend on the other rows."""
    generator = np.random.RandomState(0)
    rows = {
        "digits": np.concatenate([digits[0], digits[2]]),
        "zeros and ones": generator.randint(0, 2, (800, 12)).astype(float),
        "one-hot": np.concatenate([np.eye(6)[generator.randint(0, 6, 800)] for _ in range(4)], 1),
    }[kind]
    see = quick(DtSEE, n_inputs=None).fit(rows[:600])
    new = rows[600:800]
    together = see.transform(new)
    np.testing.assert_array_equal(np.concatenate([see.transform(row[None]) for row in new]), together)
    np.testing.assert_array_equal(see.transform(new[::-1])[::-1], together)


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_refined_positions_keep_more_neighbors_and_the_network_follows_them(cls, digits):
    X, y, X_new, y_new = digits
    see = quick(cls, refinement=100, max_epochs=60).fit(X)
    assert see.placement_ == "refined"
    refined, placed = see.embedding_, see.transform(X_new)
    np.testing.assert_array_equal(see.transform(X), refined)  # a row of the data keeps its position
    np.testing.assert_array_equal(see.exemplar_embedding_, refined)
    see.set_params(placement="forward")
    forward, passed = see.transform(X), see.transform(X_new)
    assert knn_error(refined, y, placed, y_new, k=5)[5] < 0.1
    kept = quality_score(X, refined, X_new, placed, k=10)[10]
    assert kept > quality_score(X, forward, X_new, passed, k=10)[10] + 0.05
    assert np.median(np.abs(forward - refined)) < 0.1 * np.ptp(refined)
    alone = quick(cls, refinement=0, max_epochs=60).fit(X)
    assert alone.placement_ == "forward"
    assert kept > quality_score(X, alone.embedding_, X_new, alone.transform(X_new), k=10)[10] + 0.05


def test_new_rows_are_placed_among_the_exemplars_nearest_to_them(digits):
    X, _, X_new, _ = digits
    see = quick(DtSEE, max_epochs=10, n_inputs=None).fit(X)
    placed = see.transform(X_new)
    nearest = np.square(X_new[:, None] - X).sum(2).argsort(1)[:, :20]
    low, high = see.embedding_[nearest].min(1), see.embedding_[nearest].max(1)
    assert ((placed >= low - 1e-3) & (placed <= high + 1e-3)).all()


@pytest.mark.parametrize("parameters", [dict(refinement=0), dict(exemplars="centers"), dict(contrast="full")])
def test_without_a_refinement_rows_pass_through_the_network(parameters, digits):
    see = quick(DtSEE, **parameters).fit(digits[0])
    assert see.placement_ == "forward"
    Y = see.transform(digits[2])
    refined = see.set_params(placement="refined").transform(digits[2])
    assert refined.shape == Y.shape
    assert np.isfinite(refined).all()
    assert not np.array_equal(Y, refined)


def test_some_rows_as_exemplars_are_refined_and_the_others_placed_among_them(digits):
    X = digits[0]
    few, enough = len(X) // 4 - 1, len(X) // 4 + 1
    for parameters in (dict(n_exemplars=few, placement="refined"), dict(n_exemplars=enough)):
        see = quick(DtSEE, **parameters).fit(X)
        np.testing.assert_array_equal(see.transform(X), see.embedding_)
        np.testing.assert_array_equal(see.embedding_[see.exemplar_indices_], see.exemplar_embedding_)
        assert see.placement_ == ("refined" if see.placement is None else "forward")
