"""Data at the limits of each precision, and beside an outlier: the right inputs, or a sentence."""

import numpy as np
import pytest
import torch

import tsee
from tests.quick import quick
from tsee import DtSEE
from tsee.exceptions import RowError
from tsee.preprocessing import Inputs, fit_preprocessing


def generator():
    return torch.Generator().manual_seed(0)


def clusters():
    """In units of the largest value."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 6)) + 8 * np.eye(6)[np.arange(60) % 3]
    return X / np.abs(X).max()


def extremes(dtype):
    """Data at the limits of a precision, by name, and a factor that brings them into its middle."""
    limits, X = np.finfo(dtype), clusters()
    large, small, least = float(limits.max) * 0.9, float(limits.tiny), float(limits.smallest_subnormal)
    yield "largest", X * large, 1 / large
    yield "smallest", X * small, 1 / small
    yield "below the normal range", np.round(X * 100) * least, 1 / (100 * least)
    yield "one large constant", np.c_[X, np.full(60, large)], 1.0
    yield "one small constant", np.c_[X, np.full(60, 3 * least)], 1.0


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_inputs_at_the_limits_of_a_precision_are_right(dtype, standardize):
    for name, X, factor in extremes(dtype):
        X = X.astype(dtype)
        middle = X.astype(np.float64) * factor
        for n_inputs in (None, 3):
            U, expected = (
                Inputs(rows, fit_preprocessing(rows, n_inputs, generator(), standardize=standardize))[:]
                for rows in (X, middle)
            )
            torch.testing.assert_close(U, expected, atol=2e-3, rtol=2e-3, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("standardize", [False, True])
def test_what_float64_cannot_hold_is_refused_in_a_sentence(standardize):
    for name, X, _ in extremes("float64"):
        given = dict(standardize=standardize, names=[f"gene{i}" for i in range(X.shape[1])])
        if "constant" in name:
            U = Inputs(X, fit_preprocessing(X, None, generator(), **given))[:]
            assert (U[:, -1] == 0).all()
            assert U[:, :-1].var(0).mean() > 0.8
            continue
        row, column = np.unravel_index(np.abs(clusters() - clusters().mean(0)).argmax(), X.shape)
        expected = (
            f"The value in row {row} .counted from 0., column 'gene{column}' of X is more than 1e.300 away"
            if name == "largest"
            else "No value in column 'gene0' of X is more than 1e-290"
            if standardize
            else "No value of X is more than 1e-290"
        )
        with pytest.raises(ValueError, match=f"^{expected}.* by a power of ten"):
            fit_preprocessing(X, None, generator(), **given)
    apart = clusters()
    apart[3, 2], apart[5, 2] = -1.7e308, 1.7e308  # their difference is not finite
    with pytest.raises(ValueError, match=r"^The value in row 3, column 2 of X \(counted from 0\) is more than 1e\+300"):
        fit_preprocessing(apart, None, generator(), standardize=standardize)


@pytest.mark.filterwarnings("ignore:The value in row 7, column 3:tsee.exceptions.DataWarning")
@pytest.mark.parametrize("value", [1e8, 1e11, 3e38])
def test_rows_of_fit_are_placed_as_rows_like_them_beside_an_outlier(value):
    X = clusters().astype(np.float32)
    X[7, 3] = value
    see = quick(DtSEE, hidden_layers=(8,))
    found = see.fit_transform(X)
    np.testing.assert_array_equal(see.transform(X), found)
    np.testing.assert_array_equal(see.transform(X[30:31]), found[30:31])


def test_rows_of_one_precision_on_a_map_of_another(tmp_path):
    X = clusters()
    see = quick(DtSEE, hidden_layers=(8,)).fit(X * 1e250)
    see.save(tmp_path / "model")
    with pytest.raises(RowError, match="Row 1 of X is too far"):
        see.transform(np.array([[0.0] * 6, [1e308] * 6]))
    few = np.array([[0.0] * 6, [3e38] * 6], dtype=np.float32)
    np.testing.assert_array_equal(tsee.load(tmp_path / "model").transform(few), see.transform(few.astype(np.float64)))
