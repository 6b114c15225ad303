"""Decimal commas, as spreadsheets in much of Europe write them: read by the same rule as on the page."""

import csv
import gzip

import numpy as np
import pandas as pd
import pytest

from tsee.files import open_table, text

NOTE = "The numbers are read with decimal commas."


@pytest.fixture
def frame():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame(generator.normal(size=(300, 3)), columns=list("xyz")).assign(count=np.arange(300) % 7)
    frame.loc[0, "x"] = 2.5e-5
    return frame


def write(path, content):
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return path


@pytest.mark.parametrize("compressed", ["", ".gz"])
@pytest.mark.parametrize("name, separator", [("a.csv", ";"), ("a.csv", "\t"), ("a.csv", "|"), ("a.tsv", "\t")])
@pytest.mark.parametrize("form", [{}, {"quoting": csv.QUOTE_ALL}, {"header": False}])
def test_the_same_values_as_with_points(tmp_path, parser, frame, name, separator, compressed, form, check_slices):
    content = frame.to_csv(index=False, sep=separator, decimal=",", **form)
    table = open_table(write(tmp_path / (name + compressed), content))
    check_slices(table.rows, frame.to_numpy())
    assert NOTE in table.notes


def test_other_columns(tmp_path, parser, frame):
    """A date is not a number with a point; a label with decimal commas is a number, too; text stays as it is."""
    told = frame.assign(cell_id=range(300), date="01.02.2026", size=frame["x"] * 2, where="1,5 north")
    path = write(tmp_path / "a.csv", told.to_csv(index=False, sep=";", decimal=","))
    table = open_table(path, label="size")
    assert table.feature_names == list(frame)
    assert list(table.other_columns) == ["cell_id", "date", "where"]
    assert table.other_columns["where"][0] == "1,5 north"
    np.testing.assert_array_equal(table.label, told["size"])
    table = open_table(path, columns=["z", "x"])
    np.testing.assert_array_equal(table.rows[:], frame[["z", "x"]])


def test_the_fast_parser_reads_them(tmp_path, frame, monkeypatch, check_slices):
    monkeypatch.setattr(text, "ARROW_BYTES", 0)
    monkeypatch.setattr(text, "_plain_blocks", None)
    path = write(tmp_path / "a.csv", frame.to_csv(index=False, sep=";", decimal=","))
    check_slices(open_table(path).rows, frame.to_numpy())


@pytest.mark.parametrize("value", ["1.234", "1.234,5", "1,2,3"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_later_point_is_refused(tmp_path, parser, frame, monkeypatch, name, value, refused):
    """In a file with decimal commas, 1.234 can mean 1234."""
    monkeypatch.setattr(text, "FIRST_FIELDS", 40)
    monkeypatch.setattr(text, "BLOCK_FIELDS", 40)
    lines = frame.to_csv(index=False, sep=";", decimal=",").splitlines()
    lines[250] = f"0,5;{value};0,5;3"
    path = write(tmp_path / name, "\n".join(lines))
    advice = "the file has decimal commas. Write this one with a comma, too" if value == "1.234" else "correct it"
    refused(path, f"row 249 (line 251), column 'y': '{value}' is not a number: {advice}")
    assert len(open_table(path, drop=["y"])) == 300
    assert open_table(path, label="y").label[249] == value  # as text


def test_commas_and_points_in_the_first_rows(tmp_path, parser, refused):
    path = write(tmp_path / "a.csv", "x;y\n1,5;2.5\n2,5;3.5\n")
    table = open_table(path)
    assert table.feature_names == ["y"]
    assert table.notes == [
        "Not read as numbers, because the file mixes decimal commas and decimal points: 'x'.",
        "Kept aside, not numeric: 'x'.",
    ]
    mixed = "'1,5' is not a number: the file mixes decimal commas and decimal points. Write all numbers with a point."
    refused(path, f"row 0 (line 2), column 'x': {mixed}", columns=["x", "y"])
    refused(write(path, "x;y\n1.5;2.5\n2.5;2.5\n1,5;2.5\n"), f"row 2 (line 4), column 'x': {mixed}")
    assert open_table(path, drop=["x"]).notes == []


def test_commas_that_are_not_decimal(tmp_path, parser):
    path = write(tmp_path / "a.csv", 'x,y\n"1,5",2\n"2,5",3\n')  # commas separate the fields
    table = open_table(path)
    assert table.feature_names == ["y"]
    assert table.other_columns["x"].tolist() == ["1,5", "2,5"]
    path = write(tmp_path / "a.tsv", "x\ty\n1,234,567\t2\n2,345,678\t3\n")
    assert open_table(path).feature_names == ["y"]
    path = write(tmp_path / "a.csv", "7,2,3\n4,5,6\n")
    assert open_table(path).rows[:].tolist() == [[7, 2, 3], [4, 5, 6]]
