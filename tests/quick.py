"""Small, fast estimators that several test files share."""

from tsee import DtSEE, HotSEE, HotSNE, PtSNE

EVERY = [DtSEE, HotSEE, PtSNE, HotSNE]


def quick(cls, **parameters):
    """An estimator with a small network, for two epochs."""
    if "refinement" in cls().get_params():
        parameters.setdefault("refinement", 10)
    if "hidden_layers" in cls().get_params():
        parameters.setdefault("hidden_layers", (32, 32))
    else:
        parameters = {"n_factors": 40, "n_hidden": 20, **parameters}
    return cls(**{"max_epochs": 2, "random_state": 0, **parameters})
