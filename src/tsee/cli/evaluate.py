"""``tsee evaluate``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from tsee.cli.options import (
    PATH,
    Voice,
    data_argument,
    model_argument,
    placing_options,
    reading_options,
    voice_options,
)

__all__ = ["evaluate"]

SIZES = (1, 5, 10)
# The measures that compare the map with the data do so on a sample: at most so many rows, and so many numbers.
SAMPLE_ROWS, SAMPLE_ENTRIES = 5000, 2**26


class _Placed(NamedTuple):
    """A file on the map: all places and labels, and a sample of the rows with theirs."""

    places: Any
    labels: Any
    sample: Any
    sample_places: Any


@click.command()
@model_argument
@data_argument
@click.option("--train", type=PATH, metavar="DATA", help="The rows that the model was fitted with, to compare with.")
@click.option("--train-label", metavar="COLUMN", help="The label in --train. [default: that of --label]")
@click.option("--train-key", help="The key in --train. [default: that of --key]")
@reading_options
@placing_options
@voice_options
def evaluate(
    model: Path,
    data: Path,
    train: Path | None,
    train_label: str | None,
    train_key: str | None,
    label: str | None,
    columns: list[str] | None,
    drop: list[str],
    key: str | None,
    placement: str | None,
    device: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Say how good the map of MODEL is for the rows of DATA.

    With --train, rows of DATA are compared with the rows of --train: this is the measure of rows held out. Without
    it, each row of DATA is compared with the others.

    The k-NN error is the share of rows whose --label is not that of their k nearest rows on the map. The Quality
    Score is the share of a row's k nearest rows in the data that are nearest on the map too; trustworthiness falls
    when the map brings strangers together, continuity when it tears neighbors apart. These three are measured on at
    most 5,000 rows, drawn at random but always the same.
    """
    from tsee.metrics import continuity, knn_error, quality_score, trustworthiness
    from tsee.serving.placing import load_model

    voice = Voice(quiet, as_json)
    estimator = load_model(model, placement=placement, device=device)
    judged = _place(estimator, data, voice, label=label, columns=columns, drop=drop, key=key)
    compared = judged
    if train is not None:
        own = dict(label=train_label or label, key=train_key or key)
        compared = _place(estimator, train, voice, columns=columns, drop=drop, **own)
    measures: dict[str, dict[int, float]] = {}
    unlabeled = 0
    if label is not None:
        places, labels = _labeled(compared)
        pairs: dict[str, Any] = dict(Y_train=places, y_train=labels)
        unlabeled = len(compared.places) - len(places)
        if train is not None:
            pairs["Y_test"], pairs["y_test"] = _labeled(judged)
            unlabeled += len(judged.places) - len(pairs["Y_test"])
        measures["k-NN error"] = knn_error(**pairs, k=_possible(len(places) - (train is None)))
    samples: dict[str, Any] = dict(X_train=compared.sample, Y_train=compared.sample_places)
    if train is not None:
        samples |= dict(X_test=judged.sample, Y_test=judged.sample_places)
    n_others = len(compared.sample) - (train is None)
    measures["Quality Score"] = quality_score(**samples, k=_possible(n_others))
    sizes = [size for size in SIZES if 2 * size <= n_others]
    measures["trustworthiness"] = {size: trustworthiness(**samples, k=size) for size in sizes}
    measures["continuity"] = {size: continuity(**samples, k=size) for size in sizes}
    if unlabeled:
        voice.note([f"{unlabeled:,} rows without a label are left out of the k-NN error."], data)
    voice.say(*_report(judged, compared, train, measures))
    voice.result(
        {
            "rows": len(judged.places),
            "sample": len(judged.sample),
            "train_rows": None if train is None else len(compared.places),
            "train_sample": None if train is None else len(compared.sample),
            "unlabeled": unlabeled,
            **{name.lower().replace("-", "").replace(" ", "_"): values for name, values in measures.items()},
        }
    )


def _place(estimator: Any, path: Path, voice: Voice, **reading: Any) -> _Placed:
    """Places of all rows, and a sample of the rows themselves, in one pass over the file."""
    import numpy as np
    import scipy.sparse

    from tsee.serving.placing import open_matching, placed

    with open_matching(estimator, path, **reading) as table:
        voice.note(table.notes, path)
        n_rows, width = table.rows.shape
        size = min(n_rows, SAMPLE_ROWS, max(100, SAMPLE_ENTRIES // width))
        chosen = np.sort(np.random.default_rng(0).choice(n_rows, size, replace=False))
        places, sample = [], []
        for rows, block, found in placed(estimator, table, quiet=voice.quiet):
            places.append(found)
            first, last = np.searchsorted(chosen, (rows.start, rows.stop))
            sample.append(block[chosen[first:last] - rows.start])
        joined = scipy.sparse.vstack(sample, "csr") if table.rows.sparse else np.concatenate(sample)
        all_places = np.concatenate(places)
        return _Placed(all_places, table.label, joined, all_places[chosen])


def _labeled(side: _Placed) -> tuple[Any, Any]:
    """Places and labels of the rows that have a label."""
    import numpy as np

    known = np.array([value is not None and value == value and value != "" for value in side.labels.tolist()])
    if not known.any():
        raise ValueError("No row has a label: name another column by --label.")
    return side.places[known], side.labels[known]


def _possible(n_others: int) -> list[int]:
    sizes = [size for size in SIZES if size <= n_others]
    if not sizes:
        raise ValueError("There is a single row: a map is judged by at least two.")
    return sizes


def _report(
    judged: _Placed, compared: _Placed, train: Path | None, measures: dict[str, dict[int, float]]
) -> Iterator[str]:
    """A small table, and what it is of."""
    yield f"{len(judged.places):,} rows, " + (
        "each compared with the others."
        if train is None
        else f"compared with the {len(compared.places):,} of {str(train)!r}."
    )
    yield ""
    yield f"{'':16}" + "".join(f"{f'k = {size}':>9}" for size in SIZES)
    for name, values in measures.items():
        form = ".3f" if name in ("trustworthiness", "continuity") else ".1%"
        cells = (format(values[size], form) if size in values else "" for size in SIZES)
        yield f"{name:16}" + "".join(f"{cell:>9}" for cell in cells)
    if any(len(side.sample) < len(side.places) for side in (judged, compared)):
        against = "" if train is None else f", compared with {len(compared.sample):,}"
        yield ""
        yield f"All but the k-NN error are of a sample of {len(judged.sample):,} rows{against}."
