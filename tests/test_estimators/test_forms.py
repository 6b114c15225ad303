"""The four methods and every form of their loss learn good maps."""

import warnings

import numpy as np
import pytest

from tests.quick import EVERY, quick
from tsee import DtSEE, HotSEE, PtSNE, TrainingWarning
from tsee.metrics import knn_error
from tsee.training import precision


@pytest.mark.parametrize("cls", EVERY)
def test_the_map_keeps_the_classes(cls, digits):
    """Bad before, good after: an untrained map errs on most digits, a trained one on few."""
    X, y, X_new, y_new = digits
    errors = []
    sizes = dict(hidden_layers=(128, 128)) if cls in (DtSEE, PtSNE) else dict(n_factors=200, n_hidden=100)
    alone = dict(refinement=0) if cls in (DtSEE, HotSEE) else {}
    for training in (dict(max_epochs=1, learning_rate=1e-9), dict(max_epochs=60)):
        see = quick(cls, batch_size=128, **training, **sizes, **alone)
        errors.append(knn_error(see.fit_transform(X), y, see.transform(X_new), y_new, k=5)[5])
    assert errors[0] > 0.5
    assert errors[1] < 0.15


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
@pytest.mark.parametrize("exemplars", ["points", "centers"])
@pytest.mark.parametrize("contrast", ["full", "noise", "sampled"])
def test_exemplar_forms(cls, exemplars, contrast, digits):
    X, y, X_new, y_new = digits
    sizes = dict(hidden_layers=(128, 128)) if cls is DtSEE else dict(n_factors=200, n_hidden=100)
    see = quick(
        cls, exemplars=exemplars, n_exemplars=100, contrast=contrast, n_neighbors=30, n_noise=20, perplexity=5,
        batch_size=128, max_epochs=60, **sizes,
    )  # fmt: skip
    Y = see.fit_transform(X)
    assert see.n_exemplars_ == 100
    assert see.exemplars_.shape == (100, 64)
    assert see.exemplar_embedding_.shape == (100, 2)
    assert len(see.history_["loss"]) == len(see.history_["learning_rate"]) == see.n_iter_ == 60
    assert see.history_["loss"][-1] < see.history_["loss"][0]
    assert knn_error(Y, y, see.transform(X_new), y_new, k=5)[5] < 0.2


@pytest.mark.parametrize(("exemplars", "exaggeration"), [("points", 2), ("centers", 1)])
def test_attraction_is_exaggerated_by_default_if_exemplars_are_rows(exemplars, exaggeration, digits):
    given = {"exemplars": exemplars, "max_epochs": 2, "refinement": 0, "random_state": 0}
    X = digits[0][:400]
    by_default = DtSEE(**given).fit(X).embedding_
    np.testing.assert_array_equal(DtSEE(**given, exaggeration=exaggeration).fit(X).embedding_, by_default)
    other = DtSEE(**given, exaggeration=3 - exaggeration).fit(X).embedding_
    assert not np.allclose(other, by_default)


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_points_are_rows_and_centers_are_means(cls, digits):
    X = digits[0]
    see = quick(cls, n_exemplars=50, n_inputs=None).fit(X)
    np.testing.assert_allclose(see.exemplars_, X[see.exemplar_indices_], atol=1e-3)
    np.testing.assert_array_equal(see.exemplar_embedding_, see.embedding_[see.exemplar_indices_])
    centers = quick(cls, exemplars="centers", n_exemplars=20, n_inputs=None, perplexity=5).fit(X).exemplars_
    nearest = np.square(X[:, None] - centers).sum(2).argmin(1)
    again = np.stack([X[nearest == j].mean(0) for j in range(20)])
    assert np.square(centers - again).sum(1).mean() < 0.05 * np.square(X - X.mean(0)).sum(1).mean()


@pytest.mark.parametrize("exemplars", ["points", "centers"])
def test_noise_with_every_exemplar_near_is_the_full_form(exemplars, digits):
    # A row that is an exemplar has one fewer to choose from; if all rows are points, every row has one fewer.
    parameters = dict(
        exemplars=exemplars, perplexity=5, n_inputs=None, n_exemplars=40 if exemplars == "centers" else None
    )
    X = digits[0][:100]
    full = quick(DtSEE, contrast="full", **parameters).fit(X)
    noise = quick(DtSEE, contrast="noise", n_neighbors=40 if exemplars == "centers" else 99, **parameters).fit(X)
    np.testing.assert_allclose(noise.history_["loss"], full.history_["loss"], rtol=1e-4)


@pytest.mark.parametrize("contrast", ["full", "noise"])
@pytest.mark.parametrize("exemplars", ["points", "centers"])
@pytest.mark.parametrize("perplexity", [3, 10])
def test_the_papers_forms_train_at_ordinary_settings(contrast, exemplars, perplexity, digits):
    X, y, X_new, y_new = digits
    with warnings.catch_warnings():
        warnings.simplefilter("error", TrainingWarning)
        see = DtSEE(contrast=contrast, exemplars=exemplars, perplexity=perplexity, max_epochs=20, random_state=0).fit(X)
    assert np.isfinite(see.history_["loss"]).all()
    assert knn_error(see.embedding_, y, see.transform(X_new), y_new, k=5)[5] < 0.2


def test_conjugate_gradient_trains_all_four(digits):
    X = digits[0]
    for cls in EVERY:
        see = quick(cls, optimizer="cg", max_epochs=4, batch_size=300, normalization=None, spare_dimensions=0).fit(X)
        assert see.history_["loss"][-1] < see.history_["loss"][0]


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_the_map_is_as_good_by_products_of_bfloat16(cls, digits, monkeypatch):
    X, y, X_new, y_new = digits
    maps, errors = [], []
    for has in (False, True):
        monkeypatch.setattr(precision, "has_bfloat16", lambda device, has=has: has)
        see = quick(cls, max_epochs=60, batch_size=128, refinement=0)
        maps.append(see.fit_transform(X))
        errors.append(knn_error(maps[-1], y, see.transform(X_new), y_new, k=5)[5])
    assert not np.array_equal(*maps)
    assert errors[1] < errors[0] + 0.03


def test_conjugate_gradient_has_all_digits(digits, monkeypatch):
    maps = []
    for has in (False, True):
        monkeypatch.setattr(precision, "has_bfloat16", lambda device, has=has: has)
        maps.append(quick(DtSEE, optimizer="cg", normalization=None).fit_transform(digits[0]))
    np.testing.assert_array_equal(*maps)
