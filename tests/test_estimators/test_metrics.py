"""One metric through fit, transform, novelty, saving and loading."""

import json

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import normalize

from tests.quick import EVERY, quick
from tsee import DtSEE, HotSEE, PtSNE, load
from tsee.estimators import automatic
from tsee.metric import METRICS, metric_of
from tsee.metrics import knn_error
from tsee.persistence.folder import CONFIG, _config_checksum
from tsee.training.checkpoint import data_digest

OF_FEATURES = ("manhattan", "hamming", "jaccard")


@pytest.fixture(scope="module")
def rows(digits):
    """Rows that every metric takes: digits, or which of their pixels are dark."""
    X, y, X_test, y_test = digits
    return {
        name: (X > 7, y, X_test > 7, y_test) if name in ("jaccard", "hamming") else (X, y, X_test, y_test)
        for name in METRICS
    }


def with_metric(name, **parameters):
    return quick(DtSEE, metric=name, n_inputs=None, **parameters)


@pytest.mark.parametrize("name", METRICS)
def test_rows_are_compared_as_scikit_learn_compares_them(name, rows):
    """Not only distances: the exemplars nearest to new rows are the same rows of fit."""
    X, _, X_test, _ = rows[name]
    see = with_metric(name).fit(X)
    inputs = see.map_.preprocessing(X_test.astype(np.float32))
    found = see.map_.exemplars.index.query(inputs, 10)[1].sqrt().numpy()
    known = NearestNeighbors(n_neighbors=10, metric=name, algorithm="brute").fit(X.astype(float))
    expected = known.kneighbors(X_test.astype(float))[0]
    if name in ("cosine", "correlation"):
        expected = np.sqrt(2 * expected)
    ratio = found / np.where(expected > 0, expected, 1)
    scale = np.median(ratio[expected > 0])  # inputs have a unit of their own
    np.testing.assert_allclose(found, scale * expected, rtol=1e-3, atol=1e-4 * found.max())


@pytest.mark.parametrize("name", METRICS)
def test_a_map_of_every_metric_keeps_the_classes(name, rows):
    X, y, X_test, y_test = rows[name]
    see = DtSEE(metric=name, random_state=0, max_epochs=60, refinement=150).fit(X)
    assert (see.transform(X) == see.embedding_).all()
    for placement, error in (("refined", 0.15), ("forward", 0.25)):
        see.set_params(placement=placement)
        positions = see.transform(X), see.transform(X_test)
        assert knn_error(positions[0], y, positions[1], y_test, k=1)[1] < error, placement
    assert (see.transform(X_test[3:4]) == see.transform(X_test)[3:4]).all()
    novelty = see.novelty(X_test)
    assert novelty.mean() < 0.75
    shuffled = np.random.default_rng(0).permuted(X_test, axis=1)
    assert see.novelty(shuffled).mean() > 0.95


def test_cosine_is_the_euclidean_metric_of_rows_of_unit_length(digits):
    X, _, X_test, _ = digits
    see, plain = quick(DtSEE, metric="cosine", n_inputs=20).fit(X), quick(DtSEE, n_inputs=20).fit(normalize(X))
    extent = np.ptp(plain.embedding_)
    np.testing.assert_allclose(see.embedding_, plain.embedding_, atol=1e-3 * extent)
    np.testing.assert_allclose(see.transform(X_test), plain.transform(normalize(X_test)), atol=1e-3 * extent)
    np.testing.assert_allclose(see.novelty(X_test), plain.novelty(normalize(X_test)), atol=2e-3)
    np.testing.assert_allclose(see.exemplars_, plain.exemplars_, atol=1e-5)


@pytest.mark.parametrize("cls", EVERY)
@pytest.mark.parametrize("name", ["cosine", "correlation"])
def test_neither_length_nor_mean_count(name, cls, digits):
    X, _, X_test, _ = digits
    see = quick(cls, metric=name, n_inputs=20).fit(X)
    factors = np.exp(np.random.default_rng(0).normal(size=(len(X_test), 1)))
    other = factors * X_test + (3 * factors if name == "correlation" else 0)
    np.testing.assert_allclose(see.transform(other), see.transform(X_test), atol=1e-4 * np.ptp(see.embedding_))


@pytest.mark.parametrize("contrast", ["sampled", "noise", "full"])
@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
@pytest.mark.parametrize("name", OF_FEATURES)
def test_every_form_takes_metrics_of_features(name, cls, contrast, rows, monkeypatch):
    monkeypatch.setattr(automatic, "MAX_SEEN", 10)
    X, _, X_test, _ = rows[name]
    see = quick(cls, metric=name, contrast=contrast).fit(X)
    assert see.network_.config["n_inputs"] == 64  # whatever it was trained on
    assert np.isfinite(see.transform(X_test)).all()
    assert see.map_.exemplars.metric == metric_of(name)


@pytest.mark.parametrize("name", OF_FEATURES)
def test_pairwise_methods_take_metrics_of_features(name, rows):
    see = quick(PtSNE, metric=name)
    see.fit(rows[name][0])
    objective = see._make_objective(None, see._plan(600), 600, None)
    assert objective.metric == metric_of(name)
    assert np.isfinite(see.transform(rows[name][2])).all()


@pytest.mark.parametrize("name", OF_FEATURES)
def test_a_network_may_learn_from_projections(name, rows, monkeypatch):
    """It then is as good as one that sees all features, and a row that equals an exemplar gets its position."""
    X, y, X_test, y_test = rows[name]
    errors = []
    for most in (20, 64):
        monkeypatch.setattr(automatic, "MAX_SEEN", most)
        see = DtSEE(metric=name, random_state=0, max_epochs=30, refinement=150, placement="forward").fit(X)
        np.testing.assert_allclose(see.embedding_, see.transform(X), atol=1e-4)
        errors.append(knn_error(see.embedding_, y, see.transform(X_test), y_test, k=1)[1])
    assert errors[0] < errors[1] + 0.05


def test_a_network_of_ones_own_sees_all_features(rows, monkeypatch):
    monkeypatch.setattr(automatic, "MAX_SEEN", 20)
    own = torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    see = DtSEE(metric="jaccard", network=own, random_state=0, max_epochs=1).fit(rows["jaccard"][0])
    assert see.network_[0].in_features == 64


@pytest.mark.parametrize("name", METRICS)
def test_sparse_rows_and_rows_on_disk_give_the_same_map(name, rows, tmp_path):
    X, X_test = (rows[name][i].astype(np.float32) for i in (0, 2))
    see = with_metric(name).fit(X)
    np.save(tmp_path / "rows.npy", X.astype(np.uint8))
    kinds = {"sparse": scipy.sparse.csr_matrix(X.astype(np.float32)), "disk": str(tmp_path / "rows.npy")}
    for kind, given in kinds.items():
        again = with_metric(name).fit(given)
        assert (again.transform(X_test) == see.transform(X_test)).all(), kind
        assert (see.transform(given) == see.transform(X)).all(), kind


@pytest.mark.parametrize("name", METRICS)
def test_a_loaded_model_compares_as_the_saved_one(name, rows, tmp_path):
    X, _, X_test, _ = rows[name]
    see = with_metric(name).fit(X)
    see.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.metric == name
    assert (again.transform(X_test) == see.transform(X_test)).all()
    assert (again.novelty(X_test) == see.novelty(X_test)).all()


def test_a_model_from_before_there_was_a_choice_is_euclidean(digits, tmp_path):
    see = quick(DtSEE).fit(digits[0])
    see.save(tmp_path / "model")
    config = json.loads((tmp_path / "model" / CONFIG).read_text())
    assert config.pop("metric") == config["parameters"].pop("metric") == "euclidean"
    config["config_checksum"] = _config_checksum(config)
    (tmp_path / "model" / CONFIG).write_text(json.dumps(config))
    again = load(tmp_path / "model")
    assert again.metric == "euclidean"
    assert (again.transform(digits[2]) == see.transform(digits[2])).all()


@pytest.mark.parametrize("name", ["hamming", "jaccard"])
def test_a_checkpoint_tells_data_apart_that_are_not_centered(name, rows, tmp_path):
    X = rows[name][0].astype(np.float32)
    X = np.concatenate([X] * 4)
    other = X.copy()
    other[777, 5] = 1 - other[777, 5]  # in a row that is not among the slices
    zeros = np.zeros(64)
    assert data_digest(X, zeros) != data_digest(other, zeros)
    assert data_digest(X, zeros) == data_digest(X.copy(), zeros)


@pytest.mark.parametrize("name", METRICS[1:])
def test_rows_that_are_larger_than_memory(name, rows, tmp_path, monkeypatch):
    X, _, X_test, _ = rows[name]
    np.save(tmp_path / "rows.npy", X.astype(np.float32))
    kept = with_metric(name).fit(str(tmp_path / "rows.npy"))
    monkeypatch.setattr("tsee.batches.MEMORY", 0)
    see = with_metric(name).fit(str(tmp_path / "rows.npy"))
    assert see.map_.embedding is None
    assert (see.transform(X_test) == kept.transform(X_test)).all()
    assert (see.novelty(X_test) == kept.novelty(X_test)).all()


PEERS = """
import numpy as np
from sklearn.datasets import load_digits
import tsee
X = load_digits().data[:400]
found = {}
for name in sys.argv[2].split(","):
    rows = X > 7 if name in ("hamming", "jaccard") else X
    own = rows[rank * len(X) // size : (rank + 1) * len(X) // size]
    see = tsee.DtSEE(metric=name, random_state=0, max_epochs=2, refinement=30, n_inputs=None).fit(own)
    found[name] = see.transform(rows)
    found[name + " scale"] = see.map_.preprocessing.scale
if rank == 0:
    np.savez(sys.argv[1], **found)
"""


def test_two_processes_compare_rows_as_one(tmp_path, peers):
    """The layout does not depend on the number of processes, so neither do positions among its exemplars."""
    for size in (1, 2):
        peers.run(PEERS, size, tmp_path / f"{size}.npz", ",".join(METRICS))
    alone, together = np.load(tmp_path / "1.npz"), np.load(tmp_path / "2.npz")
    for name in METRICS:
        np.testing.assert_allclose(together[f"{name} scale"], alone[f"{name} scale"], rtol=1e-6)
        extent = np.ptp(alone[name])
        away = np.linalg.norm(together[name] - alone[name], axis=1)
        assert np.median(away) < 0.02 * extent, name


def test_more_features_than_rows():
    """A projection then has fewer axes than the network has inputs."""
    X = np.random.default_rng(0).random((60, 300)) < 0.1
    see = quick(DtSEE, metric="jaccard", perplexity=5).fit(X)
    assert see.network_.config["n_inputs"] == 300
    for placement in ("refined", "forward"):
        assert np.isfinite(see.set_params(placement=placement).transform(X)).all()
    equal = quick(DtSEE, metric="jaccard", perplexity=5)
    with pytest.warns(UserWarning, match="All rows of X are equal"):
        equal.fit(np.ones((30, 300)))
    assert np.isfinite(equal.set_params(placement="forward").transform(X)).all()
