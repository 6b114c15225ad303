"""Bad input gets one clear sentence, and leaves a model that was fitted before unchanged."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from tsee import DataWarning, DtSEE, HotSEE, HotSNE, ModelError, PtSNE

ROWS = np.random.default_rng(0).normal(size=(60, 5))


def spoiled(value, row=3, column=2):
    X = ROWS.copy()
    X[row, column] = value
    return X


NAMES = ["a", "b", "c", "d", "e"]
BAD_DATA = {
    "NaN": (spoiled(np.nan), r"X contains NaN in row 3, column 2: fill such values in"),
    "infinity": (
        spoiled(-np.inf),
        r"X contains infinity in row 3, column 2: replace .*with NaN .*SimpleImputer.*leave those rows out",
    ),
    "NaN in a DataFrame": (pd.DataFrame(spoiled(np.nan), columns=NAMES), r"NaN in row 3, column 'c'"),
    "NaN in a tensor": (torch.tensor(spoiled(np.nan)), r"NaN in row 3, column 2"),
    "NaN in CSR": (scipy.sparse.csr_matrix(spoiled(np.nan)), r"NaN in row 3, column 2"),
    "NaN in float16": (spoiled(np.nan).astype(np.float16), r"NaN in row 3, column 2"),
    "NaN late": (spoiled(np.nan, row=59, column=4), r"NaN in row 59, column 4"),
    "no rows": (ROWS[:0], r"0 sample\(s\)"),
    "no columns": (ROWS[:, :0], r"0 feature\(s\)"),
    "one row": (ROWS[:1], r"1 sample\(s\).*minimum of 2"),
    "one dimension": (ROWS[0], r"Expected 2D array"),
    "three dimensions": (ROWS.reshape(3, 20, 5), r"dim 3"),
    "complex": (ROWS + 1j, r"Complex data not supported"),
    "text": (np.full((9, 2), "x"), r"string|numeric|convert"),
    "sparse tensor": (torch.eye(3).to_sparse(), r"layout torch.sparse_coo: pass X.to_dense\(\)"),
    "nothing": (None, r"Expected 2D array|NoneType"),
}


@pytest.mark.parametrize("cls", [DtSEE, PtSNE])
@pytest.mark.parametrize("what", BAD_DATA)
def test_bad_data(cls, what):
    X, sentence = BAD_DATA[what]
    see = cls(max_epochs=1, missing="error", random_state=0).fit(ROWS)
    before = see.transform(ROWS)
    with pytest.raises((ValueError, TypeError), match=sentence):
        see.fit(X)
    np.testing.assert_array_equal(see.transform(ROWS), before)


def test_numbers_as_python_objects_are_numbers():
    frame = pd.DataFrame(ROWS, columns=NAMES)
    see = DtSEE(max_epochs=1, random_state=0)
    expected = see.fit_transform(frame)
    mixed = frame.astype({"b": object, "d": object})
    np.testing.assert_array_equal(see.fit_transform(mixed), expected)
    whole = pd.DataFrame({"a": np.array([1, 2.5, True], dtype=object), "b": [0, 1, 2]})
    assert np.isfinite(see.fit_transform(whole)).all()


BAD_PARAMETERS = {
    "n_components": [0, -1, 1.5, "2", None, True],
    "perplexity": [0, 0.5, -3, "5", None, np.nan, np.inf, True],
    "exemplars": ["centres", None, 5],
    "n_exemplars": [1, 0, -5, 2.5, "all"],
    "seeding": ["k-means++", None],
    "kmeans_iterations": [-1, 1.5],
    "contrast": ["sample", None],
    "exaggeration": [0, -1, "2"],
    "jitter": [-0.1, "1"],
    "refinement": [-1, 1.5, None],
    "global_weight": [-0.1, 1.1, "0.5", None, np.nan],
    "max_memory": [0, -1.0, "2 GiB", np.nan],
    "supervised": [-0.1, 1.1, "0.5", None, np.nan],
    "start": [5, [1, 2]],
    "placement": ["neighbors", 1],
    "n_neighbors": [0, "10"],
    "n_noise": [0, None],
    "noise_weight": [0, -1, "automatic", None],
    "hidden_layers": [100, [0], ["a"], None, [10.5]],
    "normalization": ["none", "Layer", 1],
    "activation": ["relu6", None],
    "network": ["deep", DtSEE],
    "n_inputs": [0, -3, "all", 2.5],
    "metric": ["l2", None, 3, "Cosine"],
    "columns": ["a", 5, ["a"]],
    "missing": ["ignore", None, True],
    "standardize": ["yes", None, 2],
    "batch_size": [0, 1, 10.5, "64"],
    "max_epochs": [0, -1, 1.5, "10"],
    "learning_rate": [0, -1e-3, "fast", None, np.nan],
    "optimizer": ["sgd", None],
    "device": [3, None],
    "random_state": ["seed", -1, 1.5],
    "checkpoint": [3, True],
    "verbose": ["yes", None],
    "spare_dimensions": [-1, 1.5, None],
    "n_factors": [0, 1.5],
    "n_hidden": [0, "m"],
    "order": [0, 1.5],
}


@pytest.mark.parametrize("cls", [DtSEE, HotSEE, PtSNE, HotSNE])
def test_bad_parameters(cls):
    see = cls(max_epochs=1).fit(ROWS)
    before = see.transform(ROWS)
    for name in see.get_params():
        for value in BAD_PARAMETERS[name]:
            bad = cls(**{name: value})  # the constructor takes anything, as scikit-learn asks
            sentence = rf"The '{name}' parameter of {cls.__name__} must be .*\. Got .* instead\."
            with pytest.raises(ValueError, match=sentence):
                bad.fit(ROWS)
    np.testing.assert_array_equal(see.transform(ROWS), before)


def test_an_unusable_device():
    for device in ("warp", "cuda:7"):
        with pytest.raises(ValueError, match='\'device\' parameter is .* cannot use here .*: use "auto" or "cpu"'):
            DtSEE(device=device).fit(ROWS)


def test_a_network_that_cannot_be_trained():
    frozen = torch.nn.Linear(5, 2).requires_grad_(False)
    with pytest.raises(ValueError, match="'network' parameter must have weights to train"):
        DtSEE(network=frozen).fit(ROWS)

    class Pair(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x), x

    with pytest.raises(ValueError, match="must map rows to n_components=2 numbers, but it maps .* to tuple"):
        DtSEE(network=Pair(5, 2)).fit(ROWS)


def test_a_row_too_far_to_be_placed():
    see = DtSEE(max_epochs=1, random_state=0).fit(ROWS)
    far = ROWS.copy()
    far[7] = 1e300
    for placement in ("refined", "forward"):
        with pytest.raises(ValueError, match="Row 7 of X is too far from the data of fit to be placed"):
            see.set_params(placement=placement).transform(far)


@pytest.mark.parametrize("cls", [DtSEE, HotSEE, PtSNE, HotSNE])
def test_wrong_number_of_features_at_transform(cls):
    see = cls(max_epochs=1, random_state=0).fit(ROWS)
    with pytest.raises(ValueError, match="X has 4 features, but .* is expecting 5 features"):
        see.transform(ROWS[:, :4])
    assert np.isfinite(see.transform(ROWS)).all()


@pytest.mark.parametrize("cls", [DtSEE, HotSEE, PtSNE, HotSNE])
@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.ones((40, 3)), "All rows of X are equal: the map is a single point"),
        (np.full((40, 3), 1e-300), "All rows of X are equal"),
        (np.arange(40.0)[:, None], r"X has 1 feature\(s\), fewer than the 2 dimensions of the map"),
    ],
)
def test_data_that_give_a_poor_map_cause_a_warning(cls, X, sentence):
    with pytest.warns(DataWarning, match=sentence):
        Y = cls(max_epochs=2, random_state=0).fit_transform(X)
    assert np.isfinite(Y).all()


@pytest.mark.parametrize("cls", [DtSEE, HotSEE, PtSNE, HotSNE])
@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_handful_of_rows_can_be_mapped(cls, n):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        Y = cls(max_epochs=2, random_state=0).fit_transform(ROWS[:n])
    assert Y.shape == (n, 2)
    assert np.isfinite(Y).all()


def test_an_unwritable_path(tmp_path):
    see = DtSEE(max_epochs=1, random_state=0).fit(ROWS)
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(ModelError, match="cannot be written to .*: choose a folder that you can write to"):
        see.save(tmp_path / "file" / "model")
    with pytest.raises(ModelError, match="exists and is not a tsee model: choose another path"):
        see.save(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "not a folder"
    assert np.isfinite(see.transform(ROWS)).all()
