"""`tsee.transform_batches`: the kinds of batches that engines use, and one of the engines itself."""

import pickle
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tsee


@pytest.fixture(scope="session")
def frame(frame):
    return frame.drop(columns="kind")


def columns(batch, *names):
    return np.stack([np.asarray(batch[name]) for name in names], 1)


@pytest.mark.parametrize("kind", [pd.DataFrame, pa.Table, dict])
def test_a_batch_of_each_kind(frame, see, model, kind):
    batch = {"dict": frame.to_dict("series"), "Table": pa.Table.from_pandas(frame)}.get(kind.__name__, frame)
    found = pickle.loads(pickle.dumps(tsee.transform_batches(model)))(batch)
    assert isinstance(found, kind)
    assert list(getattr(found, "column_names", found)) == ["id", "tsee0", "tsee1"]
    np.testing.assert_array_equal(columns(found, "tsee0", "tsee1"), see.transform(frame[list("abcd")]))


def test_placement_novelty_and_the_index(frame, see, model):
    shuffled = frame.sample(frac=1, random_state=0)
    found = tsee.transform_batches(model, placement="forward", novelty=True)(shuffled)
    assert found.index.equals(shuffled.index)
    forward = tsee.load(model).set_params(placement="forward")
    np.testing.assert_array_equal(columns(found, "tsee0", "tsee1"), forward.transform(shuffled[list("abcd")]))
    np.testing.assert_array_equal(found["novelty"], see.novelty(shuffled[list("abcd")]))


def test_vectors_in_one_column(frame, see, unnamed_model):
    X = frame[list("abcd")].to_numpy()
    expected = see.transform(frame[list("abcd")])
    place = tsee.transform_batches(unnamed_model)
    np.testing.assert_array_equal(columns(place({"data": X}), "tsee0", "tsee1"), expected)
    found = tsee.transform_batches(unnamed_model, columns="v")(pd.DataFrame({"v": list(X), "id": frame["id"]}))
    assert list(found) == ["id", "tsee0", "tsee1"]
    np.testing.assert_array_equal(columns(found, "tsee0", "tsee1"), expected)


def test_no_rows(frame, model):
    found = tsee.transform_batches(model, novelty=True)(frame[:0])
    assert list(found) == ["id", "tsee0", "tsee1", "novelty"]
    assert len(found) == 0


def test_what_does_not_fit_is_reported(frame, model, unnamed_model):
    with pytest.raises(ValueError, match=r"The batch has no column 'c', which is a feature of the model: add it"):
        tsee.transform_batches(model)(frame.drop(columns="c"))
    with pytest.raises(ValueError, match="the batch has 5 columns: name the features"):
        tsee.transform_batches(unnamed_model)(frame)
    with pytest.raises(ValueError, match="The batch has 2 features, but the model was fitted with 4"):
        tsee.transform_batches(model, columns=["a", "b"])(frame)
    with pytest.raises(TypeError, match="Got a list instead"):
        tsee.transform_batches(model)([1, 2])


def test_ray_data_as_in_the_docs(frame, see, model, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'ray[data]'")
    docs = Path(__file__).parents[2] / "docs" / "scaling.md"
    (example,) = re.findall(r"```python\n(import ray.*?)```", docs.read_text(), re.DOTALL)
    monkeypatch.chdir(tmp_path)
    shutil.copytree(model, "model")
    Path("shards").mkdir()
    for i in range(3):
        frame[20 * i : 20 * (i + 1)].to_parquet(f"shards/{i}.parquet")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=100 * 2**20)
    try:
        exec(example, {})
    finally:
        ray.shutdown()
    found = pd.read_parquet("maps").sort_values("id")
    np.testing.assert_allclose(columns(found, "tsee0", "tsee1"), see.transform(frame[list("abcd")]), atol=1e-5)
