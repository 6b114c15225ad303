"""A network as an ONNX file: what the file computes is what ``transform`` computes with it."""

import json
import os
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pandas as pd
import pytest
import torch
from sklearn.exceptions import NotFittedError
from torch import nn

import tsee
from tsee import DtSEE, ExportWarning, HotSEE, HotSNE, ModelError, PtSNE
from tsee.words import ACTIVATIONS, NORMALIZATIONS

QUICK = dict(max_epochs=1, perplexity=5, random_state=0, device="cpu")
DEEP = dict(hidden_layers=(24, 16), **QUICK)
HIGH_ORDER = dict(n_factors=20, n_hidden=12, **QUICK)


def run(path, X):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["positions"], {"rows": np.ascontiguousarray(X, dtype=np.float32)})[0]


def assert_same_map(path, estimator, X):
    """The file places rows as the estimator does by its forward pass, one row, a few or many at a time."""
    if "placement" in estimator.get_params():
        estimator.set_params(placement="forward")
    for n_rows in (1, 7, 1000):
        rows = np.resize(X, (n_rows, X.shape[1]))
        expected = estimator.transform(rows)
        got = run(path, rows)
        assert got.dtype == np.float32
        assert got.shape == expected.shape
        extent = np.ptp(estimator.embedding_, axis=0).max()
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5 * extent)


@pytest.mark.parametrize("n_inputs", [None, 20])
@pytest.mark.parametrize(
    "make, parameters",
    [
        (DtSEE, dict(DEEP, placement="forward")),
        (DtSEE, dict(DEEP, max_epochs=2, refinement=20, placement="forward", n_components=2)),
        (HotSEE, dict(HIGH_ORDER, placement="forward")),
        (PtSNE, DEEP),
        (PtSNE, dict(DEEP, n_components=3)),
        (HotSNE, HIGH_ORDER),
    ],
)
def test_the_four_estimators(make, parameters, n_inputs, digits, tmp_path):
    X, _, X_new, _ = digits
    see = make(n_inputs=n_inputs, **parameters).fit(X)
    tsee.onnx.export(see, tmp_path / "map.onnx")
    assert_same_map(tmp_path / "map.onnx", see, X_new)
    assert_same_map(tmp_path / "map.onnx", see, X_new.astype(np.float32))


@pytest.mark.parametrize("n_inputs", [None, 4])
def test_a_standardized_model_takes_raw_rows(n_inputs, tmp_path):
    """Columns in very different units, far from zero: the file divides them as transform does."""
    units = np.array([1e-3, 1, 1e3, 10, 1e2, 0.1])
    X = (np.random.default_rng(0).normal(3, 1, size=(300, 6)) * units).astype(np.float32)
    see = PtSNE(standardize=True, n_inputs=n_inputs, **DEEP).fit(X)
    np.testing.assert_allclose(see.map_.preprocessing.spread, X.std(0, dtype=np.float64), rtol=1e-2)
    tsee.onnx.export(see, tmp_path / "map.onnx")
    assert_same_map(tmp_path / "map.onnx", see, X)


@pytest.mark.parametrize(
    "activation, normalization", [*((name, "layer") for name in ACTIVATIONS), ("silu", "batch"), ("tanh", None)]
)
def test_every_deep_network(activation, normalization, digits, tmp_path):
    see = PtSNE(activation=activation, normalization=normalization, n_inputs=20, **DEEP).fit(digits[0])
    tsee.onnx.export(see, tmp_path / "map.onnx")
    assert_same_map(tmp_path / "map.onnx", see, digits[2])


@pytest.mark.parametrize("normalization", NORMALIZATIONS)
@pytest.mark.parametrize("order", [2, 3])
def test_every_high_order_network(order, normalization, digits, tmp_path):
    see = HotSNE(order=order, normalization=normalization, n_inputs=20, **HIGH_ORDER).fit(digits[0])
    tsee.onnx.export(see, tmp_path / "map.onnx")
    assert_same_map(tmp_path / "map.onnx", see, digits[2])


@pytest.mark.parametrize("n_inputs", [None, 4])
@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e6])
def test_a_large_offset_costs_no_more_than_it_costs_transform(scale, n_inputs, tmp_path):
    X = (scale * (1e4 + np.random.default_rng(0).normal(size=(300, 8)))).astype(np.float32)
    see = PtSNE(n_inputs=n_inputs, **DEEP).fit(X)
    tsee.onnx.export(see, tmp_path / "map.onnx")
    assert_same_map(tmp_path / "map.onnx", see, X)


def test_values_that_float32_blurs_are_reported(tmp_path):
    X = np.random.default_rng(0).normal((0, 1e6, 1), size=(300, 3))
    see = PtSNE(**DEEP).fit(pd.DataFrame(X, columns=["a", "time", "b"]))
    with pytest.warns(ExportWarning, match="feature 'time' are so large compared with their spread"):
        tsee.onnx.export(see, tmp_path / "map.onnx")
    with pytest.warns(ExportWarning, match="feature 1 are so large"):
        tsee.onnx.export(PtSNE(**DEEP).fit(X), tmp_path / "map.onnx")
    assert_same_map(tmp_path / "map.onnx", PtSNE(**DEEP).fit(X), X.astype(np.float32))


def test_names_and_shapes(digits, tmp_path):
    tsee.onnx.export(PtSNE(n_components=3, **DEEP).fit(digits[0]), tmp_path / "map.onnx")
    model = onnx.load(tmp_path / "map.onnx")
    onnx.checker.check_model(model, full_check=True)
    (rows,), (positions,) = model.graph.input, model.graph.output
    assert (rows.name, positions.name) == ("rows", "positions")
    for value, width in ((rows, 64), (positions, 3)):
        assert value.type.tensor_type.elem_type == onnx.TensorProto.FLOAT
        batch, features = value.type.tensor_type.shape.dim
        assert batch.dim_param == "n"
        assert features.dim_value == width
    assert os.listdir(tmp_path) == ["map.onnx"]  # the weights are in the file


def test_metadata(digits, tmp_path):
    names = [f"pixel {i} é" for i in range(64)]
    see = DtSEE(placement="forward", **DEEP).fit(pd.DataFrame(digits[0], columns=names))
    tsee.onnx.export(see, tmp_path / "map.onnx")
    said = {entry.key: entry.value for entry in onnx.load(tmp_path / "map.onnx").metadata_props}
    assert json.loads(said.pop("feature_names")) == names
    assert said == {"estimator": "DtSEE", "tsee_version": tsee.__version__, "placement": "forward"}

    tsee.onnx.export(HotSNE(**HIGH_ORDER).fit(digits[0]), tmp_path / "map.onnx")
    said = {entry.key: entry.value for entry in onnx.load(tmp_path / "map.onnx").metadata_props}
    assert said == {"estimator": "HotSNE", "tsee_version": tsee.__version__, "placement": "forward"}


def test_the_file_says_nothing_about_the_computer_and_is_the_same_each_time(digits, tmp_path):
    see = PtSNE(n_inputs=20, **DEEP).fit(digits[0])
    for name in ("one.onnx", "two.onnx"):
        tsee.onnx.export(see, tmp_path / name)
    content = (tmp_path / "one.onnx").read_bytes()
    assert content == (tmp_path / "two.onnx").read_bytes()
    assert os.path.dirname(tsee.__file__).encode() not in content
    assert os.path.dirname(torch.__file__).encode() not in content


def test_the_network_of_a_refined_model(digits, tmp_path):
    see = DtSEE(refinement=20, **dict(DEEP, max_epochs=2)).fit(digits[0])
    assert see.placement_ == "refined"
    refined = see.transform(digits[2])
    tsee.onnx.export(see, tmp_path / "map.onnx", placement="forward")
    assert_same_map(tmp_path / "map.onnx", see, digits[2])
    assert not np.allclose(run(tmp_path / "map.onnx", digits[2]), refined, rtol=1e-2, atol=1e-2)
    see.set_params(placement="forward")
    tsee.onnx.export(see, tmp_path / "same.onnx")
    assert (tmp_path / "map.onnx").read_bytes() == (tmp_path / "same.onnx").read_bytes()


def test_a_saved_model_exports_the_same_file(digits, tmp_path):
    see = HotSEE(placement="forward", **HIGH_ORDER).fit(digits[0])
    see.save(tmp_path / "model")
    tsee.onnx.export(see, tmp_path / "before.onnx")
    tsee.onnx.export(tsee.load(tmp_path / "model"), tmp_path / "after.onnx")
    assert (tmp_path / "before.onnx").read_bytes() == (tmp_path / "after.onnx").read_bytes()


class Filters(nn.Module):
    """A network of the user's own: filters along the features, dropout, a norm over the batch, a double at the end."""

    def __init__(self):
        super().__init__()
        self.filters = nn.Conv1d(1, 4, 3)
        self.rest = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(72), nn.ELU(), nn.Linear(72, 2))

    def forward(self, x):
        return self.rest(self.filters(x[:, None]).flatten(1)).double()


class Signs(nn.Module):
    """Not to be exported: what it does depends on values."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(20, 2)

    def forward(self, x):
        return self.linear(x) if x.sum() > 0 else -self.linear(x)


class Counts(Signs):
    """Not to be exported: what it does depends on the number of rows."""

    def forward(self, x):
        return self.linear(x) * (1 if len(x) < 100 else 2)


class Bessel(Signs):
    """Cannot be exported: ONNX has no such function."""

    def forward(self, x):
        return self.linear(x) * torch.special.bessel_j0(x[:, :1].detach())


def test_a_network_of_the_users_own(digits, tmp_path):
    see = PtSNE(network=Filters(), n_inputs=20, **QUICK).fit(digits[0])
    tsee.onnx.export(see, tmp_path / "map.onnx")
    assert_same_map(tmp_path / "map.onnx", see, digits[2])


@pytest.mark.parametrize("network", [Signs, Counts, Bessel])
def test_a_network_that_cannot_be_exported_gets_one_sentence(network, digits, tmp_path):
    (tmp_path / "map.onnx").write_bytes(b"what was there")
    see = PtSNE(network=network(), n_inputs=20, **QUICK).fit(digits[0])
    with pytest.raises(ModelError, match=rf"The network \({network.__name__}\) cannot be exported to ONNX") as told:
        tsee.onnx.export(see, tmp_path / "map.onnx")
    assert "\n" not in str(told.value)
    assert (tmp_path / "map.onnx").read_bytes() == b"what was there"
    assert os.listdir(tmp_path) == ["map.onnx"]


def test_an_old_file_stays_whole_when_writing_fails(digits, tmp_path, monkeypatch):
    see = PtSNE(**DEEP).fit(digits[0])
    (tmp_path / "map.onnx").write_bytes(b"what was there")

    def full(*given):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match="No space left on device.*what was there is unchanged"):
        tsee.onnx.export(see, tmp_path / "map.onnx")
    assert (tmp_path / "map.onnx").read_bytes() == b"what was there"
    assert os.listdir(tmp_path) == ["map.onnx"]
    monkeypatch.undo()
    tsee.onnx.export(see, tmp_path / "map.onnx")
    assert_same_map(tmp_path / "map.onnx", see, digits[2])


def test_weights_that_do_not_fit_into_a_file_are_reported(digits, tmp_path, monkeypatch):
    monkeypatch.setattr(tsee.onnx.writing, "MOST_BYTES", 1000)
    with pytest.raises(ModelError, match=r"The weights take 0.0 GB, and an ONNX file has room for 2"):
        tsee.onnx.export(PtSNE(**DEEP).fit(digits[0]), tmp_path / "map.onnx")


def test_where_to(digits, tmp_path):
    see = PtSNE(**DEEP).fit(digits[0])
    with pytest.raises(ModelError, match="is a folder: name a file"):
        tsee.onnx.export(see, tmp_path)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ModelError, match="cannot be exported to .*file/map.onnx"):
        tsee.onnx.export(see, tmp_path / "file" / "map.onnx")
    tsee.onnx.export(see, str(tmp_path / "new" / "folder" / "map.onnx"))
    assert_same_map(tmp_path / "new" / "folder" / "map.onnx", see, digits[2])


def test_a_model_that_is_not_fitted(tmp_path):
    with pytest.raises(NotFittedError):
        tsee.onnx.export(DtSEE(), tmp_path / "map.onnx")
    assert os.listdir(tmp_path) == []


def test_a_torch_that_is_too_old(digits, tmp_path, monkeypatch):
    see = PtSNE(**DEEP).fit(digits[0])
    monkeypatch.setattr(torch, "__version__", "2.6.0")
    with pytest.raises(ImportError, match=r"needs a newer torch than 2\.6\.0: pip install --upgrade torch\.$"):
        tsee.onnx.export(see, tmp_path / "map.onnx")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("library", ["onnx", "onnxscript"])
def test_without_the_libraries_one_sentence_says_how_to_get_them(library, digits, tmp_path, monkeypatch):
    see = PtSNE(**DEEP).fit(digits[0])
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ImportError, match=r"needs onnx and onnxscript: pip install 'tsee\[onnx\]'\.$"):
        tsee.onnx.export(see, tmp_path / "map.onnx")
    assert os.listdir(tmp_path) == []


def test_the_model_is_left_as_it_was(digits, tmp_path):
    see = PtSNE(**DEEP).fit(digits[0])
    before = see.transform(digits[2])
    network, weights = see.network_, {name: value.clone() for name, value in see.network_.state_dict().items()}
    tsee.onnx.export(see, tmp_path / "map.onnx")
    assert see.network_ is network
    assert all(torch.equal(value, weights[name]) for name, value in network.state_dict().items())
    assert (see.transform(digits[2]) == before).all()


def test_logging_and_warnings_are_as_they_were(digits, tmp_path):
    """In a process of its own: the exporter prints when it is first imported."""
    code = f"""
import logging, sys, warnings
from sklearn.datasets import load_digits
import tsee
see = tsee.PtSNE(max_epochs=1, hidden_layers=(8,), random_state=0).fit(load_digits().data[:200])
state = warnings.filters[:], logging.getLogger("torch.onnx").level, sys.stderr
tsee.onnx.export(see, {str(tmp_path / "map.onnx")!r})
assert state == (warnings.filters, logging.getLogger("torch.onnx").level, sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
