"""hot-SEE."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from tsee.estimators.exemplar import ExemplarMap
from tsee.estimators.networks import HighOrder

__all__ = ["HotSEE"]


class HotSEE(HighOrder, ExemplarMap):
    """High-order t-distributed stochastic exemplar-centered embedding (hot-SEE).

    Like `DtSEE`, but with the shallow network of equation 7.

    Parameters
    ----------
    n_components : int, default=2
        Dimensions of the map.
    perplexity : float, default=36.0
        How many neighbors a row is expected to have: among the exemplars, at most a third of their number, or of
        ``n_neighbors``, or two thirds of the usual number of neighbors given to ``fit``. More is lowered to that, with
        a warning unless it is the default. Where more than 65,536 exemplars are laid out, the default falls with the
        cube root of their number. ``perplexity_`` is the value that took effect.
    metric : {"euclidean", "cosine", "correlation", "manhattan", "hamming", "jaccard", "precomputed"}, \
default="euclidean"
        How rows are compared: "euclidean"; "cosine" or "correlation", by their direction, without their length or also
        without their mean (a row of zeros, or a constant one, is refused); "manhattan", the sum of absolute
        differences; "hamming", the share of features that differ; or "jaccard", by the features that both have among
        those that either has (booleans, or 0 and 1). The last three compare the features themselves: they go without
        principal components and k-means centers. "precomputed" takes a square matrix of distances as X, and makes a map
        without a network.
    exemplars : {"points", "centers"}, default="points"
        What a row is compared with: "points", rows of the data themselves (a row is never its own exemplar), or
        "centers", k-means centers of the data as in the paper.
    n_exemplars : int or None, default=None
        How many exemplars. None takes every row as a point, up to 2,097,152 of them, or fewer if memory is short (see
        ``max_memory``). It takes 8,192 centers, but 2,000 if the contrast is not "sampled", since more take longer
        (and at most half the rows). If the data hold fewer, those are used, with a warning; ``n_exemplars_`` is the
        number that took effect. Centers are computed from at most 524,288 rows, or 64 per center, drawn at random.
    max_memory : float or None, default=None
        How much memory exemplars may take, in GiB beyond the data. It decides how many rows become exemplars if
        ``n_exemplars`` is None, but never fewer than 32,768. None takes half of the memory that is free, within the
        limits of a container.
    seeding : {"k-means||", "random"}, default="k-means||"
        Where k-means starts: scalable k-means++, or random rows. Only for centers.
    kmeans_iterations : int, default=10
        k-means updates. Only for centers.
    contrast : {"sampled", "full", "noise"}, default="sampled"
        What the map is normalized over: "full", all exemplars in each batch (equation 12); "noise", the nearest
        exemplars of each row and a sample of the others (the paper's noise-contrastive form); "sampled", the
        exemplars drawn for the rows of the batch, one for each row, at a cost that does not grow with the number of
        exemplars (each exemplar then counts as often as rows choose it).
    exaggeration : float or None, default=None
        A factor on the attraction: above 1 it draws clusters together. None takes 0.9 for points that are laid out, 2
        for points that are not, and 1 for centers, which stand for rows of more than one kind and would draw these
        together. Only for the "sampled" contrast.
    jitter : float or None, default=None
        Noise added to rows and exemplars while training, as a share of the distance between the two: it keeps the map
        smooth between the data, so that new rows find their position. None takes 0.5 for up to 1,000 rows and less for
        more rows, by the square root of their number. Where the network learns a layout, None takes 0.5; if it also
        chooses among places, the noise is a share of the difference of two neighbors. Only for the "sampled" contrast.
    refinement : int, default=420
        Steps in which the forces of the loss lay the exemplars out, from the large shape of the data to where the loss
        wants each of them; the network then learns these positions. 0 trains the network alone, from random weights,
        and leaves the exemplars at its positions. Only for points and the "sampled" contrast.
    global_weight : float, default=0.25
        How much the layout is held to the large shape of the data, on a dial from 0, only neighbors count, to 1,
        the map is the large shape: its principal plane, or a scaling of its distances. More of it keeps distances
        between far groups truer and loses some near neighbors. It weighs the two as global_weight to 1 -
        global_weight.
    supervised : float, default=0.0
        How much the labels given to ``fit(X, y)`` count, from 0, not at all, to 1: a row is then no neighbor of a row
        whose label is known to differ. Labels change which rows are neighbors, never what rows are compared by, so new
        rows need none. Where some are unknown, they are estimated from those that are known. Judge such a map by rows
        that were held out: labels of ``fit`` part its own rows even if they mean nothing. Only for points, and not for
        the "full" contrast.
    start : path, fitted estimator, FittedMap or None, default=None
        Another map, of last month or of another donor, used instead of the large shape: rows start
        where they would be placed on it and are drawn there, with a ``global_weight`` of at least 0.75, except
        for rows that are new to it. Both maps then lie alike. Features are matched by name; what is missing is
        said. The fitted model does not need it.
    placement : {"refined", "forward"} or None, default=None
        How ``transform`` places a row: "forward", by one pass through the network; "refined", among its nearest
        exemplars, which keeps more of its neighbors but needs a search for them. None means refined if exemplars were
        laid out and at least one row of ``fit`` in four is an exemplar, or there are at least 65,536 exemplars. If rows
        are placed forward at ``fit``, the last hidden layer of the network is one of places of the layout, up to 1,024,
        among which it chooses by a softmax (in HotSEE, instead of its sigmoids): it then follows the layout far better,
        and takes longer. The placement can be changed on a fitted estimator: ``embedding_`` stays as it was fitted, and
        ``transform`` gives the other positions.
    n_neighbors : int or None, default=None
        The number of nearest exemplars over which a row's probabilities are spread (z_e in the paper); all others
        have probability 0. None takes twice the perplexity if exemplars are laid out (above 65,536 of them fewer,
        down to 4/3 of it), else three times, and at least 100 for "noise"; "full" always spreads them over all
        exemplars.
    n_noise : int, default=100
        Exemplars drawn for each row besides its nearest (z_n). Only for "noise".
    noise_weight : float or "auto", default="auto"
        The weight of the drawn exemplars in the normalizer (K_e). "auto" is (z - z_e) / z_n, which makes it
        unbiased. Only for "noise".
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
        Passes over the data. None takes enough for about 1,800 steps, at least 10 (4 where the network learns a layout)
        and at most 100; fewer for more than two million rows, down to 2. Where a network that places rows forward
        learns a layout, it takes enough for 2,700 steps, at least 2 and at most 100. Smaller batches than the automatic
        ones get the same number of epochs.
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
    n_exemplars_ : int
        The number of exemplars that took effect.
    exemplars_ : ndarray of shape (n_exemplars_, n_features_in_)
        The exemplars in the units of the data, as far as ``n_inputs_`` principal components carry them.
    exemplar_indices_ : ndarray of shape (n_exemplars_,) or None
        Which rows of ``fit`` they are, if they are points.
    exemplar_embedding_ : ndarray of shape (n_exemplars_, n_components)
        Their positions.
    placement_ : str
        What ``placement=None`` stands for.
    update_ : Update
        What the last update did: how many rows were placed or became exemplars, and how far old ones moved. It does not
        exist before the first update.
    versions_ : ndarray of shape (n_samples,)
        Which version each row of ``embedding_`` came with: 0 for ``fit``, 1 for the first update, and so on.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from tsee import HotSEE
    >>> X = load_digits().data
    >>> see = HotSEE(max_epochs=5, random_state=0).fit(X[:1500])
    >>> see.transform(X[1500:]).shape
    (297, 2)
    """

    _fast: ClassVar[dict[str, Any]] = {"n_factors": 400, "n_hidden": 200, "refinement": 200}

    def __init__(
        self,
        n_components: int = 2,
        *,
        perplexity: float = 36.0,
        metric: Literal[
            "euclidean", "cosine", "correlation", "manhattan", "hamming", "jaccard", "precomputed"
        ] = "euclidean",
        exemplars: Literal["points", "centers"] = "points",
        n_exemplars: int | None = None,
        max_memory: float | None = None,
        seeding: Literal["k-means||", "random"] = "k-means||",
        kmeans_iterations: int = 10,
        contrast: Literal["sampled", "full", "noise"] = "sampled",
        exaggeration: float | None = None,
        jitter: float | None = None,
        refinement: int = 420,
        global_weight: float = 0.25,
        supervised: float = 0.0,
        start: Any = None,
        placement: Literal["refined", "forward"] | None = None,
        n_neighbors: int | None = None,
        n_noise: int = 100,
        noise_weight: float | Literal["auto"] = "auto",
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
        self.exemplars = exemplars
        self.n_exemplars = n_exemplars
        self.max_memory = max_memory
        self.seeding = seeding
        self.kmeans_iterations = kmeans_iterations
        self.contrast = contrast
        self.exaggeration = exaggeration
        self.jitter = jitter
        self.refinement = refinement
        self.global_weight = global_weight
        self.supervised = supervised
        self.start = start
        self.placement = placement
        self.n_neighbors = n_neighbors
        self.n_noise = n_noise
        self.noise_weight = noise_weight
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
