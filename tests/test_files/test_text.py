"""CSV and TSV: files that pandas and NumPy wrote are read as the same values; bad lines are named."""

import gzip

import numpy as np
import pandas as pd
import pytest

from tsee.files import open_table, text


@pytest.mark.parametrize("extension", [".csv", ".tsv", ".csv.gz", ".txt"])
def test_text_is_what_pandas_wrote(tmp_path, parser, extension, check_slices, people):
    frame = people()
    path = tmp_path / f"people{extension}"
    separator = {".tsv": "\t", ".txt": ";"}.get(extension, ",")
    frame.to_csv(path, index=False, sep=separator)
    table = open_table(path, label="class", drop=["code"])
    features = ["height", "age", "weight"]
    assert table.feature_names == features
    expected = pd.read_csv(path, sep=separator, float_precision="round_trip")[features]
    check_slices(table.rows, expected.to_numpy(np.float64))
    assert list(table.other_columns) == ["person_id", "name"]
    assert table.other_columns["person_id"].dtype == np.int64
    np.testing.assert_array_equal(table.other_columns["person_id"], frame["person_id"])
    assert table.other_columns["name"].tolist() == frame["name"].tolist()
    assert table.label.tolist() == frame["class"].tolist()
    assert table.notes == ["Kept aside, not numeric: 'name'.", "Kept aside, an identifier: 'person_id'."]
    assert table.identifiers == ["person_id"]
    assert table.kept(100, 102)["name"].tolist() == frame["name"][100:102].tolist()


def test_the_fast_parser_is_used_if_possible(tmp_path, monkeypatch, people):
    monkeypatch.setattr(text, "ARROW_BYTES", 0)
    monkeypatch.setattr(text, "_plain_blocks", None)
    people().to_csv(tmp_path / "people.csv")
    assert len(open_table(tmp_path / "people.csv")) == 300


def test_columns_are_chosen_in_order(tmp_path, parser, refused, people):
    people().to_csv(tmp_path / "a.csv")
    table = open_table(tmp_path / "a.csv", columns=["weight", "age"])
    assert table.feature_names == ["weight", "age"]
    np.testing.assert_allclose(table.rows[:][:, 1], people()["age"])
    assert list(table.other_columns) == ["index", "person_id", "name", "class"]
    # An identifier that is asked for is a feature.
    assert open_table(tmp_path / "a.csv", columns=["person_id"]).feature_names == ["person_id"]
    refused(tmp_path / "a.csv", "no columns 'hieght', 'x': did you mean 'height', 'weight'?", columns=["hieght", "x"])
    refused(tmp_path / "a.csv", "no column 'clas': did you mean 'class'?", label="clas")
    # A column that is already asked for cannot have been meant.
    refused(tmp_path / "a.csv", "no column 'hieght': did you mean 'weight'?", columns=["height", "hieght"])
    refused(tmp_path / "a.csv", "no column 'hieght': did you mean 'weight'?", columns=["height"], label="hieght")
    refused(tmp_path / "a.csv", "no column 'ages': it has 'index', 'person_id'", columns=["ages", "age"])
    refused(tmp_path / "a.csv", "no column 'ages': did you mean 'age'", drop=["ages"])
    refused(tmp_path / "a.csv", "column 'class': 'b' is not a number", columns=["age", "class"])
    refused(tmp_path / "a.csv", "'age' of", columns=["age", "age"])
    refused(tmp_path / "a.csv", "a feature and also the label", columns=["age"], label="age")
    with pytest.raises(TypeError, match="sequence of names"):
        open_table(tmp_path / "a.csv", columns="age")


def test_single_precision_as_long_as_it_is_exact(tmp_path, parser, monkeypatch, check_slices):
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
    path.write_text("0,1\n6,2.5\n")  # written by pandas if columns have no names
    assert open_table(path).feature_names == ["0", "1"]
    path.write_text("\n0,1\n6,2.5\n")
    np.testing.assert_array_equal(open_table(path).rows[:], [[6, 2.5]])
    path.write_text('\ufeff,x, y ,\n\n0,1,2,3\n\n1,5,6,"7"\n', encoding="utf-8")
    table = open_table(path)
    assert table.feature_names == ["x", "y", "column4"]
    np.testing.assert_array_equal(table.rows[:], [[1, 2, 3], [5, 6, 7]])
    assert table.other_columns["index"].tolist() == [0, 1]


@pytest.mark.parametrize("extension", [".csv", ".tsv", ".csv.gz"])
def test_two_columns_of_one_name_are_refused(tmp_path, parser, extension, refused):
    """Nobody could tell which of them a model means."""
    path = tmp_path / f"a{extension}"
    for header in ("x,y,x", "y,x, x ", 'x,"x",x'):
        content = f"{header}\n1,2,3\n4,5,6\n".replace(",", "\t" if extension == ".tsv" else ",")
        path.write_bytes(gzip.compress(content.encode()) if extension == ".csv.gz" else content.encode())
        refused(path, "has several columns named 'x': rename them in the header so that all names differ")
        refused(path, "has several columns named 'x'", columns=["y"] if "y" in header else None, drop=["x"])


def test_what_savetxt_writes(tmp_path, parser, numbers, check_slices):
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


@pytest.mark.parametrize("zones", [["00", "10", "20"], ["0", "00", "10"], ["000", "100", "200"]])
def test_zeros_alone_are_names_too(tmp_path, parser, zones):
    path = tmp_path / "a.csv"
    path.write_text("a,zone\n" + "".join(f"{i},{zone}\n" for i, zone in enumerate(zones)))
    assert open_table(path, label="zone").label.tolist() == zones
    path.write_text("a,zone\n1,0\n2,10\n")
    assert open_table(path, label="zone").label.tolist() == [0, 10]


GOOD = "id,age,city\n" + "".join(f"{i},{i % 7}.5,town\n" for i in range(100))


@pytest.mark.parametrize(
    "content, sentence",
    [
        (GOOD + "100,3\n", "row 100 (line 102) has 2 fields where the header has 3"),
        (GOOD + "100,3,town,5\n", "row 100 (line 102) has 4 fields where the header has 3"),
        (GOOD + "100,old,town\n", "row 100 (line 102), column 'age': 'old' is not a number: correct it, or drop"),
        (GOOD + "100,1_0,town\n", "row 100 (line 102), column 'age': '1_0' is not a number"),
        (GOOD + "100,,town\n", "row 100 (line 102), column 'age': the value is missing: fill it in, remove that row"),
        (GOOD + "100,NA,town\n", "row 100 (line 102), column 'age': the value is missing ('NA')"),
        (GOOD + "100,nan,town\n", "column 'age': the value is missing ('nan')"),
        (GOOD + "100,inf,town\n", "column 'age': 'inf' is not a finite number"),
        (GOOD + "100,1e999,town\n", "column 'age': '1e999' is not a finite number"),
        (GOOD + '"a\nb",3,town\n101,,x\n', "row 100 (line 102), column 'id': 'a\\nb' is not a number"),
        (GOOD + 'x,"3,town\n' + "y" * 200000, "line 102: field larger than field limit"),
        (GOOD + '100,1.5,"town\n101,1.5,town\n', "line 102: unexpected end of data. Is a quote not closed?"),
        ("id,age\n", "has no rows"),
        ("", "has no rows"),
        ("name,city\na,b\nc,d\n", "has no numeric column left to map (it has 'name', 'city')"),
    ],
)
@pytest.mark.parametrize("fields", [2**18, 30])
def test_bad_text(tmp_path, parser, monkeypatch, fields, content, sentence, refused):
    monkeypatch.setattr(text, "FIRST_FIELDS", fields)
    monkeypatch.setattr(text, "BLOCK_FIELDS", fields)
    path = tmp_path / "a.csv"
    path.write_text(content)
    refused(path, sentence)
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write(content)
    refused(tmp_path / "a.csv.gz", sentence)


def test_files_that_are_not_text(tmp_path, parser, refused):
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
