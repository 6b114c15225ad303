"""What the exemplar methods choose where the user leaves it to them."""

from __future__ import annotations

import math

import torch

from tsee.distributed import all_max
from tsee.exemplars import Exemplars
from tsee.memory import free_memory
from tsee.preprocessing import Preprocessing
from tsee.progress import say

__all__ = [
    "AUTO_POINTS",
    "LAYOUT_EXAGGERATION",
    "MAX_SEEN",
    "PERPLEXITY",
    "falling_perplexity",
    "layout_neighbors",
    "more_places",
    "n_places",
    "n_points",
    "projection_of",
]

# The default; fewer exemplars take a third of their number without a warning. Where more than MANY are laid out, it
# falls with the cube root of their number, and with it the pairs that carry probability: 200,000 rows keep as many of
# their neighbors so, in two thirds of the time.
PERPLEXITY, MANY = 36.0, 2**16
# Neighbors of a row in a layout, per unit of perplexity, up to MANY exemplars and of very many. Three would change
# little and take half as long again.
LAYOUT_NEIGHBORS, FEWEST_NEIGHBORS = 2.0, 4 / 3
# The factor on the attraction at the end of a layout: a little less keeps more of the nearest neighbors.
LAYOUT_EXAGGERATION = 0.9
# If there are more rows than this, this many are the exemplars: their layout takes a quarter of an hour or so on 2
# cores. Memory may allow fewer: an exemplar takes so many bytes for each of its neighbors and each of its inputs.
AUTO_POINTS = 2**21
BYTES_PER_NEIGHBOR, BYTES_PER_INPUT = 36, 16
# The share of the free memory that exemplars may take, if the user sets no limit.
MEMORY_SHARE = 0.5
# Never fewer than this, whatever the memory: they take some 100 MB.
FEWEST_POINTS = 2**15
# Where the features themselves are compared, the network is trained on this many principal components of them, from
# about this many exemplars, and these are then multiplied into its first layer: with 2,048 features, a fit takes half
# the time.
MAX_SEEN, PROJECTED_SAMPLE = 256, 1024
# Places of the layout for a network that places rows alone: one for so many exemplars, within bounds. They make an
# epoch four times as long, so a network that only comes second does without.
EXEMPLARS_PER_PLACE, LEAST_PLACES, MOST_PLACES = 8, 64, 1024


def n_points(
    n_rows: int,
    n_inputs: int,
    *,
    perplexity: float,
    n_neighbors: int | None,
    max_memory: float | None,
    verbose: bool,
) -> int:
    """How many rows become exemplars: as many as time and memory allow. A collective: the least memory decides.

    Parameters
    ----------
    n_rows, n_inputs : int
        The rows of all processes, and the numbers that each is compared by.
    perplexity : float
    n_neighbors : int or None
    max_memory : float or None
        In GiB; None takes half of what is free.
    verbose : bool
        Whether to say so if memory decides.
    """
    wanted = min(AUTO_POINTS, n_rows)
    neighbors = n_neighbors or layout_neighbors(falling_perplexity(perplexity, wanted), wanted)
    each = BYTES_PER_NEIGHBOR * neighbors + BYTES_PER_INPUT * n_inputs
    limit = MEMORY_SHARE * free_memory() if max_memory is None else max_memory * 2**30
    affordable = -int(all_max(-int(limit / each)))
    chosen = min(wanted, max(affordable, FEWEST_POINTS))
    if chosen < wanted:
        gib = f"{limit / 2**30:.1f} GiB"
        say(f"{chosen:,} of {n_rows:,} rows are exemplars: more would take over {gib} of memory.", verbose=verbose)
    return chosen


def falling_perplexity(perplexity: float, n_exemplars: int) -> float:
    """The default perplexity falls if very many exemplars are laid out; any other stays.

    Examples
    --------
    >>> [round(falling_perplexity(36.0, n), 1) for n in (60_000, 131_072, 336_000, 1_000_000)]
    [36.0, 28.6, 20.9, 14.5]
    """
    return perplexity * min(1.0, MANY / n_exemplars) ** (1 / 3) if perplexity == PERPLEXITY else perplexity


def layout_neighbors(perplexity: float, n_exemplars: int) -> int:
    """How many neighbors the probabilities of a row are spread over, where so many exemplars are laid out.

    Examples
    --------
    >>> [layout_neighbors(p, n) for p, n in ((36, 60_000), (20.9, 336_000), (14.5, 1_000_000))]
    [72, 31, 20]
    """
    share = min(1.0, MANY / n_exemplars)
    return math.ceil((FEWEST_NEIGHBORS + (LAYOUT_NEIGHBORS - FEWEST_NEIGHBORS) * share) * perplexity)


def n_places(n_exemplars: int) -> int:
    """How many places a network chooses among that learns so many exemplars."""
    return min(n_exemplars, max(LEAST_PLACES, n_exemplars // EXEMPLARS_PER_PLACE), MOST_PLACES)


def more_places(n_exemplars: int) -> int:
    """How many places are added for so many new exemplars of a new kind."""
    return min(MOST_PLACES, -(-n_exemplars // EXEMPLARS_PER_PLACE))


def n_seen(n_inputs: int) -> int:
    """How many numbers the network is trained on, where so many are compared."""
    return min(n_inputs, MAX_SEEN)


def projection_of(exemplars: Exemplars) -> Preprocessing:
    """Principal components that the network is trained on, where more numbers are compared than it needs."""
    n_inputs = exemplars.inputs.shape[1]
    sample = exemplars.inputs[:: -(-len(exemplars) // PROJECTED_SAMPLE)]
    mean = sample.mean(0)
    centered = sample - mean
    # Of rows fewer than features, the products with each other have the same variances, and are fewer.
    squares, weights = torch.linalg.eigh((centered @ centered.T).double())  # ascending
    squares, weights = squares[-MAX_SEEN:].clamp_min(0), weights[:, -MAX_SEEN:]
    axes = centered.T.double() @ weights / squares.sqrt().clamp_min(1e-6 * float(squares[-1]) ** 0.5 + 1e-30)
    basis = torch.zeros(n_inputs, MAX_SEEN)
    basis[:, : axes.shape[1]] = axes.flip(1)
    scale = float(squares.sum() / len(sample) / MAX_SEEN) ** 0.5
    return Preprocessing(mean.double().numpy(), scale or 1.0, basis.numpy())
