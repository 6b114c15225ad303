"""Every parameter of the estimators: its type, what values it takes, and what it is for.

The table is the source of checks, error messages and the command's options. The docstrings of the estimators are
written out, and a test holds them to this table.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from operator import attrgetter
from os import PathLike
from typing import Any

import numpy as np

from tsee.words import ACTIVATIONS, METRICS, NORMALIZATIONS, PRECOMPUTED

__all__ = ["NOT_LEARNED", "NOT_SAVED", "PAIRWISE_PARAMETERS", "PARAMETERS", "Parameter"]

# Parameters that do not change what is learned.
NOT_LEARNED = ("device", "verbose", "checkpoint", "random_state", "network", "start")
# Parameters that a saved model does not need.
NOT_SAVED = ("checkpoint", "start")


@dataclass(frozen=True)
class Parameter:
    """A parameter: its type in a docstring, its values in an error ("must be ..."), a check, and its documentation."""

    kind: str
    must_be: str
    accepts: Callable[[Any], bool]
    text: str


def _integer(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _real(least: float, *, above: bool = False) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool):
            return False
        if (isinstance(value, Integral) and abs(int(value)) > sys.float_info.max) or not np.isfinite(float(value)):
            return False
        return float(value) > least if above else float(value) >= least

    return accepts


def _one_of(*options: Any) -> Callable[[Any], bool]:
    return lambda value: (value is None or isinstance(value, str)) and value in options


def _or_none(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or accepts(value)


def _of_torch(value: Any, kind: str) -> bool:
    """Whether a value is of a class of torch; if nobody has imported torch, it is not."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, attrgetter(kind)(torch))


def _layers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_integer(1)(size) for size in value)


def _seed(value: Any) -> bool:
    return value is None or _integer(0)(value) or isinstance(value, np.random.RandomState)


_COMPARED = (
    'How rows are compared: "euclidean"; "cosine" or "correlation", by their direction, without their length or '
    'also without their mean (a row of zeros, or a constant one, is refused); "manhattan", the sum of absolute '
    'differences; "hamming", the share of features that differ; or "jaccard", by the features that both have among '
    "those that either has (booleans, or 0 and 1). The last three compare the features themselves: they go without "
    "principal"
)

PARAMETERS: dict[str, Parameter] = {
    "n_components": Parameter("int", "an integer of at least 1", _integer(1), "Dimensions of the map."),
    "perplexity": Parameter(
        "float",
        "a number of at least 1",
        _real(1),
        "How many neighbors a row is expected to have: among the exemplars, at most a third of their number, or of "
        "``n_neighbors``, or two thirds of the usual number of neighbors given to ``fit``. More is lowered to that, "
        "with a warning unless it is the default. Where more than 65,536 exemplars are laid out, the default falls "
        "with the cube root of their number. ``perplexity_`` is the value that took effect.",
    ),
    "metric": Parameter(
        "{" + ", ".join(f'"{name}"' for name in (*METRICS, PRECOMPUTED)) + "}",
        ", ".join(f'"{name}"' for name in METRICS) + f' or "{PRECOMPUTED}"',
        _one_of(*METRICS, PRECOMPUTED),
        f'{_COMPARED} components and k-means centers. "precomputed" takes a square matrix of distances as X, and '
        "makes a map without a network.",
    ),
    "exemplars": Parameter(
        '{"points", "centers"}',
        '"points" or "centers"',
        _one_of("points", "centers"),
        'What a row is compared with: "points", rows of the data themselves (a row is never its own exemplar), or '
        '"centers", k-means centers of the data as in the paper.',
    ),
    "n_exemplars": Parameter(
        "int or None",
        "an integer of at least 2 or None",
        _or_none(_integer(2)),
        "How many exemplars. None takes every row as a point, up to 2,097,152 of them, or fewer if memory is short "
        '(see ``max_memory``). It takes 8,192 centers, but 2,000 if the contrast is not "sampled", since more take '
        "longer (and at most half the rows). If the data hold fewer, those are used, with a warning; "
        "``n_exemplars_`` is the number that took effect. Centers are computed from at most 524,288 rows, or 64 per "
        "center, drawn at random.",
    ),
    "max_memory": Parameter(
        "float or None",
        "a number above 0 or None",
        _or_none(_real(0, above=True)),
        "How much memory exemplars may take, in GiB beyond the data. It decides how many rows become exemplars if "
        "``n_exemplars`` is None, but never fewer than 32,768. None takes half of the memory that is free, within the "
        "limits of a container.",
    ),
    "seeding": Parameter(
        '{"k-means||", "random"}',
        '"k-means||" or "random"',
        _one_of("k-means||", "random"),
        "Where k-means starts: scalable k-means++, or random rows. Only for centers.",
    ),
    "kmeans_iterations": Parameter(
        "int", "an integer of at least 0", _integer(0), "k-means updates. Only for centers."
    ),
    "contrast": Parameter(
        '{"sampled", "full", "noise"}',
        '"sampled", "full" or "noise"',
        _one_of("sampled", "full", "noise"),
        'What the map is normalized over: "full", all exemplars in each batch (equation 12); "noise", the nearest '
        'exemplars of each row and a sample of the others (the paper\'s noise-contrastive form); "sampled", the '
        "exemplars drawn for the rows of the batch, one for each row, at a cost that does not grow with the number of "
        "exemplars (each exemplar then counts as often as rows choose it).",
    ),
    "exaggeration": Parameter(
        "float or None",
        "a number above 0 or None",
        _or_none(_real(0, above=True)),
        "A factor on the attraction: above 1 it draws clusters together. None takes 0.9 for points that are laid "
        "out, 2 for points that are not, and 1 for centers, which stand for rows of more than one kind and would "
        'draw these together. Only for the "sampled" contrast.',
    ),
    "jitter": Parameter(
        "float or None",
        "a number of at least 0 or None",
        _or_none(_real(0)),
        "Noise added to rows and exemplars while training, as a share of the distance between the two: it keeps "
        "the map smooth between the data, so that new rows find their position. None takes 0.5 for up to 1,000 "
        "rows and less for more rows, by the square root of their number. Where the network learns a layout, None "
        "takes 0.5; if it also chooses among places, the noise is a share of the difference of two neighbors. Only "
        'for the "sampled" contrast.',
    ),
    "refinement": Parameter(
        "int",
        "an integer of at least 0",
        _integer(0),
        "Steps in which the forces of the loss lay the exemplars out, from the large shape of the data to where the "
        "loss wants each of them; the network then learns these positions. 0 trains the network alone, from random "
        'weights, and leaves the exemplars at its positions. Only for points and the "sampled" contrast.',
    ),
    "global_weight": Parameter(
        "float",
        "a number from 0 to 1",
        lambda value: _real(0)(value) and value <= 1,
        "How much the layout is held to the large shape of the data, on a dial from 0, only neighbors count, to 1, the "
        "map is the large shape: its principal plane, or a scaling of its distances. More of it keeps distances "
        "between far groups truer and loses some near neighbors. It weighs the two as global_weight to 1 - "
        "global_weight.",
    ),
    "supervised": Parameter(
        "float",
        "a number from 0 to 1",
        lambda value: _real(0)(value) and value <= 1,
        "How much the labels given to ``fit(X, y)`` count, from 0, not at all, to 1: a row is then no neighbor of a "
        "row whose label is known to differ. Labels change which rows are neighbors, never what rows are compared by, "
        "so new rows need none. Where some are unknown, they are estimated from those that are known. Judge such a map "
        "by rows that were held out: labels of ``fit`` part its own rows even if they mean nothing. Only for points, "
        'and not for the "full" contrast.',
    ),
    "start": Parameter(
        "path, fitted estimator, FittedMap or None",
        "a path of a model, a fitted DtSEE or HotSEE, its map_, or None",
        # A fitted map has `place`; it is not imported, since help and completion need no torch.
        _or_none(
            lambda value: isinstance(value, str | PathLike) or hasattr(value, "transform") or hasattr(value, "place")
        ),
        "Another map, of last month or of another donor, used instead of the large shape: rows start where "
        "they would be placed on it and are drawn there, with a ``global_weight`` of at least 0.75, except for rows "
        "that are new to it. Both maps then lie alike. Features are matched by name; what is missing is said. The "
        "fitted model does not need it.",
    ),
    "placement": Parameter(
        '{"refined", "forward"} or None',
        '"refined", "forward" or None',
        _one_of("refined", "forward", None),
        'How ``transform`` places a row: "forward", by one pass through the network; "refined", among its nearest '
        "exemplars, which keeps more of its neighbors but needs a search for them. None means refined if exemplars "
        "were laid out and at least one row of ``fit`` in four is an exemplar, or there are at least 65,536 "
        "exemplars. If rows are placed forward at ``fit``, the last hidden layer of the network is one of places of "
        "the layout, up to 1,024, among which it chooses by a softmax (in HotSEE, instead of its sigmoids): it then "
        "follows the layout far better, and takes longer. The placement can be changed on a fitted estimator: "
        "``embedding_`` stays as it was fitted, and ``transform`` gives the other positions.",
    ),
    "n_neighbors": Parameter(
        "int or None",
        "an integer of at least 1 or None",
        _or_none(_integer(1)),
        "The number of nearest exemplars over which a row's probabilities are spread (z_e in the paper); all others "
        "have probability 0. None takes twice the perplexity if exemplars are laid out (above 65,536 of them fewer, "
        'down to 4/3 of it), else three times, and at least 100 for "noise"; "full" always spreads them over all '
        "exemplars.",
    ),
    "n_noise": Parameter(
        "int",
        "an integer of at least 1",
        _integer(1),
        'Exemplars drawn for each row besides its nearest (z_n). Only for "noise".',
    ),
    "noise_weight": Parameter(
        'float or "auto"',
        'a number above 0 or "auto"',
        lambda value: value == "auto" if isinstance(value, str) else _real(0, above=True)(value),
        'The weight of the drawn exemplars in the normalizer (K_e). "auto" is (z - z_e) / z_n, which makes it '
        'unbiased. Only for "noise".',
    ),
    "hidden_layers": Parameter(
        "sequence of int",
        "a list or tuple of integers of at least 1",
        _layers,
        "Sizes of the hidden layers. The paper has 500, 500, 2000.",
    ),
    "normalization": Parameter(
        '{"layer", "batch"} or None',
        '"layer", "batch" or None',
        _one_of(*NORMALIZATIONS),
        "What normalizes the values before each activation. None is the paper's network. Batch normalization is "
        "folded into the weights after training.",
    ),
    "activation": Parameter(
        "{" + ", ".join(f'"{name}"' for name in ACTIVATIONS) + "}",
        ", ".join(f'"{name}"' for name in list(ACTIVATIONS)[:-1]) + f' or "{list(ACTIVATIONS)[-1]}"',
        _one_of(*ACTIVATIONS),
        "The nonlinearity of the hidden layers.",
    ),
    "network": Parameter(
        "torch.nn.Module or None",
        "a torch.nn.Module or None",
        _or_none(lambda value: _of_torch(value, "nn.Module")),
        "A network of your own from (rows, inputs) to (rows, n_components), instead of the one that the other "
        "parameters describe. It is copied, and trained from the weights it has.",
    ),
    "n_inputs": Parameter(
        'int, "auto" or None',
        'an integer of at least 1, "auto" or None',
        lambda value: value == "auto" if isinstance(value, str) else _or_none(_integer(1))(value),
        "Principal components that replace the features, as inputs of the network and in all distances. None, or the "
        'number of features, uses the features themselves. "auto" uses up to 128 features themselves; of more, it '
        "takes 50 components or, if these lose too many of the nearest neighbors of a sample of the rows, 150 or 300, "
        "which count less the less they vary. ``n_inputs_`` is the number that took effect.",
    ),
    "standardize": Parameter(
        "bool",
        "True or False",
        lambda value: isinstance(value, bool | np.bool_),
        "Whether to divide each feature by its standard deviation first. Set it to True if features have different "
        "units: otherwise each counts by its variance, and the one with the largest numbers decides the map.",
    ),
    "columns": Parameter(
        "dict or None",
        "a dict from names to kinds and weights, or None",
        _or_none(lambda value: isinstance(value, Mapping)),
        'What columns of a table hold: "number", "boolean", "category", "date", "tags", "text", or "drop" to leave it '
        "out; or a weight, a factor on its squared differences; or both in a tuple. Other columns are recognized by "
        'type and content. Columns of an array are called "0", "1" and so on. See docs/tables.md.',
    ),
    "missing": Parameter(
        '{"allow", "error"}',
        '"allow" or "error"',
        _one_of("allow", "error"),
        'What becomes of gaps (NaN, None, NA): "allow": each is filled with the value predicted from the rest of the '
        'row, and marked; "error" refuses them.',
    ),
    "spare_dimensions": Parameter(
        "int",
        "an integer of at least 0",
        _integer(0),
        "Extra dimensions that the network has for the first half of training (but not if it learns a layout), "
        "in which they are pressed flat: clusters that start on the wrong side of one another pass instead of blocking "
        "each other, and maps of different seeds agree more. 0 is the paper's training. Not for a network of your own.",
    ),
    "n_factors": Parameter(
        "int", "an integer of at least 1", _integer(1), "Factors of the high-order interactions (F)."
    ),
    "n_hidden": Parameter("int", "an integer of at least 1", _integer(1), "High-order hidden units (m)."),
    "order": Parameter("int", "an integer of at least 1", _integer(1), "The order of the feature interactions (O)."),
    "batch_size": Parameter(
        "int or None",
        "an integer of at least 2 or None",
        _or_none(_integer(2)),
        "The largest number of rows in a mini-batch; the batches of an epoch have even sizes. None takes the power of "
        "two below a 32nd of the rows (PtSNE and HotSNE: an eighth), at least 128 and at most 1,024.",
    ),
    "max_epochs": Parameter(
        "int or None",
        "an integer of at least 1 or None",
        _or_none(_integer(1)),
        "Passes over the data. None takes enough for about 1,800 steps, at least 10 (4 where the network learns a "
        "layout) and at most 100; fewer for more than two million rows, down to 2. Where a network that places rows "
        "forward learns a layout, it takes enough for 2,700 steps, at least 2 and at most 100. Smaller batches than "
        "the automatic ones get the same number of epochs.",
    ),
    "learning_rate": Parameter(
        "float",
        "a number above 0",
        _real(0, above=True),
        'The highest rate of "adam". It is reached after a tenth of the steps and lowered to zero along a cosine, in '
        "each stage of training.",
    ),
    "optimizer": Parameter(
        '{"adam", "cg"}',
        '"adam" or "cg"',
        _one_of("adam", "cg"),
        '"adam", or "cg", the conjugate gradient of the paper with three line searches per batch.',
    ),
    "device": Parameter(
        'str, torch.device or "auto"',
        'a torch device or "auto"',
        lambda value: isinstance(value, str) or _of_torch(value, "device"),
        "Where the network is trained and run, and k-means centers are found; all else is done on the CPU. "
        "\"auto\" takes CUDA, then Apple's MPS, then the CPU. Adam trains the hidden layers of tsee's networks in "
        "bfloat16 if the processor has fast products for it; a trained network places rows in float32.",
    ),
    "random_state": Parameter(
        "int, RandomState or None",
        "an integer of at least 0, a numpy RandomState or None",
        _seed,
        "The seed of everything that is drawn. The same integer gives the same map, to the bit, on the same kind of "
        "processor with the same version of torch and the same number of threads; otherwise sums are rounded in "
        "another order, and training amplifies the difference. The global generators are never touched.",
    ),
    "checkpoint": Parameter(
        "path or None",
        "a path or None",
        _or_none(lambda value: isinstance(value, str | PathLike)),
        "A folder in which the state of training is kept, every 20 seconds and when the process is told to end. A fit "
        "of the same data with the same parameters that finds such a state there resumes it, and ends as it would have "
        "ended without the interruption. The state of a fit that has ended stays until its model is "
        "saved, or until another fit uses the folder. Several processes must all see the folder.",
    ),
    "verbose": Parameter(
        "bool",
        "True or False",
        lambda value: isinstance(value, bool | np.bool_ | Integral),
        "Whether to show progress, on a terminal or in a notebook.",
    ),
}

# Those that the pairwise methods describe otherwise. Where "precomputed" is refused, the error names what takes it.
PAIRWISE_PARAMETERS = PARAMETERS | {
    "perplexity": replace(
        PARAMETERS["perplexity"],
        text="How many neighbors a row is expected to have: among the other rows of its mini-batch, at most a third of "
        "their number. More is lowered to that, with a warning. ``perplexity_`` is the value that took effect.",
    ),
    "metric": replace(
        PARAMETERS["metric"],
        kind="{" + ", ".join(f'"{name}"' for name in METRICS) + "}",
        must_be=", ".join(f'"{name}"' for name in METRICS[:-1]) + f' or "{METRICS[-1]}"',
        text=f"{_COMPARED} components.",
    ),
    "max_epochs": replace(
        PARAMETERS["max_epochs"],
        text="Passes over the data. None takes enough for about 1,800 steps, at least 10 and at most 100; fewer for "
        "more than two million rows, down to 2. Smaller batches than the automatic ones get the same number of epochs.",
    ),
}
