"""The rows of a fit, read once: what training keeps for each."""

from __future__ import annotations

from torch import Tensor

from tsee.batches import MemoryStore, Store, new_store, seed_of
from tsee.data import blocks
from tsee.distributed import all_max, broadcast, rank
from tsee.exceptions import DataWarning, warn
from tsee.growing.lesson import GrownRows
from tsee.objectives import Objective
from tsee.preprocessing import Inputs
from tsee.progress import progress_bar
from tsee.training.plan import Plan

__all__ = ["TakenRows", "read_batches"]

# Numbers that are read at a time, and the bounds on the rows that hold them.
READ_ENTRIES, MIN_READ_ROWS, MAX_READ_ROWS = 2**22, 2**10, 2**14


class TakenRows:
    """Inputs that are in memory anyway: ``rows[a:b]``.

    Parameters
    ----------
    inputs : Tensor of shape (n, d)
    """

    cheap_to_recompute = True

    def __init__(self, inputs: Tensor) -> None:
        self._inputs, self.shape = inputs, (len(inputs), inputs.shape[1])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> Tensor:
        return self._inputs[rows]

    def take(self, rows: Tensor) -> Tensor:
        """The inputs of the rows of these numbers."""
        return self._inputs[rows]


def read_batches(inputs: Inputs | GrownRows | TakenRows, objective: Objective, plan: Plan, *, on_disk: bool) -> Store:
    """What training needs for each row, ready to be read in random batches.

    Parameters
    ----------
    inputs : Inputs, GrownRows or TakenRows
        The rows of this process.
    objective : Objective
        Its columns are kept with the inputs.
    plan : Plan
    on_disk : bool
        Whether the rows come from disk, and may be kept there.
    """
    store: Store | None = None
    varies = False
    first = broadcast(inputs[0:1])
    size = max(MIN_READ_ROWS, min(MAX_READ_ROWS, READ_ENTRIES // inputs.shape[1]))
    with progress_bar(len(inputs), "reading", "row", verbose=plan.verbose) as bar:
        for rows in blocks(len(inputs), size):
            block = inputs[rows]
            varies = varies or bool((block != first).any())
            columns = {"inputs": block, **objective.columns(block, rows)}
            if store is None:
                store = new_store(len(inputs), columns, seed_of(plan.seed, rank()), on_disk=on_disk)
                if isinstance(store, MemoryStore) and columns["inputs"] is block and inputs.cheap_to_recompute:
                    store.computed["inputs"] = inputs.take
            store.append(columns)
            bar.update(len(block))
    assert store is not None
    if not all_max(varies):
        warn("All rows of X are equal: the map is a single point.", DataWarning)
    return store
