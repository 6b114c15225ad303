"""The estimators on every kind of data."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch

from tests.quick import quick
from tsee import DataWarning, DtSEE, HotSEE, PtSNE
from tsee.metrics import knn_error
from tsee.training import precision


def kinds_of_data(X, folder):
    """The same small integers in every container and dtype."""
    np.save(folder / "rows.npy", X.astype(np.float32))
    readonly = np.load(folder / "rows.npy", mmap_mode="r")
    names = [f"pixel {i}" for i in range(X.shape[1])]
    return {
        "float64": X.astype(np.float64),
        "float32": X.astype(np.float32),
        "float16": X.astype(np.float16),
        "uint8": X.astype(np.uint8),
        "int64": X.astype(np.int64),
        "fortran": np.asfortranarray(X),
        "list": X.tolist(),
        "memory map": readonly,
        "DataFrame": pd.DataFrame(X, columns=names),
        "mixed DataFrame": pd.DataFrame(X, columns=names).astype({names[0]: "float32", names[1]: "int16"}),
        "tensor": torch.tensor(X),
        "bfloat16 tensor": torch.tensor(X).bfloat16(),
        "tensor with gradient": torch.tensor(X, requires_grad=True),
        "CSR": scipy.sparse.csr_matrix(X),
        "CSR array": scipy.sparse.csr_array(X),
        "CSC": scipy.sparse.csc_matrix(X),
    }


@pytest.mark.filterwarnings("ignore:X (has|does not have) .*feature names")
@pytest.mark.parametrize("n_inputs", [None, 10])
def test_every_kind_of_data_gives_the_same_map(n_inputs, digits, tmp_path):
    # Whole numbers that every type holds exactly, with noise so that no two distances tie.
    X = np.round(15 * digits[0][:100] + np.random.RandomState(0).uniform(0, 15, (100, 64)))
    see = quick(DtSEE, n_inputs=n_inputs).fit(X)
    expected = see.transform(X)
    for name, kind in kinds_of_data(X, tmp_path).items():
        np.testing.assert_allclose(see.transform(kind), expected, rtol=1e-3, atol=1e-3, err_msg=name)
        again = quick(DtSEE, n_inputs=n_inputs).fit(kind)
        np.testing.assert_allclose(again.embedding_, expected, atol=0.01 * np.ptp(expected), err_msg=name)


@pytest.mark.parametrize("cls, bfloat16, epochs", [(DtSEE, False, 10), (HotSEE, False, 10), (DtSEE, True, 2)])
def test_pixels_to_255_and_pixels_to_1_give_the_same_map(cls, bfloat16, epochs, digits, monkeypatch):
    """The same up to rounding, which training amplifies little by little; bfloat16 rounds more coarsely.

    Of principal components: distances between whole numbers tie, and rounding decides which of two rows is drawn.
    """
    monkeypatch.setattr(precision, "has_bfloat16", lambda device: bfloat16)
    X = digits[0]
    pixels = np.round(X * 255 / 16).astype(np.uint8)
    plain = quick(cls, n_inputs=50, perplexity=30, max_epochs=epochs, refinement=0).fit(pixels).embedding_
    for other in (pixels / 255, (pixels / 255).astype(np.float32), pixels.astype(np.float64) + 1e8):
        again = quick(cls, n_inputs=50, perplexity=30, max_epochs=epochs, refinement=0).fit_transform(other)
        np.testing.assert_allclose(again, plain, atol=0.02 * np.ptp(plain))


def test_a_constant_column_of_large_numbers_does_no_harm(digits):
    X, y, X_new, y_new = digits
    X, X_new = (np.c_[rows, np.full(len(rows), 1.7e9)] for rows in (X, X_new))
    see = quick(DtSEE, max_epochs=30, batch_size=128, hidden_layers=(128, 128)).fit(X)
    assert knn_error(see.embedding_, y, see.transform(X_new), y_new, k=5)[5] < 0.15


def test_huge_and_tiny_units(digits):
    X = digits[0]
    expected = quick(DtSEE).fit(X).embedding_
    for unit in (1e-150, 1e150):
        np.testing.assert_allclose(quick(DtSEE).fit(X * unit).embedding_, expected, atol=1e-2)


def test_duplicates_everywhere(digits):
    X = np.repeat(digits[0][:20], 30, axis=0)
    for exemplars in ("points", "centers"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            see = quick(DtSEE, exemplars=exemplars, n_exemplars=200, max_epochs=5).fit(X)
        assert np.isfinite(see.embedding_).all()
        assert np.isfinite(see.history_["loss"]).all()
        np.testing.assert_array_equal(see.embedding_[0], see.embedding_[1])


def test_what_took_effect_is_reported(digits):
    X = digits[0][:50]
    with pytest.warns(DataWarning, match="'n_exemplars' parameter is 500, but the data hold only 50 rows"):
        see = quick(DtSEE, n_exemplars=500).fit(X)
    assert see.n_exemplars_ == 50
    assert see.n_exemplars == 500
    with pytest.warns(DataWarning, match="'perplexity' parameter is 40, too large for 49 exemplars .* 16.33 is used"):
        see = quick(DtSEE, perplexity=40).fit(X)
    assert see.perplexity_ == pytest.approx(49 / 3)
    for contrast in ("sampled", "noise"):
        with pytest.warns(DataWarning, match=r"too large for 6 exemplars \(see n_neighbors\): 2 is used") as caught:
            see = quick(DtSEE, perplexity=8, n_neighbors=6, contrast=contrast).fit(X)
        assert see.perplexity_ == 2
        assert caught[0].filename == __file__  # the user's line, not one of tsee's
    with pytest.warns(DataWarning, match="'perplexity' parameter is 10, too large for 15 neighbors in a batch"):
        see = quick(PtSNE, batch_size=17).fit(X)
    repeated = np.repeat(X[:10], 20, axis=0)
    with pytest.warns(DataWarning, match="hold only 10 distinct rows"):
        see = quick(DtSEE, exemplars="centers", n_exemplars=30).fit(repeated)
    assert see.n_exemplars_ == 10
