"""Kinds of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

from tsee.explorer.columns import check_columns, describe_column


@pytest.mark.parametrize(
    "values, kind",
    [
        (["a", "b", "a"], "category"),
        ([1, 2, 1], "category"),
        ([True, False, True], "category"),
        (np.arange(200), "number"),
        ([0.5, 1.5, np.nan], "number"),
        ([f"text {i}" for i in range(50)], "text"),
        (["a", 1, None], "category"),
        (np.array(["2026-01-01", "NaT"], "datetime64[D]"), "number"),
        (["2026-01-01", "2025-12-31 10:30", None, ""], "number"),
        (["2026-02-30", "2026-01-01"], "category"),  # no such day
        (pd.Series(["x", "y", None], dtype="category"), "category"),
        (pd.Series(["x", "y", None], dtype="string"), "category"),
        (pd.Series([1, 2, None], dtype="Int64"), "category"),
        (np.arange(30), "number"),  # numbers the rows
        ([np.nan] * 3, "category"),
        ([], "category"),
    ],
)
def test_kinds_of_columns(values, kind):
    description, arrays = describe_column("name", np.asarray(values), "key")
    assert description["kind"] == kind
    assert len(arrays[description.get("lengths", "key")]) == len(values)


@pytest.mark.parametrize("make", [polars.from_pandas, pyarrow.Table.from_pandas])
def test_columns_of_every_kind_of_table(make):
    frame = pd.DataFrame({"word": ["a", "b", None], "number": [0.5, np.nan, 1.5], "date": pd.to_datetime(["2026"] * 3)})
    found, expected = check_columns(make(frame), 3), check_columns(frame, 3)
    assert list(found) == list(expected)
    for name, values in expected.items():
        description, arrays = describe_column(name, found[name], "key")
        alike, others = describe_column(name, values, "key")
        assert description == alike
        assert all(np.array_equal(arrays[key], others[key], equal_nan=True) for key in others)


@pytest.mark.parametrize("first", [0, 2**31, 2**53 - 200, 2**60])
def test_identifiers_are_kept_exactly(first):
    values = first + np.arange(150)
    description, arrays = describe_column("id", values, "key")
    if description["kind"] == "number":
        assert arrays["key"].astype(np.int64).tolist() == values.tolist()
    else:  # more than JavaScript counts to
        assert arrays["key.text"].tobytes().decode() == "".join(map(str, values))
