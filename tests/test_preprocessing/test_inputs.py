"""Centering, scale, standardization and principal axes against scikit-learn and plain formulas; warnings."""

import json
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from tsee import data
from tsee.data import apply_padded
from tsee.exceptions import DataWarning
from tsee.files import open_table
from tsee.preprocessing import Inputs, fit_preprocessing, principal


def inputs_of(X, n_inputs):
    return Inputs(X, fit_preprocessing(X, n_inputs, generator()))[:]


def generator():
    return torch.Generator().manual_seed(0)


@pytest.fixture
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(500, 40)) @ rng.normal(size=(40, 40)) * rng.uniform(0.1, 3, 40) + rng.normal(size=40)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(data.blocks, "__defaults__", (64,))


def test_without_axes_the_features_keep_their_proportions(X):
    fitted = fit_preprocessing(X, None, generator())
    U = Inputs(X, fitted)[:].numpy()
    np.testing.assert_allclose(U.mean(0), 0, atol=1e-5)
    assert U.var(0).mean() == pytest.approx(1, rel=1e-4)
    ratio = np.linalg.norm(X[:20, None] - X[:20], axis=2)[np.triu_indices(20, 1)]
    ratio = ratio / np.linalg.norm(U[:20, None] - U[:20], axis=2)[np.triu_indices(20, 1)]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-4)
    np.testing.assert_allclose(fitted.inverse(torch.tensor(U)), X, atol=1e-3)


@pytest.mark.parametrize("most", [3000, 10])  # by the covariance matrix, and by iterating the subspace
def test_axes_are_the_principal_ones(X, most, monkeypatch):
    monkeypatch.setattr(principal, "MAX_COVARIANCE", most)
    monkeypatch.setattr(principal, "OVERSAMPLING", 10)
    fitted = fit_preprocessing(X, 6, generator())
    U = Inputs(X, fitted)[:].numpy()
    expected = PCA(6).fit_transform(X)
    expected /= np.sqrt(expected.var(0).mean())
    signs = np.sign((U * expected).sum(0))
    np.testing.assert_allclose(U, expected * signs, atol=0.02 if most == 10 else 1e-4)
    np.testing.assert_allclose(fitted.basis.T @ fitted.basis, np.eye(6), atol=1e-5)


def test_unit_and_offset_do_not_matter(X):
    plain = inputs_of(X, 5)
    for unit, offset in ((255.0, 0.0), (1e-200, 0.0), (1e200, 0.0), (1.0, 1e6), (1.0, -1e9)):
        other = X * unit + offset
        torch.testing.assert_close(inputs_of(other, 5), plain, atol=1e-3, rtol=1e-3)


def test_sparse_rows_are_made_dense_by_the_block(X):
    X = np.where(X > 1, X, 0)
    sparse = scipy.sparse.csr_matrix(X)
    expected = inputs_of(X, 5)
    torch.testing.assert_close(inputs_of(sparse, 5), expected)


def test_fewer_rows_than_axes(X):
    fitted = fit_preprocessing(X[:4], 10, generator())
    assert fitted.n_inputs == 3
    assert torch.isfinite(Inputs(X, fitted)[:]).all()


def test_data_that_do_not_vary():
    X = np.full((30, 8), 7.0)
    for n_inputs in (None, 3):
        assert inputs_of(X, n_inputs).abs().max() < 1e-12


def test_padding_hides_the_number_of_rows():
    seen = []

    def double(block):
        seen.append(len(block))
        return block * 2

    for n in (1, 31, 32, 33, 100):
        rows = torch.arange(3.0 * n).view(n, 3)
        assert torch.equal(apply_padded(double, rows), rows * 2)
    assert all(n % 32 == 0 for n in seen)


@pytest.mark.parametrize("n_inputs", [None, 5])
def test_a_constant_column_of_large_numbers_changes_nothing(X, n_inputs):
    """For example a time stamp that is the same in every row."""
    plain = inputs_of(X, n_inputs)
    stamped = np.c_[X, np.full(len(X), 1.7e9)]
    other = inputs_of(stamped, n_inputs)
    if n_inputs is None:
        other = other[:, :-1] * np.sqrt(40 / 41)  # the mean variance is over one more feature
    torch.testing.assert_close(other, plain, atol=1e-3, rtol=1e-3)


# Features divided by their standard deviations


def mixed_units(n=300, n_features=12):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n, n_features)) @ rng.normal(size=(n_features, n_features))
    X = (X + 10.0 ** rng.integers(-3, 3, n_features)) * 10.0 ** rng.integers(-12, 13, n_features)
    X[:, 3] = 7.5  # constant
    return X


def naive_inputs(X, n_inputs):
    """Standardized inputs by the formula alone, in float64."""
    Z = X - X.mean(0)
    deviation = X.std(0)
    Z = Z / np.where(deviation > 1e-9 * np.abs(X.mean(0)), deviation, 1)
    if n_inputs is not None:
        axes = np.linalg.svd(Z, full_matrices=False)[2][:n_inputs].T
        Z = Z @ (axes * np.sign(axes[np.abs(axes).argmax(0), np.arange(axes.shape[1])]))
    return Z / np.sqrt(Z.var(0).mean())


@pytest.mark.parametrize("n_inputs", [None, 5])
def test_standardized_inputs_follow_the_formula(n_inputs):
    X = mixed_units()
    fitted = fit_preprocessing(X, n_inputs, generator(), standardize=True)
    U = Inputs(X, fitted)[:]
    np.testing.assert_allclose(U, naive_inputs(X, n_inputs), atol=2e-5)
    assert fitted.divisor.shape == (12,)
    np.testing.assert_allclose(fitted.divisor, fitted.scale * fitted.spread)
    if n_inputs is None:
        np.testing.assert_allclose((fitted.inverse(U) - X) / fitted.spread, 0, atol=1e-4)
        assert fitted.outside(X, U).abs().max() == 0


def test_the_spread_is_what_scikit_learn_divides_by():
    X = mixed_units()
    expected = StandardScaler().fit(X)
    fitted = fit_preprocessing(X, None, generator(), standardize=True)
    np.testing.assert_allclose(fitted.spread, expected.scale_, rtol=1e-12)
    np.testing.assert_allclose(Inputs(X, fitted)[:] * fitted.scale, expected.transform(X), atol=1e-5)


def test_standardized_inputs_and_what_they_leave_out_have_the_length_of_the_row():
    X = mixed_units()
    fitted = fit_preprocessing(X, 4, generator(), standardize=True)
    U = Inputs(X, fitted)[:]
    whole = ((X - fitted.mean) / fitted.divisor) ** 2
    np.testing.assert_allclose(U.double().square().sum(1) + fitted.outside(X, U), whole.sum(1), rtol=1e-5)
    back = fitted.inverse(U)
    np.testing.assert_allclose(fitted(back.astype(np.float64)), U, atol=1e-4)


@pytest.mark.parametrize("n_inputs", [None, 5])
def test_units_do_not_matter_to_standardized_inputs(n_inputs, X):
    plain = Inputs(X, fit_preprocessing(X, n_inputs, generator(), standardize=True))[:]
    other = X * 10.0 ** np.random.default_rng(0).integers(-100, 100, 40)
    found = Inputs(other, fit_preprocessing(other, n_inputs, generator(), standardize=True))[:]
    torch.testing.assert_close(found, plain, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("n_inputs", [None, 5])
@pytest.mark.parametrize("form", ["sparse", "file", "float32"])
def test_standardized_rows_of_every_kind(form, n_inputs, X, tmp_path):
    X = np.where(X > 1, X, 0).astype("float32" if form == "float32" else "float64") * np.arange(1, 41)
    expected = Inputs(X, fit_preprocessing(X.astype("f8"), n_inputs, generator(), standardize=True))[:]
    if form == "sparse":
        X = scipy.sparse.csr_matrix(X)
    elif form == "file":
        np.save(tmp_path / "rows.npy", X)
        X = open_table(tmp_path / "rows.npy").rows
    found = Inputs(X, fit_preprocessing(X, n_inputs, generator(), standardize=True))[:]
    # Products of sparse rows are summed in another order.
    tolerance = {"float32": 1e-4, "sparse": 1e-5, "file": 0}[form]
    torch.testing.assert_close(found, expected, atol=tolerance, rtol=0)


def test_nothing_is_standardized_unless_asked(X):
    fitted = fit_preprocessing(X, 5, generator())
    assert fitted.spread is None
    assert fitted.divisor == fitted.scale


def test_data_that_do_not_vary_are_not_divided():
    X = np.full((30, 8), 7.0)
    for n_inputs in (None, 3):
        fitted = fit_preprocessing(X, n_inputs, generator(), standardize=True)
        assert (fitted.divisor == 1).all()
        assert Inputs(X, fitted)[:].abs().max() < 1e-12


# Columns in different units


def warnings_of(X, **given):
    """The warnings while the preprocessing is fitted, with and without principal axes: they must be the same."""
    said = []
    for n_inputs in (None, 2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit_preprocessing(X, n_inputs, generator(), **given)
        said.append([str(warning.message) for warning in caught])
        assert all(warning.category is DataWarning for warning in caught)
    assert said[0] == said[1]
    return said[0]


def clusters_with_year_and_zip():
    rng = np.random.default_rng(0)
    clean = rng.normal(size=(400, 4)) + 8 * np.eye(4)[np.repeat(np.arange(4), 100)]
    return np.c_[clean, rng.integers(1990, 2024, 400), rng.integers(10_000, 99_999, 400)]


def test_columns_in_other_units_are_named():
    X = clusters_with_year_and_zip()
    (said,) = warnings_of(X, names=["a", "b", "c", "d", "year", "zip"])
    assert said.startswith("Column 'zip' of X holds 99.9 % of the variance of all 6 columns")
    assert "standardize=True" in said
    assert "--standardize" in said
    (said,) = warnings_of(X)
    assert said.startswith("Column 5 (counted from 0) of X holds 99.9 %")
    assert warnings_of(X, standardize=True) == []
    assert warnings_of(X[:, :4]) == []
    two = np.c_[X, X[:, 5][::-1]]
    (said,) = warnings_of(two)
    assert said.startswith("Columns 5 and 6 (counted from 0) of X hold 99.9 %")
    assert warnings_of(scipy.sparse.csr_matrix(two)) == [said]


def test_columns_of_many_features_in_other_units_are_named(monkeypatch):
    monkeypatch.setattr(principal, "MAX_COVARIANCE", 10)  # by iterating the subspace
    X = np.random.default_rng(0).normal(size=(100, 50))
    X[:, 7] *= 1000
    (said,) = warnings_of(X)
    assert said.startswith("Column 7 ")


@pytest.mark.parametrize("name", ["wine", "breast_cancer"])
def test_tables_in_several_units_cause_a_warning(name):
    data = getattr(datasets, f"load_{name}")()
    (said,) = warnings_of(data.data, names=list(data.feature_names))
    assert ("'proline'" if name == "wine" else "'mean area' and 'worst area'") in said


@pytest.mark.parametrize("name", ["iris", "diabetes", "digits"])
def test_tables_in_one_unit_cause_no_warning(name):
    assert warnings_of(getattr(datasets, f"load_{name}")().data) == []


def test_variances_that_differ_for_a_reason_cause_no_warning():
    rng = np.random.default_rng(0)
    components = rng.normal(size=(500, 30)) * np.exp(-1.5 * np.arange(30))  # principal components fade
    assert warnings_of(components) == []
    assert len(warnings_of(components[:, ::-1])) == 1
    counts = rng.poisson(rng.lognormal(-2, 2, 400) * rng.lognormal(0, 0.5, (300, 1)))
    assert warnings_of(counts) == []
    mostly_constant = np.zeros((100, 40))
    mostly_constant[:, :2] = rng.normal(size=(100, 2))
    assert warnings_of(mostly_constant) == []
    assert warnings_of(clusters_with_year_and_zip()[:10]) == []  # too few rows to tell


@pytest.mark.slow
@pytest.mark.skipif("TSEE_DATA" not in os.environ, reason="TSEE_DATA is not set")
@pytest.mark.parametrize("name", ["coil100", "fashion", "genomes", "mammoth", "mnist", "sentences", "words"])
def test_data_sets_in_one_unit_are_mapped_without_a_warning(name):
    path = Path(os.environ["TSEE_DATA"]) / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{path} is not there")
    with np.load(path) as arrays:
        X = arrays["x_train" if "x_train" in arrays else "x"][:10_000]
    assert warnings_of(X) == []


# A value that outweighs all others


@pytest.mark.parametrize("value", [1e7, -1e30])
def test_one_value_that_outweighs_all_others_is_named(value, X):
    X[123, 17] = value
    (said,) = warnings_of(X)
    assert said.startswith("The value in row 123, column 17 of X (counted from 0) ")
    assert "leave that row out" in said
    (said,) = warnings_of(X, names=[f"gene{i}" for i in range(40)])
    assert said.startswith("The value in row 123 (counted from 0), column 'gene17' of X ")
    assert warnings_of(scipy.sparse.csr_matrix(X))[0].startswith("The value in row 123, column 17 ")
    assert warnings_of(X[110:135])[0].startswith("The value in row 13, column 17 ")  # of a few rows, too


def test_heavy_tails_are_not_a_single_value():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        for X in (rng.lognormal(0, 2, (500, 20)), rng.standard_t(2, (500, 20)), rng.pareto(1.5, (500, 20))):
            assert warnings_of(X) == []
    single = np.zeros((1000, 30))
    single[:, :3] = rng.normal(size=(1000, 3))
    single[7, 9] = 1.0
    assert warnings_of(single) == []


# Several processes


SHARES = """
import json, warnings
import numpy as np
from tsee.preprocessing import fit_preprocessing
found = {}
for name in ("units", "value", "largest", "constant"):
    X = np.load(f"{sys.argv[1]}/{name}.npy")
    cut = 170 if size > 1 else len(X)
    mine = X[:cut] if rank == 0 else X[cut:]
    for standardize in (False, True):
        for n_inputs in (None, 3):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted = fit_preprocessing(mine, n_inputs, torch.Generator().manual_seed(0), standardize=standardize)
            basis = None if fitted.basis is None else np.abs(fitted.basis).tolist()
            spread = None if fitted.spread is None else fitted.spread.tolist()
            said = [str(warning.message) for warning in caught]
            found[f"{name} {standardize} {n_inputs}"] = [fitted.mean.tolist(), fitted.scale, basis, spread, said]
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="gloo processes are started as on Linux and macOS")
def test_two_processes_fit_and_say_what_one_does(tmp_path, peers, X):
    np.save(tmp_path / "units.npy", clusters_with_year_and_zip())
    X[333, 17] = 1e30
    np.save(tmp_path / "value.npy", X)
    largest = np.random.default_rng(0).uniform(-3e38, 3e38, (300, 6)).astype(np.float32)
    np.save(tmp_path / "largest.npy", largest)
    np.save(tmp_path / "constant.npy", np.c_[largest[:, :5] / 3e38, largest[:, 5] * 0 + 3e38].astype(np.float32))
    (alone,) = map(json.loads, peers.run(SHARES, 1, tmp_path))
    first, second = map(json.loads, peers.run(SHARES, 2, tmp_path))
    assert first == second
    assert alone["value False None"][4][0].startswith("The value in row 333, column 17 ")
    assert alone["units False 3"][4][0].startswith("Column 5 ")
    for name, (*numbers, said) in alone.items():
        assert first[name][4] == said
        if name == "value False 3":
            numbers[2] = first[name][2] = None  # the axes after the first one are rounding errors of the value
        for one, two in zip(numbers, first[name][:4], strict=True):
            assert (one is None) == (two is None)
            if one is not None:
                np.testing.assert_allclose(two, one, rtol=1e-5, atol=1e-5)
