"""Files with words, dates and gaps, read by slice: the same as a table in memory, in as little memory."""

import gzip
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

import tsee
from tests.quick import quick
from tsee import DtSEE
from tsee.files import mixed
from tsee.files.mixed import open_mixed
from tsee.serving import ReadOptions, open_matching
from tsee.tables import as_frame, encoding


def people(n, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 80, n).astype(float)
    age[rng.random(n) < 0.1] = np.nan
    color = rng.choice(["red", "green", "bl\u00fcue", None], n, p=[0.5, 0.3, 0.1, 0.1])
    note = np.array([f'says "{word}",\nand more' for word in rng.integers(10, size=n)], dtype=object)
    note[rng.random(n) < 0.2] = None
    return pd.DataFrame(
        {
            "customer_id": np.arange(n) + 1000,
            "age": age,
            "income": np.exp(rng.normal(10, 1, n)),
            "color": color,
            "since": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1500, n), unit="D")).astype(str),
            "likes": ["|".join(rng.choice(["tea", "jam", "milk"], 2, replace=False)) for _ in range(n)],
            "note": note,
        }
    )


def written(frame, path, **options):
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False, row_group_size=97)
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(frame.to_csv(index=False).encode()))
    else:
        frame.to_csv(path, index=False, **options)
    return path


NAMES = ["table.csv", "marked.csv", "commas.tsv", "table.csv.gz", "table.parquet"]


@pytest.fixture(params=NAMES)
def path(request, tmp_path, monkeypatch):
    """A file of 400 rows that is read in many pieces."""
    monkeypatch.setattr(mixed, "STEP_ROWS", 7)
    monkeypatch.setattr(mixed, "FIRST_FIELDS", 200)
    monkeypatch.setattr(mixed, "BLOCK_FIELDS", 100)
    name, options = request.param, {}
    if name == "marked.csv":
        options = {"encoding": "utf-8-sig"}
    if name == "commas.tsv":
        options = {"sep": "\t", "decimal": ","}
    return written(people(400), tmp_path / name, **options)


def test_slices_are_the_columns_of_the_whole(path):
    table, frame = open_mixed(path), people(400)
    assert len(table) == 400
    assert table.names == list(frame.columns)
    for start, stop in [(0, 400), (0, 1), (3, 3), (6, 8), (13, 250), (399, 400)]:
        block = table.read(start, stop)
        assert list(block) == list(frame.columns)
        for name, values in block.items():
            expected = frame[name].iloc[start:stop]
            if name in ("customer_id", "age", "income"):
                np.testing.assert_allclose(values, expected.astype(float), rtol=1e-12)
            else:
                assert values.tolist() == [None if value is None or value != value else value for value in expected]


def test_a_file_in_pieces_is_placed_and_fitted_as_its_table(path, tmp_path):
    frame = people(400)
    see = quick(DtSEE).fit(frame)
    np.testing.assert_allclose(see.transform(path), see.embedding_, atol=1e-4)
    np.testing.assert_allclose(see.novelty(path), see.novelty(frame), atol=1e-4)
    of_file = quick(DtSEE).fit(path)
    assert of_file.map_.table.to_json()["columns"] == see.map_.table.to_json()["columns"]
    np.testing.assert_allclose(of_file.embedding_, see.embedding_, atol=1e-3)
    grown = see.update(path)
    np.testing.assert_allclose(grown.transform(path), see.update(frame).transform(frame), atol=1e-3)


def test_columns_that_go_with_the_map_are_read_by_slice(path):
    see, frame = quick(DtSEE).fit(people(400).drop(columns="likes")), people(400)
    with open_matching(see, path, ReadOptions(label="likes")) as table:
        assert table.rows.shape[0] == 400
        kept = table.kept(100, 150)
    assert list(kept) == ["customer_id", "color", "since", "note", "likes"]
    assert kept["customer_id"].dtype == np.int64
    assert kept["color"].tolist() == frame["color"].fillna("").iloc[100:150].tolist()
    assert kept["likes"].tolist() == frame["likes"].iloc[100:150].tolist()


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_a_file_that_changes_is_noticed(tmp_path, name):
    path = written(people(50), tmp_path / name)
    table = open_mixed(path)
    written(people(60), path)
    with pytest.raises(tsee.files.DataFileError, match="changed while it was being read"):
        table.read(0, 50)


def test_categories_tags_and_gaps_are_counted_in_all_rows(monkeypatch):
    frame = people(400)
    frame.loc[:, "color"] = "red"
    frame.loc[frame.index % 2 == 0, "color"] = "blue"
    frame.loc[399, "color"], frame.loc[398, "likes"] = "gold", "wine"
    frame.loc[:, "age"], frame.loc[397, "age"] = np.arange(400.0) % 50, np.nan
    whole = quick(DtSEE).fit(frame).map_.table
    monkeypatch.setattr(encoding, "SAMPLE_ROWS", 100)
    monkeypatch.setattr(encoding, "SAMPLE_PART", 1)
    sampled = encoding.sample_of(as_frame(frame.iloc[:-1]))
    assert len(sampled["color"]) == 100
    frame.loc[[393, 394], "color"] = "green"  # not in the sample
    monkeypatch.setattr(encoding, "sample_of", lambda frame: {k: v[:100] for k, v in frame.block(0, 400).items()})
    counted = {column.name: column for column in quick(DtSEE).fit(frame).map_.table.columns}
    known = {column.name: column for column in whole.columns}
    assert counted["color"].encoder.categories == ["blue", "red", "green", "gold"]
    assert counted["likes"].encoder == known["likes"].encoder
    assert counted["age"].gaps == 1 / 400
    assert counted["age"].mark > 0


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, name, run):
    """The most that is held while rows are placed is the same for a file four times as long."""
    quick(DtSEE).fit(people(300)).save(tmp_path / "model")
    peaks = []
    for n in (2000, 8000):
        path = tmp_path / f"{n}{name}"
        frame = people(n)
        if path.suffix == ".parquet":
            frame.to_parquet(path, index=False, row_group_size=1000)
        else:
            written(frame, path)
        code = f"""
            import tracemalloc
            import pandas, pyarrow.parquet
            import tsee
            from tsee.files import mixed, text
            from tsee.serving import placing, load_model, open_matching, place_table
            text.FIRST_FIELDS = mixed.FIRST_FIELDS = mixed.BLOCK_FIELDS = 2**12
            placing.MAX_BLOCK_ROWS = 2**10
            fitted = load_model({str(tmp_path / "model")!r})
            with open_matching(fitted, {str(path)!r}) as table:  # imports and caches
                fitted.place(table.rows[:100])
            tracemalloc.start()
            with open_matching(fitted, {str(path)!r}) as table:
                place_table(fitted, table, {str(tmp_path / "map.csv")!r})
            print(tracemalloc.get_traced_memory()[1] + pyarrow.default_memory_pool().max_memory())
        """
        peaks.append(float(run(code)))
        assert len(pd.read_csv(tmp_path / "map.csv")) == n
    assert peaks[1] < 1.1 * peaks[0] + 2**18  # the index of a Parquet file grows a little


IDS = [673265518589308905, 673265518589308906, 5]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_integers_that_no_float_holds_go_beside_the_map_as_they_are(suffix, tmp_path):
    frame = pd.DataFrame({"id": IDS, "amount": [6.02e23, 1e19, 5.0], "word": ["a", "b", "c"]})
    table = open_mixed(written(frame, tmp_path / f"table{suffix}"))
    table.write_beside(["word"])
    beside = table.other_columns.block(0, 3)
    assert [str(value) for value in beside["id"]] == [str(value) for value in IDS]
    np.testing.assert_array_equal(beside["amount"], frame["amount"])


def test_decimals_that_no_float_holds_go_beside_the_map_as_they_are(tmp_path):
    type_ = pyarrow.decimal128(38, 0)
    columns = {"id": pyarrow.array(map(Decimal, IDS), type_), "word": ["a", "b", "c"]}
    pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / "table.parquet")
    table = open_mixed(tmp_path / "table.parquet")
    table.write_beside(["word"])
    assert table.other_columns.block(0, 3)["id"].tolist() == [str(value) for value in IDS]


def test_zeros_in_front_tell_labels_apart(tmp_path):
    (tmp_path / "table.csv").write_text("word,zip,size\na,7,1\nb,007,2\nc,7,3\n")
    table = open_mixed(tmp_path / "table.csv", label="zip")
    assert list(table.label) == ["7", "007", "7"]
    (tmp_path / "zones.csv").write_text("word,zone,size\na,00,1\nb,10,2\nc,20,3\n")
    assert list(open_mixed(tmp_path / "zones.csv", label="zone").label) == ["00", "10", "20"]
    (tmp_path / "plain.csv").write_text("word,zip,size\na,7,1\nb,17,2\nc,7,3\n")
    assert list(open_mixed(tmp_path / "plain.csv", label="zip").label) == [7, 17, 7]
