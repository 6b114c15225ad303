"""The paper's settings, and no others."""

from __future__ import annotations

from numbers import Integral
from typing import Any, Self

from tsee.scikit import BaseEstimator

__all__ = ["PAPER", "PaperSettings"]

# What the paper says, and after it what it leaves open. An estimator takes the ones that it has a parameter for.
PAPER: dict[str, Any] = {
    "perplexity": 3.0,
    "exemplars": "centers",
    "seeding": "k-means||",
    "contrast": "full",
    "hidden_layers": (500, 500, 2000),
    "n_factors": 800,
    "n_hidden": 400,
    "order": 2,
    "n_inputs": None,
    "standardize": False,
    "batch_size": 1000,
    "optimizer": "cg",
    # Not in the paper.
    "normalization": None,
    "spare_dimensions": 0,
    "exaggeration": 1.0,
    "jitter": 0.0,
    "refinement": 0,
    "placement": "forward",
    # Left open.
    "kmeans_iterations": 10,
    "activation": "sigmoid",
    "max_epochs": 30,
}
# With fewer exemplars than this, the paper has smaller batches.
FEW_EXEMPLARS, SMALL_BATCH = 1000, 100


class PaperSettings(BaseEstimator):
    """Estimators that can be made with the paper's settings."""

    @classmethod
    def paper(cls, **parameters: Any) -> Self:
        """The estimator with the settings of the paper, and no others.

        A network H-500-500-2000-2, or F = 800, m = 400 and O = 2, of the features themselves; k-means centers by
        scalable k-means++ and the full loss over all of them; perplexity 3; conjugate gradient with three line searches
        per batch; batches of 1,000 rows, or of 100 if ``n_exemplars`` is less than 1,000. There is no normalization, no
        PCA, no spare dimensions, no exaggeration, no noise and no layout, and the network alone places rows.

        What the paper leaves open is chosen like this:

        - The hidden units of the deep network are sigmoid units, and its weights start from a normal distribution with
          a standard deviation of 0.1, as in pt-SNE's published code without its pre-training, which the paper leaves
          out. Rectified linear units with torch's weights learn more slowly.
        - The weights of the high-order network start from torch's, uniform up to one over the root of a unit's inputs:
          larger ones drive its sigmoids to their ends.
        - ``max_epochs`` is 30, as in pt-SNE's published code. Batches are drawn anew in each epoch.
        - A line search ends under the strong Wolfe conditions (a slope of at most a tenth, a decrease of a twentieth of
          what the first slope promises), with the constants that pt-SNE's optimizer was published with. Its step is
          at most 3 % as long as all weights together: without a limit, the first step may saturate the network.
        - 10 k-means updates. ``n_exemplars`` is 2,000, as for MNIST and Fashion, but at most half the rows.
        - Features are centered and divided by one number, which changes no distance but its unit.

        Parameters
        ----------
        **parameters
            Other parameters; they override the paper's.

        Returns
        -------
        DtSEE, HotSEE, PtSNE or HotSNE

        Examples
        --------
        >>> from tsee import DtSEE, HotSNE
        >>> see = DtSEE.paper(n_exemplars=600)
        >>> see.hidden_layers, see.optimizer, see.batch_size
        ((500, 500, 2000), 'cg', 100)
        >>> HotSNE.paper(perplexity=10, random_state=0).batch_size
        1000
        """
        names = cls._get_param_names()
        settings = {name: value for name, value in PAPER.items() if name in names}
        few = parameters.get("n_exemplars")
        if isinstance(few, Integral) and few < FEW_EXEMPLARS:
            settings["batch_size"] = SMALL_BATCH
        return cls(**{**settings, **parameters})
