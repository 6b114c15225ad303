"""Saved models to damage."""

import pytest
import torch

from tsee import DtSEE, HotSEE, HotSNE, PtSNE


@pytest.fixture(scope="session")
def saved_models(digits, tmp_path_factory):
    """A small model of each kind, by name."""
    folder, X = tmp_path_factory.mktemp("models"), digits[0][:200]
    deep, high = dict(hidden_layers=(8, 6)), dict(n_factors=8, n_hidden=6)
    own = torch.nn.Sequential(torch.nn.Linear(64, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    models = {
        "DtSEE": DtSEE(**deep, n_inputs=20),
        "centers": DtSEE(**deep, exemplars="centers", n_exemplars=30, standardize=True, n_inputs=None),
        "own": DtSEE(network=own, n_inputs=None),
        "HotSEE": HotSEE(**high, n_inputs=None),
        "PtSNE": PtSNE(**deep, normalization=None),
        "HotSNE": HotSNE(**high),
    }
    for name, see in models.items():
        see.set_params(max_epochs=2, random_state=0).fit(X).save(folder / name)
    return folder
