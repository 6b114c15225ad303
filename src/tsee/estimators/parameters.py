"""Every parameter of the estimators, once: what it may be, and what it is for."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from os import PathLike
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.base import BaseEstimator

from tsee.networks import ACTIVATIONS, NORMALIZATIONS

__all__ = ["PARAMETERS", "Parameter", "check_parameters", "documented"]

Class = TypeVar("Class", bound=type)


@dataclass(frozen=True)
class Parameter:
    """What a parameter may be (in the words of an error, "must be ..."), and the text of its documentation."""

    must_be: str
    accepts: Callable[[Any], bool]
    text: str


def check_parameters(estimator: BaseEstimator, *only: str) -> None:
    """Raise ValueError for the first parameter, of all or of those named, whose value is not one it may have."""
    for name in only or estimator.get_params(deep=False):
        value = getattr(estimator, name)
        parameter = PARAMETERS.get(name)  # a subclass may have parameters of its own
        if parameter is not None and not parameter.accepts(value):
            raise ValueError(
                f"The {name!r} parameter of {type(estimator).__name__} must be {parameter.must_be}. "
                f"Got {value!r} instead."
            )


def documented(cls: Class) -> Class:
    """Fill the places ``{parameters}`` and ``{attributes}`` in a class's docstring from the tables here."""
    if cls.__doc__ is None:  # python -OO strips docstrings
        return cls
    arguments = inspect.signature(cls).parameters
    parameters = {
        f"{name} : {PARAMETERS[name].must_be}, default={argument.default!r}": PARAMETERS[name].text
        for name, argument in arguments.items()
    }
    attributes = {**ATTRIBUTES, **(EXEMPLAR_ATTRIBUTES if "exemplars" in arguments else {})}
    cls.__doc__ = cls.__doc__.replace("{parameters}", _section(parameters)).replace(
        "{attributes}", _section(attributes)
    )
    return cls


def _section(entries: dict[str, str]) -> str:
    """Headings with their texts, as numpydoc wants them inside a class's docstring."""
    lines = [f"{heading}\n{textwrap.indent(textwrap.fill(text, 100), '    ')}" for heading, text in entries.items()]
    return textwrap.indent("\n".join(lines), "    ").lstrip()


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def _real(least: float, *, open_end: bool = False) -> Callable[[Any], bool]:
    def accepts(value: Any) -> bool:
        if not isinstance(value, Real) or isinstance(value, bool) or not np.isfinite(float(value)):
            return False
        return float(value) > least if open_end else float(value) >= least

    return accepts


def _one_of(*options: Any) -> Callable[[Any], bool]:
    return lambda value: (value is None or isinstance(value, str)) and value in options


def _or_none(accepts: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or accepts(value)


def _layers(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(_whole(1)(size) for size in value)


def _seed(value: Any) -> bool:
    return value is None or _whole(0)(value) or isinstance(value, np.random.RandomState)


PARAMETERS: dict[str, Parameter] = {
    "n_components": Parameter("an integer of at least 1", _whole(1), "Dimensions of the map."),
    "perplexity": Parameter(
        "a number of at least 1",
        _real(1),
        "How many neighbors a row is expected to have: among the exemplars in the exemplar methods, among "
        "the rows of its mini-batch in the pairwise ones. Where there are too few of them, a third of their "
        "number is used, with a warning; ``perplexity_`` is what took effect.",
    ),
    "exemplars": Parameter(
        '"points" or "centers"',
        _one_of("points", "centers"),
        'What a row is compared with: "points", rows of the data themselves (a row is never its own '
        'exemplar), or "centers", k-means centers of the data as in the paper.',
    ),
    "n_exemplars": Parameter(
        "an integer of at least 2 or None",
        _or_none(_whole(2)),
        "How many exemplars. None takes every row as a point, 65,536 of them if there are more; or 8,192 centers, "
        'and 2,000 where the contrast is not "sampled" and more take longer (half the rows, if that is less). '
        "Where the data hold fewer, those are used, with a warning; ``n_exemplars_`` is what took effect. Centers are "
        "those of 524,288 rows, or 64 for each center, drawn at random, where there are more.",
    ),
    "seeding": Parameter(
        '"k-means||" or "random"',
        _one_of("k-means||", "random"),
        "Where k-means starts: scalable k-means++, or random rows. Only for centers.",
    ),
    "kmeans_iterations": Parameter("an integer of at least 0", _whole(0), "k-means updates. Only for centers."),
    "contrast": Parameter(
        '"sampled", "full" or "noise"',
        _one_of("sampled", "full", "noise"),
        'What the map is normalized over: "full", all exemplars in each batch (equation 12); "noise", the '
        "nearest exemplars of each row and a sample of the others (the paper's noise-contrastive form); "
        '"sampled", the exemplars drawn for the rows of the batch, one each, at a cost that does not grow '
        "with the number of exemplars (each exemplar then counts as often as rows choose it).",
    ),
    "exaggeration": Parameter(
        "a number above 0 or None",
        _or_none(_real(0, open_end=True)),
        "A factor on the attraction: above 1 it draws clusters together. The refinement takes its square root. None "
        "takes 2 with points as exemplars; and 1 with centers, which stand for rows of more than one kind, and would "
        'draw these together. Only for the "sampled" contrast.',
    ),
    "jitter": Parameter(
        "a number of at least 0 or None",
        _or_none(_real(0)),
        "Noise added to rows and exemplars while training, as a share of the distance between the two: it "
        "keeps the map smooth between the data, so that new rows find their place. None takes 0.5 up to 1,000 "
        "rows and less for more of them, by their square root, and 0.5 after the refinement. Only for the "
        '"sampled" contrast.',
    ),
    "refinement": Parameter(
        "an integer of at least 0",
        _whole(0),
        "Steps by which the exemplars, once the network is half trained, go from its places to where the loss wants "
        "each of them; the network then learns these. 0 leaves it at the network. Only for points, the "
        '"sampled" contrast and two dimensions.',
    ),
    "placement": Parameter(
        '"refined", "forward" or None',
        _one_of("refined", "forward", None),
        'How ``transform`` places a row: "forward", by one pass through the network; "refined", among its nearest '
        "exemplars, which keeps more of its neighbors and takes a search for them. None is refined where "
        "exemplars were refined and one row of ``fit`` in four, or more, is an exemplar. It may be changed on a fitted "
        "estimator; ``embedding_`` stays "
        "as it was fitted, and ``transform`` gives the rows their other places.",
    ),
    "n_neighbors": Parameter(
        "an integer of at least 1 or None",
        _or_none(_whole(1)),
        "The nearest exemplars over which a row's probabilities are spread (z_e in the paper); all others "
        'have probability 0. None takes three times the perplexity, at least 100 for "noise"; "full" '
        "always spreads them over all exemplars.",
    ),
    "n_noise": Parameter(
        "an integer of at least 1",
        _whole(1),
        'Exemplars drawn for each row besides its nearest (z_n). Only for "noise".',
    ),
    "noise_weight": Parameter(
        'a number above 0 or "auto"',
        lambda value: value == "auto" if isinstance(value, str) else _real(0, open_end=True)(value),
        'The weight of the drawn exemplars in the normalizer (K_e). "auto" is (z - z_e) / z_n, which makes '
        'it unbiased. Only for "noise".',
    ),
    "hidden_layers": Parameter(
        "a list or tuple of integers of at least 1",
        _layers,
        "Sizes of the hidden layers. The paper has 500, 500, 2000.",
    ),
    "normalization": Parameter(
        '"layer", "batch" or None',
        _one_of(*NORMALIZATIONS),
        "What normalizes the values before each activation. None is the paper's network; batch "
        "normalization is folded into the weights after training.",
    ),
    "activation": Parameter(
        ", ".join(f'"{name}"' for name in list(ACTIVATIONS)[:-1]) + f' or "{list(ACTIVATIONS)[-1]}"',
        _one_of(*ACTIVATIONS),
        "The non-linearity of the hidden layers.",
    ),
    "network": Parameter(
        "a torch.nn.Module or None",
        _or_none(lambda value: isinstance(value, torch.nn.Module)),
        "A network of your own from (rows, inputs) to (rows, n_components), in place of the one that the "
        "other parameters describe. It is copied, and trained from the weights it has.",
    ),
    "n_inputs": Parameter(
        "an integer of at least 1 or None",
        _or_none(_whole(1)),
        "Principal components that stand for the features, in front of the network and in all distances. "
        "None, or as many as there are features, uses the features themselves.",
    ),
    "spare_dimensions": Parameter(
        "an integer of at least 0",
        _whole(0),
        "Dimensions that the network has besides those of the map for the first half of training, or of what comes "
        "before the refinement, in which they are pressed flat: clusters that start on the wrong side of one another "
        "pass instead of blocking each other, and maps of different seeds agree more. 0 is the paper's training. Not "
        "for a network of your own.",
    ),
    "n_factors": Parameter("an integer of at least 1", _whole(1), "Factors of the high-order interactions (F)."),
    "n_hidden": Parameter("an integer of at least 1", _whole(1), "High-order hidden units (m)."),
    "order": Parameter("an integer of at least 1", _whole(1), "The order of the feature interactions (O)."),
    "batch_size": Parameter(
        "an integer of at least 2 or None",
        _or_none(_whole(2)),
        "Rows in a mini-batch; the batches of an epoch are made of even size, this at the most. None takes the "
        "power of two below a 32nd of the rows (PtSNE and HotSNE: an eighth), at least 128 and at most 1,024.",
    ),
    "max_epochs": Parameter(
        "an integer of at least 1 or None",
        _or_none(_whole(1)),
        "Passes over the data. None takes as many as make about 1,800 steps, at least 10 and at most 100; of more than "
        "two million rows fewer, down to 2. Smaller batches than the automatic ones have as many epochs as these.",
    ),
    "learning_rate": Parameter(
        "a number above 0",
        _real(0, open_end=True),
        'The highest rate of "adam", reached after a tenth of the steps and lowered to zero along a cosine; so '
        "once before and once after the refinement.",
    ),
    "optimizer": Parameter(
        '"adam" or "cg"',
        _one_of("adam", "cg"),
        '"adam", or "cg", the conjugate gradient of the paper with three line searches a batch.',
    ),
    "device": Parameter(
        'a torch device or "auto"',
        lambda value: isinstance(value, str | torch.device),
        'Where the network is trained and run. "auto" takes CUDA, then Apple\'s MPS, then the CPU. '
        "While training with Adam, the hidden layers of tsee's networks are in bfloat16 where the processor has "
        "products of its own for it; a trained network places rows in float32.",
    ),
    "random_state": Parameter(
        "an integer of at least 0, a numpy RandomState or None",
        _seed,
        "The seed of everything that is drawn. The same integer gives the same map on the same machine; the "
        "global generators are never touched.",
    ),
    "checkpoint": Parameter(
        "a path or None",
        _or_none(lambda value: isinstance(value, str | PathLike)),
        "A folder in which the state of training is kept, every 20 seconds and when the process is told to end. A fit "
        "of the same data with the same parameters that finds such a state there goes on from it, and ends as it would "
        "have ended had it not been stopped. Once a fit is done its state is removed. Several processes must all see "
        "the folder.",
    ),
    "verbose": Parameter(
        "True or False",
        lambda value: isinstance(value, bool | np.bool_ | Integral),
        "Whether to show progress, on a terminal or in a notebook.",
    ),
}

ATTRIBUTES = {
    "embedding_ : ndarray of shape (n_samples, n_components)": "The places of the rows of ``fit``. It is not there "
    "where these lie on disk and are many: ``transform`` gives their places.",
    "network_ : torch.nn.Module": "The trained network, with what could be folded folded.",
    "perplexity_ : float": "What took effect.",
    "history_ : dict of lists": '``"loss"`` and ``"learning_rate"`` of each epoch, and ``"refined"``, whether it came '
    "after the refinement. While spare dimensions are pressed flat the loss may rise; after the refinement it is the "
    "mean logarithm of 1 + the squared distance from the refined places.",
    "n_iter_ : int": "Epochs run.",
    "n_features_in_ : int": "Features seen in ``fit``.",
    "feature_names_in_ : ndarray of str": "Their names, where ``fit`` was given a DataFrame.",
}
EXEMPLAR_ATTRIBUTES = {
    "n_exemplars_ : int": "What took effect.",
    "exemplars_ : ndarray of shape (n_exemplars_, n_features_in_)": "The exemplars in the units of the data, as far "
    "as ``n_inputs`` principal components carry them.",
    "exemplar_indices_ : ndarray of shape (n_exemplars_,) or None": "Which rows of ``fit`` they are, where they are "
    "points.",
    "exemplar_embedding_ : ndarray of shape (n_exemplars_, n_components)": "Their places.",
    "placement_ : str": "What ``placement=None`` stands for.",
}
