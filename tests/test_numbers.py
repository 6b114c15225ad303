"""Odd numbers give the right answer or one sentence, in fit, in transform and in `FittedMap.place`."""

import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars
import pytest
import scipy.sparse
import torch

from tsee import DataWarning, DtSEE
from tsee.data import check_matrix, check_rows

ROWS = np.random.default_rng(0).normal(size=(60, 5))
MASKED = np.ma.MaskedArray(ROWS, mask=np.zeros(ROWS.shape, bool))
MASKED.mask[3, 2] = True


class Slices:
    def __init__(self, X):
        self._X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows):
        return self._X[rows]


def objects(value):
    X = ROWS.astype(object)
    X[3, 2] = value
    return X


def damaged():
    X = scipy.sparse.csc_matrix(ROWS)
    X.indices[7] = 10**6
    return X


REFUSED = {
    "masked": (MASKED, r"X is masked in row 3, column 2: fill such values in"),
    "complex": (ROWS + 1j, r"^Complex data not supported: X has dtype complex128\. Pass the real"),
    "complex sparse": (scipy.sparse.csr_matrix(ROWS + 1j), r"^Complex data not supported: X has"),
    "complex tensor": (torch.tensor(ROWS + 1j).conj(), r"^Complex data not supported: X has"),
    "dates": (np.zeros((60, 5), "M8[D]"), r"X holds dates \(dtype datetime64\[D\]\): pass numbers"),
    "durations": (np.zeros((60, 5), "m8[s]"), r"X holds durations .*: divide them by their unit"),
    "fields": (np.zeros(60, [("a", "f4"), ("b", "i4")]), r"X has fields .*structured_to_unstructured"),
    "text": (ROWS.astype(str), r"X must hold numbers, but it is text \(dtype <U\d+\): convert it"),
    "variable text": (np.full((60, 5), "1", np.dtypes.StringDType()), r"X must hold numbers, but it is text"),
    "an integer of 400 digits": (objects(10**400), r"in row 3, column 2, which is not a number that float64 can hold"),
    "a complex object": (objects(np.complex128(1j)), r"X holds '1j' in row 3, column 2"),
    "a date among numbers": (objects(np.datetime64("2020-01-01")), r"X holds '2020-01-01' in row 3, column 2"),
    "a list among numbers": (objects([1, 2]), r"X holds '\[1, 2\]' in row 3, column 2"),
    "a signaling NaN": (objects(Decimal("sNaN")), r"X holds 'sNaN' in row 3, column 2"),
    "a long double beyond float64": (
        np.where(ROWS > 2.5, np.longdouble("1e4000"), ROWS),
        r"X contains infinity in row",
    ),
    "rows of two lengths": ([[1.0, 2, 3, 4, 5], [1.0]], r"row 1 has 1 values, but row 0 has 5"),
    "quantized": (
        torch.quantize_per_tensor(torch.tensor(ROWS).float(), 0.1, 0, torch.qint8),
        r"quantized tensor \(torch.qint8\): pass X.dequantize\(\)",
    ),
    "without values": (torch.empty(60, 5, device="meta"), r"'meta', which has no values"),
    "nested": (torch.nested.nested_tensor([torch.zeros(3), torch.zeros(2)]), r"nested tensor"),
    "damaged sparse": (damaged(), r"damaged sparse matrix \(its row indices reach 1000000, but it has 60 rows\)"),
}
try:
    sides = scipy.sparse.coo_array(np.ones((3, 4, 5)))
except ValueError:  # scipy before 1.15 has no such array
    pass
else:
    REFUSED["sparse of three sides"] = (sides, r"Expected 2D array.*shape \(3, 4, 5\)")


@pytest.fixture(scope="module")
def model():
    return DtSEE(max_epochs=1, hidden_layers=(8,), refinement=0, random_state=0).fit(ROWS)


@pytest.mark.parametrize("what", REFUSED)
def test_one_sentence(what, model):
    X, sentence = REFUSED[what]
    for use in (lambda: check_rows(DtSEE(), X, reset=True), lambda: model.transform(X), lambda: model.map_.place(X)):
        with pytest.raises((ValueError, TypeError), match=sentence) as caught:
            use()
        assert "\n" not in str(caught.value)


SLICED = {
    "masked": (MASKED, r"X is masked in row 3, column 2"),
    "damaged": (damaged(), r"damaged sparse matrix"),
    "1-D": (ROWS[0], r"Expected 2D array, got X of shape \(5,\) instead"),
    "3-D": (ROWS.reshape(3, 20, 5), r"Expected 2D array"),
    "no rows": (ROWS[:0], r"Found array with 0 sample"),
    "no columns": (ROWS[:, :0], r"Found array with 0 feature"),
    "complex": (ROWS + 1j, r"complex128, not numbers"),
}


@pytest.mark.parametrize("what", SLICED)
def test_one_sentence_for_slices(what):
    X, sentence = SLICED[what]
    with pytest.raises(ValueError, match=sentence):
        _ = check_rows(DtSEE(), Slices(X), reset=True)[0:60]


def test_one_sentence_for_tables():
    for X, sentence in [
        (pd.DataFrame(), "0 feature"),
        (pd.DataFrame(ROWS, columns=list("aabcd")), "several columns named 'a'"),
        (pd.DataFrame({"a": pd.Series([10**400, 1], dtype=object), "b": [1, 2]}), "Column 'a' of X is not numeric"),
        (polars.DataFrame({"a": polars.Series([1, 2], dtype=polars.Int128)}), "Column 'a' of X is Int128"),
    ]:
        with pytest.raises(ValueError, match=sentence):
            check_rows(DtSEE(), X, reset=True)


SAME = {
    "no value is masked": np.ma.MaskedArray(ROWS, mask=np.zeros(ROWS.shape, bool)),
    "without a mask": np.ma.MaskedArray(ROWS),
    "long doubles": ROWS.astype(np.longdouble),
    "sparse long doubles": scipy.sparse.csr_matrix(ROWS).astype(np.longdouble),
    "a Fraction among numbers": objects(Fraction(ROWS[3, 2])),
    "a Decimal among numbers": objects(Decimal(ROWS[3, 2])),
    "sliced long doubles": Slices(ROWS.astype(np.longdouble)),
    "a sparse matrix in any order, with duplicates": scipy.sparse.csr_matrix(
        (np.repeat(ROWS, 2) / 2, np.tile(np.repeat(np.arange(5), 2), 60), np.arange(0, 601, 10)), shape=ROWS.shape
    ),
    "a negated view": torch.tensor(-1j * ROWS).conj().imag,
}


@pytest.mark.parametrize("what", SAME)
def test_the_right_answer(what):
    checks = [lambda X: check_rows(DtSEE(), X, reset=True)]
    if not isinstance(SAME[what], Slices):
        checks.append(lambda X: check_matrix(X, 5))
    for check in checks:
        found = check(SAME[what])[0:60]
        found = found.toarray() if scipy.sparse.issparse(found) else found
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, ROWS)


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "float16"])
def test_short_floats_of_torch(dtype):
    X = torch.tensor(ROWS, dtype=torch.float32).to(getattr(torch, dtype))
    np.testing.assert_array_equal(check_matrix(X, 5), X.float().numpy())


def test_the_largest_float16_is_no_infinity():
    X = np.full((2000, 3), np.float16(65504))  # whose sum is infinite
    assert check_rows(DtSEE(), X, reset=True) is X


@pytest.mark.parametrize("X", [np.arange(10).reshape(5, 2) + 2**60, np.full((5, 2), 2**63, np.uint64)])
def test_integers_that_float64_does_not_hold(X):
    with pytest.warns(DataWarning, match=r"beyond 2\*\*53, which are rounded to multiples of up to \d+: subtract"):
        check_rows(DtSEE(), X, reset=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_rows(DtSEE(), (X - X.min()).astype(X.dtype), reset=True)
