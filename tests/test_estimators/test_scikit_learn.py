"""The estimators as scikit-learn knows them, through the public API only."""

import pickle
import threading

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tests.quick import EVERY, quick
from tsee import DtSEE


@parametrize_with_checks([quick(cls, random_state=None) for cls in EVERY])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", EVERY)
def test_fit_transform_is_transform_and_does_not_depend_on_the_batch(cls, digits):
    X = digits[0]
    see = quick(cls)
    Y = see.fit_transform(X)
    assert Y.dtype == np.float32
    assert Y.shape == (600, 2)
    np.testing.assert_array_equal(see.transform(X), Y)
    np.testing.assert_array_equal(see.embedding_, Y)
    order = np.random.default_rng(1).permutation(600)
    np.testing.assert_array_equal(see.transform(X[order]), Y[order])
    for size in (1, 2, 7, 33, 250):
        parts = [see.transform(X[i : i + size]) for i in range(0, min(600, 4 * size), size)]
        np.testing.assert_array_equal(np.concatenate(parts), Y[: min(600, 4 * size)])


@pytest.mark.parametrize("cls", EVERY)
@pytest.mark.parametrize("n_inputs", [None, 20])
def test_the_same_seed_gives_the_same_map_and_leaves_the_global_generators_alone(cls, n_inputs, digits):
    X = digits[0]
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    alone = (
        {"placement": "forward"} if "placement" in cls().get_params() else {}
    )  # a layout does not depend on the seed
    first = quick(cls, n_inputs=n_inputs, **alone).fit_transform(X)
    second = quick(cls, n_inputs=n_inputs, **alone).fit_transform(X)
    other = quick(cls, n_inputs=n_inputs, random_state=1, **alone).fit_transform(X)
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 1e-3
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


@pytest.mark.parametrize("cls", EVERY)
def test_feature_names_output_containers_and_clone(cls, digits):
    frame = pd.DataFrame(digits[0], columns=[f"p{i}" for i in range(64)])
    see = quick(cls).set_output(transform="pandas")
    out = see.fit_transform(frame)
    assert list(out.columns) == list(see.get_feature_names_out()) == ["tsee0", "tsee1"]  # as in files
    with pytest.raises(ValueError, match="input_features"):
        see.get_feature_names_out(["p0", "p1"])
    assert list(out.index) == list(frame.index)
    pd.testing.assert_frame_equal(see.transform(frame), out)
    with pytest.raises(ValueError, match="feature names"):
        see.transform(frame[frame.columns[::-1]])
    copy = clone(see)
    assert copy.get_params() == see.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(frame)


def test_pipeline_and_grid_search(digits):
    X, y, X_new, y_new = digits
    pipeline = make_pipeline(
        FunctionTransformer(np.sqrt), quick(DtSEE, max_epochs=20, batch_size=128), KNeighborsClassifier()
    )
    search = GridSearchCV(pipeline, {"dtsee__perplexity": [3, 10]}, cv=2).fit(X, y)
    assert search.score(X_new, y_new) > 0.6


@pytest.mark.parametrize("cls", EVERY)
def test_three_dimensions_and_one(cls, digits):
    for n_components in (1, 3):
        assert quick(cls, n_components=n_components).fit_transform(digits[0]).shape == (600, n_components)


def test_parameters_changed_after_the_fit_do_not_change_the_fitted_map(digits):
    see = quick(DtSEE).fit(digits[0])
    see.set_params(n_components=3)
    assert see.transform(digits[2]).shape == (200, 2)
    assert len(see.get_feature_names_out()) == 2


def test_pickle_and_threads(digits):
    see = quick(DtSEE).fit(digits[0])
    again = pickle.loads(pickle.dumps(see))
    np.testing.assert_array_equal(again.transform(digits[2]), see.transform(digits[2]))
    results = [None] * 4

    def place(i):
        results[i] = see.transform(digits[2])

    threads = [threading.Thread(target=place, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, results[0])


def test_the_documentation_names_every_parameter_and_attribute(digits):
    for cls in EVERY:
        see = quick(cls).fit(digits[0])
        fitted = [name for name in dir(see) if name.endswith("_") and not name.startswith("_")]
        for name in [*see.get_params(), *fitted]:
            assert f"\n    {name} : " in cls.__doc__, name
