"""Kinds of columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from tsee.explorer.columns import describe_column


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


@pytest.mark.parametrize("first", [0, 2**31, 2**53 - 200, 2**60])
def test_identifiers_are_kept_exactly(first):
    values = first + np.arange(150)
    description, arrays = describe_column("id", values, "key")
    if description["kind"] == "number":
        assert arrays["key"].astype(np.int64).tolist() == values.tolist()
    else:  # more than JavaScript counts to
        assert arrays["key.text"].tobytes().decode() == "".join(map(str, values))
