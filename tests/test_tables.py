"""Tables as they are: kinds of columns, encoders, gaps, models of them, and bad tables."""

import datetime
import gc
import json
import warnings

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

import tsee
from tests.quick import quick
from tsee import DtSEE
from tsee.tables import EncodedRows, TableEncoder, as_frame, check_columns, learn_table
from tsee.tables.encoders import (
    BooleanEncoder,
    CategoryEncoder,
    DateEncoder,
    NumberEncoder,
    TagsEncoder,
    TextEncoder,
)
from tsee.tables.gaps import STEPS, learn_gaps
from tsee.tables.kinds import kind_of
from tsee.tables.scales import FAR, QUARTILES

RNG = np.random.default_rng(0)
N = 120


def people(n=N, gaps=True):
    rng = np.random.default_rng(1)
    color = rng.choice(["red", "green", "blue"], n, p=[0.5, 0.3, 0.2]).astype(object)
    age = rng.integers(18, 80, n).astype(float)
    if gaps:
        color[5], age[7] = None, np.nan
    return pd.DataFrame(
        {
            "customer_id": np.arange(n) + 1000,
            "age": age,
            "income": np.exp(rng.normal(10, 1, n)),
            "color": color,
            "member": rng.random(n) < 0.3,
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D"),
            "likes": ["|".join(rng.choice(["tea", "jam", "bread", "milk"], 2, replace=False)) for _ in range(n)],
            "note": ["order " + "".join(rng.choice(list("abcdefg"), 8)) for _ in range(n)],
        }
    )


FRAME = people()
KINDS = {
    "age": "number",
    "income": "number",
    "color": "category",
    "member": "boolean",
    "since": "date",
    "likes": "tags",
    "note": "text",
}


def kinds(encoder):
    return {column.name: column.kind for column in encoder.columns}


# Kinds


@pytest.mark.parametrize(
    "make",
    [
        lambda: FRAME,
        lambda: polars.from_pandas(FRAME),
        lambda: pyarrow.Table.from_pandas(FRAME),
        lambda: FRAME.convert_dtypes(),
        lambda: FRAME.assign(color=FRAME["color"].astype("category")),
    ],
    ids=["pandas", "polars", "arrow", "pandas with NA", "pandas with categories"],
)
def test_kinds_are_recognized_and_tables_of_every_make_are_the_same(make):
    encoder = learn_table(as_frame(make()))
    assert kinds(encoder) == KINDS
    assert encoder.aside == {"customer_id": "identifier"}
    np.testing.assert_array_equal(encoder.encode(make()), learn_table(as_frame(FRAME)).encode(FRAME))


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2.5", None, "7"], "number"),
        (["yes", "no", "No", None], "boolean"),
        (["2024-01-31", "2024-02-01 12:30", None], "date"),
        (["31.12.2024", "1.1.2025"], "date"),
        ([datetime.date(2024, 1, 31), None], "date"),
        ([["a"], ["a", "b"], []], "tags"),
        (["a;b", "b;c", "a;c", "c"], "tags"),
        (["red", "blue", "red"], "category"),
        ([None, None], "empty"),
        (["a rather long sentence that says what happened to this row of the table", "b" * 90, "c" * 70], "text"),
    ],
)
def test_kinds_of_content(values, kind):
    found = np.empty(len(values), dtype=object)
    found[:] = values
    assert kind_of("x", found) == kind


def test_the_user_decides():
    choices = check_columns({"age": "category", "income": ("number", 4), "note": "drop"})
    encoder = learn_table(as_frame(FRAME), choices)
    assert kinds(encoder)["age"] == "category"
    assert encoder.aside["note"] == "drop"
    plain = learn_table(as_frame(FRAME)).encode(FRAME)
    names = learn_table(as_frame(FRAME)).input_names()
    heavier = encoder.encode(FRAME)[:, encoder.input_names().index("income")]
    np.testing.assert_allclose(heavier, 2 * plain[:, names.index("income")], rtol=1e-6)


# Encoders


def test_numbers_count_by_their_usual_spread_and_outliers_by_their_logarithm():
    values = np.concatenate([RNG.normal(50, 7, 999), [1e9]])
    encoder = NumberEncoder.learn(values)
    low, middle, high = np.percentile(values, [25, 50, 75])
    scaled = (values - middle) / ((high - low) / QUARTILES)
    far = np.abs(scaled) > FAR
    expected = np.where(far, np.sign(scaled) * (FAR + np.log1p(np.maximum(np.abs(scaled) - FAR, 0))), scaled)
    np.testing.assert_allclose(encoder.encode(values)[:, 0], expected / expected.std(), rtol=1e-12)
    assert encoder.encode(values)[:, 0].std() == pytest.approx(1)
    assert np.abs(encoder.encode(values)).max() < 25
    assert np.isnan(encoder.encode(np.array([np.nan]))).all()


def test_categories_are_two_apart_and_new_ones_from_all():
    values = np.array(["a", "b", "a", "c"], dtype=object)
    encoder = CategoryEncoder.learn(values)
    rows = encoder.encode(np.array(["a", "b", "c", "new", "other"], dtype=object))
    apart = ((rows[:, None] - rows) ** 2).sum(2)
    assert (apart[:4, :4] == 2 - 2 * np.eye(4)).all()
    assert apart[3, 4] == 0  # what is new has one place
    counts = np.array([2, 1, 1]) / 4
    known = encoder.encode(values)
    assert 2 * known.var(0).sum() == pytest.approx(2 * (1 - (counts**2).sum()))  # as much as the column tells


def test_thousands_of_categories_share_a_dimension_with_their_like():
    values = np.array([f"c{i}" for i in range(3000)] + ["c0"] * 10, dtype=object)
    encoder = CategoryEncoder.learn(values)
    assert encoder.width == 256 + 2
    assert np.isfinite(encoder.encode(values)).all()


def test_booleans_dates_tags_and_texts():
    assert BooleanEncoder().encode(np.array([True, "no", 1, None], dtype=object))[:3, 0] == pytest.approx(
        [np.sqrt(2), 0, np.sqrt(2)]
    )
    days = np.array([np.datetime64("2020-01-01") + np.timedelta64(i, "D") for i in range(1500)], dtype=object)
    dates = DateEncoder.learn(days)
    assert dates.width == 3  # the time, and the time of the year
    rows = dates.encode(days)
    assert 2 * rows.var(0).sum() == pytest.approx(2, rel=0.05)
    np.testing.assert_allclose(rows[0, 1:], rows[1461, 1:], atol=0.02)  # four years later
    tags = TagsEncoder.learn(np.array([["a"], ["a", "b"], ["c"]], dtype=object))
    assert tags.encode(np.array([["b", "a"], ["x"]], dtype=object)) @ np.ones(4) == pytest.approx(
        [sum(tags.weights[i] for i in (0, 1)) / np.hypot(*tags.weights[:2]), 1]
    )
    texts = TextEncoder().encode(np.array(["Main Street 12", "main street 14", "quux"], dtype=object))
    np.testing.assert_allclose((texts**2).sum(1), 1)
    assert texts[0] @ texts[1] > 0.6 > abs(texts[0] @ texts[2]) + 0.2


# Gaps


def test_a_gap_among_numbers_is_no_tag():
    encoder = TagsEncoder.learn(np.array([1.0, np.nan, 2.0, 1.0]))
    assert encoder.categories == ["1", "2"]
    assert np.isnan(encoder.encode(np.array([np.nan]))).all()


@pytest.mark.parametrize("make", [lambda frame: frame, polars.from_pandas, lambda frame: frame.astype(object)])
def test_durations_are_numbers(make):
    frame = pd.DataFrame({"time": pd.to_timedelta([*range(0, 570, 30), None], unit="s"), "word": list("abcd") * 5})
    column = learn_table(as_frame(make(frame))).columns[0]
    assert column.kind == "number"
    assert column.encoder.center == 270  # seconds
    assert column.gaps == 1 / 20


@pytest.mark.parametrize("make", [lambda frame: frame, polars.from_pandas, pyarrow.Table.from_pandas])
def test_durations_are_no_identifiers_whatever_their_name(make):
    frame = pd.DataFrame({"entry": pd.to_timedelta(1.5 + np.arange(30) / 4, unit="s"), "word": list("abc") * 10})
    for entry in (frame["entry"], pd.to_timedelta(np.arange(30), unit="s")):
        assert learn_table(as_frame(make(frame.assign(entry=entry)))).aside == {}


def test_a_table_of_numbers_and_durations_is_a_table():
    frame = pd.DataFrame({"time": pd.to_timedelta(range(30), unit="s"), "number": np.sin(np.arange(30))})
    see = quick(DtSEE).fit(frame)
    assert [column.kind for column in see.map_.table.columns] == ["number", "number"]
    np.testing.assert_array_equal(see.transform(polars.from_pandas(frame)), see.embedding_)


def test_a_gap_is_filled_by_what_the_rest_of_its_row_lets_expect():
    factors = RNG.normal(size=(600, 2))
    rows = factors @ RNG.normal(size=(2, 8)) + 0.05 * RNG.normal(size=(600, 8))
    holes = RNG.random(rows.shape) < 0.2
    filler = learn_gaps(np.where(holes, np.nan, rows))
    filled = filler(np.where(holes, np.nan, rows))
    assert (filled[~holes] == rows[~holes]).all()
    assert np.sqrt(((filled - rows)[holes] ** 2).mean()) < 0.3 * np.sqrt((rows[holes] ** 2).mean())


def test_gaps_are_filled_as_in_a_plain_loop_and_one_row_at_a_time():
    rows = RNG.normal(size=(50, 6)) @ RNG.normal(size=(6, 6))
    rows[RNG.random(rows.shape) < 0.3] = np.nan
    filler = learn_gaps(rows)
    for row, filled in zip(rows, filler(rows), strict=True):
        gaps = np.isnan(row)
        centered = np.where(gaps, 0, row - filler.mean)
        for _ in range(STEPS):
            centered = np.where(gaps, filler.axes @ (filler.axes.T @ centered), centered)
        np.testing.assert_allclose(filled, filler.mean + centered, atol=1e-9)
        assert (filler(row[None])[0] == filled).all()


def test_a_row_of_nothing_but_gaps_is_the_mean():
    filler = learn_gaps(RNG.normal(size=(50, 4)) + 3)
    np.testing.assert_allclose(filler(np.full((1, 4), np.nan))[0], filler.mean)


# Models


@pytest.fixture(scope="module")
def model():
    return quick(DtSEE).fit(FRAME)


def test_a_model_of_a_table_is_saved_and_takes_it_in_every_form(model, tmp_path):
    expected = model.transform(FRAME)
    np.testing.assert_array_equal(expected, model.embedding_)
    assert model.feature_names_in_.tolist() == FRAME.columns.tolist()
    model.save(tmp_path / "model")
    loaded = tsee.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(FRAME), expected)
    np.testing.assert_array_equal(loaded.transform(polars.from_pandas(FRAME)), expected)
    np.testing.assert_array_equal(loaded.transform(FRAME[FRAME.columns[::-1]]), expected)
    np.testing.assert_array_equal(loaded.transform(FRAME.drop(columns="customer_id")), expected)
    np.testing.assert_array_equal(loaded.map_.place(FRAME), expected)
    np.testing.assert_array_equal(loaded.transform(FRAME[3:4]), expected[3:4])  # whatever its batch-mates
    for path in (tmp_path / "table.csv", tmp_path / "table.parquet"):
        FRAME.to_csv(path, index=False) if path.suffix == ".csv" else FRAME.to_parquet(path)
        np.testing.assert_allclose(loaded.transform(path), expected, atol=1e-4)
    batch = tsee.transform_batches(tmp_path / "model")(FRAME)
    np.testing.assert_allclose(batch[["tsee0", "tsee1"]], expected, atol=1e-6)


def test_a_file_is_fitted_as_its_frame_is(tmp_path):
    FRAME.to_csv(tmp_path / "table.csv", index=False)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        fitted = quick(DtSEE).fit(tmp_path / "table.csv")
        gc.collect()
    assert not [str(warning.message) for warning in said if warning.category is ResourceWarning]
    assert kinds(fitted.map_.table) == KINDS
    np.testing.assert_allclose(fitted.map_.table.encode(FRAME), learn_table(as_frame(FRAME)).encode(FRAME), atol=1e-5)


def test_new_categories_are_novel(model):
    usual = FRAME.iloc[:40]
    assert model.novelty(usual.assign(color="ultraviolet")).mean() > model.novelty(usual).mean() + 0.1


def test_new_rows_may_have_gaps_where_fit_had_none(model):
    assert np.isfinite(model.transform(FRAME.assign(income=np.nan))).all()
    assert np.isfinite(model.transform(FRAME.iloc[:3].mask(FRAME.iloc[:3].notna()))).all()


def test_a_matrix_without_gaps_is_not_touched():
    X = RNG.normal(size=(60, 5))
    see = quick(DtSEE).fit(X)
    assert see.map_.table is None
    numbers = pd.DataFrame(X, columns=list("abcde"))
    assert quick(DtSEE).fit(numbers).map_.table is None
    np.testing.assert_array_equal(quick(DtSEE).fit(numbers).embedding_, see.embedding_)


def test_a_matrix_with_gaps_keeps_its_units_and_nearly_its_map():
    factors = RNG.normal(size=(200, 3))
    X = factors @ RNG.normal(size=(3, 8)) * np.array([1, 10, 1, 1, 1, 1, 1, 1])
    holes = X.copy()
    holes[RNG.random(X.shape) < 0.05] = np.nan
    see = quick(DtSEE).fit(holes)
    assert see.n_features_in_ == 8
    rows = see.map_.table.encode(X)[:, :8]
    np.testing.assert_allclose(np.diff(rows, axis=0), np.diff(X, axis=0), rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(see.transform(pd.DataFrame(holes)), see.embedding_)
    with pytest.raises(ValueError, match="X has 7 columns, but the model was fitted with 8"):
        see.transform(holes[:, :7])


def test_gaps_are_refused_if_told_to():
    with pytest.raises(ValueError, match="X has gaps in 'age', 'color': fill them in, or set missing='allow'"):
        quick(DtSEE, missing="error").fit(FRAME)
    whole = people(gaps=False)
    see = quick(DtSEE, missing="error").fit(whole)
    with pytest.raises(ValueError, match="X has gaps in 'age', 'color'"):
        see.transform(FRAME)


def test_a_damaged_table_is_refused(model, tmp_path):
    model.save(tmp_path / "model")
    description = model.map_.table.to_json()
    tensors = model.map_.table.tensors()
    assert TableEncoder.from_json(json.loads(json.dumps(description)), tensors).names == model.map_.table.names
    for spoil in (
        lambda d: d.pop("order"),
        lambda d: d["columns"].clear(),
        lambda d: d["columns"][0].update(kind="pickle"),
        lambda d: d["columns"][0].update(weight=-1),
        lambda d: d["columns"][0]["encoder"].update(spread="1"),
        lambda d: d["columns"][2]["encoder"].update(categories=["red", "red"]),
        lambda d: d["columns"][0].update(name="unknown"),
    ):
        damaged = json.loads(json.dumps(description))
        spoil(damaged)
        with pytest.raises(ValueError, match=r"\w"):
            TableEncoder.from_json(damaged, tensors)
    with pytest.raises(ValueError, match="'table.axes' does not fit"):
        TableEncoder.from_json(description, {**tensors, "table.axes": tensors["table.axes"][1:]})


# Bad tables


@pytest.mark.parametrize(
    ("table", "says"),
    [
        (pd.DataFrame({"a": ["x"] * 9, "b": [None] * 9}), "no column that tells rows apart, only 'a' .one value., 'b'"),
        (pd.DataFrame([["x", 1]] * 5, columns=["a", "a"]), "several columns named 'a'"),
        (pd.DataFrame({"a": ["x"]}), "minimum of 2"),
        (pd.DataFrame({"n": [*range(30), "many"], "w": list("ab") * 15 + ["a"]}), "Column 'n' of X holds 'many'"),
        (pd.DataFrame({"n": [1.0, np.inf, 2.0], "w": ["a", "b", "a"]}), "Column 'n' of X holds 'inf'"),
    ],
)
def test_bad_tables_get_a_sentence(table, says):
    with pytest.raises(ValueError, match=says):
        quick(DtSEE).fit(table)


def test_tables_that_look_bad_but_are_not():
    one = quick(DtSEE).fit(pd.DataFrame({"w": list("abc") * 10}))
    assert np.isfinite(one.embedding_).all()
    gaps = FRAME.astype(object)
    gaps.iloc[3] = None  # a row of nothing but gaps
    gaps["note"] = None  # and such a column
    see = quick(DtSEE).fit(gaps)
    assert see.map_.table.aside["note"] == "empty"
    assert np.isfinite(see.embedding_).all()


def test_a_table_without_rows_and_a_single_column_are_refused(model):
    for use in (model.transform, model.novelty, model.update):
        with pytest.raises(ValueError, match=r"0 sample.* while a minimum of 1 is required"):
            use(FRAME[:0])
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.transform(FRAME.iloc[0])


def test_what_is_missing_or_cannot_be_read_is_named(model):
    with pytest.raises(ValueError, match="lacks columns that the model was fitted with: 'age'"):
        model.transform(FRAME.drop(columns="age"))
    with pytest.raises(ValueError, match="Column 'age' of X holds 'old' in row 4, which is no number"):
        model.transform(FRAME.astype({"age": object}).assign(age=["1"] * 4 + ["old"] * (N - 4)))
    with pytest.raises(ValueError, match="'columns' parameter names 'zip', which X does not have"):
        quick(DtSEE, columns={"zip": "category"}).fit(FRAME)
    with pytest.raises(ValueError, match="'metric' parameter of DtSEE must be \"euclidean\""):
        quick(DtSEE, metric="cosine").fit(FRAME)
    for bad, says in (({"a": "word"}, "must be one of"), ({"a": -1}, "above 0"), ({"a": ("text", "date")}, "or both")):
        with pytest.raises(ValueError, match=says):
            check_columns(bad)


def test_the_columns_are_shown():
    lines = learn_table(as_frame(FRAME)).lines()
    assert lines[0].split() == ["column", "kind", "weight", "counts", "gaps", "as"]
    assert any(line.startswith("color") and "category" in line and "0.8%" in line and "red" in line for line in lines)
    assert any(line.startswith("customer_id") and "an identifier" in line for line in lines)


def test_rows_are_encoded_by_slice():
    rows = EncodedRows(as_frame(FRAME), learn_table(as_frame(FRAME)))
    np.testing.assert_array_equal(rows[10:20], rows[:][10:20])
    assert rows.shape == (N, rows.encoder.width)
