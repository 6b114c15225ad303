"""Data that are not in memory: they are read by slice, and give the same map; optional libraries stay unimported."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_digits

import tsee
from tsee import DtSEE, HotSEE, HotSNE, PtSNE
from tsee import batches as store
from tsee.data import check_rows
from tsee.exceptions import DataFileError, DataWarning
from tsee.files import open_table
from tsee.files.rows import Rows

EVERY = [DtSEE, HotSEE, PtSNE, HotSNE]


def quick(cls=DtSEE, **changes):
    sizes = dict(hidden_layers=(16,)) if cls in (DtSEE, PtSNE) else dict(n_factors=20, n_hidden=10)
    return cls(max_epochs=2, random_state=0, **{**sizes, **changes})


@pytest.fixture(scope="module")
def X():
    return load_digits().data.astype(np.float32)


@pytest.fixture
def frame(X):
    return pd.DataFrame(X, columns=[f"pixel{i}" for i in range(64)])


@pytest.fixture
def on_disk(monkeypatch):
    """Rows of a file are kept on disk, in buckets of a few hundred rows."""
    monkeypatch.setattr(store, "MEMORY", 0)
    monkeypatch.setattr(store, "BUCKET_ROWS", 300)


def saved(X, folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


@pytest.mark.parametrize(
    ("cls", "changes"),
    [(cls, {}) for cls in EVERY]
    + [
        (DtSEE, dict(n_exemplars=100)),
        (DtSEE, dict(exemplars="centers", n_exemplars=50)),
        (DtSEE, dict(contrast="full", n_exemplars=100)),
        (DtSEE, dict(contrast="noise", n_exemplars=200)),
        (DtSEE, dict(optimizer="cg")),
    ],
)
def test_the_map_from_disk_is_the_one_from_memory(cls, changes, X, tmp_path, on_disk):
    """The same batches in the same order: only where the rows are kept between two epochs differs."""
    see, stored = quick(cls, **changes).fit(X), quick(cls, **changes).fit(saved(X, tmp_path))
    assert see.history_ == stored.history_
    np.testing.assert_array_equal(see.transform(X), stored.transform(X))
    with pytest.raises(AttributeError, match=r"transform\(X\) gives them"):
        stored.embedding_  # noqa: B018
    np.testing.assert_array_equal(quick(cls, **changes).fit_transform(tmp_path / "rows.npy"), see.transform(X))


def test_a_model_without_the_positions_of_its_rows_is_saved_and_loaded(X, tmp_path, on_disk):
    see = quick().fit(saved(X, tmp_path))
    see.save(tmp_path / "model")
    loaded = tsee.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.transform(X), see.transform(X))
    assert not hasattr(loaded, "embedding_")
    assert loaded.get_feature_names_out().tolist() == ["tsee0", "tsee1"]


def test_small_data_are_kept_in_memory(X, tmp_path):
    see = quick().fit(saved(X, tmp_path))
    np.testing.assert_array_equal(see.embedding_, quick().fit(X).embedding_)


@pytest.mark.parametrize("order", ["sorted", "shuffled"])
def test_rows_sorted_by_class_give_as_good_a_map(order, tmp_path, on_disk):
    """Buckets of sorted rows would have one class each."""
    X, y = load_digits(return_X_y=True)
    X = X.astype(np.float32)
    rows = np.argsort(y, kind="stable") if order == "sorted" else np.random.RandomState(0).permutation(len(y))
    see = DtSEE(max_epochs=20, hidden_layers=(64, 64), refinement=0, random_state=0).fit(saved(X[rows], tmp_path))
    assert tsee.metrics.knn_error(see.transform(X), y, k=5)[5] < 0.12


@pytest.mark.parametrize("extension", ["csv", "tsv", "parquet"])
def test_a_path_is_fitted_and_placed_by_the_names_of_its_columns(extension, X, frame, tmp_path):
    frame.insert(0, "id", [f"digit {i}" for i in range(len(frame))])
    path, mixed = tmp_path / f"rows.{extension}", tmp_path / f"mixed.{extension}"
    for target, content in ((path, frame), (mixed, frame[frame.columns[::-1]].assign(more=1.5))):
        if extension == "parquet":
            content.to_parquet(target)
        else:
            content.to_csv(target, index=False, sep="\t" if extension == "tsv" else ",")
    with pytest.warns(DataWarning, match="'id'"):
        see = quick().fit(path)
    assert see.feature_names_in_.tolist() == [f"pixel{i}" for i in range(64)]
    np.testing.assert_array_equal(see.embedding_, quick().fit(X).embedding_)
    np.testing.assert_array_equal(see.transform(mixed), see.transform(str(path)))


def test_columns_that_a_file_lacks_are_named(frame, tmp_path):
    frame.to_parquet(tmp_path / "rows.parquet")
    frame.drop(columns=["pixel3", "pixel5"]).to_parquet(tmp_path / "fewer.parquet")
    see = quick().fit(tmp_path / "rows.parquet")
    with pytest.raises(DataFileError, match="pixel3"):
        see.transform(tmp_path / "fewer.parquet")
    with (
        open_table(tmp_path / "fewer.parquet") as table,
        pytest.raises(ValueError, match="lacks .*'pixel3', 'pixel5'"),
    ):
        see.transform(table.rows)


def test_the_rows_of_a_table_keep_its_label_out(frame, tmp_path):
    frame["digit"] = load_digits().target
    frame.to_parquet(tmp_path / "rows.parquet")
    with open_table(tmp_path / "rows.parquet", label="digit") as table:
        see = quick().fit(table.rows)
        assert see.n_features_in_ == 64
        np.testing.assert_array_equal(see.transform(table.rows), see.embedding_)


def test_another_number_of_features_is_refused(X, tmp_path):
    see = quick().fit(X)
    with pytest.raises(ValueError, match="X has 60 features, but DtSEE is expecting 64"):
        see.transform(saved(X[:, :60], tmp_path))


def test_a_value_that_is_not_finite_is_named_with_its_file(X, tmp_path):
    X = X.copy()
    X[1500, 7] = np.nan
    with pytest.raises(DataFileError, match=r"rows\.npy' holds NaN in row 1500, column 7"):
        quick().fit(saved(X, tmp_path))


def test_a_fit_that_fails_on_a_file_leaves_the_previous_fit_intact(X, tmp_path):
    see = quick().fit(X)
    before = see.transform(X)
    with pytest.raises(DataFileError, match="no file"):
        see.fit(tmp_path / "absent.npy")
    np.testing.assert_array_equal(see.transform(X), before)


class Slices:
    """Rows that can only be read by slice, and know how long the longest slice was."""

    def __init__(self, X):
        self._X, self.shape, self.dtype, self.longest = X, X.shape, X.dtype, 0

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        block = self._X[rows]
        self.longest = max(self.longest, block.shape[0])
        return block


def test_sliced_rows_are_read_in_short_slices(X):
    X = np.repeat(X, 3, axis=0)
    sliced = Slices(X)
    see = quick(n_exemplars=200).fit(sliced)
    np.testing.assert_array_equal(see.transform(sliced), quick(n_exemplars=200).fit(X).transform(X))
    assert sliced.longest <= 1024 < len(X)


def test_sparse_rows_of_a_file_are_made_dense_by_the_block(X, tmp_path):
    scipy.sparse.save_npz(tmp_path / "rows.npz", scipy.sparse.csr_matrix(X), compressed=False)
    np.testing.assert_array_equal(quick().fit(tmp_path / "rows.npz").embedding_, quick().fit(X).embedding_)


def test_a_memory_map_is_read_by_slice(X, tmp_path):
    mapped = np.load(saved(X, tmp_path), mmap_mode="r")
    see = quick()
    rows = check_rows(see, mapped, reset=True)
    assert isinstance(rows, Rows)
    np.testing.assert_array_equal(see.fit(mapped).embedding_, quick().fit(X).embedding_)


def test_rows_that_are_not_counted_are_refused(X):
    sliced = Slices(X)
    sliced.shape = (float("nan"), 64)
    with pytest.raises(ValueError, match="compute_chunk_sizes"):
        quick().fit(sliced)


def test_a_single_row_is_refused(X, tmp_path):
    with pytest.raises(ValueError, match="minimum of 2"):
        quick().fit(saved(X[:1], tmp_path))


# Optional libraries


def test_a_library_is_imported_only_for_its_own_data():
    code = """
import sys
import numpy, scipy.sparse, torch
from tsee import DtSEE
X = numpy.random.default_rng(0).normal(size=(50, 5))
for rows in (X, X.tolist(), scipy.sparse.csr_array(X), torch.from_numpy(X)):
    DtSEE(max_epochs=1, hidden_layers=(8,), refinement=0, random_state=0).fit(rows).transform(rows)
names = ("polars", "dask", "h5py", "zarr", "pyarrow", "anndata", "onnx", "xarray")
print([name for name in names if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
