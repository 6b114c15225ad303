"""A metric that rows or other parameters do not go with gets one clear sentence."""

import re

import numpy as np
import pytest
import scipy.sparse

from tests.quick import quick
from tsee import DtSEE, HotSEE, PtSNE
from tsee.exceptions import RowError

ROWS = np.random.default_rng(0).normal(size=(1500, 6))
BITS = ROWS > 0


def spoiled(rows, row, values):
    rows = np.array(rows, dtype=np.float64)
    rows[row] = values
    return rows


@pytest.mark.parametrize("given", ["l1", "Cosine", None, 3, ["cosine"]])
def test_an_unknown_metric_is_refused(given):
    sentence = (
        'The \'metric\' parameter of DtSEE must be "euclidean", "cosine", "correlation", "manhattan", "hamming", '
        f'"jaccard" or "precomputed". Got {given!r} instead.'
    )
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        DtSEE(metric=given).fit(ROWS)


UNCOMPARABLE = {
    "zeros": ("cosine", spoiled(ROWS, 1203, 0), 1203, "is all zeros, so it has no direction, .*leave such rows out"),
    "constant": ("correlation", spoiled(ROWS, 1203, 0.1), 1203, "is constant, so it has no direction, .*another"),
    "large constant": ("correlation", spoiled(ROWS, 7, 1e9 / 3), 7, "is constant"),
    "zeros for correlation": ("correlation", spoiled(ROWS, 0, 0), 0, "is constant"),
    "no booleans": (
        "jaccard",
        spoiled(BITS, (1100, 4), 0.5),
        1100,
        r"holds 0.5 in column 4 \(counted from 0\), but metric='jaccard' compares booleans: pass X != 0",
    ),
}


def kinds(X, folder):
    np.save(folder / "rows.npy", X)
    return {"dense": X, "sparse": scipy.sparse.csr_matrix(X), "disk": str(folder / "rows.npy")}


@pytest.mark.parametrize("what", UNCOMPARABLE)
def test_a_row_that_cannot_be_compared_is_named(what, tmp_path):
    metric, X, row, sentence = UNCOMPARABLE[what]
    good = np.delete(X, row, 0)
    see = quick(DtSEE, metric=metric, refinement=0).fit(good)
    before = see.embedding_
    for kind, given in kinds(X, tmp_path).items():
        for call in (see.fit, see.transform, see.novelty):
            with pytest.raises(RowError, match=f"^Row {row} of X {sentence}") as error:
                call(given)
            assert error.value.row == row, kind
    with pytest.raises(RowError, match=f"^Row {row} of X "):
        quick(PtSNE, metric=metric).fit(X)
    assert see.embedding_ is before  # a fit that failed leaves the previous one


@pytest.mark.parametrize("metric", ["cosine", "correlation", "hamming", "jaccard"])
def test_metrics_without_units_are_not_standardized(metric):
    sentence = f"The 'standardize' parameter of DtSEE must be False with metric='{metric}', which has no units: "
    with pytest.raises(ValueError, match=sentence):
        DtSEE(metric=metric, standardize=True).fit(BITS)


def test_manhattan_distances_may_be_standardized():
    X = ROWS[:200] * [1, 1, 1, 1, 1, 1000]
    plain, standardized = (quick(DtSEE, metric="manhattan", standardize=given) for given in (False, True))
    with pytest.warns(UserWarning, match="standardize=True"):
        plain.fit(X)
    standardized.fit(X)
    inputs = standardized.map_.exemplars.inputs.numpy()
    np.testing.assert_allclose(inputs.std(0), 1, rtol=1e-3)


@pytest.mark.parametrize("metric", ["manhattan", "hamming", "jaccard"])
def test_metrics_of_features_have_no_components_and_no_centers(metric):
    with pytest.raises(ValueError, match=f"The 'n_inputs' parameter of PtSNE must be .*metric='{metric}'.* Got 3"):
        PtSNE(metric=metric, n_inputs=3).fit(BITS)
    with pytest.raises(ValueError, match=f"The 'exemplars' parameter of HotSEE must be \"points\" with .*'{metric}'"):
        HotSEE(metric=metric, exemplars="centers").fit(BITS)
    see = quick(HotSEE, metric=metric, n_inputs=None).fit(BITS[:100])
    assert see.map_.preprocessing.basis is None


def test_empty_rows_are_compared_by_jaccard():
    X = spoiled(BITS[:100], slice(4, 9), 0)
    see = quick(DtSEE, metric="jaccard").fit(X)
    assert (see.transform(np.zeros((1, 6))) == see.embedding_[4]).all()
    assert (see.embedding_[4:9] == see.embedding_[4]).all()


def test_dominant_columns_are_no_reason_to_advise_what_is_refused(recwarn):
    quick(DtSEE, metric="cosine").fit(ROWS[:200] * [1, 1, 1, 1, 1, 1000])
    assert not [warning for warning in recwarn if "standardize" in str(warning.message)]


@pytest.mark.parametrize("value", [1.7e12, 2**24 + 1, 1e-9])
def test_categories_that_float32_cannot_tell_apart_are_refused(value):
    X = np.random.default_rng(0).integers(0, 3, (40, 5)).astype(float)
    see = DtSEE(metric="hamming", max_epochs=1, refinement=2, random_state=0).fit(X)
    X[7, 2] = value
    for call in (see.transform, DtSEE(metric="hamming").fit):
        with pytest.raises(
            ValueError, match=r"[Rr]ow 7 .*column 2 .*'hamming' compares categories.*number the categories"
        ):
            call(X)


def test_small_categories_stay_apart_beside_large_ones():
    rng = np.random.default_rng(0)
    X = np.c_[rng.integers(0, 2, (60, 8)), rng.choice([1, 2**24], 60)].astype(float)
    see = DtSEE(metric="hamming", max_epochs=1, refinement=2, random_state=0).fit(X)
    assert len(np.unique(see.map_.exemplars.inputs.numpy(), axis=0)) == len(np.unique(X, axis=0))
