"""Long identifiers that are stored as decimals are known in files as in tables; amounts stay."""

from decimal import Decimal

import pandas as pd
import polars
import pyarrow
import pyarrow.parquet
import pytest

from tests.test_identifiers import N, fitted, measured, with_words
from tsee.files.identifiers import is_suspect


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("scale", [0, 2])
def test_integers_beyond_what_floats_hold_are_known_as_decimals(scale, words, tmp_path):
    ids = [Decimal(673265518589308905 + 977 * i) for i in range(N)]
    numbers = with_words(measured()) if words else measured()
    table = pyarrow.Table.from_pandas(numbers).append_column(
        "sender", pyarrow.array(ids, pyarrow.decimal128(38, scale))
    )
    frame = table.to_pandas()
    typed = numbers.assign(sender=pd.array(ids, dtype=pd.ArrowDtype(pyarrow.decimal128(38, scale))))
    pyarrow.parquet.write_table(table, tmp_path / "table.parquet")
    frame.to_csv(tmp_path / "table.csv", index=False)
    files = [tmp_path / "table.parquet"] + [tmp_path / "table.csv"] * (scale == 0)
    for X in (frame, typed, polars.from_arrow(table), table, *files):
        see, said = fitted(X)
        assert "'sender'" in "".join(said), type(X)
        assert "sender" not in (see.feature_names_in_ if see.map_.table is None else see.map_.table.names)


def test_decimals_that_are_not_whole_or_not_finite_are_numbers():
    for value in ("673265518589308905.5", "NaN", "sNaN", "Infinity", "12"):
        assert not is_suspect("sender", [Decimal(value)])
    assert is_suspect("sender", [Decimal("1E+999999")])


@pytest.mark.parametrize("type_", [pyarrow.decimal128(38, 2), pyarrow.decimal128(12, 2), pyarrow.decimal256(60, 30)])
def test_amounts_in_decimals_stay(type_, tmp_path):
    amounts = [Decimal(f"{i * 977}.25") for i in range(N)]
    table = pyarrow.Table.from_pandas(measured()).append_column("amount", pyarrow.array(amounts, type_))
    pyarrow.parquet.write_table(table, tmp_path / "table.parquet")
    for X in (table.to_pandas(), table, tmp_path / "table.parquet"):
        see, said = fitted(X)
        assert not said
        assert "amount" in (see.feature_names_in_ if see.map_.table is None else see.map_.table.names)
