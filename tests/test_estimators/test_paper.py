"""The settings of the paper."""

import numpy as np
import pytest
import torch

from tests.quick import EVERY
from tsee import DtSEE, HotSEE, HotSNE, PtSNE
from tsee.estimators.paper import PAPER
from tsee.metrics import knn_error


@pytest.mark.parametrize("cls", EVERY)
def test_every_setting_that_the_paper_has_is_the_papers(cls):
    see = cls.paper()
    assert see.n_inputs is None
    assert see.normalization is None
    assert see.spare_dimensions == 0
    assert (see.optimizer, see.perplexity, see.batch_size) == ("cg", 3, 1000)
    if cls in (DtSEE, PtSNE):
        assert (see.hidden_layers, see.activation) == ((500, 500, 2000), "sigmoid")
    else:
        assert (see.n_factors, see.n_hidden, see.order) == (800, 400, 2)
    if cls in (DtSEE, HotSEE):
        assert (see.exemplars, see.seeding, see.contrast) == ("centers", "k-means||", "full")
        assert (see.refinement, see.jitter, see.exaggeration, see.placement) == (0, 0, 1, "forward")


def test_every_setting_is_a_parameter_of_some_method():
    assert set(PAPER) <= {name for cls in EVERY for name in cls().get_params()}


@pytest.mark.parametrize(("n_exemplars", "batch_size"), [(None, 1000), (600, 100), (999, 100), (1000, 1000)])
def test_batches_are_small_if_exemplars_are_few(n_exemplars, batch_size):
    assert DtSEE.paper(n_exemplars=n_exemplars).batch_size == batch_size
    assert HotSEE.paper(n_exemplars=n_exemplars, batch_size=2000).batch_size == 2000


def test_a_parameter_that_is_given_comes_first():
    assert PtSNE.paper(perplexity=10, max_epochs=2, activation="relu").get_params() == {
        **PtSNE.paper().get_params(),
        "perplexity": 10,
        "max_epochs": 2,
        "activation": "relu",
    }
    with pytest.raises(TypeError, match="n_exemplars"):
        HotSNE.paper(n_exemplars=5)


@pytest.mark.parametrize("cls", EVERY)
def test_the_papers_method_learns_a_map(cls, digits):
    """Bad before, good after; the network is the paper's, with nothing added to it."""
    X, y, X_new, y_new = digits
    sizes = dict(hidden_layers=(64, 64)) if cls in (DtSEE, PtSNE) else dict(n_factors=100, n_hidden=50)
    few = dict(n_exemplars=100) if cls in (DtSEE, HotSEE) else {}
    errors = []
    for epochs in (1, 20):
        see = cls.paper(max_epochs=epochs, batch_size=300, random_state=0, **sizes, **few).fit(X)
        errors.append(knn_error(see.embedding_, y, see.transform(X_new), y_new, k=5)[5])
    assert errors[1] < 0.2
    assert errors[1] < errors[0] - 0.05
    inputs = (X_new - see.map_.preprocessing.mean) / see.map_.preprocessing.scale
    with torch.no_grad():
        expected = _by_hand(see.network_, torch.from_numpy(inputs.astype(np.float32)))
    np.testing.assert_allclose(see.transform(X_new), expected.numpy(), rtol=1e-3, atol=1e-3)


def _by_hand(network, x):
    weights = dict(network.named_parameters())
    if "factors.weight" in weights:  # equation 7
        powers = (x @ weights["factors.weight"].T + weights["factors.bias"]) ** 2
        hidden = torch.sigmoid(powers @ weights["mixing.weight"].T + weights["mixing.bias"])
    else:
        hidden = x
        for layer in ("0", "2"):
            hidden = torch.sigmoid(hidden @ weights[f"layers.{layer}.weight"].T + weights[f"layers.{layer}.bias"])
    return hidden @ weights["readout.weight"].T
