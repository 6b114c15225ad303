"""Whether a row belongs on the map: calibrated on the data of fit, high for what is unlike them."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

import tsee
from tsee import DtSEE, HotSEE
from tsee.neighbors import ExactIndex
from tsee.placement.novelty import SLICE_ROWS, SLICES, exemplar_distances, sample_slices


@pytest.fixture(scope="module")
def X():
    return load_digits().data


def quick(cls=DtSEE, **changes):
    sizes = dict(hidden_layers=(16,)) if cls is DtSEE else dict(n_factors=20, n_hidden=10)
    return cls(max_epochs=1, refinement=0, random_state=0, **{**sizes, **changes})


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
@pytest.mark.parametrize(
    "changes", [{}, dict(n_exemplars=200), dict(exemplars="centers", n_exemplars=100), dict(n_inputs=None)]
)
def test_rows_of_the_same_kind_are_spread_evenly_from_0_to_1(cls, changes, X):
    see = quick(cls, **changes).fit(X[::2])
    scores = see.novelty(X[1::2])
    assert scores.dtype == np.float32
    assert ((scores >= 0) & (scores <= 1)).all()
    for quantile in (0.1, 0.5, 0.9):
        assert abs(np.mean(scores <= quantile) - quantile) < 0.1  # centers lie nearer to their own rows


def test_rows_of_another_kind_are_told_apart(X):
    see = quick().fit(X[::2])
    other = np.random.default_rng(0).permuted(X[1::2], axis=1)
    scores = see.novelty(np.concatenate([X[1::2], other]))
    assert roc_auc_score(np.repeat([0, 1], len(other)), scores) > 0.98
    assert see.novelty(X[:1] * 1e6) == 1


def test_what_the_principal_components_leave_out_counts(X):
    """A feature that never varied in fit has no part in the inputs, but a row in which it does is new."""
    X = np.hstack([X, np.zeros((len(X), 1))])
    see = quick(n_inputs=20).fit(X[::2])
    odd = X[1::2].copy()
    odd[:, -1] = 100.0
    np.testing.assert_allclose(see.transform(odd), see.transform(X[1::2]), atol=1e-4)
    assert see.novelty(odd).min() == 1


def test_a_score_does_not_depend_on_the_other_rows_and_is_saved(X, tmp_path):
    see = quick().fit(X)
    scores = see.novelty(X)
    np.testing.assert_array_equal(np.concatenate([see.novelty(X[i : i + 1]) for i in range(5)]), scores[:5])
    see.save(tmp_path / "model")
    np.testing.assert_array_equal(tsee.load(tmp_path / "model").novelty(X), scores)


def test_gaps_are_the_mean_squared_distances():
    generator = torch.Generator().manual_seed(0)
    X, E = torch.randn(30, 4, generator=generator), torch.randn(50, 4, generator=generator)
    outside, own = torch.rand(30, generator=generator), torch.arange(30)
    squared = torch.cdist(X.double(), E.double()).square()
    squared[torch.arange(30), own] = torch.inf
    expected = (squared.sort(1).values[:, :5].mean(1) + outside).sqrt()
    torch.testing.assert_close(
        exemplar_distances(X, outside, ExactIndex(E), own).double(), expected, rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("n", [1, SLICES * SLICE_ROWS, SLICES * SLICE_ROWS + 1, 10**6])
def test_slices_are_spread_over_all_rows_without_overlap(n):
    parts = list(sample_slices(n))
    assert parts[0].start == 0
    assert parts[-1].stop == n
    assert all(a.stop <= b.start for a, b in zip(parts[:-1], parts[1:], strict=True))
    assert sum(part.stop - part.start for part in parts) == min(n, SLICES * SLICE_ROWS)
