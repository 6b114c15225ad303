"""`open_matching`: the columns of a file in the order of the model's features."""

import numpy as np
import pytest

from tsee.exceptions import DataFileError
from tsee.serving import ReadOptions, load_model, open_matching


def test_columns_are_matched_by_name(frame, see, write, tmp_path):
    path = write(tmp_path / "other.csv", frame[["d", "kind", "a", "id", "c", "b"]].assign(e=1.0))
    with open_matching(see, path, ReadOptions(label="kind")) as table:
        np.testing.assert_array_equal(table.rows[:], frame[list("abcd")])
        assert table.feature_names == list("abcd")
        assert "Left out, not among the features: 'e'." in table.notes


def test_other_names_are_given_in_the_order_of_the_model(frame, see, write, tmp_path):
    path = write(tmp_path / "other.csv", frame.rename(columns=str.upper)[["D", "A", "C", "B"]])
    with open_matching(see, path, ReadOptions(columns=["A", "B", "C", "D"])) as table:
        np.testing.assert_array_equal(table.rows[:], frame[list("abcd")])
    with pytest.raises(DataFileError, match=r"has 2 features \('A', 'B'\), but the model was fitted with 4: choose "):
        open_matching(see, path, ReadOptions(columns=["A", "B"]))


def test_columns_without_names_keep_their_order(frame, see, unnamed_model, write, tmp_path):
    with open_matching(see, write(tmp_path / "rows.npy", frame)) as table:
        np.testing.assert_array_equal(table.rows[:], frame[list("abcd")])
        assert table.notes == ["Its columns have no names; they are taken in the order of the model's features."]
    path = write(tmp_path / "rows.csv", frame)
    with open_matching(load_model(unnamed_model), path, ReadOptions(label="kind", drop=["id"])) as table:
        np.testing.assert_array_equal(table.rows[:], frame[list("abcd")])


@pytest.mark.parametrize("extension", [".csv", ".parquet"])
def test_missing_columns_are_named(frame, see, write, tmp_path, extension):
    path = write(tmp_path / f"less{extension}", frame.drop(columns=["a", "c"]))
    with pytest.raises(DataFileError, match="has no columns 'a', 'c': "):
        open_matching(see, path)


def test_the_number_of_columns_without_names_must_be_the_models(see, tmp_path):
    np.save(tmp_path / "less.npy", np.ones((3, 2)))
    with pytest.raises(DataFileError, match="has 2 features, but the model was fitted with 4: .* 'columns' parameter"):
        open_matching(see, tmp_path / "less.npy")
