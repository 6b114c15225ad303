"""Values of tables that are easily mistaken: times that are near each other, and None among numbers."""

import numpy as np
import pandas as pd
import pytest

from tests.quick import quick
from tsee import DtSEE


@pytest.mark.parametrize("unit", ["ms", "s", "D"])
def test_times_count_however_short_a_span_they_are_from(unit):
    steps = np.random.default_rng(0).integers(0, 900, 200)
    times = pd.Timestamp("2026-01-01") + pd.to_timedelta(steps, unit=unit)
    table = quick(DtSEE).fit(pd.DataFrame({"time": times, "x": steps % 7})).map_.table
    assert [(column.name, column.kind) for column in table.columns] == [("time", "date"), ("x", "number")]
    assert table.columns[0].share == pytest.approx(0.5, abs=0.1)
    encoded = table.encode(pd.DataFrame({"time": times, "x": steps % 7}))[:, 0]
    assert np.corrcoef(encoded, steps)[0, 1] > 0.99


def test_none_is_a_gap_in_lists_and_arrays_of_objects():
    X = np.random.default_rng(0).normal(size=(120, 6))
    gaps = X.copy()
    gaps[3, 1] = gaps[8, 2] = np.nan
    listed = [[None if value != value else value for value in row] for row in gaps.tolist()]
    expected = quick(DtSEE).fit(gaps)
    for given in (listed, tuple(map(tuple, listed)), np.array(listed, object)):
        see = quick(DtSEE).fit(given)
        np.testing.assert_array_equal(see.embedding_, expected.embedding_)
        np.testing.assert_array_equal(see.transform(given), expected.embedding_)
        with pytest.raises(ValueError, match="row 3"):
            quick(DtSEE, missing="error").fit(given)
    with pytest.raises(ValueError, match="'red'"):
        quick(DtSEE).fit([*listed, ["red", None, 1, 1, 1, 1]])


def test_identifiers_that_no_float_holds_do_not_decide_the_map():
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 90, 200).astype(float)
    frame = pd.DataFrame({"id": 673265518589308905 + np.arange(200), "age": ages, "city": rng.choice(["a", "b"], 200)})
    table = DtSEE(columns={"id": 1}, max_epochs=1, refinement=5, random_state=0).fit(frame).map_.table
    variances = np.asarray(table.encode(frame)).var(0)
    assert variances[0] < 0.5 * variances.sum()
