"""Columns that identify the rows of a table are kept aside, and measurements never are."""

import uuid
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest

import tsee
from tests.quick import quick
from tsee import DtSEE
from tsee.exceptions import DataWarning
from tsee.files import identifiers, parquet, tallies
from tsee.files.identifiers import are_identifiers
from tsee.tables import as_frame, encoding, learn_table, table_of

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
    "uuid": np.arange(N) ** 3,
    "node guid": np.arange(N) ** 3 + 1,
    "rowid": np.arange(N) ** 3 + 2.0,
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
    assert sentence == f"Kept aside, an identifier: {name!r}. To keep it: columns={{{name!r}: 1}}."
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


def test_the_advice_follows_the_sentence_on_what_was_kept_aside(tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "GROUP_BYTES", 100)
    measured().assign(id=np.arange(N)).to_parquet(tmp_path / "table.parquet")
    (sentence,) = fitted(tmp_path / "table.parquet")[1]
    kept = "Kept aside, an identifier: 'id'. To keep it: columns={'id': 1}."
    assert sentence.startswith(f"{kept} The row groups are large")


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


def drawn(n, top):
    """Numbers that are all different."""
    return np.random.default_rng(3).choice(top, n, replace=False)


# Columns that one part of the rows, or one way of storing them, would tell otherwise, and whether they are identifiers.
PARTIAL = {
    "dense only in all rows": ("order", drawn(2000, 150_000), True),
    "dense only in the first rows": ("order", np.r_[np.arange(300), drawn(1700, 10**9) + 300], False),
    "repeats at the end": ("id", np.r_[np.arange(1999), 7], False),
    "whole floats": ("id", np.arange(2000.0), True),
    "whole floats at first": ("id", np.r_[np.arange(1999.0), 0.5], False),
    "digits": ("account", np.r_[drawn(1999, 10**9) + 10**9, 5], False),
    "long ones at first": ("sender", np.r_[drawn(1000, 10**8) + 10**17, np.arange(1000)], False),
    "long": ("sender", np.r_[np.arange(50), drawn(1950, 10**8) + 10**17], True),
}


@pytest.mark.parametrize("case", PARTIAL)
def test_an_identifier_is_judged_by_all_rows_however_they_are_stored(case, tmp_path):
    name, values, expected = PARTIAL[case]
    frame = measured(2000).assign(**{name: values})
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet", row_group_size=10)
    (tmp_path / "shards").mkdir()
    frame[:10].to_parquet(tmp_path / "shards" / "0.parquet")
    frame[10:].to_parquet(tmp_path / "shards" / "1.parquet")
    files = [tmp_path / file for file in ("table.csv", "table.parquet", "shards")]
    for X in (frame, polars.from_pandas(frame), *files):
        see, said = fitted(X, n_exemplars=60, max_epochs=1)
        assert (see.map_.table is None, name not in see.feature_names_in_) == (True, expected), X
        assert len(said) == expected
    colored = with_words(frame)
    colored.to_csv(tmp_path / "table.csv", index=False)
    colored.to_parquet(tmp_path / "table.parquet", row_group_size=10)
    for X in (colored, *files[:2]):
        assert ("identifier" in table_of(X, {}, "allow").encoder.aside.values()) == expected, X


def test_a_file_of_more_rows_than_are_read_at_once_is_as_its_frame_is(tmp_path, monkeypatch):
    monkeypatch.setattr(identifiers, "PART_ROWS", 64)
    frame = measured(20_000).assign(order=drawn(20_000, 15_000_000), uuid=np.arange(20_000.0))
    frame.to_csv(tmp_path / "table.csv", index=False)
    for X in (frame, tmp_path / "table.csv"):
        see, _ = fitted(X, n_exemplars=60, max_epochs=1)
        assert see.map_.table is None
        assert see.feature_names_in_.tolist() == ["age", "height", "pulse"]


@pytest.mark.parametrize("dtype", ["int64[pyarrow]", "uint64[pyarrow]", "Int64", "int64"])
def test_integers_beyond_what_floats_hold_are_known_by_any_type(dtype):
    frame = measured().assign(sender=pd.array(SNOWFLAKES, dtype=dtype))
    assert fitted(frame)[0].feature_names_in_.tolist() == ["age", "height", "pulse"]


def test_a_table_of_nothing_but_an_identifier_is_taken_from_a_file_too(tmp_path):
    pd.DataFrame({"id": np.arange(N)}).to_csv(tmp_path / "ids.csv", index=False)
    pd.DataFrame({"id": np.arange(N)}).to_parquet(tmp_path / "ids.parquet")
    for name in ("ids.csv", "ids.parquet"):
        see, said = fitted(tmp_path / name)
        assert see.feature_names_in_.tolist() == ["id"]
        assert not said


def test_of_very_many_rows_the_same_sample_is_compared_in_whatever_parts_they_come(monkeypatch):
    monkeypatch.setattr(tallies, "COMPARED", 1000)
    kept = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        numbers = rng.permutation(20_000) - 9000
        numbers[:15] = numbers[-15:]
        forms = [numbers, numbers.astype(float), numbers.astype(object), numbers.astype(str).astype(object)]
        found = {
            are_identifiers("id", lambda form=form, size=size: np.array_split(form, range(size, len(form), size)))
            for form, size in zip(forms, (20_000, 1700, 999, 5000), strict=True)
        }
        assert len(found) == 1
        kept += found
        numbers[:300] = numbers[300:600]  # so many are seen in any sample
        assert not are_identifiers("id", lambda numbers=numbers: [numbers])
    assert len(set(kept)) == 2


def test_numbers_that_floats_do_not_hold_or_are_infinite_are_no_identifiers():
    for values in ([10**400, 5], [Decimal("Infinity"), 1], [Decimal("sNaN"), 1], ["9" * 5000, "7"], [np.inf, 1.0]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert not are_identifiers("order", lambda values=values: [np.array(values, object)])
    assert are_identifiers("id", lambda: [np.array([Decimal(7), 2**70, "12.0"], object)])


def test_infinity_is_refused_in_the_sentence_of_the_library_alone():
    frame = measured().assign(order=np.r_[np.inf, np.arange(N - 1)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="infinity in row 0, column 'order'"):
            quick(DtSEE).fit(frame)


def test_an_array_after_a_table_is_told_which_columns_are_meant():
    frame = measured().assign(id=np.arange(N))
    see, _ = fitted(frame)
    sentence = "X has 4 features, but DtSEE is expecting 3 features as input: 'age', 'height', 'pulse'."
    with pytest.raises(ValueError, match=sentence):
        see.transform(frame.to_numpy())


def test_the_rows_of_all_processes_are_judged_as_one_table(peers, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 2)), columns=list("ab"))
    frame["order"] = rng.choice(7000, 400, replace=False)  # half of them could be different by chance
    frame["row"] = np.arange(400) % 200  # all different in each half
    frame["id"] = np.r_[np.arange(199), 0, 200:400]  # only in the second half
    frame["key"] = np.arange(400.0)
    frame["seq_no"] = np.r_[np.arange(200), drawn(200, 10**9) + 400]  # dense in the first half
    sender = drawn(400, 10**8) + 10**17
    frame["sender"] = sender
    expected = fitted(frame)[0].feature_names_in_.tolist()
    assert expected == ["a", "b", "row", "id", "seq_no"]
    for rank in range(2):
        share = frame[rank * 200 : rank * 200 + 200]
        share.to_parquet(tmp_path / f"{rank}.parquet")
        share.to_csv(tmp_path / f"{rank}.csv", index=False)
    script = """
    import numpy as np, pandas as pd, sys, warnings
    import tsee
    warnings.simplefilter("ignore")
    path = f"{sys.argv[1]}/{rank}"
    for X in (pd.read_parquet(path + ".parquet"), path + ".parquet", path + ".csv"):
        see = tsee.DtSEE(max_epochs=1, refinement=5, random_state=0).fit(X)
        print(see.feature_names_in_.tolist())
    """
    for output in peers.run(script, 2, tmp_path, timeout=240):
        assert output.splitlines() == [str(expected)] * 3


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
