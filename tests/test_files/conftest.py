"""Numbers and tables to write to files, and checks of what is read back."""

import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import scipy.sparse

import tsee
from tsee.exceptions import DataFileError
from tsee.files import open_table, text


@pytest.fixture
def numbers():
    return np.random.default_rng(0).normal(size=(500, 6)).astype(np.float32)


@pytest.fixture(params=["plain", "arrow"])
def parser(request, monkeypatch):
    """Each of the two parsers of text; the second falls back on the first if it refuses a file."""
    monkeypatch.setattr(text, "ARROW_BYTES", 0 if request.param == "arrow" else 2**60)
    return request.param


def _check_slices(rows, expected):
    """Any slice of the rows equals the slice of the array, in the same type."""
    assert rows.shape == expected.shape
    assert rows.dtype == expected.dtype
    n = len(expected)
    for start, stop in ((0, n), (0, 1), (n // 3, n // 2), (n - 7, n), (5, 5), (n - 3, n + 10), (n // 2, n // 2 + 200)):
        block = rows[start:stop]
        assert scipy.sparse.issparse(block) == rows.sparse
        dense = block.toarray() if rows.sparse else block
        assert dense.dtype == expected.dtype
        np.testing.assert_array_equal(dense, expected[start:stop])


@pytest.fixture(scope="session")
def check_slices():
    return _check_slices


def _read_all(path, **given):
    with open_table(path, **given) as table:
        for start in range(0, len(table), 64):
            _ = table.rows[start : start + 64]


def _refused(path, sentence, **given):
    """Opening, or reading all of it, fails with this sentence, after the file's name."""
    with pytest.raises(DataFileError) as caught:
        _read_all(path, **given)
    message = str(caught.value)
    assert sentence in message
    assert path.name in message
    assert "\n" not in message
    assert message.endswith((".", "?"))


@pytest.fixture(scope="session")
def refused():
    return _refused


def _program(code):
    """A program that uses tsee.files without the rest of tsee, which takes seconds to import."""
    stub = f"""
        import sys, types
        sys.modules["tsee"] = types.ModuleType("tsee")
        sys.modules["tsee"].__path__ = {list(tsee.__path__)!r}
    """
    return textwrap.dedent(stub) + textwrap.dedent(code)


@pytest.fixture(scope="session")
def program():
    return _program


def _run(code):
    done = subprocess.run([sys.executable, "-c", _program(code)], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="session")
def run():
    return _run


def _write_numbers(path, numbers):
    columns = {f"x{column}": numbers[:, column] for column in range(numbers.shape[1])}
    if path.suffix == ".npy":
        np.save(path, numbers)
    elif path.suffix == ".parquet":
        pq.write_table(pa.table(columns), path, row_group_size=len(numbers) if "whole" in path.name else 5000)
    elif path.suffix == ".csv":
        pa.csv.write_csv(pa.table(columns), path)
    elif path.suffix == ".h5":
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=numbers, chunks=(100, numbers.shape[1]))
    elif "sparse" in path.name:
        scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(numbers), compressed=False)
    else:
        np.savez_compressed(path, numbers)


@pytest.fixture(scope="session")
def write_numbers():
    return _write_numbers


def _make_h5ad(path, n=50, width=2):
    """The smallest file that is one."""
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        file["X"] = np.zeros((n, width), np.float32)
        for part, size in (("obs", n), ("var", width)):
            file.create_group(part).attrs.update({"_index": "_index", "column-order": np.array([], dtype="S1")})
            file[part]["_index"] = np.array([f"{part}{i}" for i in range(size)], dtype=object)


@pytest.fixture(scope="session")
def make_h5ad():
    return _make_h5ad


def _people(n=300):
    generator = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "person_id": generator.permutation(n) + 10**17,
            "name": [f'Zoë "{i}", the\n{i}th' if i % 50 == 0 else f"p{i}" for i in range(n)],
            "height": generator.normal(size=n),
            "age": generator.integers(0, 90, n),
            "code": [f"{i:04d}" for i in range(n)],
            "class": generator.choice(["a", "b"], n),
            "weight": generator.normal(size=n).astype(np.float32),
        }
    )


@pytest.fixture(scope="session")
def people():
    return _people


@pytest.fixture(scope="session")
def good_csv():
    """A CSV text of 100 rows without mistakes."""
    return "id,age,city\n" + "".join(f"{i},{i % 7}.5,town\n" for i in range(100))
