"""Zarr stores: nothing is unpickled, and chunks that are not there are mentioned."""

import json
import os
import pickle

import numcodecs.pickles
import numpy as np
import pytest
import zarr

from tsee.files import open_table


class Evil:
    def __reduce__(self):
        return os.mkdir, (os.environ["TSEE_TEST_EVIL"],)


PICKLE = {"id": "pickle", "protocol": 4}
V2 = {"zarr_format": 2, "shape": [2, 2], "chunks": [2, 2], "order": "C", "fill_value": 0}
V3 = {
    "zarr_format": 3,
    "node_type": "array",
    "shape": [2, 2],
    "data_type": "float64",
    "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2, 2]}},
    "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
    "fill_value": 0,
    "attributes": {},
}
INNER = {"chunk_shape": [2, 2], "codecs": [{"name": "numcodecs.pickle"}], "index_codecs": [{"name": "bytes"}]}


@pytest.mark.parametrize(
    "metadata",
    [
        V2 | {"dtype": "|O", "compressor": None, "filters": [PICKLE]},
        V2 | {"dtype": "|O", "compressor": None, "filters": None},
        V2 | {"dtype": "<f8", "compressor": PICKLE, "filters": None},
        V2 | {"dtype": "<f8", "compressor": None, "filters": [PICKLE]},
        V3 | {"codecs": [{"name": "bytes"}, {"name": "numcodecs.pickle", "configuration": {"protocol": 4}}]},
        V3 | {"codecs": [{"name": "sharding_indexed", "configuration": INNER}]},
    ],
)
def test_no_pickle_is_read(tmp_path, monkeypatch, refused, metadata):
    monkeypatch.setenv("TSEE_TEST_EVIL", str(tmp_path / "evil"))
    monkeypatch.setattr(numcodecs.pickles, "ALLOW_UNSAFE_PICKLE_DECODE", True)
    store, name = tmp_path / "a.zarr", ".zarray" if metadata["zarr_format"] == 2 else "zarr.json"
    for chunk in ("x/0.0", "x/c/0/0"):
        (store / chunk).parent.mkdir(parents=True, exist_ok=True)
        (store / chunk).write_bytes(pickle.dumps(np.array([[Evil(), 1], [2, 3]], dtype=object)))
    (store / "x" / name).write_text(json.dumps(metadata))
    group = {"zarr_format": metadata["zarr_format"], "node_type": "group", "attributes": {"name": "pickle"}}
    (store / (".zgroup" if name == ".zarray" else name)).write_text(json.dumps(group))
    for place in (store, store / "x"):
        refused(place, "describes Python objects, which are not read because they can run code")
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_labels_of_text_are_read(tmp_path, numbers, zarr_format, check_slices):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=zarr_format)
    group.attrs["name"] = "pickle"  # no codec
    group.create_array("x", shape=numbers.shape, chunks=(64, 6), dtype="f4")[:] = numbers
    group.create_array("kind", shape=(500,), dtype=str)[:] = np.array(["a", "b"] * 250, dtype=object)
    with open_table(tmp_path / "a.zarr", label="kind") as table:
        check_slices(table.rows, numbers)
        assert table.label[:3].tolist() == ["a", "b", "a"]
        assert table.notes == []


@pytest.mark.parametrize("zarr_format, shards", [(2, None), (3, None), (3, (100, 6))])
def test_chunks_that_are_not_there(tmp_path, numbers, zarr_format, shards):
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=zarr_format)
    array = group.create_array("x", shape=(500, 6), chunks=(50, 3), shards=shards, dtype="f4")
    array[:] = numbers
    assert open_table(tmp_path / "a.zarr").notes == []
    chunks = [path for path in (tmp_path / "a.zarr" / "x").rglob("*") if path.is_file() and path.name[-1].isdigit()]
    assert len(chunks) == (5 if shards else 20)
    chunks[0].unlink()
    chunks[1].unlink()
    (note,) = open_table(tmp_path / "a.zarr").notes
    assert note.startswith(f"2 of the {len(chunks)} chunks of 'x' are not in the store, and are read as 0.0: if these")
