"""Maps as files: they are read back unchanged, and a writer that fails or is killed leaves the old file whole."""

import os
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from tsee.exceptions import DataFileError
from tsee.files import MapWriter, open_table, write_map


@pytest.fixture
def table(tmp_path, people):
    people().to_csv(tmp_path / "people.csv", index=False)
    with open_table(tmp_path / "people.csv", label="class", drop=["code"]) as table:
        yield table


@pytest.mark.parametrize(
    "name", ["map.csv", "map.tsv", "map.csv.gz", "map.tsv.gz", "map.parquet", "map.npz", "map.npy"]
)
def test_maps_round_trip(tmp_path, table, numbers, name, people):
    positions, path = numbers[:300, :2], tmp_path / "new" / name
    write_map(path, positions, table)
    if name == "map.npy":
        back = np.load(path)
    elif name == "map.npz":
        arrays = np.load(path)  # without pickle
        assert list(arrays) == ["person_id", "name", "class", "tsee"]
        assert arrays["name"].tolist() == people()["name"].tolist()
        back = arrays["tsee"]
    else:
        frame = (
            pd.read_parquet(path) if name == "map.parquet" else pd.read_csv(path, sep="\t" if ".tsv" in name else ",")
        )
        assert list(frame.columns) == ["person_id", "name", "class", "tsee0", "tsee1"]
        for column in ("person_id", "name", "class"):
            assert frame[column].tolist() == people()[column].tolist()
        back = frame[["tsee0", "tsee1"]].to_numpy(np.float32)
    np.testing.assert_array_equal(back, positions)
    assert [entry.name for entry in path.parent.iterdir()] == [name]
    # A map is data, too: its identifiers are recognized.
    if name != "map.npz" and name != "map.npy":
        again = open_table(path, label="class")
        assert again.feature_names == ["tsee0", "tsee1"]
        assert list(again.other_columns) == ["person_id", "name"]
        np.testing.assert_array_equal(np.asarray(again.rows, dtype=np.float32), positions)


@pytest.mark.parametrize("name", ["map.csv", "map.csv.gz", "map.parquet", "map.npz", "map.npy"])
def test_blocks_make_the_same_file(tmp_path, table, numbers, name):
    positions = numbers[:300, :3]
    write_map(tmp_path / name, positions, table)
    with MapWriter(tmp_path / f"blocks-{name}", table) as writer:
        for start in range(0, 300, 70):
            writer.write(positions[start : start + 70])
    if name == "map.parquet":
        pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / name), pd.read_parquet(tmp_path / f"blocks-{name}"))
    elif name == "map.npz":
        one, two = np.load(tmp_path / name), np.load(tmp_path / f"blocks-{name}")
        assert all((one[key] == two[key]).all() for key in one)
    else:
        assert (tmp_path / name).read_bytes() == (tmp_path / f"blocks-{name}").read_bytes()


def test_missing_labels_are_empty(tmp_path):
    labels = pa.array([None, 1, 2, None, 5, 6])
    kinds = pa.array(["a", None, "b", "c", None, "d"])
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"kind": kinds, "y": labels, "x": np.arange(6.0)}), path, row_group_size=2)
    table = open_table(path, label="y")
    for name in ("map.csv", "map.parquet"):
        with MapWriter(tmp_path / name, table) as writer:
            for _ in range(3):
                writer.write(np.zeros((2, 2)))
    frame = pd.read_csv(tmp_path / "map.csv")
    assert frame["y"].isna().tolist() == [True, False, False, True, False, False]
    assert frame["kind"].isna().tolist() == [False, True, False, False, True, False]
    back = pq.read_table(tmp_path / "map.parquet")
    assert back["kind"].to_pylist() == kinds.to_pylist()
    assert back["y"].to_pylist() == labels.to_pylist()


def write_half(path, table, positions):
    with MapWriter(path, table) as writer:
        writer.write(positions)
        raise KeyboardInterrupt


def test_bad_maps(tmp_path, table, numbers):
    path = tmp_path / "map.csv"
    path.write_text("old")
    with pytest.raises(ValueError, match="the table's 300 rows. Got 299"):
        write_map(path, numbers[:299, :2], table)
    with pytest.raises(ValueError, match="each of the table's 300"):
        write_map(path, numbers[:301, :2], table)
    with pytest.raises(ValueError, match="must name 2 columns"):
        write_map(path, numbers[:300, :2], table, columns=["x"])
    with pytest.raises(ValueError, match="shape"):
        write_map(path, numbers[:300, 0], table)
    with pytest.raises(DataFileError, match="'name' would be in .* twice"):
        write_map(path, numbers[:300, :2], table, columns=["name", "y"])
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataFileError, match="is a folder"):
        write_map(tmp_path / "folder.csv", numbers)
    with pytest.raises(DataFileError, match="choose one of the file extensions .csv"):
        write_map(tmp_path / "map.png", numbers)
    with pytest.raises(DataFileError, match=r"cannot be written to .* \((File exists|Not a directory)\)"):
        write_map(path / "map.csv", numbers)
    with pytest.raises(KeyboardInterrupt):
        write_half(path, table, numbers[:200, :2])
    assert path.read_text() == "old"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["folder.csv", "map.csv", "people.csv"]
    write_map(path, numbers[:300, :2], table, columns=["x", "y"])
    assert path.read_text().startswith("person_id,name,class,x,y\n")


def test_a_link_stays_a_link(tmp_path, numbers):
    (tmp_path / "real.npy").write_text("old")
    (tmp_path / "real.npy").chmod(0o640)
    (tmp_path / "map.npy").symlink_to(tmp_path / "real.npy")
    write_map(tmp_path / "map.npy", numbers)
    assert (tmp_path / "map.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "real.npy"), numbers)
    assert (tmp_path / "real.npy").stat().st_mode & 0o777 == 0o640


WRITERS = ["map.csv", "map.csv.gz", "map.parquet", "map.npy", "map.npz", "map.h5ad"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_killed_writer_leaves_the_old_map_whole(tmp_path, name, program, make_h5ad):
    make_h5ad(tmp_path / "in.h5ad", n=10**6)
    (tmp_path / name).write_bytes(b"old and whole")
    code = f"""
        import numpy as np
        from tsee.files import MapWriter, open_table
        table = open_table({str(tmp_path / "in.h5ad")!r}) if {name.endswith("h5ad")} else None
        with MapWriter({str(tmp_path / name)!r}, table) as writer:
            for _ in range(1000):
                writer.write(np.zeros((1000, 2), np.float32))
                print(flush=True)
    """
    process = subprocess.Popen([sys.executable, "-c", program(code)], stdout=subprocess.PIPE)
    for _ in range(20):
        process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert process.returncode == -signal.SIGKILL
    assert (tmp_path / name).read_bytes() == b"old and whole"
    others = {entry.name for entry in tmp_path.iterdir()} - {name, "in.h5ad"}
    assert all(other.startswith(f".{name}.") and other.endswith(".writing") for other in others)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limit on the size of files")
@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_map_whole(tmp_path, name, run, make_h5ad):
    make_h5ad(tmp_path / "in.h5ad", n=20000)
    (tmp_path / name).write_bytes(b"old and whole")
    code = f"""
        import resource
        import numpy as np
        from tsee.exceptions import DataFileError
        from tsee.files import open_table, write_map
        table = open_table({str(tmp_path / "in.h5ad")!r}) if {name.endswith("h5ad")} else None
        positions = np.random.default_rng(0).normal(size=(20000, 2))
        resource.setrlimit(resource.RLIMIT_FSIZE, (30000, 30000))
        try:
            write_map({str(tmp_path / name)!r}, positions, table)
        except DataFileError as error:
            print(error)
    """
    assert "an existing file is unchanged: choose a folder that you can write to, with room on its disk." in run(code)
    assert (tmp_path / name).read_bytes() == b"old and whole"
    assert {entry.name for entry in tmp_path.iterdir()} == {name, "in.h5ad"}


@pytest.mark.parametrize(
    "name", ["map.csv", "map.tsv.gz", "map.parquet", "map.npz", "map\udcff.csv", "map\udcff.parquet"]
)
def test_lone_surrogates_become_question_marks(tmp_path, name, people, check_slices):
    """They stand for bytes that are no UTF-8, for example in the names of files."""
    frame = people(60)
    frame.to_parquet(tmp_path / "in.parquet")
    (tmp_path / "in.parquet").rename(tmp_path / "in\udcff.parquet")
    with open_table(tmp_path / "in\udcff.parquet", label="class") as table:
        table.other_columns._columns["na\udc80me"] = np.array([f"{i}\udc80" for i in range(60)], dtype=object)
        write_map(tmp_path / name, frame[["height", "weight"]].to_numpy(), table, columns=["tsee0", "tse\udce90"])
    if name.endswith("npz"):
        written = dict(np.load(tmp_path / name))
        assert written["na?me"][3] == "3?"
        return
    with open_table(tmp_path / name) as found:
        assert found.feature_names[-2:] == ["tsee0", "tse?0"]
        assert found.other_columns["na?me"][3] == "3?"


def test_a_pipe_or_a_device_is_not_replaced(tmp_path, numbers):
    os.mkfifo(tmp_path / "map.csv")
    with pytest.raises(DataFileError, match="map.csv' .*not a plain file"):
        write_map(tmp_path / "map.csv", numbers)
    assert (tmp_path / "map.csv").is_fifo()
