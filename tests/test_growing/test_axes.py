"""New kinds that differ from old ones in what the principal axes of the old ones leave out."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import KNeighborsClassifier

import tsee
from tsee import DtSEE
from tsee.growing.axes import missing_axes

SPARE = 150  # the first feature that old rows do not use


def rows(n, seed, *, other=0.0):
    """Three kinds in the first 150 of 200 features; ``other`` moves them along a feature beyond."""
    generator = np.random.default_rng(seed)
    X = 0.1 * generator.normal(size=(n, 200))
    X[:, :60] += generator.normal(size=(n, 60)) * np.linspace(1, 0.5, 60)
    kind = np.arange(n) % 3
    X[np.arange(n), kind] += 12
    X[:, SPARE] += other
    return X.astype(np.float32), kind


@pytest.fixture(scope="module")
def see():
    return DtSEE(max_epochs=2, random_state=0).fit(rows(900, 0)[0])


def test_rows_of_known_kinds_need_no_more_axes(see):
    for n in (30, 200, 900):
        assert missing_axes(see.map_.preprocessing, see.map_.exemplars.inputs, rows(n, 1)[0])[0].shape[1] == 0
    assert see.update(rows(300, 1)[0]).update_.n_inputs == 0


def test_a_kind_that_differs_beyond_the_axes_gets_one(see):
    known, new, held_out = rows(300, 1), rows(300, 2, other=10.0), rows(300, 3, other=10.0)
    axes, margin = missing_axes(see.map_.preprocessing, see.map_.exemplars.inputs, np.concatenate([known[0], new[0]]))
    assert axes.shape == (200, 1)
    assert 0 < margin < 3.0  # old rows vary by 0.5 along the least axis and by 0.1 along this one, new ones by 5
    assert float(axes[SPARE].abs() / axes.norm()) > 0.99
    assert float((torch.from_numpy(see.map_.preprocessing.basis).T @ axes).abs().max()) < 1e-4
    grown = see.update(np.concatenate([known[0], new[0]]))
    assert grown.update_.n_inputs == 1
    assert grown.n_inputs_ == see.n_inputs_ + 1
    assert np.array_equal(grown.embedding_[:900], see.embedding_)
    # Held-out rows of both are told apart, which the old axes cannot.
    labels = np.repeat([0, 1], [1200, 300])
    judge = KNeighborsClassifier(1).fit(grown.embedding_, labels)
    assert judge.score(grown.transform(held_out[0]), np.ones(300)) > 0.95
    assert judge.score(grown.transform(rows(300, 4)[0]), np.zeros(300)) > 0.95
    grown.set_params(placement="forward")
    assert np.isfinite(grown.transform(held_out[0])).all()


@pytest.mark.parametrize("offset", [5.0, 10.0, 1000.0])
def test_old_rows_are_placed_where_they_are_on_a_map_with_more_axes(see, offset):
    known, new, old = rows(300, 1)[0], rows(300, 2, other=offset)[0], rows(900, 0)[0]
    held_out = rows(300, 4)[0]
    grown = see.update(np.concatenate([known, new]))
    assert grown.update_.n_inputs == 1
    assert np.array_equal(grown.transform(old), grown.embedding_[:900])
    # Their share of the added axis does not count for other rows of their kinds, either.
    inputs = grown.map_.preprocessing(held_out)
    assert torch.equal(inputs[:, :-1], see.map_.preprocessing(held_out))
    assert not inputs[:, -1].any()
    np.testing.assert_array_equal(grown.novelty(old) == 1, see.novelty(old) == 1)
    again = grown.update(np.concatenate([known, new]))
    assert again.update_.n_inputs == 0
    assert np.array_equal(again.transform(old), grown.embedding_[:900])


def test_a_map_with_more_axes_is_saved_and_exported_whole(see, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    grown = see.update(np.concatenate([rows(300, 1)[0], rows(300, 2, other=10.0)[0]]))
    X = np.concatenate([rows(900, 0)[0], rows(300, 3, other=10.0)[0]])
    grown.save(tmp_path / "model")
    assert np.array_equal(tsee.load(tmp_path / "model").transform(X), grown.transform(X))
    for placement in ("refined", "forward"):
        tsee.onnx.export(grown.set_params(placement=placement), tmp_path / "model.onnx")
        session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
        (found,) = session.run(["positions"], {"rows": X})
        expected = grown.transform(X)
        np.testing.assert_allclose(found, expected, atol=1e-3 * np.ptp(expected))


def test_the_network_gives_old_rows_the_same_positions_with_more_inputs(see):
    from tsee.growing.axes import widened

    wider = widened(see.map_, rows(300, 2, other=10.0)[0])
    assert wider.preprocessing.n_inputs == see.n_inputs_ + 1
    X = rows(50, 5)[0]
    np.testing.assert_allclose(wider.place(X, "forward"), see.map_.place(X, "forward"), atol=1e-3)
    np.testing.assert_allclose(wider.place(X, "refined"), see.map_.place(X, "refined"), atol=0.5)
