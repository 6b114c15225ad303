"""Every kind of rows gives the same map as the numpy array, bit for bit."""

import warnings

import dask.array
import h5py
import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import scipy.sparse
import torch
import zarr

from tsee import DtSEE
from tsee.data import checks as data
from tsee.files import open_table

NAMES = [f"feature {i}" for i in range(8)]


def fitted(X):
    return DtSEE(max_epochs=1, hidden_layers=(16,), refinement=0, random_state=0).fit(X)


def refusing(X):
    return DtSEE(max_epochs=1, hidden_layers=(16,), refinement=0, missing="error", random_state=0).fit(X)


@pytest.fixture(scope="module")
def values():
    """1500 rows, more than are read at once; many zeros, the rest whole numbers that are exact in every dtype."""
    X = np.random.default_rng(0).integers(-3, 30, size=(1500, 8))
    return np.maximum(X, 0)


@pytest.fixture(scope="module")
def expected(values):
    """The positions for the numpy array of a dtype, and for its first rows by transform."""
    known = {}

    def of(dtype):
        if dtype not in known:
            X = values.astype(dtype)
            model = fitted(X)
            known[dtype] = model.embedding_, model.transform(X[:100])
        return known[dtype]

    return of


@pytest.fixture(scope="module")
def model(values):
    return fitted(values.astype("float32"))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64", "bool", "int8", ">f4", "object", "complex64"])
@pytest.mark.parametrize("form", ["rows", "Fortran", "read-only", "none", "wrong width", "NaN"])
def test_plain_matrices_pass_the_checks_that_others_do(kind, form, values, model, monkeypatch):
    """A plain matrix is checked in fewer steps than by scikit-learn, with the same result."""
    X = values[:5].astype(kind)
    X = {"none": X[:0], "wrong width": X[:, :7], "Fortran": np.asfortranarray(X)}.get(form, X)
    if form == "read-only":
        X.flags.writeable = False
    if form == "NaN" and X.dtype.kind in "fOc":
        X[1, 2] = np.nan
    outcomes = []
    for plain in (data._plain, lambda X: False):
        monkeypatch.setattr(data, "_plain", plain)
        try:
            outcomes.append(model.transform(X).tolist())
        except (TypeError, ValueError) as refused:
            outcomes.append((type(refused), str(refused)))
    assert outcomes[0] == outcomes[1]


def check(expected, data, first, *, dtype="float32", names=None):
    """``data``, and its ``first`` rows in transform, get the same positions as the numpy array of ``dtype``."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fitted(data)
        positions = model.transform(first)
    embedding, placed = expected(dtype)
    np.testing.assert_array_equal(model.embedding_, embedding)
    np.testing.assert_array_equal(positions, placed)
    assert model.n_features_in_ == 8
    if names is None:
        assert not hasattr(model, "feature_names_in_")
    else:
        assert list(model.feature_names_in_) == names


# In memory


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "uint8", "bool"])
def test_a_dtype_does_not_change_the_numbers(dtype, values, expected):
    """Integers become floats that hold them exactly, by numpy's promotion with float32."""
    X = (values % 2 if dtype == "bool" else values).astype(dtype)
    exact = np.result_type(dtype, np.float32)
    np.testing.assert_array_equal(fitted(X).embedding_, fitted(X.astype(exact)).embedding_)


def _strided(X):
    wide = np.zeros((2 * len(X), 16), dtype=X.dtype)
    wide[::2, ::2] = X
    return wide[::2, ::2]


def _read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


NUMPY = {
    "Fortran order": np.asfortranarray,
    "strided": _strided,
    "backwards": lambda X: X[::-1].copy()[::-1],
    "big-endian": lambda X: X.astype(X.dtype.newbyteorder(">")),
    "read-only": _read_only,
    "list of arrays": list,
}


@pytest.mark.parametrize("make", NUMPY.values(), ids=NUMPY)
def test_numpy(make, values, expected):
    X = make(values.astype(np.float32))
    check(expected, X, X[:100])


def test_the_array_is_left_as_it_was(values):
    X = values.astype(np.float32)
    fitted(X).transform(X)
    np.testing.assert_array_equal(X, values)


def test_lists(values, expected):
    X = values.astype(np.float64).tolist()
    check(expected, X, X[:100], dtype="float64")
    check(expected, values.tolist(), values[:100].tolist(), dtype="int64")
    check(expected, [tuple(row) for row in X], tuple(X[:100]), dtype="float64")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_tensors(dtype, values, expected):
    X = torch.from_numpy(values.astype(dtype))
    check(expected, X, X[:100], dtype=dtype)
    check(expected, X.T.contiguous().T, X[:100], dtype=dtype)


def test_tensors_of_training(values, expected):
    X = torch.from_numpy(values.astype(np.float32)).requires_grad_()
    check(expected, X, X[:100])
    half = X.detach().bfloat16()
    check(expected, half, half[:100])
    np.testing.assert_array_equal(X.detach().numpy(), values)


# Sparse

SPARSE = ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("form", SPARSE)
@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
def test_sparse(form, kind, dtype, values, expected):
    make = getattr(scipy.sparse, f"{form}_{kind}")
    X = values.astype(dtype)
    check(expected, make(X), make(X[:100]), dtype=dtype)


def test_sparse_with_wide_indices_duplicates_and_stored_zeros(values, expected):
    X = scipy.sparse.csr_array(values.astype(np.float32))
    wide = scipy.sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), shape=X.shape)
    check(expected, wide, wide[:100])
    rows, columns = values.nonzero()
    twice = scipy.sparse.coo_array(  # entries of the same row and column are added, and a zero may be stored
        (
            np.r_[X.data - 1, np.ones_like(X.data), 0].astype(np.float32),
            (np.r_[rows, rows, 0], np.r_[columns, columns, 0]),
        ),
        shape=X.shape,
    )
    check(expected, twice, X[:100])


# DataFrames


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "uint8"])
def test_pandas(dtype, values, expected):
    frame = pd.DataFrame(values.astype(dtype), columns=NAMES)
    check(expected, frame, frame[:100], dtype=dtype, names=NAMES)


@pytest.mark.parametrize(
    "dtype, exact",
    [
        ("Float64", "float64"),
        ("Int64", "int64"),
        ("UInt8", "int64"),
        ("double[pyarrow]", "float64"),
        ("int64[pyarrow]", "int64"),
    ],
)
def test_pandas_extension_types(dtype, exact, values, expected):
    frame = pd.DataFrame(values, columns=NAMES).astype(dtype)
    check(expected, frame, frame[:100], dtype=exact, names=NAMES)


def test_pandas_columns_of_several_types(values, expected):
    frame = pd.DataFrame(values.astype(np.float64), columns=NAMES, index=[f"row {i}" for i in range(len(values))])
    frame = frame.astype({"feature 1": "int8", "feature 2": "Int64", "feature 3": "float32", "feature 4": "Float64"})
    check(expected, frame, frame[:100], dtype="float64", names=NAMES)


def test_pandas_sparse_columns(values, expected):
    frame = pd.DataFrame(values.astype(np.float64), columns=NAMES).astype(pd.SparseDtype(np.float64, 0))
    with warnings.catch_warnings():  # scikit-learn warns that they become dense
        warnings.filterwarnings("ignore", "pandas.DataFrame with sparse columns")
        model = fitted(frame)
    np.testing.assert_array_equal(model.embedding_, expected("float64")[0])
    assert list(model.feature_names_in_) == NAMES


@pytest.mark.parametrize("dtype", ["Float32", "Float64", "Int64", "UInt8"])
def test_polars(dtype, values, expected):
    frame = polars.DataFrame(values, schema=NAMES).cast(getattr(polars, dtype))
    check(expected, frame, frame[:100], dtype=dtype.lower(), names=NAMES)


def test_polars_columns_of_several_types(values, expected):
    frame = polars.DataFrame(values.astype(np.float64), schema=NAMES)
    frame = frame.cast({"feature 1": polars.Int8, "feature 2": polars.UInt64, "feature 3": polars.Float32})
    check(expected, frame, frame[:100], dtype="float64", names=NAMES)


def test_polars_out(values):
    frame = polars.DataFrame(values, schema=NAMES)
    positions = fitted(frame).set_output(transform="polars").transform(frame)
    assert isinstance(positions, polars.DataFrame)
    assert positions.columns == ["tsee0", "tsee1"]


def test_arrow_tables(values, expected):
    table = pyarrow.table({name: values[:, i].astype(np.float32) for i, name in enumerate(NAMES)})
    check(expected, table, table[:100], names=NAMES)


FRAMES = {"pandas": pd.DataFrame, "polars": polars.DataFrame}


def test_a_missing_value_is_named(values):
    numbers = values.astype(np.float64)
    columns = {name: numbers[:, i].tolist() for i, name in enumerate(NAMES)}
    columns["feature 3"][7] = None
    where = "X contains NaN in row 7, column 'feature 3'"
    with pytest.raises(ValueError, match=where):
        refusing(pd.DataFrame(columns))
    for dtype in ("Float64", "Int64", "double[pyarrow]"):
        with pytest.raises(ValueError, match=where):
            refusing(pd.DataFrame(columns).astype(dtype))
    with pytest.raises(ValueError, match=where):
        refusing(polars.DataFrame(columns))
    with pytest.raises(ValueError, match=where):
        refusing(polars.DataFrame(columns).with_columns(polars.all().cast(polars.Int64)))


def test_a_query_that_was_not_run_is_refused(values):
    with pytest.raises(TypeError, match=r"X is a LazyFrame.*collect\(\)"):
        fitted(polars.DataFrame(values, schema=NAMES).lazy())


def test_names_are_compared(values):
    model = fitted(polars.DataFrame(values, schema=NAMES))
    with pytest.raises(ValueError, match="feature names should match"):
        model.transform(pd.DataFrame(values, columns=NAMES[::-1]))
    np.testing.assert_array_equal(model.transform(pd.DataFrame(values, columns=NAMES)), model.embedding_)


# On disk and in chunks


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_memory_maps(dtype, values, expected, tmp_path):
    X = np.memmap(tmp_path / "rows", dtype=dtype, mode="w+", shape=values.shape)
    X[:] = values
    check(expected, X, X[:100], dtype=dtype)
    np.save(tmp_path / "rows.npy", values.astype(dtype))
    X = np.load(tmp_path / "rows.npy", mmap_mode="r")
    check(expected, X, X[:100], dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("options", [{}, dict(chunks=(400, 3), compression="gzip")], ids=["whole", "chunks"])
def test_h5py(dtype, options, values, expected, tmp_path):
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        X = file.create_dataset("X", data=values.astype(dtype), **options)
        first = file.create_dataset("first", data=values[:100].astype(dtype), **{**options, "chunks": None})
        check(expected, X, first, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_zarr(dtype, values, expected, tmp_path):
    X = zarr.create_array(tmp_path / "rows.zarr", data=values.astype(dtype), chunks=(400, 3))
    first = zarr.create_array(tmp_path / "first.zarr", data=values[:100].astype(dtype), chunks=(60, 8))
    check(expected, X, first, dtype=dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("chunks", [(400, 8), (400, 3), -1])
def test_dask(dtype, chunks, values, expected):
    X = dask.array.from_array(values.astype(dtype), chunks=chunks)
    check(expected, X, X[:100], dtype=dtype)


class Sliced:
    """Rows that can only be sliced, from any library that offers a shape, a dtype and slices."""

    ndim = 2

    def __init__(self, X):
        self._X, self.shape, self.dtype, self.longest = X, X.shape, X.dtype, 0

    def __len__(self):
        return self.shape[0]

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        assert rows.step in (None, 1)
        block = self._X[rows]
        self.longest = max(self.longest, block.shape[0])
        return block

    def __array__(self, dtype=None, copy=None):
        raise AssertionError("the whole was asked for")


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_sliced_rows_are_never_read_whole(form, dtype, values, expected):
    X = Sliced(form(values.astype(dtype)))
    check(expected, X, Sliced(form(values[:100].astype(dtype))), dtype=dtype)
    assert 0 < X.longest < len(X)


def test_a_bad_value_on_disk_is_named(values, tmp_path):
    X = values.astype(np.float32)
    X[1234, 5] = np.nan
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = X
        for rows in (X, file["X"], Sliced(X), Sliced(scipy.sparse.csr_array(X)), dask.array.from_array(X)):
            with pytest.raises(ValueError, match="X contains NaN in row 1234, column 5"):
                refusing(rows)


def test_another_number_of_columns_is_refused(values, tmp_path):
    model = fitted(values)
    with h5py.File(tmp_path / "rows.h5", "w") as file:
        file["X"] = values[:, :3]
        for rows in (values[:, :3], scipy.sparse.coo_array(values[:, :3]), file["X"], Sliced(values[:, :3])):
            with pytest.raises(ValueError, match="X has 3 features, but DtSEE is expecting 8 features"):
                model.transform(rows)


# Tables


WRITERS = {
    "rows.npy": lambda path, frame: np.save(path, frame.to_numpy()),
    "rows.npz": lambda path, frame: scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(frame.to_numpy())),
    "rows.parquet": lambda path, frame: frame.to_parquet(path),
    "rows.csv": lambda path, frame: frame.to_csv(path, index=False),
}


@pytest.mark.parametrize("name", WRITERS)
def test_rows_of_tables(name, values, expected, tmp_path):
    frame = pd.DataFrame(values.astype(np.float32), columns=NAMES)
    WRITERS[name](tmp_path / name, frame)
    WRITERS[name](tmp_path / f"first_{name}", frame[:100])
    with open_table(tmp_path / name) as table, open_table(tmp_path / f"first_{name}") as first:
        assert table.feature_names == (NAMES if name in ("rows.parquet", "rows.csv") else None)
        check(expected, table.rows, first.rows, dtype=str(table.rows.dtype), names=table.feature_names)
