"""Placing the rows of a table: the same positions as ``transform`` gives, in a file that is complete or not there."""

import signal
import time

import numpy as np
import pandas as pd
import pytest

import tsee
from tsee.exceptions import DataFileError, ModelError
from tsee.files import MapWriter
from tsee.serving import load_model, open_matching, place_blocks, place_table, placing


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(placing, "MIN_BLOCK_ROWS", 32)
    monkeypatch.setattr(placing, "MAX_BLOCK_ROWS", 32)
    monkeypatch.setattr(placing, "MAX_SPAN", 32)


@pytest.fixture
def path(frame, write, tmp_path):
    return write(tmp_path / "rows.parquet", frame)


@pytest.mark.parametrize("placement", [None, "refined", "forward"])
def test_blocks_are_placed_as_all_rows_at_once(frame, model, path, small_blocks, placement):
    expected = tsee.load(model)
    if placement is not None:
        expected.set_params(placement=placement)
    loaded = load_model(model, placement=placement)
    with open_matching(loaded, path) as table:
        blocks = list(place_blocks(loaded, table))
    assert [block.rows for block in blocks] == [slice(0, 32), slice(32, 60)]
    np.testing.assert_array_equal(np.concatenate([block.values for block in blocks]), frame[list("abcd")])
    found = np.concatenate([block.positions for block in blocks])
    np.testing.assert_array_equal(found, expected.transform(frame[list("abcd")]))


def test_a_method_without_exemplars(pairwise_model, path, tmp_path):
    loaded = load_model(pairwise_model, placement="forward")
    with open_matching(loaded, path) as table:
        place_table(loaded, table, tmp_path / "map.csv")
        with pytest.raises(ModelError, match="leave out the 'novelty' parameter"):
            place_table(loaded, table, tmp_path / "map.csv", novelty=True)
    with pytest.raises(ModelError, match="PtSNE has no exemplars, which refined placement needs"):
        load_model(pairwise_model, placement="refined")


def test_novelty_is_a_column(frame, see, positions, path, tmp_path):
    with open_matching(see, path) as table:
        place_table(see, table, tmp_path / "map.parquet", novelty=True)
        with pytest.raises(DataFileError, match="The 'novelty' parameter adds a column, which .* write text or Parq"):
            place_table(see, table, tmp_path / "map.npy", novelty=True)
    found = pd.read_parquet(tmp_path / "map.parquet")
    assert found.columns.tolist() == ["id", "kind", "tsee0", "tsee1", "novelty"]
    np.testing.assert_allclose(found[["tsee0", "tsee1"]], positions, rtol=1e-6)
    np.testing.assert_allclose(found["novelty"], see.novelty(frame[list("abcd")]), rtol=1e-6)


def test_a_failure_leaves_the_old_map_and_names_the_row(frame, see, write, tmp_path, small_blocks, monkeypatch):
    out = tmp_path / "map.csv"
    out.write_text("old")
    far = frame.copy()
    far.loc[50, "a"], far.loc[50, "c"] = np.float32(3e38), np.float32(-3e38)
    path = write(tmp_path / "far.parquet", far)
    with (
        open_matching(see, path) as table,
        pytest.raises(DataFileError, match=rf"'{path}', row 50 is too far from the data of fit to be placed"),
    ):
        place_table(see, table, out)
    path = write(tmp_path / "nan.parquet", frame.assign(b=frame["b"].where(frame.index != 40)))
    with pytest.raises(DataFileError, match="row 40, column 'b'"), open_matching(see, path) as table:
        place_table(see, table, out)
    assert out.read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["far.parquet", "map.csv", "nan.parquet"]


def test_bad_paths_are_refused_before_the_work(frame, see, write, tmp_path, monkeypatch):
    monkeypatch.setattr(placing, "place_blocks", lambda *given, **named: pytest.fail("placing began"))
    path = write(tmp_path / "rows.csv", frame)
    for out, sentence in (
        (tmp_path / "map.xlsx", "map.xlsx"),
        (path / "map.csv", "cannot be written to"),
        (tmp_path / "map.h5ad", "would be a copy of an .h5ad input"),
        (path, "is the data itself"),
    ):
        with open_matching(see, path) as table, pytest.raises(DataFileError, match=sentence):
            place_table(see, table, out)


def test_killed_while_writing(process, model, path, tmp_path):
    code = """
        import sys, time
        from tsee.files import MapWriter
        from tsee.serving import load_model, open_matching, place_table, placing

        model, data, output = sys.argv[1:]
        original = MapWriter.write
        placing.MIN_BLOCK_ROWS = placing.MAX_BLOCK_ROWS = placing.MAX_SPAN = 32

        def slow(self, positions):
            original(self, positions)
            time.sleep(600)

        MapWriter.write = slow
        loaded = load_model(model)
        with open_matching(loaded, data) as table:
            place_table(loaded, table, output)
    """
    output = tmp_path / "maps" / "map.csv"
    output.parent.mkdir()
    started = process(code, model, path, output)
    deadline = time.monotonic() + 120
    while not any(output.parent.iterdir()):
        assert started.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    started.kill()
    assert started.wait() == -signal.SIGKILL
    assert [entry.name.startswith(".map.csv.") for entry in output.parent.iterdir()] == [True]


def test_memory_holds_one_block(see, path, tmp_path, small_blocks, monkeypatch):
    sizes, original = [], MapWriter.write
    monkeypatch.setattr(MapWriter, "write", lambda self, block: (sizes.append(len(block)), original(self, block)))
    with open_matching(see, path) as table:
        place_table(see, table, tmp_path / "map.npy")
    assert sizes == [32, 28]
