"""Exemplars as an ONNX file: rows are placed among them as ``transform`` places them."""

import os

import numpy as np
import onnx
import onnxruntime
import pytest
import scipy.sparse
from sklearn.datasets import make_blobs

import tsee
from tsee import DtSEE, ExportWarning, HotSEE, ModelError, PtSNE
from tsee.neighbors import CellIndex, ExactIndex, cells
from tsee.placement import refined

LAID_OUT = dict(max_epochs=1, refinement=20, perplexity=5, random_state=0, device="cpu", placement="refined")
QUICK = dict(hidden_layers=(8,), **LAID_OUT)


def open_file(path):
    """What the file does with float32 rows, on one thread."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda X: session.run(["positions"], {"rows": np.ascontiguousarray(X, dtype=np.float32)})[0]


def export(see, tmp_path):
    tsee.onnx.export(see, tmp_path / "map.onnx")
    return open_file(tmp_path / "map.onnx")


def assert_same_positions(got, expected, see, tolerance=1e-4):
    extent = np.ptp(see.embedding_, axis=0).max()
    assert got.dtype == np.float32
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * extent)


def assert_same_map(place, see, X):
    """The file places rows as the estimator does; one row, a few or many at a time."""
    expected = see.transform(X)
    for n_rows in (0, 1, 2, 33):
        assert_same_positions(place(X[:n_rows]), expected[:n_rows], see)
    many = place(np.resize(X, (5000, X.shape[1])))
    assert_same_positions(many, np.resize(expected, (5000, see.n_components)), see)


@pytest.mark.parametrize("make, parameters", [(DtSEE, QUICK), (HotSEE, dict(LAID_OUT, n_factors=20, n_hidden=8))])
def test_both_estimators(make, parameters, digits, tmp_path):
    X, _, X_new, _ = digits
    see = make(n_inputs=30, **parameters).fit(X)
    place = export(see, tmp_path)
    assert_same_map(place, see, X_new)
    assert_same_map(place, see, X_new.astype(np.float32))
    assert_same_positions(place(X), see.embedding_, see, 1e-6)  # exemplars have their own positions
    forward = see.set_params(placement="forward").transform(X_new)
    assert not np.allclose(place(X_new), forward, rtol=1e-2, atol=1e-2)


def test_centers(digits, tmp_path):
    see = DtSEE(exemplars="centers", n_exemplars=100, **dict(QUICK, max_epochs=2, refinement=0)).fit(digits[0])
    assert_same_map(export(see, tmp_path), see, digits[2])


def test_one_dimension_of_standardized_features(tmp_path):
    """Columns in very different units, far from zero, and a column that does not vary."""
    units = np.array([1e-3, 1, 1e3, 10, 1e2, 0.1])
    X = (np.random.default_rng(0).normal(3, 1, size=(300, 6)) * units).astype(np.float32)
    X[:, 4] = 7
    see = DtSEE(standardize=True, n_components=1, **QUICK).fit(X[:200])
    assert_same_map(export(see, tmp_path), see, X)


def test_three_dimensions_of_sparse_rows(tmp_path):
    X = scipy.sparse.random(400, 60, 0.1, format="csr", random_state=0, dtype=np.float32)
    see = DtSEE(n_components=3, n_inputs=20, **QUICK).fit(X[:300])
    assert_same_map(export(see, tmp_path), see, X.toarray())


def test_ties(tmp_path):
    """Four columns of one-hot codes: most distances tie, up to rounding, which is the same for rows of float32."""
    codes = np.random.default_rng(0).integers(0, 6, size=(1300, 4))
    X = np.eye(6, dtype=np.float32)[codes].reshape(1300, 24)
    see = DtSEE(**QUICK).fit(X[:1000])
    place = export(see, tmp_path)
    assert_same_map(place, see, X)
    assert_same_map(place, see, X + 0.05 * np.random.default_rng(1).normal(size=X.shape))


def test_rows_that_are_equal(tmp_path):
    """More equal exemplars than neighbors: the first of them are taken, here and there."""
    X, _ = make_blobs(600, 5, centers=8, random_state=0)
    X[:300] = X[np.arange(300) % 4]
    see = DtSEE(n_inputs=None, **QUICK).fit(X)
    place = export(see, tmp_path)
    assert_same_map(place, see, X[::3])
    assert_same_map(place, see, X[::3] + 1e-3)


def test_rows_far_away(tmp_path):
    """Ever farther, float32 no longer tells distances from there apart; infinitely far, there is no position."""
    X, _ = make_blobs(500, 5, centers=8, random_state=0)
    see = DtSEE(n_inputs=None, **QUICK).fit(X)
    place = export(see, tmp_path)
    far = X[:50].astype(np.float32)
    far[::5] *= 30
    assert_same_map(place, see, far)
    beyond = place(X[:100] * np.logspace(2, 15, 100)[:, None])
    assert (beyond >= see.embedding_.min(0)).all()
    assert (beyond <= see.embedding_.max(0)).all()
    lost = X[:9].copy()
    lost[[2, 5]] = [1e30], [-1e38]
    with pytest.raises(ValueError, match="Row 2 of X is too far"):
        see.transform(lost)
    lost[[0, 8], 3] = np.nan, np.inf
    got = place(lost)
    assert np.isnan(got[[0, 2, 5, 8]]).all()
    others = [1, 3, 4, 6, 7]
    assert_same_positions(got[others], see.transform(lost[others]), see)


@pytest.mark.parametrize("n_rows", [2, 25])
def test_fewer_exemplars_than_neighbors(n_rows, tmp_path):
    X, _ = make_blobs(60, 4, random_state=0)
    see = DtSEE(**dict(QUICK, perplexity=2)).fit(X[:n_rows])
    assert len(see.map_.exemplars) < refined.NEIGHBORS + 8
    assert_same_map(export(see, tmp_path), see, X)


def test_exemplars_in_cells(tmp_path, monkeypatch):
    """Rows that transform searches for in the nearest cells only: it misses some neighbors, and so does the file."""
    monkeypatch.setattr(cells, "MIN_CANDIDATES", 3000)
    X, _ = make_blobs(4000, 8, centers=50, cluster_std=4, random_state=0)
    see = DtSEE(n_inputs=None, **dict(QUICK, refinement=2)).fit(X[:3000])
    exemplars = see.map_.exemplars
    assert isinstance(exemplars.index, CellIndex)
    inputs = see.map_.preprocessing(X[3000:])
    exact = refined.refined_positions(inputs, ExactIndex(exemplars.inputs), exemplars.positions).numpy()
    assert not np.allclose(exact, see.transform(X[3000:]), rtol=1e-2, atol=1e-2)
    place = export(see, tmp_path)
    assert_same_map(place, see, X[3000:])
    assert_same_map(place, see, 100 * X[3000:])  # too few in the nearest cells, or too far for products


def test_rows_are_placed_in_blocks(digits, tmp_path, monkeypatch):
    """Whatever the length of the blocks, and wherever a row is among the others, its position is the same."""
    X, _, X_new, _ = digits
    see = DtSEE(n_inputs=50, **QUICK).fit(X)
    together = export(see, tmp_path)(X_new)
    monkeypatch.setattr(tsee.onnx.writing, "BLOCK_NUMBERS", 7 * 1400)  # 28 candidates times 50 inputs
    in_blocks = export(see, tmp_path)
    for n_rows in (1, 6, 7, 8, 13, 14, 15, 200):
        assert_same_positions(in_blocks(X_new[-n_rows:]), together[-n_rows:], see, 1e-6)


def test_the_file(digits, tmp_path):
    see = DtSEE(n_components=3, n_inputs=50, **QUICK).fit(digits[0])
    see.save(tmp_path / "model")
    tsee.onnx.export(see, tmp_path / "map.onnx")
    tsee.onnx.export(tsee.load(tmp_path / "model"), tmp_path / "same.onnx")
    content = (tmp_path / "map.onnx").read_bytes()
    assert content == (tmp_path / "same.onnx").read_bytes()
    assert os.path.dirname(tsee.__file__).encode() not in content
    assert b"site-packages" not in content
    # The exemplars and their positions, the axes, and little else.
    assert 0 < len(content) - 4 * (600 * (50 + 3) + 64 * 51) < 60_000
    model = onnx.load_from_string(content)
    onnx.checker.check_model(model, full_check=True)
    assert [(entry.domain, entry.version) for entry in model.opset_import] == [("", 18)]
    (rows,), (positions,) = model.graph.input, model.graph.output
    assert (rows.name, positions.name) == ("rows", "positions")
    for value, width in ((rows, 64), (positions, 3)):
        batch, features = value.type.tensor_type.shape.dim
        assert (batch.dim_param, features.dim_value) == ("n", width)
    said = {entry.key: entry.value for entry in model.metadata_props}
    assert said == {"estimator": "DtSEE", "tsee_version": tsee.__version__, "placement": "refined"}


def test_values_that_float32_blurs_are_reported(tmp_path):
    X = np.random.default_rng(0).normal((0, 1e4, 1), size=(100, 3))
    see = DtSEE(**QUICK).fit(X)
    with pytest.warns(ExportWarning, match="feature 1 are so large compared with their spread"):
        tsee.onnx.export(see, tmp_path / "map.onnx")


def test_a_placement_that_the_map_does_not_have(digits, tmp_path):
    see = PtSNE(max_epochs=1, hidden_layers=(8,), random_state=0).fit(digits[0])
    with pytest.raises(ModelError, match="PtSNE has no exemplars, which refined placement needs: fit DtSEE or HotSEE"):
        tsee.onnx.export(see, tmp_path / "map.onnx", placement="refined")
    with pytest.raises(ValueError, match='The placement must be "refined", "forward" or None. Got \'exact\' instead.'):
        tsee.onnx.export(see, tmp_path / "map.onnx", placement="exact")
    assert os.listdir(tmp_path) == []


def test_exemplars_that_do_not_fit_into_a_file_are_reported(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(tsee.onnx.writing, "MOST_BYTES", 1000)
    see = DtSEE(**QUICK).fit(digits[0])
    with pytest.raises(ModelError, match='The exemplars take .* has room for 2: .* alone .placement="forward"., or'):
        tsee.onnx.export(see, tmp_path / "map.onnx")
