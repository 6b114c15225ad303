"""How many principal axes the neighbors of rows need, against scikit-learn's neighbors and PCA."""

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.decomposition import PCA
from sklearn.neighbors import NearestNeighbors

import tsee
from tsee.preprocessing import Inputs, fit_preprocessing, principal
from tsee.preprocessing.principal import kept_neighbors


def rows_with_spectrum(deviations, n_rows=600, seed=0):
    """Rows that vary along random directions, with given standard deviations."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.normal(size=(len(deviations), len(deviations))))[0]
    return ((rng.normal(size=(n_rows, len(deviations))) * deviations) @ turned).astype(np.float32)


STEEP = rows_with_spectrum(0.9 ** np.arange(200))
FLAT = rows_with_spectrum(np.ones(800))
BETWEEN = rows_with_spectrum(0.993 ** np.arange(400))


def fitted(X, n_inputs="auto"):
    return fit_preprocessing(X, n_inputs, torch.Generator().manual_seed(0))


def naive_kept(X, Y, judged, k):
    nearest = [
        NearestNeighbors(n_neighbors=k + 1).fit(Z).kneighbors(Z[judged], return_distance=False)[:, 1:] for Z in (X, Y)
    ]
    return np.mean([len(set(a) & set(b)) / k for a, b in zip(*nearest, strict=True)])


def test_the_share_of_neighbors_kept_is_scikit_learns():
    X = torch.from_numpy(BETWEEN)
    judged = np.arange(256) * len(X) // 256
    assert kept_neighbors(X, X[:, :30]) == pytest.approx(naive_kept(BETWEEN, BETWEEN[:, :30], judged, 10), abs=1e-9)
    assert kept_neighbors(X, 3 * X) == 1


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_have_few_neighbors(n):
    assert kept_neighbors(torch.randn(n, 4), torch.randn(n, 2)) == 1  # all others, however they lie


def test_few_features_are_inputs_themselves():
    assert fitted(FLAT[:, :128]).basis is None
    assert fitted(STEEP[:, :129]).n_inputs == 50


def test_a_steep_spectrum_needs_the_first_axes_only_at_full_weight():
    automatic, fifty = fitted(STEEP), fitted(STEEP, 50)
    np.testing.assert_array_equal(automatic.basis, fifty.basis)
    assert automatic.scale == fifty.scale


@pytest.mark.parametrize("X, n_inputs", [(BETWEEN, 150), (FLAT, 300)])
def test_more_axes_keep_more_neighbors_and_count_less_the_less_they_vary(X, n_inputs):
    found = fitted(X)
    assert found.n_inputs == n_inputs
    pca = PCA(n_inputs, svd_solver="full").fit(X.astype("f8"))
    weights = (pca.explained_variance_ / pca.explained_variance_[0]) ** (1 / 8)
    expected = pca.transform(X) * weights
    expected /= np.sqrt(np.square(expected).sum(1).mean() / n_inputs)
    U = Inputs(X, found)[:].numpy()
    # Axes of nearly the same variance may be mixed: distances are what counts.
    pairs = np.random.default_rng(0).integers(len(X), size=(2, 500))
    apart = [np.linalg.norm(Z[pairs[0]] - Z[pairs[1]], axis=1) for Z in (U, expected)]
    np.testing.assert_allclose(*apart, rtol=2e-3)
    judged = np.arange(256) * len(X) // 256
    kept = [naive_kept(X, X @ fitted(X, n).basis, judged, 10) for n in principal.TRIED_AXES if n < n_inputs]
    assert max(kept) < principal.ENOUGH_KEPT < naive_kept(X, U, judged, 10) + (n_inputs == 300)


def test_inputs_of_weighted_axes_can_be_taken_back():
    found = fitted(BETWEEN)
    U = Inputs(BETWEEN, found)[:]
    plain = fitted(BETWEEN, 150)
    expected = plain.inverse(Inputs(BETWEEN, plain)[:])
    np.testing.assert_allclose(found.inverse(U), expected, atol=2e-4)
    outside = found.outside(BETWEEN, U)
    assert bool((outside > 0).all())


def test_sparse_rows_and_iterated_axes_choose_the_same(monkeypatch):
    X = np.where(BETWEEN > 0.5, BETWEEN, 0)
    chosen = fitted(X).n_inputs
    assert fitted(scipy.sparse.csr_matrix(X)).n_inputs == chosen > 50
    monkeypatch.setattr(principal, "MAX_COVARIANCE", 100)
    assert fitted(X).n_inputs == chosen


def test_a_map_says_how_many_inputs_it_has_and_keeps_them(tmp_path):
    see = tsee.DtSEE(max_epochs=1, refinement=5, random_state=0).fit(BETWEEN)
    assert see.n_inputs_ == 150
    see.save(tmp_path / "model")
    again = tsee.load(tmp_path / "model")
    assert again.n_inputs == "auto"
    assert again.n_inputs_ == 150
    np.testing.assert_array_equal(again.transform(BETWEEN), see.transform(BETWEEN))
    assert see.novelty(10 * BETWEEN[:5]).min() > 0.99


def test_more_inputs_than_rows_are_not_made():
    assert fitted(FLAT[:30]).n_inputs == 29
    assert fitted(FLAT[:60]).n_inputs in (50, 59)


@pytest.mark.parametrize("standardize", [False, True])
def test_axes_of_sparse_rows_are_those_of_dense_rows(standardize, monkeypatch):
    monkeypatch.setattr(principal, "MAX_COVARIANCE", 100)
    X = np.where(BETWEEN > 0.5, BETWEEN + 3, 0)
    found = [
        Inputs(rows, fit_preprocessing(rows, 20, torch.Generator().manual_seed(0), standardize=standardize))[:]
        for rows in (X, scipy.sparse.csr_matrix(X))
    ]
    torch.testing.assert_close(*found, atol=1e-4, rtol=1e-4)


def test_axes_that_the_data_do_not_have_are_not_made():
    X = np.c_[FLAT[:, :120], np.ones((len(FLAT), 80), dtype=np.float32)]
    see = tsee.DtSEE(max_epochs=1, refinement=3, random_state=0).fit(X)
    assert see.n_inputs_ <= 120
    np.testing.assert_allclose(see.exemplars_[:, 120:], 1, atol=1e-4)
    assert np.isfinite(see.exemplars_).all()


def rows_of_words(n_rows=1000, n_words=3000, n_topics=100, seed=0):
    """Sparse rows of unit length: some words of the row's topic, and others of any, some more frequent than others."""
    rng = np.random.default_rng(seed)
    frequencies = 1 / np.arange(10, n_words + 10)
    topics = rng.choice(n_words, size=(n_topics, 30), p=frequencies / frequencies.sum())
    X = np.zeros((n_rows, n_words), dtype=np.float32)
    for row, topic in zip(X, rng.integers(n_topics, size=n_rows), strict=True):
        row[rng.choice(topics[topic], rng.integers(3, 10))] = 1
        row[rng.choice(n_words, rng.integers(3, 40), p=frequencies / frequencies.sum())] = 1
    X *= -np.log((X > 0).mean(0).clip(1 / n_rows))
    return X / np.linalg.norm(X, axis=1, keepdims=True)


WORDS = rows_of_words()


def test_rows_are_brought_to_one_length_where_that_keeps_more_neighbors():
    found = fitted(WORDS)
    assert found.length == pytest.approx(found.n_inputs**0.5)
    U = Inputs(WORDS, found)[:].numpy()
    pca = PCA(found.n_inputs, svd_solver="full").fit(WORDS.astype("f8"))
    plain = pca.transform(WORDS) * (pca.explained_variance_ / pca.explained_variance_[0]) ** (1 / 8)
    naive = plain / np.linalg.norm(plain, axis=1, keepdims=True) * found.length
    pairs = np.random.default_rng(0).integers(len(WORDS), size=(2, 500))
    apart = [np.linalg.norm(Z[pairs[0]] - Z[pairs[1]], axis=1) for Z in (U, naive)]
    np.testing.assert_allclose(*apart, rtol=5e-3, atol=5e-3)
    judged = np.arange(256) * len(WORDS) // 256
    kept = [naive_kept(WORDS, Z, judged, 10) for Z in (plain, U)]
    assert kept[0] < principal.ENOUGH_KEPT
    assert kept[1] > principal.KEPT_BY_LENGTH * kept[0]
    for X in (STEEP, BETWEEN, FLAT):
        assert fitted(X).length is None


def test_inputs_of_one_length_do_not_depend_on_other_rows_and_sparse_rows_have_the_same():
    found = fitted(WORDS)
    sparse = scipy.sparse.csr_matrix(WORDS)
    U = Inputs(WORDS, found)[:]
    np.testing.assert_allclose(Inputs(sparse, found)[:], U, atol=1e-4)
    for X in (WORDS, sparse):
        whole = Inputs(X, found)[:]
        assert torch.equal(Inputs(X, found)[7:8], whole[7:8])
    assert not found(found.mean[None].astype(np.float32)).any()  # the mean has no direction
    outside = found.outside(WORDS, U)
    plain = found.__class__(found.mean, found.scale, found.basis)
    np.testing.assert_allclose(outside, plain.outside(WORDS, plain(WORDS)), rtol=1e-5)


def test_a_map_of_inputs_of_one_length_is_saved_updated_and_exported(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    see = tsee.DtSEE(max_epochs=1, refinement=5, random_state=0).fit(WORDS[:900])
    assert see.map_.preprocessing.length is not None
    placed = see.transform(WORDS[900:])
    see.save(tmp_path / "model")
    np.testing.assert_array_equal(tsee.load(tmp_path / "model").transform(WORDS[900:]), placed)
    tsee.onnx.export(see, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    (found,) = session.run(None, {session.get_inputs()[0].name: WORDS[900:]})
    np.testing.assert_allclose(found, placed, atol=1e-2 * np.ptp(placed))
    grown = see.update(WORDS[900:])
    assert grown.map_.preprocessing.length == see.map_.preprocessing.length
    see.to_html(tmp_path / "map.html")  # it has the map, and places no new rows
