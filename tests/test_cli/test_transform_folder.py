"""``tsee transform`` of a folder of shards: a map for each, whoever makes it, and however often it is stopped."""

import json
import os
import signal
import time

import numpy as np
import pandas as pd
import pytest

SLOW_WORKER = """
    import sys, time
    from tsee.cli import main
    from tsee.serving import placing
    write = placing.write_places
    def slowly(*given, **named):
        print("begun", flush=True)
        time.sleep(float(sys.argv[1]))
        write(*given, **named)
    placing.write_places = slowly
    main(sys.argv[2:])
    """


@pytest.fixture
def shards(flowers, write, tmp_path):
    """The flowers in six Parquet files, in two folders."""
    folder = tmp_path / "shards"
    for i in range(6):
        path = folder / f"year={2020 + i % 2}" / f"part-{i}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, flowers[15 * i : 15 * (i + 1)])
    (folder / "_SUCCESS").write_text("")
    return folder


def maps(folder):
    files = sorted(folder.rglob("*.parquet"), key=lambda path: path.name)
    return pd.concat([pd.read_parquet(path) for path in files], ignore_index=True)


def hidden(folder):
    return [path.name for path in folder.rglob(".*")]


def test_one_map_a_shard(run, model, shards, flowers, places, tmp_path):
    result = run("transform", model, shards, "--label", "kind", "-o", tmp_path / "maps")
    assert result.stdout.startswith("Placed 90 rows of 6 files in ")
    assert result.stderr.count("Kept aside") == 1
    names = [path.relative_to(shards) for path in shards.rglob("*.parquet")]
    assert {path.relative_to(tmp_path / "maps") for path in (tmp_path / "maps").rglob("*.parquet")} == set(names)
    found = maps(tmp_path / "maps")
    assert list(found) == ["id", "kind", "tsee0", "tsee1"]
    assert found["id"].tolist() == flowers["id"].tolist()
    np.testing.assert_allclose(found[["tsee0", "tsee1"]].to_numpy(), places, atol=1e-5)
    assert hidden(tmp_path / "maps") == []


def test_what_is_there_is_not_made_again(run, model, shards, tmp_path):
    given = ["transform", model, shards, "--label", "kind", "-o", tmp_path / "maps", "--json"]
    run(*given)
    written = {path: path.stat().st_mtime_ns for path in (tmp_path / "maps").rglob("*.parquet")}
    gone, *left = written
    gone.unlink()
    found = json.loads(run(*given).stdout)
    assert found["files"] == {"placed": 1, "there_already": 5, "in_other_hands": 0}
    assert found["rows"] == 15
    assert {path: path.stat().st_mtime_ns for path in left} == {path: written[path] for path in left}
    # A shard that has changed since is placed again.
    changed = shards / left[0].relative_to(tmp_path / "maps")
    os.utime(changed, ns=(time.time_ns() + 10**9, time.time_ns() + 10**9))
    assert json.loads(run(*given).stdout)["files"]["placed"] == 1


def test_maps_of_two_models_are_not_mixed(run, model, shards, tmp_path):
    given = ["transform", model, shards, "--label", "kind", "-o", tmp_path / "maps"]
    run(*given)
    assert "another 'placement'" in run(*given, "--placement", "forward", code=1).stderr
    run("fit", shards, "--label", "kind", "-o", tmp_path / "other", "--max-epochs", "1", "--hidden-layers", "4")
    assert "another 'model'" in run("transform", tmp_path / "other", *given[2:], code=1).stderr
    result = run("transform", model, shards, "--label", "kind", "-o", shards / "year=2020", code=1)
    assert "is in the folder of the data" in result.stderr
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("mine")
    assert "holds other files" in run(*given[:-1], tmp_path / "full", code=1).stderr
    (tmp_path / "maps" / "_tsee.json").write_text("{")
    assert "is damaged" in run(*given, code=1).stderr


def test_a_bad_shard_does_not_keep_the_others(run, model, shards, tmp_path):
    bad = shards / "year=2020" / "part-0.parquet"
    bad.write_bytes(bad.read_bytes()[:100])
    given = ["transform", model, shards, "--label", "kind", "-o", tmp_path / "maps"]
    assert "1 of the files could not be placed, all others are. " in run(*given, code=1).stderr
    assert len(maps(tmp_path / "maps")) == 75
    assert hidden(tmp_path / "maps") == []


def test_shards_of_other_kinds(run, model, folder, flowers, places, tmp_path):
    for name in ("flowers.csv", "flowers.npy"):
        (tmp_path / "shards" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "shards" / name).write_bytes((folder / name).read_bytes())
    run("transform", model, tmp_path / "shards", "-o", tmp_path / "maps")
    np.testing.assert_array_equal(np.load(tmp_path / "maps/flowers.npy"), places)
    assert len(pd.read_csv(tmp_path / "maps/flowers.csv")) == len(flowers)
    (tmp_path / "none").mkdir()
    assert "holds no data files" in run("transform", model, tmp_path / "none", "-o", tmp_path / "new", code=1).stderr


def test_workers_share_the_shards(process, model, shards, tmp_path):
    given = ["transform", model, shards, "--label", "kind", "-o", tmp_path / "maps", "--json"]
    workers = [process(SLOW_WORKER, 0.3, *given, stdout=-1, text=True) for _ in range(2)]
    outputs = [worker.communicate(timeout=120)[0].splitlines() for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0]
    found = [json.loads(lines[-1])["files"] for lines in outputs]
    assert sum(counts["placed"] for counts in found) == 6
    assert all(sum(counts.values()) == 6 for counts in found)
    assert len(maps(tmp_path / "maps")) == 90
    assert hidden(tmp_path / "maps") == []


def test_a_killed_worker_loses_its_shard_alone(run, process, model, shards, places, tmp_path):
    given = ["transform", model, shards, "--label", "kind", "-o", tmp_path / "maps", "--json"]
    killed = process(SLOW_WORKER, 0.5, *given, stdout=-1, text=True)
    assert [killed.stdout.readline() for _ in range(3)] == ["begun\n"] * 3  # two are done, the third is in its hands
    other = json.loads(run(*given).stdout)["files"]
    assert other["in_other_hands"] == 1
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert hidden(tmp_path / "maps") != []  # its claim, which counts no more
    last = json.loads(run(*given).stdout)["files"]
    assert last == {"placed": 1, "there_already": 5, "in_other_hands": 0}
    np.testing.assert_allclose(maps(tmp_path / "maps")[["tsee0", "tsee1"]].to_numpy(), places, atol=1e-5)
    assert hidden(tmp_path / "maps") == []
