"""`place_folder`: a map for each file, whichever worker makes it, and however often it is stopped."""

import dataclasses
import json
import os
import signal
import time

import numpy as np
import pandas as pd
import pytest

import tsee
from tsee.exceptions import DataFileError, ModelError
from tsee.serving import FolderResult, ReadOptions, place_folder
from tsee.serving.shards import becomes_folder_of_maps

OPTIONS = ReadOptions(label="kind")
SLOW_WORKER = """
    import dataclasses, json, sys, time
    from tsee.serving import ReadOptions, shards
    seconds, model, data, output = sys.argv[1:]
    place_table = shards.place_table
    def slowly(*given, **named):
        print("begun", flush=True)
        time.sleep(float(seconds))
        place_table(*given, **named)
    shards.place_table = slowly
    result = shards.place_folder(model, data, output, ReadOptions(label="kind"))
    print(json.dumps(dataclasses.asdict(result)))
    """


@pytest.fixture
def shards(frame, write, tmp_path):
    """The table in six Parquet files, in two folders."""
    folder = tmp_path / "shards"
    for i in range(6):
        write(folder / f"year={2020 + i % 2}" / f"part-{i}.parquet", frame[10 * i : 10 * (i + 1)])
    (folder / "_SUCCESS").write_text("")
    return folder


@pytest.fixture
def output(tmp_path):
    return tmp_path / "maps"


def maps(folder):
    files = sorted(folder.rglob("*.parquet"), key=lambda path: path.name)
    return pd.concat([pd.read_parquet(path) for path in files], ignore_index=True)


def hidden(folder):
    return [path.name for path in folder.rglob(".*")]


def test_a_map_for_each_file(model, shards, frame, positions, output):
    opened = []
    result = place_folder(model, shards, output, OPTIONS, on_first_table=opened.append)
    assert result == FolderResult(n_placed=6, n_rows=60)
    assert len(opened) == 1
    names = {path.relative_to(shards) for path in shards.rglob("*.parquet")}
    assert {path.relative_to(output) for path in output.rglob("*.parquet")} == names
    found = maps(output)
    assert list(found) == ["id", "kind", "tsee0", "tsee1"]
    assert found["id"].tolist() == frame["id"].tolist()
    np.testing.assert_allclose(found[["tsee0", "tsee1"]].to_numpy(), positions, atol=1e-5)
    assert hidden(output) == []


def test_maps_that_exist_are_not_made_again(model, shards, output):
    place_folder(model, shards, output, OPTIONS)
    written = {path: path.stat().st_mtime_ns for path in output.rglob("*.parquet")}
    removed, *left = written
    removed.unlink()
    assert place_folder(model, shards, output, OPTIONS) == FolderResult(n_placed=1, n_rows=10, n_already_placed=5)
    assert {path: path.stat().st_mtime_ns for path in left} == {path: written[path] for path in left}
    # A file that has changed since is placed again.
    changed = shards / left[0].relative_to(output)
    os.utime(changed, ns=(time.time_ns() + 10**9, time.time_ns() + 10**9))
    assert place_folder(model, shards, output, OPTIONS).n_placed == 1


def test_maps_of_different_settings_are_not_mixed(model, unnamed_model, shards, output, tmp_path):
    place_folder(model, shards, output, OPTIONS)
    place_folder(model, shards, output, OPTIONS, placement=tsee.load(model).map_.placement)  # what took effect before
    with pytest.raises(DataFileError, match="were made with a different 'placement'"):
        place_folder(model, shards, output, OPTIONS, placement="forward")
    with pytest.raises(DataFileError, match="were made with a different 'model'"):
        place_folder(unnamed_model, shards, output, OPTIONS)
    with pytest.raises(DataFileError, match="were made with a different 'label', 'drop'"):
        place_folder(model, shards, output, ReadOptions(drop=("kind",)))
    with pytest.raises(DataFileError, match="is inside the folder of the data"):
        place_folder(model, shards, shards / "year=2020", OPTIONS)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    with pytest.raises(DataFileError, match="holds other files"):
        place_folder(model, shards, tmp_path / "full", OPTIONS)
    (output / "_tsee.json").write_text("{")
    with pytest.raises(DataFileError, match="is damaged"):
        place_folder(model, shards, output, OPTIONS)


def test_names_in_a_tuple_are_the_same_settings_as_in_a_list(model, shards, output):
    place_folder(model, shards, output, ReadOptions(drop=("kind",)))
    assert place_folder(model, shards, output, ReadOptions(drop=["kind"])).n_already_placed == 6


def test_a_bad_file_does_not_stop_the_others(model, shards, output):
    bad = shards / "year=2020" / "part-0.parquet"
    bad.write_bytes(bad.read_bytes()[:100])
    result = place_folder(model, shards, output, OPTIONS)
    assert (result.n_placed, len(result.failures)) == (5, 1)
    assert str(bad) in result.failures[0]
    assert len(maps(output)) == 50
    assert hidden(output) == []


def test_a_method_without_exemplars_has_no_novelty(pairwise_model, shards, output):
    with pytest.raises(ModelError, match="leave out the 'novelty' parameter"):
        place_folder(pairwise_model, shards, output, OPTIONS, novelty=True)
    assert not output.exists()


def test_files_of_other_kinds(model, frame, positions, write, output, tmp_path):
    write(tmp_path / "data" / "rows.npy", frame)
    write(tmp_path / "data" / "table.csv", frame)
    place_folder(model, tmp_path / "data", output)
    np.testing.assert_array_equal(np.load(output / "rows.npy"), positions)
    assert len(pd.read_csv(output / "table.csv")) == len(frame)
    for extension in (".h5", ".parquet"):
        (tmp_path / "data" / f"more{extension}").write_text("")
    with pytest.raises(DataFileError, match="differ only in their extensions"):
        place_folder(model, tmp_path / "data", output)
    (tmp_path / "none").mkdir()
    with pytest.raises(DataFileError, match="holds no data files"):
        place_folder(model, tmp_path / "none", tmp_path / "new")


def test_when_a_folder_becomes_a_folder_of_maps(shards, tmp_path):
    (tmp_path / "with.extension").mkdir()
    assert becomes_folder_of_maps(shards, tmp_path / "maps")
    assert becomes_folder_of_maps(shards, tmp_path / "with.extension")
    assert not becomes_folder_of_maps(shards, tmp_path / "map.csv")
    assert not becomes_folder_of_maps(shards / "year=2020" / "part-0.parquet", tmp_path / "maps")


def test_workers_share_the_files(process, model, shards, output):
    workers = [process(SLOW_WORKER, 0.3, model, shards, output, stdout=-1, text=True) for _ in range(2)]
    lines = [worker.communicate(timeout=120)[0].splitlines() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    results = [FolderResult(**json.loads(said[-1])) for said in lines]
    assert sum(result.n_placed for result in results) == 6
    assert all(result.n_placed + result.n_already_placed + result.n_elsewhere == 6 for result in results)
    assert len(maps(output)) == 60
    assert hidden(output) == []


def test_the_unfinished_map_of_another_worker_stays(model, frame, write, output, tmp_path):
    write(tmp_path / "data" / "a.csv", frame)
    output.mkdir()
    (output / ".a.csv.gz.0123abcd.writing").write_text("another worker's")
    place_folder(model, tmp_path / "data", output, OPTIONS)
    assert hidden(output) == [".a.csv.gz.0123abcd.writing"]


def test_a_killed_worker_loses_only_the_file_it_was_placing(process, model, shards, positions, output):
    killed = process(SLOW_WORKER, 0.5, model, shards, output, stdout=-1, text=True)
    assert [killed.stdout.readline() for _ in range(3)] == ["begun\n"] * 3  # two are done, it is placing the third
    assert place_folder(model, shards, output, OPTIONS).n_elsewhere == 1
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert hidden(output) != []  # its lock file, which no longer locks
    result = place_folder(model, shards, output, OPTIONS)
    assert dataclasses.replace(result, n_rows=0) == FolderResult(n_placed=1, n_already_placed=5)
    np.testing.assert_allclose(maps(output)[["tsee0", "tsee1"]].to_numpy(), positions, atol=1e-5)
    assert hidden(output) == []


def test_what_a_killed_worker_left_is_removed(model, shards, output):
    place_folder(model, shards, output, OPTIONS)
    left = output / "year=2020" / ".part-0.parquet.claim"  # killed after its map was complete
    left.touch()
    assert place_folder(model, shards, output, OPTIONS).n_already_placed == 6
    assert hidden(output) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes on this system")
def test_a_pipe_among_the_maps_is_no_reason_to_hang(model, shards, output):
    (output / "year=2020").mkdir(parents=True)
    os.mkfifo(output / "_tsee.json")
    with pytest.raises(DataFileError, match="is damaged"):
        place_folder(model, shards, output, OPTIONS)
    (output / "_tsee.json").unlink()
    os.mkfifo(output / "year=2020" / ".part-0.parquet.claim")
    with pytest.raises(DataFileError, match="holds other files|not a plain file"):
        place_folder(model, shards, output, OPTIONS)
