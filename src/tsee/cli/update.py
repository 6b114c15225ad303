"""``tsee update``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tsee.cli.fit import check_resume, share_of_rows
from tsee.cli.group import INTERRUPTED, noticing_interrupts
from tsee.cli.options import (
    Reporter,
    data_argument,
    model_argument,
    output_option,
    read_options,
    reporting_options,
)
from tsee.cli.streams import PATH, MapTarget, check_not_dash, received

if TYPE_CHECKING:
    from tsee.serving import ReadOptions

__all__ = ["update"]


@click.command()
@model_argument
@data_argument
@output_option("MODEL2", "Folder for the new model; it may be MODEL itself.")
@click.option(
    "--hold",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="How much old exemplars are held where they are: 1 does not move them, 0 leaves them free.",
)
@click.option(
    "--forget",
    type=click.IntRange(1),
    metavar="AGE",
    help="Rows of this age and older leave: 1 is the last update (or fit), 2 the one before, and so on.",
)
@click.option("--map", "map_", type=PATH, metavar="OUT", help="Also write the map of DATA, as transform does.")
@click.option("--checkpoint", type=PATH, metavar="FOLDER", help="Folder in which the state of training is kept.")
@click.option("--resume", is_flag=True, help="Continue a stopped update from the state that it left in --checkpoint.")
@read_options
@reporting_options
def update(
    model: Path,
    data: Path,
    output: Path,
    hold: float,
    forget: int | None,
    map_: Path | None,
    checkpoint: Path | None,
    resume: bool,
    options: ReadOptions,
    quiet: bool,
    as_json: bool,
) -> None:
    """Take the rows of DATA into the map of MODEL, and save it as the folder MODEL2.

    What is on the map stays where it is. Rows of a kind that the map has go among their neighbors; rows of a new kind
    find free room. The old data are not needed. MODEL stays as it was, unless MODEL2 is the same folder, which then is
    replaced at the very end. Columns are matched by name with the features of the model.

    torchrun --nproc-per-node=N -m tsee update ... spreads the rows over N processes.
    """
    import tsee
    from tsee.distributed import all_max, joined_peers, rank
    from tsee.fitted import fitted_map
    from tsee.persistence import check_target
    from tsee.serving import open_matching, place_table
    from tsee.serving.placing import check_map_path

    check_resume(None if checkpoint is None else str(checkpoint), resume)
    check_not_dash(output, "a model, which is a folder")
    check_target(output)
    target = None if map_ is None else MapTarget(map_)
    with joined_peers():
        estimator = tsee.load(model)
        estimator.set_params(verbose=not quiet, checkpoint=checkpoint)
        with open_matching(estimator.map_, received(data), options) as table:
            reporter = Reporter(quiet or rank() > 0, as_json and rank() == 0, map_to=map_)
            reporter.note(table.notes, data)
            if target is not None:
                check_map_path(target.path, table)
            if not hasattr(estimator, "update"):
                raise tsee.ModelError(f"{estimator.map_.method} cannot be updated: only dt-see and hot-see can.")
            start = time.perf_counter()
            with noticing_interrupts() as interrupts:
                grown = estimator.update(share_of_rows(table.rows), hold=hold, forget=forget)
            interrupted = bool(all_max(len(interrupts)))
            seconds = time.perf_counter() - start
            grown.set_params(verbose=False, checkpoint=None)
            done, n_rows = grown.update_, sum(grown.map_.row_counts)
            if rank() == 0:
                grown.save(output)
                reporter.say(
                    f"Took in {done.n_rows:,} rows, now {n_rows:,}, in {seconds:.1f} s: {output}",
                    f"New exemplars: {done.n_exemplars:,}, of a new kind: {done.n_new_kind:,}. "
                    f"Only placed: {done.n_placed:,}. Forgotten exemplars: {done.n_forgotten:,}.",
                    f"Old exemplars moved by {done.moved_median:.2%} of the map's extent in the median, and "
                    f"95 % of them by at most {done.moved_95:.2%}.",
                )
                if target is not None:
                    place_table(fitted_map(grown), table, target.path, verbose=not quiet)
                    target.deliver()
                    reporter.say(f"The map: {map_}")
    reporter.result(
        {
            "model": output,
            "map": map_,
            **done.described(),
            "rows": n_rows,
            "seconds": round(seconds, 3),
            "interrupted": interrupted,
        }
    )
    if interrupted:
        click.get_current_context().exit(INTERRUPTED)
