"""Columns that identify the rows of a table are kept aside, and measurements never are."""

import uuid
import warnings

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

import tsee
from tests.quick import quick
from tsee import DtSEE
from tsee.exceptions import DataWarning
from tsee.files.identifiers import are_identifiers
from tsee.tables import as_frame, encoding, learn_table

N = 120
RNG = np.random.default_rng(0)
SNOWFLAKES = 673265518589308905 + np.arange(N)


def measured(n=N):
    rng = np.random.default_rng(1)
    return pd.DataFrame({"age": rng.normal(50, 9, n), "height": rng.normal(170, 8, n), "pulse": rng.normal(70, 9, n)})


def with_words(frame):
    return frame.assign(color=np.random.default_rng(2).choice(["red", "blue"], len(frame)).astype(object))


IDENTIFIERS = {
    "id": np.arange(N),
    "Order": RNG.permutation(N) + 1,
    "order_number": RNG.permutation(3 * N)[:N] + 100_000,
    "row": np.arange(N, dtype=float),
    "Unnamed: 0": np.arange(N),
    "caseid": RNG.permutation(N) + 1,
    "PID": RNG.choice(400_000_000, N, replace=False) + 526_301_100,
    "accountNo": RNG.choice(10**9, N, replace=False) + 10**9,
    "account": SNOWFLAKES,
    "user": np.array([str(number) for number in SNOWFLAKES], dtype=object),
    "sender": RNG.integers(10**17, 10**18, N),
    "hash": RNG.integers(0, 2**63, N).astype(np.uint64) * np.uint64(2),
    "signed": RNG.integers(-(2**63), 2**63 - 1, N),
    "sent to": np.array([str(uuid.UUID(int=int(i) ** 3 + 7)) for i in range(N)], dtype=object),
    "digest": np.array([f"{i**5 + 12345:032x}" for i in range(N)], dtype=object),
    "invoice": np.array([f"INV-{i:05}" for i in range(N)], dtype=object),
}

MEASURED = {
    "year": np.arange(1901, 1901 + N),
    "t": np.arange(N),
    "depth": np.arange(N) * 10,
    "rank": RNG.permutation(N) + 1,
    "atomic_number": np.arange(N) + 1,
    "salary": RNG.choice(10**7, N, replace=False),
    "population": np.exp(RNG.normal(13, 2, N)).astype(np.int64) + np.arange(N),
    "revenue": RNG.choice(9 * 10**9, N, replace=False) + 10**9,
    "frequency": RNG.choice(10**8, N, replace=False) + 2_400_000_000,
    "date": np.array([int(f"{day:%Y%m%d}") for day in pd.date_range("2024-01-31", periods=N)]),
    "zip": np.sort(RNG.choice(89_999, N, replace=False)) + 10_000,
    "postal code": np.array([f"{number:05}" for number in np.arange(N) * 97], dtype=object),
    "timestamp": 1_706_000_000 + 3600 * np.arange(N),
    "time_ns": (1_706_000_000 + 3600 * np.arange(N)) * 10**9 + 1,
    "ticks": 638_400_000_000_000_000 + 36_000_000_000 * np.arange(N),
    "wei": (np.exp(RNG.normal(38, 2, N)) + np.arange(N)).astype(np.uint64),
    "mass": np.exp(RNG.normal(60, 0.1, N)),
    "order": np.tile(np.arange(N // 2), 2),
    "customer": RNG.choice(10**6, N, replace=False),
    "paid": RNG.choice(10**5, N, replace=False),
    "price_index": RNG.choice(20 * N, N, replace=False),
    "city": np.array([f"Town of {'abcdefghij'[i % 10]}{i}" for i in range(N)], dtype=object),
    "smiles": np.array(["C" * (i % 11 + 1) + "O" * (i // 11) for i in range(N)], dtype=object),
}


def fitted(X, **parameters):
    """The map of a table, and the warnings about identifiers."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DataWarning)
        see = quick(DtSEE, **parameters).fit(X)
    return see, [str(warning.message) for warning in said if "identifier: " in str(warning.message)]


@pytest.mark.parametrize("name", IDENTIFIERS)
@pytest.mark.parametrize("make", [lambda frame: frame, polars.from_pandas, pyarrow.Table.from_pandas])
def test_identifiers_are_kept_aside_in_one_sentence(name, make):
    frame = with_words(measured())
    frame.insert(1, name, IDENTIFIERS[name])
    see, said = fitted(make(frame))
    assert see.map_.table.aside == {name: "identifier"}
    (sentence,) = said
    shown = f"columns={{{name!r}: 1}}, or --weight {name}=1"
    assert sentence == f"Kept aside, an identifier: {name!r} (to keep it: {shown})."
    kept, said = fitted(make(frame), columns={name: 1})
    assert name in kept.map_.table.names
    assert not said


@pytest.mark.parametrize("name", MEASURED)
def test_measurements_stay(name):
    frame = with_words(measured())
    frame.insert(1, name, MEASURED[name])
    for X in (frame, frame.drop(columns="color")):
        see, said = fitted(X)
        assert not said
        assert name in (see.feature_names_in_ if see.map_.table is None else see.map_.table.names)


@pytest.mark.parametrize("name", [name for name in IDENTIFIERS if IDENTIFIERS[name].dtype != object])
@pytest.mark.parametrize("make", [lambda frame: frame, polars.from_pandas, pyarrow.Table.from_pandas])
def test_a_table_of_numbers_only_lacks_its_identifier_and_is_otherwise_as_it_was(name, make, tmp_path):
    numbers = measured()
    frame = numbers.copy()
    frame.insert(1, name, IDENTIFIERS[name])
    see, said = fitted(make(frame))
    assert len(said) == 1
    assert see.map_.table is None
    assert see.feature_names_in_.tolist() == numbers.columns.tolist()
    expected = quick(DtSEE).fit(numbers).embedding_
    np.testing.assert_array_equal(see.embedding_, expected)
    see.save(tmp_path / "model")
    loaded = tsee.load(tmp_path / "model")
    for X in (frame, numbers):
        np.testing.assert_array_equal(loaded.transform(make(X)), expected)
        np.testing.assert_array_equal(loaded.map_.place(make(X)), expected)
        assert loaded.update(make(X)).embedding_.shape == (2 * N, 2)
        assert np.isfinite(loaded.novelty(make(X))).all()
    assert loaded.to_html(tmp_path / "map.html", frame).exists()


def test_a_file_is_as_its_frame_is(tmp_path):
    numbers = measured()
    for name in ("id", "Order", "account", "sender", "hash"):
        for whole in (True, False):
            frame = numbers.assign(**{name: IDENTIFIERS[name]})
            frame = frame if whole else with_words(frame)
            frame.to_csv(tmp_path / "table.csv", index=False)
            frame.to_parquet(tmp_path / "table.parquet", row_group_size=50)
            for path in (tmp_path / "table.csv", tmp_path / "table.parquet"):
                see, said = fitted(path)
                assert len(said) == 1, (name, path, whole)
                assert (see.map_.table is None) == whole
                np.testing.assert_allclose(see.embedding_, fitted(frame)[0].embedding_, atol=1e-3)
                for X in (frame, frame.drop(columns=name), path):
                    np.testing.assert_allclose(see.transform(X), see.embedding_, atol=1e-3)
                kept, said = fitted(path, columns={name: 1.0})
                assert name in kept.map_.table.names
                assert not said


@pytest.mark.parametrize("name", MEASURED)
def test_a_measurement_in_a_file_stays(name, tmp_path):
    frame = measured().assign(**{name: MEASURED[name]})
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    for path in (tmp_path / "table.csv", tmp_path / "table.parquet"):
        see, said = fitted(path)
        assert not said
        assert name in (see.feature_names_in_ if see.map_.table is None else see.map_.table.names)


def test_a_column_without_repeats_in_a_sample_is_looked_at_whole(monkeypatch):
    monkeypatch.setattr(encoding, "SAMPLE_ROWS", 50)
    monkeypatch.setattr(encoding, "SAMPLE_PART", 1)
    frame = with_words(measured()).assign(id=np.arange(N), uuid=[str(uuid.UUID(int=i)) for i in range(N)])
    assert set(learn_table(as_frame(frame)).aside) == {"id", "uuid"}
    repeated = frame.copy()
    repeated.loc[1, ["id", "uuid"]] = repeated.loc[0, ["id", "uuid"]]  # row 1 is not in the sample
    assert not learn_table(as_frame(repeated)).aside


def test_a_few_words_among_the_numbers_of_an_identifier_are_no_reason_to_refuse_the_table():
    codes = [f"{i + 1}{'A' * (i == 14)}" for i in range(N)]
    assert learn_table(as_frame(with_words(measured()).assign(ID=codes))).aside == {"ID": "identifier"}
    with pytest.raises(ValueError, match="'15A' in row 14, which is no number"):
        learn_table(as_frame(with_words(measured()).assign(weight=codes)))


def test_arrays_have_no_identifiers():
    numbers = np.column_stack([np.arange(N), measured()])
    see, said = fitted(numbers)
    assert see.n_features_in_ == 4
    assert not said
    mixed = np.column_stack([IDENTIFIERS["sent to"], numbers.astype(object)])
    mixed[3, 2] = None
    assert len(learn_table(as_frame(mixed)).columns) == 5


def test_columns_that_a_map_was_not_fitted_with_do_not_count():
    see, _ = fitted(measured())
    extended = measured().assign(note="words")[["note", "age", "height", "pulse"]]
    np.testing.assert_array_equal(see.transform(extended), see.embedding_)
    with pytest.raises(ValueError, match="now missing"):
        see.transform(extended[["height", "pulse"]])


def test_a_table_of_nothing_but_an_identifier_is_taken():
    frame = pd.DataFrame({"id": np.arange(N)})
    see, said = fitted(frame)
    assert see.n_features_in_ == 1
    assert not said


def test_few_rows_and_gaps():
    few = np.arange(15)
    assert are_identifiers("id", lambda: [few])
    assert not are_identifiers("order", lambda: [few])
    answers = with_words(measured(2)).assign(key=["yes", "no"])
    assert not learn_table(as_frame(answers)).aside
    gaps = with_words(measured()).assign(id=np.where(np.arange(N) % 9, np.arange(N), np.nan))
    assert learn_table(as_frame(gaps)).aside == {"id": "identifier"}


def test_every_process_must_take_a_column_for_an_identifier(peers):
    script = """
    import numpy as np, pandas as pd, warnings
    import tsee
    warnings.simplefilter("ignore")
    rows = np.random.default_rng(rank).normal(size=(40, 3))
    frame = pd.DataFrame(rows, columns=list("abc")).assign(id=np.arange(40) + 40 * rank)
    frame["key"] = np.arange(40) // (1 + rank)
    see = tsee.DtSEE(max_epochs=1, refinement=5, random_state=0).fit(frame)
    print(see.feature_names_in_.tolist())
    """
    first, second = peers.run(script, 2, timeout=120)
    assert first == second == "['a', 'b', 'c', 'key']\n"
