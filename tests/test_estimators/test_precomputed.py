"""A square matrix of distances instead of rows."""

import re
import warnings

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import scipy.sparse
import torch
from scipy.spatial.distance import cdist
from sklearn.manifold import trustworthiness
from sklearn.metrics import pairwise_distances

import tsee
from tests.quick import quick
from tsee import DtSEE, HotSEE, HotSNE, PtSNE
from tsee.exceptions import DataWarning, ModelError, RowError
from tsee.layout import large_shape
from tsee.metric import metric_of
from tsee.metrics import quality_score


@pytest.fixture(scope="module")
def distances(digits):
    """Of all rows from each other, and of new rows from them."""
    X, _, X_new, _ = digits
    return pairwise_distances(X), pairwise_distances(X_new, X)


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_distances_of_rows_give_as_good_a_map_as_the_rows(cls, digits, distances):
    X, _, X_new, _ = digits
    D, D_new = distances
    rows = cls(max_epochs=1, random_state=0).fit(X)
    see = cls(metric="precomputed", random_state=0)
    positions = see.fit_transform(D)
    assert (see.perplexity_, see.n_features_in_, see.n_iter_) == (36, 600, 0)
    assert trustworthiness(X, positions) > trustworthiness(X, rows.embedding_) - 0.01
    kept = quality_score(X, positions, X_new, see.transform(D_new), k=10)[10]
    assert kept > quality_score(X, rows.embedding_, X_new, rows.transform(X_new), k=10)[10] - 0.03
    # A row of fit is at 0 from itself.
    np.testing.assert_array_equal(see.transform(D), positions)
    np.testing.assert_array_equal(see.transform(D_new[:1]), see.transform(D_new)[:1])
    np.testing.assert_allclose(see.novelty(D_new), rows.novelty(X_new), atol=0.01)


def test_the_large_shape_has_the_given_distances(digits, distances):
    """The same picture as by a metric whose distances are computed."""
    X = digits[0]
    D = pairwise_distances(X, metric="manhattan").astype(np.float32)
    manhattan, given = metric_of("manhattan"), metric_of("precomputed")
    X, D = (torch.from_numpy(part.astype(np.float32)) for part in (X, D))
    expected = large_shape(X, 2, manhattan)
    np.testing.assert_allclose(large_shape(D, 2, given), expected, atol=1e-3)


@pytest.mark.parametrize("kind", ["float32", "DataFrame", "on disk", "integers", "unit", "nearly symmetric"])
def test_kinds_of_matrices(kind, distances, tmp_path):
    D = np.round(distances[0])
    expected = quick(DtSEE, metric="precomputed").fit_transform(D)
    np.save(tmp_path / "D.npy", D)
    noise = 1 + 1e-6 * np.random.default_rng(0).random(D.shape)
    given = {
        "float32": D.astype(np.float32),
        "DataFrame": pd.DataFrame(D),
        "on disk": str(tmp_path / "D.npy"),
        "integers": D.astype(int),
        "unit": D * 2.0**200,
        "nearly symmetric": D * noise,
    }[kind]
    positions = quick(DtSEE, metric="precomputed").fit_transform(given)
    assert np.median(np.abs(positions - expected)) < (2e-2 if kind == "nearly symmetric" else 1e-9)


@pytest.mark.parametrize("make", [lambda frame: frame, polars.from_pandas, pyarrow.Table.from_pandas])
def test_distances_are_no_identifier_whatever_the_name_of_their_column(make):
    """All distances from the first of points on a line are different integers."""
    D = np.abs(np.subtract.outer(np.arange(60), np.arange(60)))
    frame = pd.DataFrame(D, columns=["key", *(f"row {i}" for i in range(1, 60))])
    numbered = frame.rename(columns={"key": "row 0"})
    names = [frame.columns.tolist(), numbered.columns.tolist()]
    numbered.insert(0, "id", np.arange(60))  # one column more than rows
    for X, expected, n_warnings in zip((frame, numbered), names, (0, 1), strict=True):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", DataWarning)
            see = quick(DtSEE, metric="precomputed").fit(make(X))
        assert see.feature_names_in_.tolist() == expected
        assert sum("identifier" in str(warning.message) for warning in said) == n_warnings


def test_equal_rows_share_a_position():
    X = np.repeat(np.random.default_rng(0).normal(size=(40, 3)), 2, axis=0)
    see = quick(DtSEE, metric="precomputed", refinement=100)
    D = cdist(X, X)  # by differences: equal rows are at 0
    Y = see.fit_transform(D)
    np.testing.assert_array_equal(Y[::2], Y[1::2])
    np.testing.assert_array_equal(see.transform(D), Y)


def test_saved_shown_and_not_exported(distances, tmp_path):
    D, D_new = distances
    see = quick(DtSEE, metric="precomputed").fit(D)
    see.save(tmp_path / "model")
    kept = tsee.load(tmp_path / "model")
    np.testing.assert_array_equal(kept.transform(D_new), see.transform(D_new))
    np.testing.assert_array_equal(kept.novelty(D_new), see.novelty(D_new))
    np.testing.assert_array_equal(kept.embedding_, see.embedding_)
    indices = np.argsort(D_new, axis=1)[:, :20]
    pair = (indices, np.take_along_axis(D_new, indices, 1))
    placed = see.transform(D_new)
    np.testing.assert_allclose(kept.transform(D_new, neighbors=pair), placed, atol=1e-3 * np.ptp(placed))
    assert see.to_html(tmp_path / "page.html").stat().st_size > 10_000
    with pytest.raises(ModelError, match='^A map of metric="precomputed" cannot be exported to ONNX'):
        tsee.onnx.export(see, tmp_path / "model.onnx")
    with pytest.raises(
        ModelError, match='^A map of metric="precomputed" has no network: leave the placement "refined"'
    ):
        see.set_params(placement="forward").transform(D_new)


def spoiled(D, row, column, value):
    D = D.copy()
    D[row, column] = value
    return D


def test_bad_matrices_get_one_sentence(distances):
    D, D_new = distances
    see = quick(DtSEE, metric="precomputed")
    for X, sentence in (
        (D[:, :500], r"X must be a square matrix with metric='precomputed', .* Got shape \(600, 500\) instead\."),
        (D[:9, :9], 'X must have at least 10 rows with metric="precomputed". Got 9 instead.'),
        (scipy.sparse.csr_matrix(D), "X is sparse, but metric='precomputed' takes all distances, .*fit.X, neighbors="),
        (spoiled(D, 3, 4, D[3, 4] + 1), "X must be symmetric with metric='precomputed', but row 3, column 4 differs "),
        (D + np.eye(600), "Row 0 of X is at a distance above 0 from itself, but metric='precomputed' takes distances"),
        (spoiled(D, 3, 4, np.nan), "X contains NaN in row 3, column 4"),
        (spoiled(D, 3, 4, np.inf), "X contains infinity in row 3, column 4"),
        (spoiled(D, 3, 4, -1), r"Row 3 of X holds -1 in column 4 \(counted from 0\), but metric='precomputed' takes "),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            see.fit(X)
    see.fit(D)
    with pytest.raises(RowError, match="^Row 7 of X holds -2 in column 5 .* turn similarities into distances"):
        see.transform(spoiled(D_new, 7, 5, -2))
    with pytest.raises(ValueError, match="X has 599 features, but DtSEE is expecting 600"):
        see.transform(D_new[:, 1:])


def test_what_distances_do_not_go_with(distances):
    D = distances[0]
    for parameters, sentence in (
        ({"contrast": "noise"}, 'The \'contrast\' parameter of DtSEE must be "sampled" with metric="precomputed"'),
        ({"refinement": 0}, "The 'refinement' parameter of DtSEE must be at least 1 with metric=\"precomputed\""),
        ({"placement": "forward"}, "The 'placement' parameter of DtSEE must be \"refined\" or None with metric="),
        ({"n_inputs": 5}, "The 'n_inputs' parameter of DtSEE must be None or \"auto\" with metric='precomputed'"),
        ({"standardize": True}, "The 'standardize' parameter of DtSEE must be False with metric='precomputed'"),
        ({"exemplars": "centers"}, "The 'exemplars' parameter of DtSEE must be \"points\" with metric='precomputed'"),
        ({"n_exemplars": 20}, "The 'n_exemplars' parameter of DtSEE must be None with metric=\"precomputed\""),
    ):
        with pytest.raises(ValueError, match=f"^{re.escape(sentence)}"):
            quick(DtSEE, metric="precomputed", **parameters).fit(D)
    for cls in (PtSNE, HotSNE):
        with pytest.raises(ValueError, match=f"^The 'metric' parameter of {cls.__name__} must not be \"precomputed\""):
            quick(cls, metric="precomputed").fit(D)
