"""The kind of a file, damaged files, and libraries that are not installed."""

import gzip
import sys

import h5py
import numpy as np
import pandas as pd
import pytest
import zarr

from tsee.exceptions import DataFileError
from tsee.files import open_table, text
from tsee.files.opening import data_files


def test_other_kinds(tmp_path, numbers, check_slices, refused):
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
    check_slices(open_table(tmp_path / "a.csv").rows, numbers)  # the content decides
    with open(tmp_path / "x", "wb") as file:
        np.save(file, numbers)
    check_slices(open_table(tmp_path / "x").rows, numbers)


@pytest.mark.parametrize("second", ["b.pq", "b.parquet", "b.PARQUET", "deep/b.parquet"])
def test_all_parquet_files_of_a_folder(tmp_path, numbers, second, check_slices):
    frame = pd.DataFrame(numbers, columns=list("abcdef"))
    (tmp_path / "deep").mkdir()
    frame[:200].to_parquet(tmp_path / "a.parquet")
    frame[200:].to_parquet(tmp_path / second)
    for name in ("_SUCCESS", "_metadata", ".a.parquet.crc", "README.md", "LICENSE"):
        (tmp_path / name).write_text("x")
    check_slices(open_table(tmp_path).rows, np.concatenate([numbers[:200], numbers[200:]]))


@pytest.mark.parametrize("other", ["b.csv", "b.parquet.gz", "b", "b.txt", "deep/b.zarr"])
def test_no_part_of_a_folder_is_left_out(tmp_path, numbers, other, refused):
    pd.DataFrame(numbers, columns=list("abcdef")).to_parquet(tmp_path / "a.parquet")
    if other == "deep/b.zarr":
        zarr.create_array(str(tmp_path / other), data=numbers)
    else:
        (tmp_path / other).write_text("x")
    refused(tmp_path, f"holds data and also {other!r}, which would not be read with it: move")
    np.save(tmp_path / "c.npy", numbers)
    refused(tmp_path, "holds both .parquet and .npy files: keep one kind in it.")


def test_the_data_files_of_a_folder(tmp_path, numbers):
    zarr.create_array(str(tmp_path / "b.zarr"), data=numbers)
    for name in ("c.tsv.gz", "a10.csv", "a2.csv", "_SUCCESS"):
        (tmp_path / name).write_text("x")
    assert [path.name for path in data_files(tmp_path)] == ["a2.csv", "a10.csv", "b.zarr", "c.tsv.gz"]
    (tmp_path / "d.csv.bz2").write_text("x")
    with pytest.raises(DataFileError, match="holds data and also 'd.csv.bz2', which would not be read"):
        data_files(tmp_path)


@pytest.mark.parametrize("name", ["a.npy", "a.npz", "sparse.npz", "a.parquet", "a.csv", "a.csv.gz", "a.h5", "a.h5ad"])
def test_a_damaged_file_is_read_or_refused(tmp_path, numbers, monkeypatch, name, write_numbers, make_h5ad, good_csv):
    """Cut off anywhere, or with wrong bytes in it, a file gives no other error than a DataFileError."""
    monkeypatch.setattr(text, "ARROW_BYTES", 0)
    monkeypatch.setattr(text, "FIRST_FIELDS", 60)
    path, generator = tmp_path / name, np.random.default_rng(0)
    if name == "a.csv.gz":
        path.write_bytes(gzip.compress(good_csv.encode()))
    elif name == "a.h5ad":
        make_h5ad(path)
    else:
        write_numbers(path, numbers)
    whole, refusals = path.read_bytes(), 0
    for attempt in range(60):
        content = bytearray(whole)
        if attempt % 2:
            del content[generator.integers(len(content)) :]
        else:
            damaged_part = len(content) if attempt % 4 else min(300, len(content))
            for _ in range(5):
                content[generator.integers(damaged_part)] = generator.integers(256)
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
def test_missing_libraries_are_named(tmp_path, numbers, monkeypatch, name, library, extra, refused, good_csv):
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
    (tmp_path / "a.csv").write_text(good_csv)
    monkeypatch.setattr(text, "ARROW_BYTES", 0)
    assert len(open_table(tmp_path / "a.csv")) == 100


def test_libraries_are_imported_only_when_their_data_comes(tmp_path, run, good_csv):
    (tmp_path / "a.csv").write_text(good_csv)
    code = f"""
        from tsee.files import open_table
        open_table({str(tmp_path / "a.csv")!r})
        print([name for name in ("pyarrow", "h5py", "zarr", "anndata", "pandas") if name in sys.modules])
    """
    assert run(code).strip() == "[]"
