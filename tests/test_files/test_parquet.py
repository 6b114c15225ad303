"""Parquet: files that pandas and pyarrow wrote are read as the same values; bad files are refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tsee.files import open_table, parquet


def test_parquet_is_what_pandas_wrote(tmp_path, check_slices, refused, people):
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


def test_parquet_folder(tmp_path, numbers, check_slices, refused):
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
    refused(tmp_path, "part-12.parquet' has a different type in 'x5'")


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("kind", ["list", "fixed", "columns"])
def test_parquet_of_vectors(tmp_path, numbers, monkeypatch, large, kind, check_slices, refused):
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
def test_bad_parquet(tmp_path, numbers, monkeypatch, large, refused):
    if large:
        monkeypatch.setattr(parquet, "GROUP_BYTES", 1000)
    path = tmp_path / "a.parquet"

    def write(**columns):
        pq.write_table(pa.table({"x": pa.array(range(500)), **columns}), path, row_group_size=100)

    write(age=pa.array([None if i == 300 else i for i in range(500)]))
    refused(path, "row 300, column 'age': the value is missing: fill it in, remove that row, or drop the column")
    write(age=np.where(np.arange(500) == 300, np.nan, 1.0))
    refused(path, "NaN in row 300, column 'age'")
    write(v=pa.array([[1.0]] * 300 + [[1.0, 2.0]] * 200))
    refused(path, "row 300: the list in column 'v' has 2 values, but the first has 1")
    write(v=pa.array([[1.0]] * 300 + [[None]] * 200))
    refused(path, "row 300, column 'v': the value is missing")
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
    refused(path, "does not begin like a .parquet file")
    path.write_bytes(whole)
    refused(path, "has no key 'x'", key="x")
    pq.write_table(pa.table({"x": pa.array([], pa.int64())}), path)
    refused(path, "no rows")
    pq.write_table(pa.table({"x": ["a", "b"]}), path)
    refused(path, "no numeric column left to map (it has 'x')")
