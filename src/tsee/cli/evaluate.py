"""``tsee evaluate``."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tsee.cli.options import (
    Reporter,
    data_argument,
    model_argument,
    placing_options,
    read_options,
    reporting_options,
)
from tsee.cli.streams import PATH, received, spoken

if TYPE_CHECKING:
    from tsee.serving import Evaluation, ReadOptions

__all__ = ["evaluate"]

# What a measure is called, how its values are written, and what is good. The lines are at most 80 characters long.
BY_NEIGHBORS = {
    "knn_error": ("k-NN error", ".1%", "0% is best: labels agree"),
    "quality_score": ("Quality Score", ".1%", "100% is best: neighbors are kept"),
    "trustworthiness": ("trustworthiness", ".3f", "1 is best: no false neighbors"),
    "continuity": ("continuity", ".3f", "1 is best: no lost neighbors"),
}
OF_THE_SHAPE = {
    "triplet_accuracy": ("triplet accuracy", "1 is best, 0.5 chance: the nearer of two rows"),
    "distance_correlation": ("distance correlation", "1 is best, 0 chance: far rows stay far"),
    "density_correlation": ("density correlation", "1 is best, 0 chance: dense regions stay dense"),
}
OF_CENTROIDS = {
    "neighbors": ("centroid neighbors", "1 is best: the nearest classes are kept"),
    "triplets": ("centroid triplets", "1 is best, 0.5 chance: the nearer of two classes"),
    "correlation": ("centroid correlation", "1 is best, 0 chance: far classes stay far"),
}


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

    Neighbors. The k-NN error is the share of rows whose --label differs from the label of their k nearest rows on the
    map. The Quality Score is the share of a row's k nearest rows in the data that are also nearest on the map.
    Trustworthiness falls if the map brings strangers together, continuity if it tears neighbors apart.

    The large shape. The triplet accuracy is how often the map tells which of two rows is nearer to a third as the data
    do. The distance correlation says whether rows that are far apart in the data are far apart on the map (Spearman's
    correlation of the distances). The density correlation says whether regions that are dense on the map are dense in
    the data (correlation of the logarithmic distance to the 15 nearest rows).

    With three classes or more in --label, the centroid measures say the same of the middles of the classes: how many of
    a class's nearest classes are kept, which of two classes is nearer to a third, and whether far classes are far.

    Rows of DATA are compared by the --metric of MODEL, and positions on the map by their Euclidean distance.

    All except the k-NN error are measured on at most 5,000 rows, drawn at random but always the same, and the distance
    correlation on 2,000 of them.
    """
    from tsee.serving import evaluate_map, load_model, open_matching

    reporter = Reporter(quiet, as_json)
    fitted = load_model(model, placement=placement, device=device)
    with ExitStack() as stack:

        def opened(path: Path, options: ReadOptions) -> Any:
            table = stack.enter_context(open_matching(fitted, received(path), options))
            reporter.note(table.notes, path)
            return table

        table, train_table = opened(data, options), None
        if train is not None:
            label, key = train_label or options.label, train_key or options.key
            train_table = opened(train, dataclasses.replace(options, label=label, key=key))
        found = evaluate_map(fitted, table, train_table, verbose=not quiet)
    if found.n_unlabeled:
        reporter.note(
            [f"{found.n_unlabeled:,} rows without a label are left out of the k-NN error and the centroids."], data
        )
    reporter.say(*_lines(found, train))
    measures = {name: getattr(found, name) for name in (*BY_NEIGHBORS, *OF_THE_SHAPE)}
    if found.centroids is not None:
        measures["centroids"] = found.centroids._asdict()
    reporter.result(
        {
            "rows": found.n_rows,
            "sample": found.n_sample,
            "train_rows": found.n_train_rows,
            "train_sample": found.n_train_sample,
            "unlabeled": found.n_unlabeled,
            **{name: value for name, value in measures.items() if value is not None},
        }
    )


def _lines(found: Evaluation, train: Path | None) -> Iterator[str]:
    """The rows that were judged, a table by numbers of neighbors, and one of the large shape."""
    from tsee.serving.evaluation import NEIGHBORS

    if train is None:
        yield f"{found.n_rows:,} rows, each compared with the others."
    else:
        yield f"{found.n_rows:,} rows, compared with the {found.n_train_rows:,} of {spoken(train)!r}."
    yield ""
    yield f"{'Neighbors':20}" + "".join(f"{f'k = {k}':>8}" for k in NEIGHBORS)
    for measure, (name, form, gloss) in BY_NEIGHBORS.items():
        values = getattr(found, measure)
        if values is not None:
            cells = (format(values[k], form) if k in values else "" for k in NEIGHBORS)
            yield f"{name:20}" + "".join(f"{cell:>8}" for cell in cells) + f"   {gloss}"
    shape = [(getattr(found, measure), *texts) for measure, texts in OF_THE_SHAPE.items()]
    if found.centroids is not None:
        shape += [(getattr(found.centroids, measure), *texts) for measure, texts in OF_CENTROIDS.items()]
    lines = [f"{name:20}{value:8.3f}   {gloss}" for value, name, gloss in shape if value is not None]
    if lines:
        yield from ("", "The large shape", *lines)
    if found.n_sample < found.n_rows or (found.n_train_sample or 0) < (found.n_train_rows or 0):
        compared = "" if train is None else f", compared with {found.n_train_sample:,}"
        yield ""
        yield f"All except the k-NN error are measured on a sample of {found.n_sample:,} rows{compared}."
