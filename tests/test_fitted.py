"""The fitted map: complete, frozen, the same from its tensors; and a refit starts from scratch."""

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError

from tests.quick import EVERY, quick
from tsee import DtSEE, FittedMap, HotSEE, ModelError, PtSNE
from tsee.exceptions import RowError
from tsee.files import open_table
from tsee.fitted import fitted_map


@pytest.mark.parametrize("cls", EVERY)
@pytest.mark.parametrize("changes", [{}, {"standardize": True}, {"n_inputs": None, "normalization": "batch"}])
def test_from_tensors_it_is_the_same_map(cls, changes, digits):
    see = quick(cls, **changes).fit(digits[0])
    description, tensors = see.map_.to_tensors()
    again = FittedMap.from_tensors(description, tensors)
    np.testing.assert_array_equal(again.place(digits[2]), see.transform(digits[2]))
    np.testing.assert_array_equal(again.embedding, see.embedding_)
    if again.exemplars is not None:
        np.testing.assert_array_equal(again.novelty(digits[2]), see.novelty(digits[2]))
    for name in ("method", "n_components", "n_features", "feature_names", "perplexity", "placement", "history"):
        assert getattr(again, name) == getattr(see.map_, name)
    # Nothing shares memory with the map it was made of.
    tensors["preprocessing.mean"] += 1
    np.testing.assert_array_equal(see.map_.place(digits[0]), see.embedding_)


def test_it_is_frozen(digits):
    fitted = quick(DtSEE).fit(digits[0]).map_
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted.placement = "forward"


def test_placement_is_resolved_in_one_place(digits):
    see = quick(DtSEE).fit(digits[0])
    assert see.map_.placement == "refined"
    forward = see.map_.place(digits[2], "forward")
    assert not np.array_equal(forward, see.map_.place(digits[2]))
    see.set_params(placement="forward")
    np.testing.assert_array_equal(see.transform(digits[2]), forward)
    np.testing.assert_array_equal(fitted_map(see).place(digits[2]), forward)
    assert fitted_map(see).placement == "forward"
    assert see.map_.placement == "refined"
    assert fitted_map(see.map_) is see.map_
    with pytest.raises(ValueError, match="placement must be"):
        see.map_.place(digits[2], "sideways")
    pairwise = quick(PtSNE).fit(digits[0]).map_
    with pytest.raises(ModelError, match="PtSNE has no exemplars"):
        pairwise.place(digits[2], "refined")
    with pytest.raises(ModelError, match="PtSNE has no exemplars"):
        pairwise.novelty(digits[2])
    with pytest.raises(NotFittedError):
        fitted_map(DtSEE())


def test_rows_of_every_kind_are_placed_and_bad_ones_refused(digits):
    see = quick(DtSEE).fit(digits[0].astype(np.float32))
    # Whole numbers tie, and rounding would decide which of two neighbors is nearer.
    X = (digits[2] + np.random.default_rng(0).uniform(-0.3, 0.3, digits[2].shape)).astype(np.float32)
    expected = see.transform(X)
    for kind in (X, torch.from_numpy(X), scipy.sparse.csr_matrix(X)):
        np.testing.assert_array_equal(see.map_.place(kind), expected)
    np.testing.assert_allclose(see.map_.place(X.tolist()), expected, rtol=1e-4, atol=1e-4)  # float64
    assert see.map_.place(X[:0]).shape == (0, 2)
    with pytest.raises(ValueError, match="matrix with 64 columns"):
        see.map_.place(X[:, :3])
    with pytest.raises(ValueError, match="must hold numbers"):
        see.map_.place(X.astype(str))
    bad = X.copy()
    bad[7, 3] = np.nan
    with pytest.raises(ValueError, match="NaN in row 7, column 3"):
        see.map_.place(bad)


REFITS = [
    dict(refinement=0, placement="refined"),
    dict(exemplars="centers", n_exemplars=50, placement="refined"),
    dict(contrast="full", n_exemplars=50, placement="refined"),
    dict(contrast="noise", n_exemplars=50, placement="refined"),
    dict(n_components=3, placement="refined"),
    dict(n_exemplars=8, perplexity=2, placement="refined"),
    dict(placement="forward"),
]


@pytest.mark.parametrize("make", [lambda frame: frame, polars.from_pandas, pyarrow.Table.from_pandas])
def test_columns_are_found_by_name(make):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 4)), columns=list("abcd"))
    see = quick(DtSEE).fit(make(frame))
    fitted, expected = see.map_, see.embedding_
    other = frame[list("dcba")]
    for X in (frame, other, other.assign(extra=1.0), other.assign(note="words")):
        np.testing.assert_array_equal(fitted.place(make(X)), expected)
        np.testing.assert_array_equal(fitted.novelty(make(X)), see.novelty(frame))
    np.testing.assert_array_equal(fitted.place(frame.to_numpy()), expected)
    np.testing.assert_array_equal(fitted.place(pd.DataFrame(frame.to_numpy())), expected)  # without names
    with pytest.raises(ValueError, match="X lacks columns that the model was fitted with: 'd'"):
        fitted.place(make(frame.rename(columns={"d": "e"})))
    with pytest.raises(ValueError, match="same order"):
        see.transform(other)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_of_a_file_are_found_by_name(suffix, tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 4)), columns=list("abcd"))
    see = quick(DtSEE).fit(frame)

    def rows(X):
        path = tmp_path / f"table{suffix}"
        X.to_csv(path, index=False) if suffix == ".csv" else X.to_parquet(path)
        return open_table(path).rows

    for X in (frame, frame[list("dcba")], frame[list("dcba")].assign(extra=1.0)):
        np.testing.assert_allclose(see.map_.place(rows(X)), see.embedding_, atol=1e-3)
        np.testing.assert_allclose(see.map_.novelty(rows(X)), see.novelty(frame), atol=1e-3)
        np.testing.assert_array_equal(see.map_.place(rows(X)), see.transform(rows(X)))
    with pytest.raises(ValueError, match="X lacks columns that the model was fitted with: 'd'"):
        see.map_.place(rows(frame.rename(columns={"d": "e"})))
    np.save(tmp_path / "unnamed.npy", frame.to_numpy())
    np.testing.assert_array_equal(see.map_.place(open_table(tmp_path / "unnamed.npy").rows), see.embedding_)


@pytest.mark.parametrize("how", ["refined", "forward"])
def test_a_row_too_far_away_is_named(how, digits):
    see = quick(DtSEE).fit(digits[0])
    far = digits[2].copy()
    far[[7, 9]] = 1e300
    with pytest.raises(RowError) as caught:
        see.map_.place(far, how)
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):  # other processes send it back
        assert error.row == 7
        assert str(error) == "Row 7 of X is too far from the data of fit to be placed: check its values."


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
@pytest.mark.parametrize("changes", REFITS, ids=str)
@pytest.mark.filterwarnings("ignore::tsee.DataWarning")
def test_a_refit_starts_from_nothing(cls, changes, digits, tmp_path):
    """Whatever was fitted before, with whatever parameters, nothing of it is left."""
    first, second = digits[0], digits[2][:, :40]
    fresh = quick(cls, **changes).fit(second)
    for before in (changes, {}):
        see = quick(cls, **before).fit(first).set_params(**quick(cls, **changes).get_params()).fit(second)
        np.testing.assert_array_equal(see.transform(second), fresh.transform(second))
        np.testing.assert_array_equal(see.embedding_, fresh.embedding_)
        np.testing.assert_array_equal(see.exemplar_embedding_, fresh.exemplar_embedding_)
        np.testing.assert_array_equal(see.novelty(second), fresh.novelty(second))
        assert see.placement_ == fresh.placement_
        assert see.history_ == fresh.history_
        see.save(tmp_path / "refitted")
        fresh.save(tmp_path / "fresh")
        for name in ("config.json", "model.safetensors"):
            assert (tmp_path / "refitted" / name).read_bytes() == (tmp_path / "fresh" / name).read_bytes()


def test_a_refit_forgets_the_names_of_features(digits):
    import pandas as pd

    frame = pd.DataFrame(digits[0], columns=[f"p{i}" for i in range(64)])
    see = quick(DtSEE).fit(frame)
    assert see.map_.feature_names == tuple(frame.columns)
    see.fit(digits[0])
    assert not hasattr(see, "feature_names_in_")
    assert see.map_.feature_names is None


@pytest.mark.parametrize("contrast", ["sampled", "full", "noise"])
def test_several_threads_give_the_same_map_every_time(contrast, digits):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        see = DtSEE(contrast=contrast, n_exemplars=300, max_epochs=3, random_state=0, n_neighbors=40)
        np.testing.assert_array_equal(see.fit_transform(digits[0]), see.fit_transform(digits[0]))
    finally:
        torch.set_num_threads(before)


FORKED = """
import multiprocessing, sys
import numpy as np, torch
from sklearn.datasets import load_digits
import tsee
torch.set_num_threads(2)
X = np.tile(load_digits().data[:900], (1, 4))  # enough numbers for torch to use its threads
if sys.argv[2] == "fit":
    tsee.DtSEE(max_epochs=1, refinement=5, hidden_layers=(64,), random_state=0).fit(X).save(sys.argv[1])
    sys.exit()
see = tsee.load(sys.argv[1])
if sys.argv[2] == "used":
    see.transform(X)  # starts torch's threads
def work(queue):
    queue.put((see.transform(X), see.novelty(X[:50])))
context = multiprocessing.get_context("fork")
queue = context.Queue()
process = context.Process(target=work, args=(queue,))
process.start()
found, novelty = queue.get(timeout=120)
process.join(timeout=60)
assert process.exitcode == 0
assert found.shape == (len(X), 2) and np.isfinite(found).all() and novelty.shape == (50,)
"""


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="a fork without exec is safe on Linux only")
@pytest.mark.parametrize("parent", ["loaded", "used"])
def test_a_forked_child_places_rows(parent, tmp_path):
    """As with gunicorn --preload and multiprocessing on Linux: torch's threads do not survive a fork."""
    for what in ("fit", parent):
        command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path / "model"), what]
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
        assert done.returncode == 0, done.stderr
