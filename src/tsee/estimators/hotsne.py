"""hot-SNE."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, Literal

import numpy as np
import torch

from tsee.estimators.networks import HighOrder
from tsee.estimators.pairwise import PairwiseMap

__all__ = ["HotSNE"]


class HotSNE(HighOrder, PairwiseMap):
    """High-order t-SNE: the shallow network of equation 7 that keeps the neighbors within mini-batches.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    perplexity : float, default=10.0
        How many neighbors a row is expected to have: among the other rows of its mini-batch, at most a third of their
        number. More is lowered to that, with a warning. ``perplexity_`` is the value that took effect.
    metric : {"euclidean", "cosine", "correlation", "manhattan", "hamming", "jaccard"}, default="euclidean"
        How rows are compared: "euclidean"; "cosine" or "correlation", by their direction, without their length or also
        without their mean (a row of zeros, or a constant one, is refused); "manhattan", the sum of absolute
        differences; "hamming", the share of features that differ; or "jaccard", by the features that both have among
        those that either has (booleans, or 0 and 1). The last three compare the features themselves: they go without
        principal components.
    n_factors : int, default=800
        Factors of the high-order interactions (F).
    n_hidden : int, default=400
        High-order hidden units (m).
    order : int, default=2
        The order of the feature interactions (O).
    normalization : {"layer", "batch"} or None, default="layer"
        What normalizes the values before each activation. None is the paper's network. Batch normalization is
        folded into the weights after training.
    n_inputs : int, "auto" or None, default="auto"
        Principal components that replace the features, as inputs of the network and in all distances. None, or the
        number of features, uses the features themselves. "auto" uses up to 128 features themselves; of more, it takes
        50 components or, if these lose too many of the nearest neighbors of a sample of the rows, 150 or 300, which
        count less the less they vary. ``n_inputs_`` is the number that took effect.
    standardize : bool, default=False
        Whether to divide each feature by its standard deviation first. Set it to True if features have different
        units: otherwise each counts by its variance, and the one with the largest numbers decides the map.
    columns : dict or None, default=None
        What columns of a table hold: "number", "boolean", "category", "date", "tags", "text", or "drop" to leave it
        out; or a weight, a factor on its squared differences; or both in a tuple. Other columns are recognized by type
        and content. Columns of an array are called "0", "1" and so on. See docs/tables.md.
    missing : {"allow", "error"}, default="allow"
        What becomes of gaps (NaN, None, NA): "allow": each is filled with the value predicted from the rest of the row,
        and marked; "error" refuses them.
    spare_dimensions : int, default=8
        Extra dimensions that the network has for the first half of training (but not if it learns a layout), in
        which they are pressed flat: clusters that start on the wrong side of one another pass instead of blocking
        each other, and maps of different seeds agree more. 0 is the paper's training. Not for a network of your
        own.
    batch_size : int or None, default=None
        The largest number of rows in a mini-batch; the batches of an epoch have even sizes. None takes the power of
        two below a 32nd of the rows (PtSNE and HotSNE: an eighth), at least 128 and at most 1,024.
    max_epochs : int or None, default=None
        Passes over the data. None takes enough for about 1,800 steps, at least 10 and at most 100; fewer for more than
        two million rows, down to 2. Smaller batches than the automatic ones get the same number of epochs.
    learning_rate : float, default=0.03
        The highest rate of "adam". It is reached after a tenth of the steps and lowered to zero along a cosine, in
        each stage of training.
    optimizer : {"adam", "cg"}, default="adam"
        "adam", or "cg", the conjugate gradient of the paper with three line searches per batch.
    device : str, torch.device or "auto", default="auto"
        Where the network is trained and run, and k-means centers are found; all else is done on the CPU. "auto" takes
        CUDA, then Apple's MPS, then the CPU. Adam trains the hidden layers of tsee's networks in bfloat16 if the
        processor has fast products for it; a trained network places rows in float32.
    random_state : int, RandomState or None, default=None
        The seed of everything that is drawn. The same integer gives the same map, to the bit, on the same kind of
        processor with the same version of torch and the same number of threads; otherwise sums are rounded in
        another order, and training amplifies the difference. The global generators are never touched.
    checkpoint : path or None, default=None
        A folder in which the state of training is kept, every 20 seconds and when the process is told to end. A fit
        of the same data with the same parameters that finds such a state there resumes it, and ends as it would
        have ended without the interruption. The state of a fit that has ended stays until its model is saved, or
        until another fit uses the folder. Several processes must all see the folder.
    verbose : bool, default=False
        Whether to show progress, on a terminal or in a notebook.

    Attributes
    ----------
    map_ : FittedMap
        The fitted map: everything that placing, saving and showing it need.
    embedding_ : ndarray of shape (n_samples, n_components)
        The positions of the rows of ``fit``. It does not exist if the rows are many and lie on disk: ``transform``
        gives their positions.
    network_ : torch.nn.Module
        The trained network, with batch normalization folded into its weights.
    perplexity_ : float
        The perplexity that took effect.
    history_ : dict of lists
        ``"loss"`` and ``"learning_rate"`` of each epoch, and ``"refined"``, whether it learned a layout. The loss
        may rise while spare dimensions are pressed flat. Where a layout is learned, it is the mean squared distance
        from its positions, relative to the size of the map; a row far away counts less. If the network chooses among
        places, the loss of the choice is added, and distances are in a unit that shrinks.
    n_iter_ : int
        Epochs run.
    n_inputs_ : int
        The number of inputs that took effect.
    n_features_in_ : int
        Features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Their names, if ``fit`` was given a DataFrame or a file with names.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tsee import HotSNE
    >>> X = load_digits().data
    >>> HotSNE(max_epochs=1, random_state=0).fit_transform(X).shape
    (1797, 2)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 10.0,
        metric: Literal["euclidean", "cosine", "correlation", "manhattan", "hamming", "jaccard"] = "euclidean",
        n_factors: int = 800,
        n_hidden: int = 400,
        order: int = 2,
        normalization: Literal["layer", "batch"] | None = "layer",
        n_inputs: int | Literal["auto"] | None = "auto",
        standardize: bool = False,
        columns: Mapping[str, Any] | None = None,
        missing: Literal["allow", "error"] = "allow",
        spare_dimensions: int = 8,
        batch_size: int | None = None,
        max_epochs: int | None = None,
        learning_rate: float = 0.03,
        optimizer: Literal["adam", "cg"] = "adam",
        device: str | torch.device = "auto",
        random_state: int | np.random.RandomState | None = None,
        checkpoint: str | PathLike[str] | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_components = n_components
        self.perplexity = perplexity
        self.metric = metric
        self.n_factors = n_factors
        self.n_hidden = n_hidden
        self.order = order
        self.normalization = normalization
        self.n_inputs = n_inputs
        self.standardize = standardize
        self.columns = columns
        self.missing = missing
        self.spare_dimensions = spare_dimensions
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.learning_rate = learning_rate
        self.optimizer = optimizer
        self.device = device
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.verbose = verbose
