"""``tsee evaluate``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsee.cli.options import (
    PATH,
    Reporter,
    data_argument,
    model_argument,
    placing_options,
    read_options,
    reporting_options,
)

if TYPE_CHECKING:
    from tsee.serving import Evaluation, ReadOptions

__all__ = ["evaluate"]


@click.command()
@model_argument
@data_argument
@click.option("--train", type=PATH, metavar="DATA", help="The rows that the model was fitted with, to compare with.")
@click.option("--train-label", metavar="COLUMN", help="The label in --train. [default: the same as --label]")
@click.option("--train-key", help="The key in --train. [default: the same as --key]")
@read_options
@placing_options
@reporting_options
def evaluate(
    model: Path,
    data: Path,
    train: Path | None,
    train_label: str | None,
    train_key: str | None,
    options: ReadOptions,
    placement: str | None,
    device: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Measure how good the map of MODEL is for the rows of DATA.

    With --train, the rows of DATA are compared with the rows of --train: use it to measure held-out rows. Without it,
    each row of DATA is compared with the others.

    The k-NN error is the share of rows whose --label differs from the label of their k nearest rows on the map. The
    Quality Score is the share of a row's k nearest rows in the data that are also nearest on the map. Trustworthiness
    falls if the map brings strangers together, continuity if it tears neighbors apart. These three are measured on at
    most 5,000 rows, drawn at random but always the same.
    """
    from tsee.serving import evaluate_map, load_model, open_matching

    reporter = Reporter(quiet, as_json)
    fitted = load_model(model, placement=placement, device=device)
    with ExitStack() as stack:

        def opened(path: Path, options: ReadOptions) -> Any:
            table = stack.enter_context(open_matching(fitted, path, options))
            reporter.note(table.notes, path)
            return table

        table, train_table = opened(data, options), None
        if train is not None:
            label, key = train_label or options.label, train_key or options.key
            train_table = opened(train, dataclasses.replace(options, label=label, key=key))
        found = evaluate_map(fitted, table, train_table, verbose=not quiet)
    if found.n_unlabeled:
        reporter.note([f"{found.n_unlabeled:,} rows without a label are left out of the k-NN error."], data)
    reporter.say(*_lines(found, train))
    measures = ("knn_error", "quality_score", "trustworthiness", "continuity")
    reporter.result(
        {
            "rows": found.n_rows,
            "sample": found.n_sample,
            "train_rows": found.n_train_rows,
            "train_sample": found.n_train_sample,
            "unlabeled": found.n_unlabeled,
            **{name: getattr(found, name) for name in measures if getattr(found, name) is not None},
        }
    )


def _lines(found: Evaluation, train: Path | None) -> Iterator[str]:
    """A small table, and the rows that it is about."""
    from tsee.serving.evaluation import NEIGHBORS

    if train is None:
        yield f"{found.n_rows:,} rows, each compared with the others."
    else:
        yield f"{found.n_rows:,} rows, compared with the {found.n_train_rows:,} of {str(train)!r}."
    yield ""
    yield f"{'':16}" + "".join(f"{f'k = {k}':>9}" for k in NEIGHBORS)
    for name, values, form in (
        ("k-NN error", found.knn_error, ".1%"),
        ("Quality Score", found.quality_score, ".1%"),
        ("trustworthiness", found.trustworthiness, ".3f"),
        ("continuity", found.continuity, ".3f"),
    ):
        if values is not None:
            cells = (format(values[k], form) if k in values else "" for k in NEIGHBORS)
            yield f"{name:16}" + "".join(f"{cell:>9}" for cell in cells)
    if found.n_sample < found.n_rows or (found.n_train_sample or 0) < (found.n_train_rows or 0):
        compared = "" if train is None else f", compared with {found.n_train_sample:,}"
        yield ""
        yield f"All except the k-NN error are measured on a sample of {found.n_sample:,} rows{compared}."
