"""What a fitted estimator has, as its docstring says it, which a test holds to this table."""

from __future__ import annotations

__all__ = ["ATTRIBUTES", "EXEMPLAR_ATTRIBUTES"]

ATTRIBUTES = {
    "map_ : FittedMap": "The fitted map: everything that placing, saving and showing it need.",
    "embedding_ : ndarray of shape (n_samples, n_components)": "The positions of the rows of ``fit``. It does not "
    "exist if the rows are many and lie on disk: ``transform`` gives their positions.",
    "network_ : torch.nn.Module": "The trained network, with batch normalization folded into its weights.",
    "perplexity_ : float": "The perplexity that took effect.",
    "history_ : dict of lists": '``"loss"`` and ``"learning_rate"`` of each epoch, and ``"refined"``, whether it '
    "learned a layout. The loss may rise while spare dimensions are pressed flat. Where a layout is learned, it is "
    "the mean squared distance from its positions, relative to the size of the map; a row far away counts less. If the "
    "network chooses among places, the loss of the choice is added, and distances are in a unit that shrinks.",
    "n_iter_ : int": "Epochs run.",
    "n_inputs_ : int": "The number of inputs that took effect.",
    "n_features_in_ : int": "Features seen in ``fit``.",
    "feature_names_in_ : ndarray of str": "Their names, if ``fit`` was given a DataFrame or a file with names.",
}
EXEMPLAR_ATTRIBUTES = {
    "n_exemplars_ : int": "The number of exemplars that took effect.",
    "exemplars_ : ndarray of shape (n_exemplars_, n_features_in_)": "The exemplars in the units of the data, as far "
    "as ``n_inputs_`` principal components carry them.",
    "exemplar_indices_ : ndarray of shape (n_exemplars_,) or None": "Which rows of ``fit`` they are, if they are "
    "points.",
    "exemplar_embedding_ : ndarray of shape (n_exemplars_, n_components)": "Their positions.",
    "placement_ : str": "What ``placement=None`` stands for.",
    "update_ : Update": "What the last update did: how many rows were placed or became exemplars, and how far old ones "
    "moved. It does not exist before the first update.",
    "versions_ : ndarray of shape (n_samples,)": "Which version each row of ``embedding_`` came with: 0 for ``fit``, 1 "
    "for the first update, and so on.",
}
