"""Tables with words, dates and gaps: the page encodes dropped rows as the map's encoders do."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import tsee
from tsee.explorer import write_map_page

N, NEW = 300, 80


def mixed_table(n, seed=0):
    """Every kind of column, rows of three groups, and gaps in all columns but the first."""
    generator = np.random.default_rng(seed)
    group = generator.integers(0, 3, n)
    days = generator.integers(0, 4 * 365, n) + 200 * group
    dates = np.datetime64("2019-03-01T00:00") + days.astype("m8[D]") + generator.integers(0, 1440, n).astype("m8[m]")
    names = np.array(["Élodie", "Ole  Sørensen", "naïve 😀 cat", "ΟΔΟΣ", "İpek", "Straße 12"])
    table = pd.DataFrame(
        {
            "age": generator.normal(40 + 10 * group, 4, n).round(3),
            "income": np.exp(generator.normal(8 + group, 1.5, n)).round(2),
            "member": np.where(generator.random(n) < 0.2 + 0.3 * group, "yes", "No"),
            "city": np.array(["Ulm", "São Paulo", "Oslo", "Nuuk"])[np.minimum(group + (generator.random(n) < 0.2), 3)],
            "plan": np.array([1.0, 2.5, 1e-5, 7.0])[generator.integers(0, 4, n)],
            "since": [str(date).replace("T", " ") for date in dates],
            "tags": [
                "|".join(
                    generator.permutation(["red", "blue", "old", "new", "big"])[: generator.integers(1, 4)].tolist()
                )
                for _ in range(n)
            ],
            "note": [
                f"{names[generator.integers(6)]} {word} {number}"
                for word, number in zip(
                    np.array(["ships", "cars", "planes"])[group], generator.integers(0, 9999, n), strict=True
                )
            ],
        }
    )
    for column in table.columns[1:]:
        table[column] = table[column].astype(object).mask(generator.random(n) < 0.12)
    return table


KINDS = {"plan": "category", "age": ("number", 2.0)}


@pytest.fixture(scope="module")
def seen():
    table = pd.read_csv(io.StringIO(mixed_table(N).assign(person_id=range(N)).to_csv(index=False)))
    see = tsee.DtSEE(max_epochs=4, random_state=0, columns=KINDS).fit(table)
    kinds = {column.kind for column in see.map_.table.columns}
    assert kinds == {"number", "boolean", "category", "date", "tags", "text"}
    assert see.map_.table.aside == {"person_id": "identifier"}
    return see


@pytest.fixture(scope="module")
def seen_path(seen, tmp_path_factory):
    return write_map_page(seen, seen.embedding_, tmp_path_factory.mktemp("page") / "table.html")


@pytest.fixture(scope="module")
def new_rows():
    """Held-out rows, some of them with what the map has never seen."""
    table = mixed_table(NEW, seed=1)
    table.loc[0, "city"] = "Atlantis"
    table.loc[1, ["tags", "since"]] = ["green;red", "31.12.2031"]
    table.loc[2, "since"] = "2020-02-29T23:59:58.25+05:30"
    table.loc[3, ["income", "age"]] = [1e12, -500.0]
    table.loc[4] = [np.nan] * 8  # nothing but gaps
    table.loc[5, ["tags", "note"]] = [" ; ", "x"]
    return table


def test_dropped_rows_lie_where_transform_puts_them(seen, seen_path, new_rows, tmp_path, open_page):
    """Gaps and categories never seen included; also in another order, and with other columns."""
    path = tmp_path / "new.csv"
    new_rows.to_csv(path, index=False)
    expected = seen.transform(str(path))
    page = open_page(seen_path)
    page.drop(path.read_bytes())
    placed = page.placed()
    close = 1e-3 * np.ptp(seen.embedding_, axis=0).max()
    assert np.abs(placed - expected).max() < close
    assert np.abs(page.evaluate("tsee.added().novelty") - seen.novelty(str(path))).max() < 0.03
    assert not page.errors
    shuffled = new_rows[new_rows.columns[::-1]].assign(id=range(NEW), person_id=range(NEW))
    page.drop(shuffled.to_csv(index=False), "shuffled.csv")
    page.wait_for_function("document.querySelector('#additions h2')?.textContent === 'shuffled.csv'")
    assert np.abs(page.placed() - expected).max() < close


def test_rows_do_not_depend_on_each_other(seen, seen_path, new_rows, open_page):
    page = open_page(seen_path)
    page.drop(new_rows.to_csv(index=False))
    together = page.placed()
    page.drop(new_rows[7:8].to_csv(index=False), "one.csv")
    page.wait_for_function("document.querySelector('#additions h2')?.textContent === 'one.csv'")
    assert np.abs(page.placed() - together[7:8]).max() < 1e-4 * np.ptp(seen.embedding_)


def test_decimal_commas(seen, seen_path, new_rows, tmp_path, open_page):
    path = tmp_path / "new.csv"
    text = new_rows.astype(object).map(
        lambda value: f"{value:.6g}".replace(".", ",") if isinstance(value, float) else value
    )
    text.where(new_rows.notna(), "").to_csv(path, index=False, sep=";", quoting=1)
    expected = seen.transform(str(path))
    page = open_page(seen_path)
    page.drop(path.read_bytes())
    assert np.abs(page.placed() - expected).max() < 1e-3 * np.ptp(seen.embedding_, axis=0).max()


@pytest.mark.parametrize(
    ("column", "value", "sentence"),
    [
        (
            "age",
            "old",
            "'new.csv', row 9 (line 11), column 'age': 'old' is not a number: correct it, or leave it empty.",
        ),
        ("member", "perhaps", "column 'member': 'perhaps' is neither true nor false: correct it"),
        ("since", "2020-02-30", "column 'since': '2020-02-30' is not a date: correct it"),
        ("tags", "['red', 'old']", "column 'tags': \"['red', 'old']\" is a list: write its tags as a|b."),
    ],
)
def test_a_value_of_another_kind_is_named(seen_path, new_rows, open_page, column, value, sentence):
    rows = new_rows.astype(object)
    rows.loc[9, column] = value
    page = open_page(seen_path)
    page.drop(rows.to_csv(index=False))
    assert sentence in page.placed()


def test_a_column_that_is_missing_is_named(seen_path, new_rows, open_page):
    page = open_page(seen_path)
    page.drop(new_rows.rename(columns={"city": "City"}).to_csv(index=False))
    assert page.placed() == "'new.csv' has no column 'city': did you mean 'City'?"


def test_numbers_with_gaps_and_without_names(tmp_path, open_page):
    """An array with gaps: columns count by their order."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 3)) @ generator.normal(size=(3, 6)) + 0.1 * generator.normal(size=(200, 6))
    X[generator.random(X.shape) < 0.1] = np.nan
    see = tsee.DtSEE(max_epochs=2, random_state=0, placement="forward").fit(X[:150])
    page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
    page.drop(pd.DataFrame(X[150:], columns=list("abcdef")).to_csv(index=False))
    assert np.abs(page.placed() - see.transform(X[150:])).max() < 1e-3 * np.ptp(see.embedding_)
