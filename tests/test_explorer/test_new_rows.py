"""New rows on the page: the files that it reads and refuses, and what it shows."""

from __future__ import annotations

import csv
import gzip

import numpy as np
import pandas as pd
import pytest

import tsee
from tsee.exceptions import DataFileError
from tsee.explorer import write_map_page
from tsee.files import open_table


@pytest.fixture
def bad_files(feature_names, as_csv):
    """Texts that both the page and the command refuse, by what is wrong with them."""
    rows = as_csv(np.ones((3, 64)))
    return {
        "no rows": ",".join(feature_names) + "\n",
        "empty": "",
        "ragged": rows.replace("1.0\n1.0", "1.0,7\n1.0", 1),
        "text in a number": rows.replace("\n1.0,1.0", "\n1.0,much", 1),
        "missing": rows.replace("\n1.0,1.0", "\n1.0,", 1),
        "missing, said": rows.replace("\n1.0,1.0", "\n1.0,NA", 1),
        "infinite": rows.replace("\n1.0,1.0", "\n1.0,inf", 1),
        "hexadecimal": rows.replace("\n1.0,1.0", "\n1.0,0x10", 1),
        "open quote": rows.replace("\n1.0,1.0", '\n1.0,"1.0', 1),
        "columns missing": as_csv(np.ones((2, 62)), feature_names[:62]),
        "column misspelled": as_csv(np.ones((2, 64))).replace("pixel 9", "Pixel_9"),
    }


def test_other_forms_of_text(page_path, fitted, digits, open_page, feature_names):
    rows = pd.DataFrame(digits[2][:3], columns=feature_names)
    expected = fitted.transform(rows)
    page = open_page(page_path)
    close = 1e-3 * np.ptp(fitted.embedding_)
    forms = {
        "a.csv": rows.to_csv(index=False, sep=";"),
        "b.tsv": rows.to_csv(index=False, sep="\t"),
        "c.csv": "\ufeff" + rows.to_csv(index=False, lineterminator="\r\n"),
        "d.csv": rows.to_csv(index=False, quoting=csv.QUOTE_ALL),
        "e.csv": rows.to_csv(index=False, header=False),  # as many fields as features, in their order
    }
    forms["f.csv.gz"] = gzip.compress(rows.to_csv(index=False).encode())
    for name, content in forms.items():
        page.drop(content, name)
        page.wait_for_function("name => document.querySelector('#additions h2')?.textContent === name", arg=name)
        assert np.abs(page.placed() - expected).max() < close, name


def test_old_rows_stay_where_they_are_on_a_map_with_more_axes(open_page, tmp_path):
    """Their share of an axis that an update added does not count."""
    generator = np.random.default_rng(0)
    old, new, held_out = (generator.normal(size=(n, 150)).astype(np.float32) for n in (200, 60, 5))
    old[:100, 0] += 15
    for rows in (old, new, held_out):
        rows[:, 10:] *= 0.1
    new[:, 140] += 10
    held_out[:, 140] += 10
    see = tsee.DtSEE(max_epochs=1, n_inputs=20, random_state=0).fit(old).update(new)
    assert see.n_inputs_ == 21
    page = open_page(see.to_html(tmp_path / "map.html"))
    X = np.concatenate([old[:5], held_out])
    page.drop(pd.DataFrame(X).to_csv(index=False, header=False))
    expected = see.transform(X)
    assert np.array_equal(expected[:5], see.embedding_[:5])
    assert np.abs(page.placed() - expected).max() < 1e-3 * np.ptp(see.embedding_)


def test_decimal_commas(page_path, fitted, digits, open_page, feature_names):
    """As spreadsheets in much of Europe write numbers; commas then do not separate the fields."""
    rows = pd.DataFrame(digits[2][:3] / 4 - 0.5, columns=feature_names)
    rows.iloc[0, 0] = 2.5e-5
    expected = fitted.transform(rows)
    page = open_page(page_path)
    close = 1e-3 * np.ptp(fitted.embedding_)
    forms = {
        "a.csv": rows.to_csv(index=False, sep=";", decimal=","),
        "b.tsv": rows.to_csv(index=False, sep="\t", decimal=","),
        "c.csv": rows.to_csv(index=False, sep=";", decimal=",", quoting=csv.QUOTE_ALL),
        "d.csv": rows.to_csv(index=False, sep=";", decimal=",", header=False),
        "e.csv": rows.assign(date="01.02.2026").to_csv(index=False, sep=";", decimal=","),
    }
    for name, content in forms.items():
        page.drop(content, name)
        page.wait_for_function(
            "name => document.querySelector('#additions h2')?.textContent === name"
            " || document.querySelector('.said:not([hidden])')",
            arg=name,
        )
        assert np.abs(page.placed() - expected).max() < close, name


def test_decimal_commas_and_points_in_one_file(page_path, open_page, as_csv):
    """In a file with decimal commas, 1.234 can mean 1234: it is refused instead of guessed."""
    page = open_page(page_path)
    lines = as_csv(np.full((20_000, 64), 0.5)).replace(",", ";").replace(".", ",").split("\n")
    lines[-2] = lines[-2].replace("0,5", "1.234", 1)
    page.drop("\n".join(lines), "late.csv")
    assert page.placed().startswith("'late.csv', row 19999 (line 20001), column 'pixel 0': '1.234' is not a number")
    page.drop("\n".join([*lines[:3], lines[-2]]), "early.csv")
    page.wait_for_function("document.querySelector('.said').textContent.includes('early.csv')")
    assert page.placed().startswith("'early.csv', row 0 (line 2), column 'pixel 0': '0,5' is not a number")
    assert "mixes decimal commas and decimal points" in page.placed()


def test_decimal_commas_in_columns_without_names(digits, tmp_path, open_page):
    X, _, X_new, _ = digits
    see = tsee.DtSEE(max_epochs=2, random_state=0, placement="forward").fit(X)
    page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
    frame = pd.DataFrame(X_new + 0.25).assign(label=[f"row {i}" for i in range(len(X_new))])
    page.drop(frame.to_csv(index=False, sep=";", decimal=","))
    assert np.abs(page.placed() - see.transform(X_new + 0.25)).max() < 1e-3 * np.ptp(see.embedding_)


def test_pasted_and_chosen(page_path, fitted, digits, tmp_path, open_page, feature_names):
    rows = pd.DataFrame(digits[2][:3], columns=feature_names)
    page = open_page(page_path)
    page.evaluate(
        """text => {
            const data = new DataTransfer();
            data.setData('text', text);
            document.body.dispatchEvent(new ClipboardEvent('paste', {clipboardData: data, bubbles: true}));
        }""",
        rows.to_csv(index=False),
    )
    assert np.abs(page.placed() - fitted.transform(rows)).max() < 1e-3 * np.ptp(fitted.embedding_)
    chosen = tmp_path / "mine.csv"
    rows[:2].to_csv(chosen, index=False)
    page.click("#place")
    page.set_input_files("#file", chosen)
    page.wait_for_function("document.querySelector('#additions h2')?.textContent === 'mine.csv'")
    assert len(page.placed()) == 2


def test_they_are_drawn_listed_and_downloaded(page_path, fitted, digits, open_page, near, as_csv, feature_names):
    rows = pd.DataFrame(digits[2], columns=feature_names)
    names = [f"scan, no. {i}" for i in range(len(rows))]
    page = open_page(page_path)
    page.drop(as_csv(rows, name=names))
    positions = page.placed()
    assert f"{len(rows)} new rows" in page.inner_text("#additions")
    page.settle()
    picture = page.picture()
    drawn = [page.evaluate("([x, y]) => tsee.screenOf(x, y)", position.tolist()) for position in positions]
    page.keyboard.press("t")
    assert np.mean([near(picture, position, "#1d2024", reach=3) for position in drawn]) > 0.95
    page.mouse.move(*drawn[0])
    page.wait_for_selector("#card:not([hidden])")
    assert "new row" in page.inner_text("#card")
    with page.expect_download() as download:
        page.click("#save-new")
    saved = pd.read_csv(download.value.path())
    assert saved["name"].tolist() == names
    assert np.abs(saved[["tsee0", "tsee1"]].to_numpy() - positions).max() < 1e-5 * np.ptp(positions)
    page.click("#additions .icon")
    assert page.evaluate("tsee.added()") is None


def test_bad_rows_get_the_sentence_of_the_command(page_path, bad_files, tmp_path, open_page, as_csv, feature_names):
    """Except for the advice at its end, which differs on the page."""
    page = open_page(page_path)
    for name, content in bad_files.items():
        path = tmp_path / f"{name}.csv"
        path.write_text(content)
        with pytest.raises(DataFileError) as refused:
            open_table(path, columns=feature_names)
        expected = str(refused.value).replace(str(path), path.name).rpartition(": ")[0]
        page.drop(content, path.name)
        page.wait_for_function(
            "start => document.querySelector('.said')?.textContent.startsWith(start)", arg=f"'{name}"
        )
        sentence = page.placed()
        assert sentence.startswith(expected), name
        assert sentence.endswith((".", "?")), name
        assert page.evaluate("tsee.added()") is None
    # The page still takes good rows after bad ones.
    page.drop(as_csv(np.ones((2, 64))))
    page.wait_for_function("tsee.added()")


def test_repeated_names_are_refused(page_path, open_page, as_csv):
    page = open_page(page_path)
    page.drop(as_csv(np.ones((2, 64)), other=1, another=2).replace("another", "other"))
    assert page.placed() == (
        "'new.csv' has several columns named 'other': rename them in the header so that all names differ."
    )


def test_other_files_are_refused(page_path, open_page):
    page = open_page(page_path)
    page.drop(b"PAR1\x00\x00\xff\xfe", "rows.parquet")
    assert page.placed() == "'rows.parquet' is not a text of separated values: save the data as CSV."
    page.drop("größe\n1\n".encode("latin-1"), "old.csv")
    page.wait_for_function("document.querySelector('.said').textContent.includes('old.csv')")
    assert page.placed() == "'old.csv' is not text in UTF-8: save it as UTF-8."


def test_rows_too_far_away(page_path, open_page, as_csv):
    page = open_page(page_path)
    page.drop(as_csv(np.concatenate([np.ones((1, 64)), np.full((1, 64), 1e300)])))
    assert page.placed().startswith("'new.csv', row 1 (line 3) is too far from the data")


def test_columns_without_names_count_by_their_order(digits, tmp_path, open_page, as_csv):
    X, _, X_new, _ = digits
    see = tsee.DtSEE(max_epochs=2, random_state=0, placement="forward").fit(X)  # an array has no names
    page = open_page(write_map_page(see, see.embedding_, tmp_path / "map.html"))
    numbers = [str(i) for i in range(64)]
    page.drop(as_csv(X_new, numbers, label=[f"row {i}" for i in range(len(X_new))]))
    assert np.abs(page.placed() - see.transform(X_new)).max() < 1e-3 * np.ptp(see.embedding_)
    page.drop(as_csv(X_new[:, :60], numbers[:60]), "few.csv")
    page.wait_for_selector(".said:not([hidden])")
    assert page.inner_text(".said").startswith("'few.csv' has 60 numeric columns, but the map was learned from 64")
