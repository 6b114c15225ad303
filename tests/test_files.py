"""Data files: what is written with one library is read back as the same numbers, by slice; bad files are named."""

import gzip
import os
import signal
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
import zarr

import tsee
from tsee.exceptions import DataFileError
from tsee.files import MapWriter, open_table, parquet, text, write_map
from tsee.files.rows import Rows


@pytest.fixture
def numbers():
    return np.random.default_rng(0).normal(size=(500, 6)).astype(np.float32)


@pytest.fixture(params=["plain", "arrow"])
def parser(request, monkeypatch):
    """Each of the two parsers of text; the second falls back on the first where it does not like a file."""
    monkeypatch.setattr(text, "ARROW_BYTES", 0 if request.param == "arrow" else 2**60)
    return request.param


def check_slices(rows, expected):
    """Any slice of the rows is that of the array, in the same type."""
    assert rows.shape == expected.shape
    assert rows.dtype == expected.dtype
    n = len(expected)
    for start, stop in ((0, n), (0, 1), (n // 3, n // 2), (n - 7, n), (5, 5), (n - 3, n + 10), (n // 2, n // 2 + 200)):
        block = rows[start:stop]
        assert scipy.sparse.issparse(block) == rows.sparse
        dense = block.toarray() if rows.sparse else block
        assert dense.dtype == expected.dtype
        np.testing.assert_array_equal(dense, expected[start:stop])


def read_all(path, **given):
    with open_table(path, **given) as table:
        for start in range(0, len(table), 64):
            _ = table.rows[start : start + 64]


def refused(path, sentence, **given):
    """Opening, or reading all of it, fails with this sentence, after the file's name."""
    with pytest.raises(DataFileError) as caught:
        read_all(path, **given)
    message = str(caught.value)
    assert sentence in message
    assert path.name in message
    assert "\n" not in message
    assert message.endswith((".", "?"))


def program(code):
    """A program that uses tsee.files without the rest of tsee, which takes seconds to import."""
    stub = f"""
        import sys, types
        sys.modules["tsee"] = types.ModuleType("tsee")
        sys.modules["tsee"].__path__ = {list(tsee.__path__)!r}
    """
    return textwrap.dedent(stub) + textwrap.dedent(code)


def run(code):
    done = subprocess.run([sys.executable, "-c", program(code)], capture_output=True, text=True, check=True)
    return done.stdout


def write_numbers(path, numbers):
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


def make_h5ad(path, n=50):
    """The smallest file that is one."""
    with h5py.File(path, "w") as file:
        file.attrs.update({"encoding-type": "anndata", "encoding-version": "0.1.0"})
        file["X"] = np.zeros((n, 2), np.float32)
        for part, size in (("obs", n), ("var", 2)):
            file.create_group(part).attrs.update({"_index": "_index", "column-order": np.array([], dtype="S1")})
            file[part]["_index"] = np.array([f"{part}{i}" for i in range(size)], dtype=object)


# Rows


def test_rows_are_read_by_slice_only(tmp_path, numbers):
    np.save(tmp_path / "a.npy", numbers)
    rows = open_table(tmp_path / "a.npy").rows
    with pytest.raises(TypeError, match="by slice"):
        _ = rows[3]
    with pytest.raises(ValueError, match="without a step"):
        _ = rows[::2]
    np.testing.assert_array_equal(np.asarray(rows), numbers)
    assert len(rows) == 500
    assert isinstance(rows, Rows)


# Arrays


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "u1", "i8", "?", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path, numbers, dtype, order):
    array = np.asarray(numbers * 100, dtype=dtype, order=order)
    np.save(tmp_path / "a.npy", array)
    table = open_table(tmp_path / "a.npy")
    check_slices(table.rows, array.astype(array.dtype.newbyteorder("=")))
    assert table.feature_names is None
    assert table.label is None
    assert dict(table.other_columns) == {}
    assert table.notes == []


def test_images_are_made_flat(tmp_path, numbers):
    np.save(tmp_path / "a.npy", numbers.reshape(500, 2, 3))
    table = open_table(tmp_path / "a.npy")
    check_slices(table.rows, numbers)
    assert table.notes == ["Each row, of shape 2 x 3, becomes 6 features."]


def test_npy_folder_in_order_of_numbers(tmp_path, numbers):
    for part in range(11):
        np.save(tmp_path / f"part-{part}.npy", numbers[part * 40 : (part + 1) * 40])
    check_slices(open_table(tmp_path).rows, numbers[:440])
    np.save(tmp_path / "part-11.npy", numbers[:, :5])
    refused(tmp_path, "part-11.npy' has 5 columns, but")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path, numbers, save):
    y = np.arange(500) % 3
    path = tmp_path / "a.npz"
    save(path, x_train=numbers, y_train=y, x_test=numbers[:9, ::-1])
    table = open_table(path, key="x_train", label="y_train")
    check_slices(table.rows, numbers)
    np.testing.assert_array_equal(table.label, y)
    check_slices(open_table(path, key="x_test").rows[:].view(RowsOf), numbers[:9, ::-1])
    refused(path, "several arrays ('x_train', 'x_test'): name one by its key")
    refused(path, "no array 'x_trian': did you mean 'x_train'", key="x_trian")
    refused(path, "has shape (500,), but the data has 9 rows", key="x_test", label="y_train")
    save(path, numbers)
    check_slices(open_table(path).rows, numbers)


class RowsOf(np.ndarray):
    """An array that passes for rows, for the check of slices."""

    sparse = False


@pytest.mark.parametrize("compressed", [True, False])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_npz(tmp_path, compressed, form):
    matrix = scipy.sparse.random(300, 40, 0.1, format=form, dtype=np.float32, random_state=0)
    path = tmp_path / "a.npz"
    scipy.sparse.save_npz(path, matrix, compressed=compressed)
    table = open_table(path)
    check_slices(table.rows, matrix.toarray())
    assert len(table.notes) == (form != "csr")


def test_hdf5(tmp_path, numbers):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("group/x", data=numbers, chunks=(64, 6), compression="gzip")
        file["group/y"] = np.array(["a", "b"] * 250, dtype=object)
    with open_table(path, label="group/y") as table:
        check_slices(table.rows, numbers)
        assert table.rows.span == 64
        assert table.label[:3].tolist() == ["a", "b", "a"]
    refused(path, "no array 'group/z'", key="group/z")
    with h5py.File(path, "a") as file:
        file["z"] = numbers
    refused(path, "several arrays ('group/x', 'z')")
    check_slices(open_table(path, key="/group/x").rows, numbers)


def test_zarr(tmp_path, numbers):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w")
    group.create_array("deep/x", shape=numbers.shape, chunks=(64, 6), dtype="f4")[:] = numbers
    group.create_array("y", shape=(500,), dtype="i8")[:] = np.arange(500)
    table = open_table(tmp_path / "a.zarr", label="y")
    check_slices(table.rows, numbers)
    assert table.label[-1] == 499
    check_slices(open_table(tmp_path / "a.zarr", key="deep/x").rows, numbers)
    zarr.create_array(str(tmp_path / "b.zarr"), data=numbers)
    check_slices(open_table(tmp_path / "b.zarr").rows, numbers)
    refused(tmp_path / "b.zarr", "leave the key out", key="x")
    chunk = next(path for path in (tmp_path / "b.zarr").rglob("*") if path.is_file() and path.name != "zarr.json")
    chunk.write_bytes(chunk.read_bytes()[:20])
    refused(tmp_path / "b.zarr", "damaged, cut off")


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a.h5"])
def test_bad_arrays(tmp_path, numbers, name):
    path = tmp_path / name

    def write(array, folder=tmp_path):
        if name == "a.npy":
            np.save(folder / name, array)
        elif name == "a.npz":
            np.savez(folder / name, array)
        else:
            with h5py.File(folder / name, "w") as file:
                file["x"] = array

    holed = numbers.copy()
    holed[70, 3] = np.nan
    write(holed)
    refused(path, "NaN in row 71, column 4: fill it in")
    holed[70, 3] = -np.inf
    write(holed)
    refused(path, "infinity in row 71, column 4: replace it with a finite number, remove that row, or drop the column.")
    write(numbers[:, 0])
    refused(path, "shape (500,), but rows and columns are needed")
    write(numbers[:0])
    refused(path, "no rows")
    write(np.array([[b"a", b"b"]]))
    refused(path, "not numbers")
    write(numbers)
    refused(path, "has no named columns", columns=["a"])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    refused(path, "damaged")
    path.write_bytes(b"what?" + whole)
    refused(path, "does not begin as")
    path.write_bytes(b"")
    refused(path, "is empty")
    write(np.finfo(np.float32).max * np.ones((9, 9), np.float32))  # whose sum is infinite, and they are not
    _ = open_table(path).rows[:]


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.environ["TSEE_TEST_EVIL"],)


@pytest.mark.parametrize("name", ["a.npy", "a.npz"])
def test_no_pickle_is_read(tmp_path, monkeypatch, name):
    monkeypatch.setenv("TSEE_TEST_EVIL", str(tmp_path / "evil"))
    array = np.array([[Evil(), 1]], dtype=object)
    (np.save if name == "a.npy" else np.savez)(tmp_path / name, array)
    refused(tmp_path / name, "Python objects, which are not read")
    assert not (tmp_path / "evil").exists()


def test_damaged_sparse_matrix(tmp_path):
    matrix = scipy.sparse.random(300, 40, 0.1, format="csr", dtype=np.float32, random_state=0)
    matrix.indices[50] = 4000
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    refused(tmp_path / "a.npz", "damaged sparse matrix (rows 1 to 64)")
    matrix.indices[50] = 4
    matrix.data[50] = np.nan
    row = int(np.searchsorted(matrix.indptr, 50, side="right"))
    scipy.sparse.save_npz(tmp_path / "a.npz", matrix)
    refused(tmp_path / "a.npz", f"NaN in row {row}, column 5")


# Text


def people(n=300):
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


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".txt"])
def test_text_is_what_pandas_wrote(tmp_path, parser, ending):
    frame = people()
    path = tmp_path / f"people{ending}"
    frame.to_csv(path, index=False, sep={".tsv": "\t", ".txt": ";"}.get(ending, ","))
    table = open_table(path, label="class", drop=["code"])
    features = ["height", "age", "weight"]
    assert table.feature_names == features
    check_slices(table.rows, pd.read_csv(path, sep=None, engine="python")[features].to_numpy(np.float64))
    assert list(table.other_columns) == ["person_id", "name"]
    assert table.other_columns["person_id"].dtype == np.int64
    np.testing.assert_array_equal(table.other_columns["person_id"], frame["person_id"])
    assert table.other_columns["name"].tolist() == frame["name"].tolist()
    assert table.label.tolist() == frame["class"].tolist()
    assert table.notes == ["Kept aside, not numeric: 'name'.", "Kept aside, an identifier: 'person_id'."]
    assert table.kept(100, 102)["name"].tolist() == frame["name"][100:102].tolist()


def test_the_fast_parser_is_used_where_it_can_be(tmp_path, monkeypatch):
    monkeypatch.setattr(text, "ARROW_BYTES", 0)
    monkeypatch.setattr(text, "_plain_blocks", None)
    people().to_csv(tmp_path / "people.csv")
    assert len(open_table(tmp_path / "people.csv")) == 300


def test_columns_are_chosen_in_order(tmp_path, parser):
    people().to_csv(tmp_path / "a.csv")
    table = open_table(tmp_path / "a.csv", columns=["weight", "age"])
    assert table.feature_names == ["weight", "age"]
    np.testing.assert_allclose(table.rows[:][:, 1], people()["age"])
    assert list(table.other_columns) == ["index", "person_id", "name", "class"]
    # An identifier that is asked for is a feature.
    assert open_table(tmp_path / "a.csv", columns=["person_id"]).feature_names == ["person_id"]
    refused(tmp_path / "a.csv", "no columns 'hieght', 'x': did you mean 'height', 'weight'?", columns=["hieght", "x"])
    refused(tmp_path / "a.csv", "no column 'clas': did you mean 'class'?", label="clas")
    # What is asked for already cannot have been meant.
    refused(tmp_path / "a.csv", "no column 'hieght': did you mean 'weight'?", columns=["height", "hieght"])
    refused(tmp_path / "a.csv", "no column 'hieght': did you mean 'weight'?", columns=["height"], label="hieght")
    refused(tmp_path / "a.csv", "no column 'ages': it has 'index', 'person_id'", columns=["ages", "age"])
    refused(tmp_path / "a.csv", "no column 'ages': did you mean 'age'", drop=["ages"])
    refused(tmp_path / "a.csv", "column 'class': 'b' is not a number", columns=["age", "class"])
    refused(tmp_path / "a.csv", "'age' of", columns=["age", "age"])
    refused(tmp_path / "a.csv", "a feature and also the label", columns=["age"], label="age")
    with pytest.raises(TypeError, match="sequence of names"):
        open_table(tmp_path / "a.csv", columns="age")


def test_single_precision_as_long_as_it_is_exact(tmp_path, parser, monkeypatch):
    monkeypatch.setattr(text, "FIRST_FIELDS", 40)
    monkeypatch.setattr(text, "BLOCK_FIELDS", 20)
    values = np.arange(200.0).reshape(100, 2)
    np.savetxt(tmp_path / "a.csv", values, delimiter=",", fmt="%g", header="x,y", comments="")
    check_slices(open_table(tmp_path / "a.csv").rows, values.astype(np.float32))
    values[70, 1] = 0.1
    np.savetxt(tmp_path / "a.csv", values, delimiter=",", fmt="%g", header="x,y", comments="")
    check_slices(open_table(tmp_path / "a.csv").rows, values)


def test_header_or_not(tmp_path, parser):
    path = tmp_path / "a.csv"
    path.write_text("5,1.5\n6,2.5\n")
    table = open_table(path, label="column1")
    np.testing.assert_array_equal(table.rows[:], [[1.5], [2.5]])
    assert table.label.tolist() == [5, 6]
    assert table.notes == ["There is no header: the columns are called 'column1' to 'column2'."]
    path.write_text("0,1\n6,2.5\n")  # what pandas writes of columns without names
    assert open_table(path).feature_names == ["0", "1"]
    path.write_text("\n0,1\n6,2.5\n")
    np.testing.assert_array_equal(open_table(path).rows[:], [[6, 2.5]])
    path.write_text('\ufeff,x, y ,\n\n0,1,2,3\n\n1,5,6,"7"\n', encoding="utf-8")
    table = open_table(path)
    assert table.feature_names == ["x", "y", "column4"]
    np.testing.assert_array_equal(table.rows[:], [[1, 2, 3], [5, 6, 7]])
    assert table.other_columns["index"].tolist() == [0, 1]


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz"])
def test_two_columns_of_one_name_are_refused(tmp_path, parser, ending):
    """Which of them a model means could not be told."""
    path = tmp_path / f"a{ending}"
    for header in ("x,y,x", "y,x, x ", 'x,"x",x'):
        content = f"{header}\n1,2,3\n4,5,6\n".replace(",", "\t" if ending == ".tsv" else ",")
        path.write_bytes(gzip.compress(content.encode()) if ending == ".csv.gz" else content.encode())
        refused(path, "has several columns named 'x': rename them in the header so that all names differ")
        refused(path, "has several columns named 'x'", columns=["y"] if "y" in header else None, drop=["x"])


def test_what_savetxt_writes(tmp_path, parser, numbers):
    path = tmp_path / "a.txt"
    np.savetxt(path, numbers)
    check_slices(open_table(path).rows, numbers)
    np.savetxt(path, numbers, delimiter=",", header=",".join("abcdef"), fmt="%9g")
    assert open_table(path).feature_names == list("abcdef")


def test_identifiers_only_if_all_different(tmp_path, parser):
    path = tmp_path / "a.csv"
    path.write_text("id,year_index,paid\n3,1,7\n1,1,8\n2,2,9\n")
    table = open_table(path)
    assert table.feature_names == ["year_index", "paid"]
    assert table.other_columns["id"].tolist() == [3, 1, 2]
    path.write_text("id,x\n007,1\n008,2\n")
    table = open_table(path)  # zeros in front are part of it
    assert table.feature_names == ["x"]
    assert table.other_columns["id"].tolist() == ["007", "008"]


GOOD = "id,age,city\n" + "".join(f"{i},{i % 7}.5,town\n" for i in range(100))


@pytest.mark.parametrize(
    "content, sentence",
    [
        (GOOD + "100,3\n", "row 101 (line 102) has 2 fields where the header has 3"),
        (GOOD + "100,3,town,5\n", "row 101 (line 102) has 4 fields where the header has 3"),
        (GOOD + "100,old,town\n", "row 101 (line 102), column 'age': 'old' is not a number: correct it, or drop"),
        (GOOD + "100,1_0,town\n", "row 101 (line 102), column 'age': '1_0' is not a number"),
        (GOOD + "100,,town\n", "row 101 (line 102), column 'age': the value is missing: fill it in, remove that row"),
        (GOOD + "100,NA,town\n", "row 101 (line 102), column 'age': the value is missing ('NA')"),
        (GOOD + "100,nan,town\n", "column 'age': the value is missing ('nan')"),
        (GOOD + "100,inf,town\n", "column 'age': 'inf' is not a finite number"),
        (GOOD + "100,1e999,town\n", "column 'age': '1e999' is not a finite number"),
        (GOOD + '"a\nb",3,town\n101,,x\n', "row 101 (line 102), column 'id': 'a\\nb' is not a number"),
        (GOOD + 'x,"3,town\n' + "y" * 200000, "line 102: field larger than field limit"),
        (GOOD + '100,1.5,"town\n101,1.5,town\n', "line 102: unexpected end of data. Is a quote not closed?"),
        ("x;y\n1,5;2,0\n2,5;3,5\n", "has numbers with a decimal comma: write them with a point"),
        ("id,age\n", "has no rows"),
        ("", "has no rows"),
        ("name,city\na,b\nc,d\n", "has no numeric column left to map (it has 'name', 'city')"),
    ],
)
@pytest.mark.parametrize("fields", [2**18, 30])
def test_bad_text(tmp_path, parser, monkeypatch, fields, content, sentence):
    monkeypatch.setattr(text, "FIRST_FIELDS", fields)
    monkeypatch.setattr(text, "BLOCK_FIELDS", fields)
    path = tmp_path / "a.csv"
    path.write_text(content)
    refused(path, sentence)
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(content)
    refused(tmp_path / "a.csv.gz", sentence)


def test_files_that_are_no_text(tmp_path, parser):
    path = tmp_path / "a.csv.gz"
    packed = gzip.compress(GOOD.encode() * 1000)
    path.write_bytes(packed[: len(packed) // 2])
    refused(path, "damaged, cut off")
    path.write_text(GOOD)
    refused(path, "is not compressed with gzip")
    path = tmp_path / "a.csv"
    path.write_bytes(GOOD.encode("utf-16"))
    refused(path, "UTF-16: save it as UTF-8")
    path.write_bytes(GOOD.encode() + "1,1.5,Zürich\n".encode("latin-1"))
    refused(path, "not text in UTF-8 (byte 0xfc)")
    path.write_bytes(b"a,b\0\n1,2\n")
    refused(path, "is not a text of separated values")


def test_what_is_unpacked_goes_with_the_table(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    (tmp_path / "a.csv").write_text(GOOD)
    with open_table(tmp_path / "a.csv"):
        assert len(list((tmp_path / "scratch").iterdir())) == 1
    assert list((tmp_path / "scratch").iterdir()) == []
    table = open_table(tmp_path / "a.csv")
    assert len(list((tmp_path / "scratch").iterdir())) == 1
    rows, names = table.rows, table.other_columns
    del table
    assert names["city"][5] == "town"  # what is left of it still reads
    assert rows[5:6] == 5.5
    del rows, names
    assert list((tmp_path / "scratch").iterdir()) == []
    refused(tmp_path / "a.csv", "no column", label="nothing")
    assert list((tmp_path / "scratch").iterdir()) == []


# Parquet


def test_parquet_is_what_pandas_wrote(tmp_path):
    frame = people()
    frame["flag"] = frame["age"] > 40
    frame["when"] = pd.Timestamp("2020-01-01") + pd.to_timedelta(frame["age"], unit="D")
    frame["class"] = frame["class"].astype("category")
    path = tmp_path / "people.parquet"
    frame.to_parquet(path, row_group_size=64)
    table = open_table(path, label="class", drop=["code"])
    features = ["height", "age", "weight", "flag"]
    assert table.feature_names == features
    check_slices(table.rows, frame[features].to_numpy(np.float64))
    assert list(table.other_columns) == ["person_id", "name", "when"]
    assert table.other_columns["name"].tolist() == frame["name"].tolist()
    np.testing.assert_array_equal(table.other_columns["person_id"], frame["person_id"])
    assert table.label.tolist() == frame["class"].tolist()
    assert table.rows.span == 64
    assert open_table(path, columns=["weight", "age"]).feature_names == ["weight", "age"]
    refused(path, "no column 'hieght': did you mean 'height', 'weight'?", columns=["hieght"])
    refused(path, "'name' of", columns=["name"])


def test_parquet_folder(tmp_path, numbers):
    names = [f"x{column}" for column in range(6)]
    for part in range(11):
        frame = pd.DataFrame(numbers[part * 40 : (part + 1) * 40], columns=names)
        frame.to_parquet(tmp_path / f"part-{part}.parquet", row_group_size=16)
    (tmp_path / "_SUCCESS").touch()
    frame[:0].to_parquet(tmp_path / "part-11.parquet")
    table = open_table(tmp_path)
    check_slices(table.rows, numbers[:440])
    assert table.notes == ["12 files, in the order of their names."]
    (tmp_path / "year=2020").mkdir()
    frame[:0].to_parquet(tmp_path / "year=2020" / "part-0.parquet")
    assert open_table(tmp_path).notes[1] == "Values in the names of folders ('name=value') are not read."
    frame[names[:-1]].to_parquet(tmp_path / "part-12.parquet")
    refused(tmp_path, "part-12.parquet' lacks 'x5'")
    frame.astype({"x5": "float64"}).to_parquet(tmp_path / "part-12.parquet")
    refused(tmp_path, "part-12.parquet' has another type in 'x5'")


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["list", "fixed", "columns"])
def test_parquet_of_vectors(tmp_path, numbers, monkeypatch, large, kind):
    if large:
        monkeypatch.setattr(parquet, "GROUP_BYTES", 1000)
    path = tmp_path / "a.parquet"
    types = {"list": pa.list_(pa.float32()), "fixed": pa.list_(pa.float32(), 6)}
    if kind == "columns":
        table = pa.table({f"v[{column}]": numbers[:, column] for column in range(6)})
    else:
        table = pa.table({"url": ["u"] * 500, "v": pa.array(list(numbers), type=types[kind])})
    pq.write_table(table, path, row_group_size=100)
    table = open_table(path)
    check_slices(table.rows, numbers)
    assert table.feature_names == [f"v[{column}]" for column in range(6)]
    check_slices(open_table(path, columns=table.feature_names).rows, numbers)
    if kind != "columns":
        check_slices(open_table(path, columns=["v"]).rows, numbers)
        refused(path, "used whole: choose 'v' instead", columns=["v[1]", "v[2]"])
        refused(path, "used whole: choose 'v' instead", columns=["v[1]"])
    assert any("row groups are large" in note for note in table.notes) == large


def test_parquet_reads_only_the_row_groups_it_needs(tmp_path, numbers, monkeypatch):
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({f"x{column}": numbers[:, column] for column in range(6)}), path, row_group_size=100)
    read = []
    original = parquet._Shards.read
    monkeypatch.setattr(
        parquet._Shards, "read", lambda self, group, columns: read.append(group) or original(self, group, columns)
    )
    rows = open_table(path).rows
    assert read == []
    _ = rows[210:290], rows[250:260]
    assert read == [2]
    _ = rows[299:301]
    assert read == [2, 3]
    monkeypatch.setattr(parquet, "CACHE_BYTES", 1)
    _ = rows[0:1]
    assert list(rows._kept) == [0]


@pytest.mark.parametrize("large", [False, True])
def test_bad_parquet(tmp_path, numbers, monkeypatch, large):
    if large:
        monkeypatch.setattr(parquet, "GROUP_BYTES", 1000)
    path = tmp_path / "a.parquet"

    def write(**columns):
        pq.write_table(pa.table({"x": pa.array(range(500)), **columns}), path, row_group_size=100)

    write(age=pa.array([None if i == 300 else i for i in range(500)]))
    refused(path, "row 301, column 'age': the value is missing: fill it in, remove that row, or drop the column")
    write(age=np.where(np.arange(500) == 300, np.nan, 1.0))
    refused(path, "NaN in row 301, column 'age'")
    write(v=pa.array([[1.0]] * 300 + [[1.0, 2.0]] * 200))
    refused(path, "row 301: the list in column 'v' has 2 values, but the first has 1")
    write(v=pa.array([[1.0]] * 300 + [[None]] * 200))
    refused(path, "row 301, column 'v': the value is missing")
    pq.write_table(pa.Table.from_arrays([pa.array([1, 2]), pa.array([3, 4])], ["x", "x"]), path)
    refused(path, "has several columns named 'x': rename them so that all names differ")
    write(v=pa.array([{"a": 1}] * 500))
    assert open_table(path).notes[0] == "Left out, nested: 'v'."
    write()
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    refused(path, "is damaged, cut off, or not a Parquet file")
    path.write_bytes(whole[:500] + bytes(400) + whole[900:])
    refused(path, "is damaged, cut off, or not")
    path.write_text("x\n1\n")
    refused(path, "does not begin as a .parquet file does")
    path.write_bytes(whole)
    refused(path, "has no key 'x'", key="x")
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), path)
    refused(path, "no rows")
    pq.write_table(pa.table({"x": ["a", "b"]}), path)
    refused(path, "no numeric column left to map (it has 'x')")


# AnnData


@pytest.mark.parametrize("form", ["dense", "csr", "csc"])
def test_h5ad(tmp_path, numbers, anndata, form):
    X = scipy.sparse.random(500, 30, 0.1, format="csr", dtype=np.float32, random_state=0)
    X = X.toarray() if form == "dense" else X.asformat(form)
    dense = X if form == "dense" else X.toarray()
    data = anndata.AnnData(X, obs=pd.DataFrame(index=[f"cell{i}" for i in range(500)]))
    data.var_names = [f"gene{i}" for i in range(30)]
    data.obs["kind"] = pd.Categorical(["T", "B", None, "T", "NK"] * 100)
    data.obs["depth"] = np.arange(500.0)
    data.obs["n"] = pd.array([1, None] * 250, dtype="Int64")
    data.obsm["X_pca"] = numbers
    data.layers["counts"] = X * 2
    data.uns["other"] = 5
    data.uns["tsee"] = {"params": {"perplexity": 77.0}}  # of an earlier map, which the new one replaces
    path = tmp_path / "a.h5ad"
    data.write_h5ad(path)
    with open_table(path, label="kind") as table:
        check_slices(table.rows, dense)
        assert table.feature_names == [f"gene{i}" for i in range(30)]
        assert table.label[:5].tolist() == ["T", "B", None, "T", "NK"]
        assert list(table.other_columns) == ["index", "depth", "n"]
        assert table.other_columns["index"][7] == "cell7"
        assert table.other_columns["n"][:2].tolist() == [1, None]
        check_slices(open_table(path, columns=["gene9", "gene3"]).rows, dense[:, [9, 3]])
        check_slices(open_table(path, key="layers/counts", drop=["gene0"]).rows, 2 * dense[:, 1:])
        check_slices(open_table(path, key="X_pca").rows, numbers)
        check_slices(open_table(path, key="obsm/X_pca").rows, numbers)
        write_map(path, numbers[:, :2], table)  # onto itself
        write_map(path, numbers[:, 1:3], table)
        write_map(tmp_path / "map.csv", numbers[:, 1:3], table)
    back = anndata.read_h5ad(path)
    np.testing.assert_array_equal(back.obsm["X_tsee"], numbers[:, 1:3])
    np.testing.assert_array_equal(back.obsm["X_pca"], numbers)
    assert back.obs["kind"].tolist()[:2] == ["T", "B"]
    frame = pd.read_csv(tmp_path / "map.csv")
    assert list(frame.columns) == ["index", "depth", "n", "kind", "tsee0", "tsee1"]
    assert "tsee" not in back.uns
    assert back.uns["other"] == 5
    refused(path, "no key 'X_pac': did you mean 'X_pca'", key="X_pac")
    refused(path, "no column of obs 'kid': did you mean 'kind'?", label="kid")
    refused(path, "no variable 'gene99'", columns=["gene99"])
    data.var_names = ["same", "same", *data.var_names[2:]]
    data.write_h5ad(path)
    check_slices(open_table(path, columns=list(data.var_names)).rows, dense)
    refused(path, "several variables named 'same'", columns=["gene9", "same"])
    with pytest.raises(DataFileError, match="a copy of an .h5ad input, but the input is not one"):
        write_map(tmp_path / "b.h5ad", numbers[:, :2])


# Kinds of files


def test_other_kinds(tmp_path, numbers):
    refused(tmp_path / "nothing.csv", "There is no file")
    for name, sentence in {
        "a.pkl": "a pickle, which is not read because it can run code",
        "a.xlsx": "an Excel workbook: save the sheet as CSV",
        "a.bin": "of a kind that tsee does not read: write it as one of .npy",
        "a": "of a kind that tsee does not read",
    }.items():
        (tmp_path / name).write_bytes(b"something")
        refused(tmp_path / name, sentence)
    refused(tmp_path, "holds no .parquet or .npy files")
    pd.DataFrame(numbers, columns=list("abcdef")).to_parquet(tmp_path / "a.csv")
    check_slices(open_table(tmp_path / "a.csv").rows, numbers)  # the content counts
    with open(tmp_path / "x", "wb") as file:
        np.save(file, numbers)
    check_slices(open_table(tmp_path / "x").rows, numbers)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "sparse.npz", "a.parquet", "a.csv", "a.csv.gz", "a.h5", "a.h5ad"])
def test_a_damaged_file_is_read_or_refused(tmp_path, numbers, monkeypatch, name):
    """Cut off anywhere, or with wrong bytes in it, a file never gives another error than a DataFileError."""
    monkeypatch.setattr(text, "ARROW_BYTES", 0)
    monkeypatch.setattr(text, "FIRST_FIELDS", 60)
    path, generator = tmp_path / name, np.random.default_rng(0)
    if name == "a.csv.gz":
        path.write_bytes(gzip.compress(GOOD.encode()))
    elif name == "a.h5ad":
        make_h5ad(path)
    else:
        write_numbers(path, numbers)
    whole, refusals = path.read_bytes(), 0
    for place in range(60):
        content = bytearray(whole)
        if place % 2:
            del content[generator.integers(len(content)) :]
        else:
            for _ in range(5):
                content[generator.integers(len(content) if place % 4 else min(300, len(content)))] = generator.integers(
                    256
                )
        path.write_bytes(content)
        try:
            with open_table(path) as table:
                for start in range(0, min(5000, len(table)), 64):
                    _ = table.rows[start : start + 64], table.kept(start, start + 64)
        except DataFileError:
            refusals += 1
    assert refusals >= 30


@pytest.mark.parametrize(
    "name, library, extra", [("a.parquet", "pyarrow", "parquet"), ("a.h5", "h5py", "hdf5"), ("a.zarr", "zarr", "zarr")]
)
def test_missing_libraries_are_named(tmp_path, numbers, monkeypatch, name, library, extra):
    if name == "a.parquet":
        pd.DataFrame(numbers, columns=list("abcdef")).to_parquet(tmp_path / name)
    elif name == "a.h5":
        with h5py.File(tmp_path / name, "w") as file:
            file["x"] = numbers
    else:
        zarr.create_array(str(tmp_path / name), data=numbers)
    for module in (library, f"{library}.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    refused(tmp_path / name, f"needs {library}: pip install 'tsee[{extra}]'")
    (tmp_path / "a.csv").write_text(GOOD)
    monkeypatch.setattr(text, "ARROW_BYTES", 0)
    assert len(open_table(tmp_path / "a.csv")) == 100


def test_libraries_are_imported_only_when_their_data_comes(tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    code = f"""
        from tsee.files import open_table
        open_table({str(tmp_path / "a.csv")!r})
        print([name for name in ("pyarrow", "h5py", "zarr", "anndata", "pandas") if name in sys.modules])
    """
    assert run(code).strip() == "[]"


# Maps


@pytest.fixture
def table(tmp_path):
    people().to_csv(tmp_path / "people.csv", index=False)
    with open_table(tmp_path / "people.csv", label="class", drop=["code"]) as table:
        yield table


@pytest.mark.parametrize(
    "name", ["map.csv", "map.tsv", "map.csv.gz", "map.tsv.gz", "map.parquet", "map.npz", "map.npy"]
)
def test_maps_round_trip(tmp_path, table, numbers, name):
    positions, path = numbers[:300, :2], tmp_path / "new" / name
    write_map(path, positions, table)
    if name == "map.npy":
        back = np.load(path)
    elif name == "map.npz":
        arrays = np.load(path)  # without pickle
        assert list(arrays) == ["person_id", "name", "class", "tsee"]
        assert arrays["name"].tolist() == people()["name"].tolist()
        back = arrays["tsee"]
    else:
        frame = (
            pd.read_parquet(path) if name == "map.parquet" else pd.read_csv(path, sep="\t" if ".tsv" in name else ",")
        )
        assert list(frame.columns) == ["person_id", "name", "class", "tsee0", "tsee1"]
        for column in ("person_id", "name", "class"):
            assert frame[column].tolist() == people()[column].tolist()
        back = frame[["tsee0", "tsee1"]].to_numpy(np.float32)
    np.testing.assert_array_equal(back, positions)
    assert [entry.name for entry in path.parent.iterdir()] == [name]
    # A map is data, too: its identifiers are known again.
    if name != "map.npz" and name != "map.npy":
        again = open_table(path, label="class")
        assert again.feature_names == ["tsee0", "tsee1"]
        assert list(again.other_columns) == ["person_id", "name"]
        np.testing.assert_array_equal(np.asarray(again.rows, dtype=np.float32), positions)


@pytest.mark.parametrize("name", ["map.csv", "map.csv.gz", "map.parquet", "map.npz", "map.npy"])
def test_blocks_make_the_same_file(tmp_path, table, numbers, name):
    positions = numbers[:300, :3]
    write_map(tmp_path / name, positions, table)
    with MapWriter(tmp_path / f"blocks-{name}", table) as writer:
        for start in range(0, 300, 70):
            writer.write(positions[start : start + 70])
    if name == "map.parquet":
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / name), pd.read_parquet(tmp_path / f"blocks-{name}"))
    elif name == "map.npz":
        one, two = np.load(tmp_path / name), np.load(tmp_path / f"blocks-{name}")
        assert all((one[key] == two[key]).all() for key in one)
    else:
        assert (tmp_path / name).read_bytes() == (tmp_path / f"blocks-{name}").read_bytes()


def test_missing_labels_are_empty(tmp_path):
    labels = pa.array([None, 1, 2, None, 5, 6])
    kinds = pa.array(["a", None, "b", "c", None, "d"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"kind": kinds, "y": labels, "x": np.arange(6.0)}), path, row_group_size=2)
    table = open_table(path, label="y")
    for name in ("map.csv", "map.parquet"):
        with MapWriter(tmp_path / name, table) as writer:
            for _ in range(3):
                writer.write(np.zeros((2, 2)))
    frame = pd.read_csv(tmp_path / "map.csv")
    assert frame["y"].isna().tolist() == [True, False, False, True, False, False]
    assert frame["kind"].isna().tolist() == [False, True, False, False, True, False]
    back = pq.read_table(tmp_path / "map.parquet")
    assert back["kind"].to_pylist() == kinds.to_pylist()
    assert back["y"].to_pylist() == labels.to_pylist()


def write_half(path, table, positions):
    with MapWriter(path, table) as writer:
        writer.write(positions)
        raise KeyboardInterrupt


def test_bad_maps(tmp_path, table, numbers):
    path = tmp_path / "map.csv"
    path.write_text("old")
    with pytest.raises(ValueError, match="the table's 300 rows. Got 299"):
        write_map(path, numbers[:299, :2], table)
    with pytest.raises(ValueError, match="each of the table's 300"):
        write_map(path, numbers[:301, :2], table)
    with pytest.raises(ValueError, match="must name 2 columns"):
        write_map(path, numbers[:300, :2], table, columns=["x"])
    with pytest.raises(ValueError, match="shape"):
        write_map(path, numbers[:300, 0], table)
    with pytest.raises(DataFileError, match="'name' would be in .* twice"):
        write_map(path, numbers[:300, :2], table, columns=["name", "y"])
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataFileError, match="is a folder"):
        write_map(tmp_path / "folder.csv", numbers)
    with pytest.raises(DataFileError, match="choose one of the file extensions .csv"):
        write_map(tmp_path / "map.png", numbers)
    with pytest.raises(DataFileError, match=r"cannot be written to .* \((File exists|Not a directory)\)"):
        write_map(path / "map.csv", numbers)
    with pytest.raises(KeyboardInterrupt):
        write_half(path, table, numbers[:200, :2])
    assert path.read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder.csv", "map.csv", "people.csv"]
    write_map(path, numbers[:300, :2], table, columns=["x", "y"])
    assert path.read_text().startswith("person_id,name,class,x,y\n")


def test_a_link_stays_a_link(tmp_path, numbers):
    (tmp_path / "real.npy").write_text("old")
    (tmp_path / "real.npy").chmod(0o640)
    (tmp_path / "map.npy").symlink_to(tmp_path / "real.npy")
    write_map(tmp_path / "map.npy", numbers)
    assert (tmp_path / "map.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "real.npy"), numbers)
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o640


WRITERS = ["map.csv", "map.csv.gz", "map.parquet", "map.npy", "map.npz", "map.h5ad"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_killed_writer_leaves_the_old_map_whole(tmp_path, name):
    make_h5ad(tmp_path / "in.h5ad", n=10**6)
    (tmp_path / name).write_bytes(b"old and whole")
    code = f"""
        import numpy as np
        from tsee.files import MapWriter, open_table
        table = open_table({str(tmp_path / "in.h5ad")!r}) if {name.endswith("h5ad")} else None
        with MapWriter({str(tmp_path / name)!r}, table) as writer:
            for _ in range(1000):
                writer.write(np.zeros((1000, 2), np.float32))
                print(flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", program(code)], stdout=subprocess.PIPE)
    for _ in range(20):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL
    assert (tmp_path / name).read_bytes() == b"old and whole"
    others = {entry.name for entry in tmp_path.iterdir()} - {name, "in.h5ad"}
    assert all(other.startswith(f".{name}.") and other.endswith(".writing") for other in others)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_map_whole(tmp_path, name):
    make_h5ad(tmp_path / "in.h5ad", n=20000)
    (tmp_path / name).write_bytes(b"old and whole")
    code = f"""
        import resource
        import numpy as np
        from tsee.exceptions import DataFileError
        from tsee.files import open_table, write_map
        table = open_table({str(tmp_path / "in.h5ad")!r}) if {name.endswith("h5ad")} else None
        positions = np.random.default_rng(0).normal(size=(20000, 2))
        resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
        try:
            write_map({str(tmp_path / name)!r}, positions, table)
        except DataFileError as error:
            print(error)
    """
    assert "what was there is unchanged: choose a folder that you can write to, with room on its disk." in run(code)
    assert (tmp_path / name).read_bytes() == b"old and whole"
    assert {entry.name for entry in tmp_path.iterdir()} == {name, "in.h5ad"}


def test_a_full_disk_while_unpacking(tmp_path):
    np.savetxt(tmp_path / "a.csv", np.random.default_rng(0).normal(size=(2000, 4)), delimiter=",")
    code = f"""
        import resource
        from tsee.exceptions import DataFileError
        from tsee.files import open_table
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        try:
            open_table({str(tmp_path / "a.csv")!r})
        except DataFileError as error:
            print(error)
    """
    assert "set TMPDIR to a folder on a larger disk" in run(code)


# Memory


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "sparse.npz", "whole.parquet", "a.parquet", "a.csv", "a.h5"])
def test_memory_does_not_grow_with_the_file(tmp_path, name):
    """What numpy and pyarrow hold at most while all rows are read is the same for a file four times longer."""
    numbers = np.tile(np.arange(100, dtype=np.float32), (100_000, 1))
    peaks = []
    for n in (25_000, 100_000):  # 10 and 40 MB
        path = tmp_path / f"{n}{name}"
        write_numbers(path, numbers[:n])
        code = f"""
            import tracemalloc
            import h5py, pandas, pyarrow.csv, pyarrow.parquet
            from tsee.files import open_table, parquet, text
            parquet.GROUP_BYTES = parquet.CACHE_BYTES = 2**22
            text.FIRST_FIELDS, text.ARROW_BLOCK = 2**14, 2**16
            tracemalloc.start()
            total = 0.0
            table = open_table({str(path)!r})
            for start in range(0, {n}, 1000):
                total += float(table.rows[start : start + 1000].sum(dtype="f8"))
            print(total, tracemalloc.get_traced_memory()[1] + pyarrow.default_memory_pool().max_memory())
        """
        total, peak = run(code).split()
        assert float(total) == 4950 * n
        peaks.append(float(peak))
    assert peaks[1] < 1.1 * peaks[0] + 2**20  # the index of a Parquet file grows a little
    assert peaks[1] < 0.25 * numbers.nbytes
