"""The estimators as scikit-learn knows them, on every kind of data, through the public API only."""

import pickle
import subprocess
import sys
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tsee import DataWarning, DtSEE, HotSEE, HotSNE, PtSNE, TrainingWarning, load
from tsee.estimators import fitting
from tsee.estimators.fitting import resolve_batch_size, resolve_epochs
from tsee.metrics import knn_error, quality_score

SMALL = dict(max_epochs=2, random_state=0)
EVERY = [DtSEE, HotSEE, PtSNE, HotSNE]


def quick(cls, **parameters):
    if "refinement" in cls().get_params():
        parameters.setdefault("refinement", 10)
    if "hidden_layers" in cls().get_params():
        parameters.setdefault("hidden_layers", (32, 32))
    else:
        parameters = {"n_factors": 40, "n_hidden": 20, **parameters}
    return cls(**{**SMALL, **parameters})


@parametrize_with_checks([quick(cls, random_state=None) for cls in EVERY])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", EVERY)
def test_the_map_keeps_the_classes(cls, digits):
    """Bad before, good after: an untrained map errs on most digits, a trained one on few."""
    X, y, X_new, y_new = digits
    errors = []
    sizes = dict(hidden_layers=(128, 128)) if cls in (DtSEE, PtSNE) else dict(n_factors=200, n_hidden=100)
    alone = dict(refinement=0) if cls in (DtSEE, HotSEE) else {}
    for epochs in (1, 60):
        see = quick(cls, max_epochs=epochs, batch_size=128, **sizes, **alone)
        errors.append(knn_error(see.fit_transform(X), y, see.transform(X_new), y_new, k=5)[5])
    assert errors[0] > 0.2
    assert errors[1] < 0.15


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
    first = quick(cls, n_inputs=n_inputs).fit_transform(X)
    second = quick(cls, n_inputs=n_inputs).fit_transform(X)
    other = quick(cls, n_inputs=n_inputs, random_state=1).fit_transform(X)
    np.testing.assert_array_equal(first, second)
    assert np.abs(first - other).max() > 1e-3
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], numpy_before)  # noqa: NPY002


def kinds_of_data(X, folder):
    """The same small integers in every container and dtype."""
    np.save(folder / "rows.npy", X.astype(np.float32))
    readonly = np.load(folder / "rows.npy", mmap_mode="r")
    names = [f"pixel {i}" for i in range(X.shape[1])]
    return {
        "float64": X.astype(np.float64),
        "float32": X.astype(np.float32),
        "float16": X.astype(np.float16),
        "uint8": X.astype(np.uint8),
        "int64": X.astype(np.int64),
        "fortran": np.asfortranarray(X),
        "list": X.tolist(),
        "memory map": readonly,
        "DataFrame": pd.DataFrame(X, columns=names),
        "mixed DataFrame": pd.DataFrame(X, columns=names).astype({names[0]: "float32", names[1]: "int16"}),
        "tensor": torch.tensor(X),
        "bfloat16 tensor": torch.tensor(X).bfloat16(),
        "tensor with gradient": torch.tensor(X, requires_grad=True),
        "CSR": scipy.sparse.csr_matrix(X),
        "CSR array": scipy.sparse.csr_array(X),
        "CSC": scipy.sparse.csc_matrix(X),
    }


@pytest.mark.filterwarnings("ignore:X (has|does not have) .*feature names")
@pytest.mark.parametrize("n_inputs", [None, 10])
def test_every_kind_of_data_gives_the_same_map(n_inputs, digits, tmp_path):
    # Whole numbers that every type holds exactly, with noise so that no two distances tie.
    X = np.round(15 * digits[0][:100] + np.random.RandomState(0).uniform(0, 15, (100, 64)))
    see = quick(DtSEE, n_inputs=n_inputs).fit(X)
    expected = see.transform(X)
    for name, kind in kinds_of_data(X, tmp_path).items():
        np.testing.assert_allclose(see.transform(kind), expected, rtol=1e-3, atol=1e-3, err_msg=name)
        again = quick(DtSEE, n_inputs=n_inputs).fit(kind)
        np.testing.assert_allclose(again.embedding_, expected, atol=0.01 * np.ptp(expected), err_msg=name)


@pytest.mark.parametrize("cls, bfloat16, epochs", [(DtSEE, False, 10), (HotSEE, False, 10), (DtSEE, True, 2)])
def test_pixels_to_255_and_pixels_to_1_give_the_same_map(cls, bfloat16, epochs, digits, monkeypatch):
    """The same up to rounding, which training amplifies little by little, and that of bfloat16 is the coarser."""
    monkeypatch.setattr(fitting, "has_bfloat16", lambda device: bfloat16)
    X = digits[0]
    pixels = np.round(X * 255 / 16).astype(np.uint8)
    plain = quick(cls, max_epochs=epochs, refinement=0).fit(pixels).embedding_
    for other in (pixels / 255, (pixels / 255).astype(np.float32), pixels.astype(np.float64) + 1e8):
        again = quick(cls, max_epochs=epochs, refinement=0).fit_transform(other)
        np.testing.assert_allclose(again, plain, atol=0.02 * np.ptp(plain))


def test_a_constant_column_of_large_numbers_does_no_harm(digits):
    X, y, X_new, y_new = digits
    X, X_new = (np.c_[rows, np.full(len(rows), 1.7e9)] for rows in (X, X_new))
    see = quick(DtSEE, max_epochs=30, batch_size=128, hidden_layers=(128, 128)).fit(X)
    assert knn_error(see.embedding_, y, see.transform(X_new), y_new, k=5)[5] < 0.15


def test_huge_and_tiny_units(digits):
    X = digits[0]
    expected = quick(DtSEE).fit(X).embedding_
    for unit in (1e-150, 1e150):
        np.testing.assert_allclose(quick(DtSEE).fit(X * unit).embedding_, expected, atol=1e-2)


@pytest.mark.parametrize("cls", EVERY)
def test_feature_names_output_containers_and_clone(cls, digits):
    frame = pd.DataFrame(digits[0], columns=[f"p{i}" for i in range(64)])
    see = quick(cls).set_output(transform="pandas")
    out = see.fit_transform(frame)
    prefix = cls.__name__.lower()
    assert list(out.columns) == list(see.get_feature_names_out()) == [f"{prefix}0", f"{prefix}1"]
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
def test_attraction_is_exaggerated_by_default_where_exemplars_are_rows(exemplars, exaggeration, digits):
    given = {"exemplars": exemplars, "max_epochs": 2, "refinement": 0, "random_state": 0}
    X = digits[0][:400]
    by_default = DtSEE(**given).fit(X).embedding_
    np.testing.assert_array_equal(DtSEE(**given, exaggeration=exaggeration).fit(X).embedding_, by_default)
    other = DtSEE(**given, exaggeration=3 - exaggeration).fit(X).embedding_
    assert not np.allclose(other, by_default)


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_points_are_rows_and_centres_are_means(cls, digits):
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
    # A row that is an exemplar has one fewer to choose from: with all rows points, every row has.
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


class Squash(torch.nn.Module):
    def __init__(self, n_inputs=64, n_outputs=2):
        super().__init__()
        self.linear = torch.nn.Linear(n_inputs, n_outputs)

    def forward(self, x):
        return 10 * torch.tanh(self.linear(x))


@pytest.mark.parametrize("cls", [DtSEE, PtSNE])
def test_a_network_of_ones_own(cls, digits):
    parameters = dict(n_inputs=None, max_epochs=3, random_state=0)
    if cls is DtSEE:
        parameters["placement"] = "forward"
    network = Squash()
    start = network.linear.weight.detach().clone()
    see = cls(network=network, **parameters).fit(digits[0])
    assert isinstance(see.network_, Squash)
    assert torch.equal(network.linear.weight, start)
    assert not torch.equal(see.network_.linear.weight, start)
    assert np.abs(see.embedding_).max() <= 10
    np.testing.assert_array_equal(cls(network=network, **parameters).fit_transform(digits[0]), see.embedding_)
    with pytest.raises(ValueError, match="'network' parameter must take rows of 50 inputs"):
        cls(network=network).fit(digits[0])
    with pytest.raises(ValueError, match="'network' parameter must map rows to n_components=2"):
        cls(network=Squash(50, 3)).fit(digits[0])


def test_a_network_that_draws_at_random_is_seeded_too(digits):
    network = torch.nn.Sequential(torch.nn.Linear(64, 30), torch.nn.Dropout(), torch.nn.Linear(30, 2))
    torch.manual_seed(1)
    state = torch.random.get_rng_state()
    first, second = (
        DtSEE(network=network, n_inputs=None, max_epochs=3, random_state=0).fit_transform(digits[0]) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert torch.equal(torch.random.get_rng_state(), state)


def test_parameters_changed_after_the_fit_do_not_change_the_fitted_map(digits):
    see = quick(DtSEE).fit(digits[0])
    see.set_params(n_components=3)
    assert see.transform(digits[2]).shape == (200, 2)
    assert len(see.get_feature_names_out()) == 2


def test_duplicates_everywhere(digits):
    X = np.repeat(digits[0][:20], 30, axis=0)
    for exemplars in ("points", "centers"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            see = quick(DtSEE, exemplars=exemplars, n_exemplars=200, max_epochs=5).fit(X)
        assert np.isfinite(see.embedding_).all()
        assert np.isfinite(see.history_["loss"]).all()
        np.testing.assert_array_equal(see.embedding_[0], see.embedding_[1])


def test_what_took_effect_is_said(digits):
    X = digits[0][:50]
    with pytest.warns(DataWarning, match="'n_exemplars' parameter is 500, but the data hold only 50 rows"):
        see = quick(DtSEE, n_exemplars=500).fit(X)
    assert see.n_exemplars_ == 50
    assert see.n_exemplars == 500
    with pytest.warns(DataWarning, match="'perplexity' parameter is 40, too large for 49 exemplars .* 16.33 is used"):
        see = quick(DtSEE, perplexity=40).fit(X)
    assert see.perplexity_ == pytest.approx(49 / 3)
    for contrast in ("sampled", "noise"):
        with pytest.warns(DataWarning, match=r"too large for 6 exemplars \(see n_neighbors\): 2 is used") as caught:
            see = quick(DtSEE, perplexity=8, n_neighbors=6, contrast=contrast).fit(X)
        assert see.perplexity_ == 2
        assert caught[0].filename == __file__  # the user's line, not one of tsee's
    with pytest.warns(DataWarning, match="'perplexity' parameter is 10, too large for 15 neighbors in a batch"):
        see = quick(PtSNE, batch_size=17).fit(X)
    repeated = np.repeat(X[:10], 20, axis=0)
    with pytest.warns(DataWarning, match="hold only 10 distinct rows"):
        see = quick(DtSEE, exemplars="centers", n_exemplars=30).fit(repeated)
    assert see.n_exemplars_ == 10


def test_an_interrupt_leaves_a_fitted_estimator(digits, monkeypatch):
    from tsee import training

    step, calls = training.scheduled_rate, 0

    def interrupting(*arguments, **keywords):
        nonlocal calls
        calls += 1
        if calls == 8:
            raise KeyboardInterrupt
        return step(*arguments, **keywords)

    monkeypatch.setattr(training, "scheduled_rate", interrupting)
    see = quick(DtSEE, max_epochs=100, batch_size=300)  # half of them before the refinement
    with pytest.warns(TrainingWarning, match="interrupted after 3 of 50 epochs"):
        see.fit(digits[0])
    assert see.n_iter_ == 3
    assert see.placement_ == "forward"
    assert np.isfinite(see.transform(digits[2])).all()


def test_an_interrupt_of_the_refinement_keeps_its_places(digits, monkeypatch):
    from tsee import layout

    force, calls = layout.Repulsion.__call__, 0

    def interrupting(*arguments):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return force(*arguments)

    monkeypatch.setattr(layout.Repulsion, "__call__", interrupting)
    see = quick(DtSEE, max_epochs=4)
    with pytest.warns(TrainingWarning, match="The refinement was interrupted: the places found until then"):
        Y = see.fit_transform(digits[0])
    assert see.n_iter_ == 2
    np.testing.assert_array_equal(see.transform(digits[0]), Y)
    monkeypatch.undo()
    np.testing.assert_array_equal(quick(DtSEE, max_epochs=4, refinement=3).fit_transform(digits[0]), Y)


def test_an_interrupt_after_the_refinement_keeps_the_network(digits, monkeypatch):
    from tsee.estimators import losses

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(losses, "same_for_equal", interrupted)
    see = quick(DtSEE, max_epochs=4)
    with pytest.warns(TrainingWarning, match="The refinement was interrupted: the places are the network's"):
        Y = see.fit_transform(digits[0])
    assert see.placement_ == "forward"
    np.testing.assert_array_equal(see.transform(digits[0]), Y)


def test_a_fit_interrupted_at_its_end_leaves_the_one_before_whole(digits, monkeypatch):
    from tsee.estimators import exemplar

    X = digits[0]
    see = quick(DtSEE, refinement=0, placement="refined", n_exemplars=100).fit(X)
    before = see.transform(X)

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(exemplar, "among", interrupted)
    with pytest.raises(KeyboardInterrupt):
        see.fit(X[:300, :30])
    monkeypatch.undo()
    assert see.n_features_in_ == 64
    np.testing.assert_array_equal(see.transform(X), before)


def test_equal_rows_have_the_same_refined_place(digits):
    X = np.concatenate([digits[0], digits[0][:50]])
    see = quick(DtSEE).fit(X)
    assert see.placement_ == "refined"
    np.testing.assert_array_equal(see.embedding_[:50], see.embedding_[-50:])
    np.testing.assert_array_equal(see.transform(X), see.embedding_)


def test_a_network_of_float64_outputs(digits):
    class Double(torch.nn.Linear):
        def forward(self, x):
            return super().forward(x).double()

    see = DtSEE(network=Double(64, 2), n_inputs=None, max_epochs=2, refinement=3, random_state=0).fit(digits[0])
    assert see.transform(digits[2]).dtype == np.float32


@pytest.mark.parametrize("kind", ["digits", "zeros and ones", "one-hot"])
def test_new_rows_are_placed_the_same_alone_and_together(kind, digits):
    """Where many distances tie, which neighbors are found may not hang on the other rows."""
    generator = np.random.RandomState(0)
    rows = {
        "digits": np.concatenate([digits[0], digits[2]]),
        "zeros and ones": generator.randint(0, 2, (800, 12)).astype(float),
        "one-hot": np.concatenate([np.eye(6)[generator.randint(0, 6, 800)] for _ in range(4)], 1),
    }[kind]
    see = quick(DtSEE, n_inputs=None).fit(rows[:600])
    new = rows[600:800]
    together = see.transform(new)
    np.testing.assert_array_equal(np.concatenate([see.transform(row[None]) for row in new]), together)
    np.testing.assert_array_equal(see.transform(new[::-1])[::-1], together)


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_refined_places_keep_more_neighbors_and_the_network_follows_them(cls, digits):
    X, y, X_new, y_new = digits
    see = quick(cls, refinement=100, max_epochs=60).fit(X)
    assert see.placement_ == "refined"
    refined, placed = see.embedding_, see.transform(X_new)
    np.testing.assert_array_equal(see.transform(X), refined)  # a row of the data has the place it was given
    np.testing.assert_array_equal(see.exemplar_embedding_, refined)
    see.set_params(placement="forward")
    forward, passed = see.transform(X), see.transform(X_new)
    assert knn_error(refined, y, placed, y_new, k=5)[5] < 0.1
    kept = quality_score(X, refined, X_new, placed, k=10)[10]
    assert kept > quality_score(X, forward, X_new, passed, k=10)[10] + 0.05
    assert np.median(np.abs(forward - refined)) < 0.1 * np.ptp(refined)
    alone = quick(cls, refinement=0, max_epochs=60).fit(X)
    assert alone.placement_ == "forward"
    assert kept > quality_score(X, alone.embedding_, X_new, alone.transform(X_new), k=10)[10] + 0.05


def test_new_rows_are_placed_among_the_exemplars_nearest_to_them(digits):
    X, _, X_new, _ = digits
    see = quick(DtSEE, max_epochs=10, n_inputs=None).fit(X)
    placed = see.transform(X_new)
    nearest = np.square(X_new[:, None] - X).sum(2).argsort(1)[:, :15]
    low, high = see.embedding_[nearest].min(1), see.embedding_[nearest].max(1)
    assert ((placed >= low - 1e-3) & (placed <= high + 1e-3)).all()


@pytest.mark.parametrize("parameters", [dict(n_components=3), dict(exemplars="centers"), dict(contrast="full")])
def test_where_there_is_no_refinement_rows_pass_through_the_network(parameters, digits):
    see = quick(DtSEE, **parameters).fit(digits[0])
    assert see.placement_ == "forward"
    Y = see.transform(digits[2])
    refined = see.set_params(placement="refined").transform(digits[2])
    assert refined.shape == Y.shape
    assert np.isfinite(refined).all()
    assert not np.array_equal(Y, refined)


def test_some_rows_as_exemplars_are_refined_and_the_others_placed_among_them(digits):
    X = digits[0]
    few, enough = len(X) // 4 - 1, len(X) // 4 + 1
    for parameters in (dict(n_exemplars=few, placement="refined"), dict(n_exemplars=enough)):
        see = quick(DtSEE, **parameters).fit(X)
        np.testing.assert_array_equal(see.transform(X), see.embedding_)
        np.testing.assert_array_equal(see.embedding_[see.exemplar_indices_], see.exemplar_embedding_)
        assert see.placement_ == ("refined" if see.placement is None else "forward")


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
from sklearn.datasets import load_digits
from tsee import DtSEE, batches as store

X = load_digits().data
see = DtSEE(max_epochs=100000, random_state=0, optimizer=sys.argv[1])
epochs, batches = [], store.Store.batches

def counted(self, n_steps, epoch, skip=0):
    epochs.append(epoch)
    yield from batches(self, n_steps, epoch, skip)

def interrupt():
    while len(epochs) < 3:
        time.sleep(0.1)
    time.sleep(0.3)
    os.kill(os.getpid(), signal.SIGINT)

store.Store.batches = counted
threading.Thread(target=interrupt).start()
see.fit(X)
assert 0 < see.n_iter_ < 100000, see.n_iter_
assert np.isfinite(see.transform(X)).all()
see.save(sys.argv[2])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill cannot send SIGINT on Windows")
@pytest.mark.parametrize("optimizer", ["adam", "cg"])
def test_a_real_interrupt(optimizer, tmp_path):
    command = [sys.executable, "-c", INTERRUPTED, optimizer, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert "TrainingWarning: Training was interrupted after" in done.stderr
    assert load(tmp_path / "model").n_iter_ > 0


def test_divergence_leaves_a_fitted_estimator(digits):
    see = quick(DtSEE, learning_rate=1e30, max_epochs=5, normalization=None)
    with pytest.warns(TrainingWarning, match="Training diverged in epoch .*learning_rate"):
        see.fit(digits[0])
    assert np.isfinite(see.transform(digits[2])).all()


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
        for name in [*see.get_params(), *(name for name in fitted if name != "preprocessing_")]:
            assert f"\n    {name} : " in cls.__doc__, name
        assert "{" not in cls.__doc__


def test_epochs_follow_the_number_of_steps():
    of_mnist = [resolve_epochs(None, -(-60_000 // batch), 59) for batch in (100, 1024, 10_000)]
    assert of_mnist == [31, 31, 100]
    assert resolve_epochs(None, 977, 977) == 10
    assert resolve_epochs(None, 97_700, 97_700) == 2
    assert resolve_epochs(7, 100, 10) == 7


def test_batches_are_many_and_neither_small_nor_large():
    automatic = {2: 128, 5_000: 128, 10_000: 256, 20_000: 512, 60_000: 1024, 1_000_000: 1024}
    assert {n: resolve_batch_size(None, n, 32) for n in automatic} == automatic
    assert resolve_batch_size(100, 60_000, 32) == 100


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_the_map_is_as_good_by_products_of_bfloat16(cls, digits, monkeypatch):
    X, y, X_new, y_new = digits
    maps, errors = [], []
    for has in (False, True):
        monkeypatch.setattr(fitting, "has_bfloat16", lambda device, has=has: has)
        see = quick(cls, max_epochs=60, batch_size=128, refinement=0)
        maps.append(see.fit_transform(X))
        errors.append(knn_error(maps[-1], y, see.transform(X_new), y_new, k=5)[5])
    assert not np.array_equal(*maps)
    assert errors[1] < errors[0] + 0.03


def test_conjugate_gradient_has_all_digits(digits, monkeypatch):
    maps = []
    for has in (False, True):
        monkeypatch.setattr(fitting, "has_bfloat16", lambda device, has=has: has)
        maps.append(quick(DtSEE, optimizer="cg", normalization=None).fit_transform(digits[0]))
    np.testing.assert_array_equal(*maps)
