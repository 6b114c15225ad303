"""A file is replaced whole or stays as it was, and nothing else is left behind."""

import errno
import fcntl
import os
import subprocess
import sys

import pytest

from tsee.files.atomic import replacing


def write(path, content):
    with replacing(path) as temporary:
        assert temporary.parent == path.resolve().parent
        temporary.write_text(content)


def write_half(path, error):
    with replacing(path) as temporary:
        temporary.write_text("half")
        raise error


def test_a_new_file_and_one_that_replaces_it(tmp_path):
    path = tmp_path / "notes.txt"
    write(path, "first")
    assert path.read_text() == "first"
    path.chmod(0o640)
    write(path, "second")
    assert path.read_text() == "second"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_a_block_that_fails_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "notes.txt"
    path.write_text("old")
    with pytest.raises(error):
        write_half(path, error())
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["notes.txt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_step_that_fails_leaves_the_old_file(tmp_path, monkeypatch, step):
    path = tmp_path / "notes.txt"
    path.write_text("old")

    def fail(*given):
        raise OSError("the disk is gone")

    with monkeypatch.context() as patched:
        patched.setattr(os, step, fail)
        with pytest.raises(OSError, match="the disk is gone"):
            write(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_nothing_was_written(tmp_path):
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "notes.txt"):
        pass
    assert os.listdir(tmp_path) == []


def test_the_file_that_a_link_points_to_is_replaced(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


WRITER = """
    import os, sys, time
    from pathlib import Path
    from tsee.files.atomic import replacing
    with replacing(sys.argv[1]) as temporary:
        temporary.write_text("half")
        print(temporary.name, flush=True)
        time.sleep(60)
    """


@pytest.fixture
def writer(program):
    """Start a process that has written one half of a file."""
    started = []

    def start(path):
        started.append(
            subprocess.Popen([sys.executable, "-c", program(WRITER), str(path)], stdout=subprocess.PIPE, text=True)
        )
        return started[-1], started[-1].stdout.readline().strip()

    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_what_a_killed_write_left_is_removed_by_the_next(tmp_path, writer):
    path = tmp_path / "notes.txt"
    killed, left = writer(path)
    killed.kill()
    killed.wait()
    assert os.listdir(tmp_path) == [left]
    write(path, "new")
    assert os.listdir(tmp_path) == ["notes.txt"]


def test_what_another_process_is_writing_stays(tmp_path, writer):
    path = tmp_path / "notes.txt"
    _, ours = writer(path)
    _, of_another = writer(tmp_path / "notes.txt.gz")
    write(path, "new")
    assert sorted(os.listdir(tmp_path)) == sorted(["notes.txt", ours, of_another])


def test_only_files_of_the_same_name_are_removed(tmp_path):
    others = [".a.csv.gz.0123abcd.writing", ".a.csv.mine.writing", ".b.csv.0123abcd.writing", ".a.csv.0123abcd"]
    for name in [*others, ".[a].csv.0123abcd.writing", ".a.csv.0123abcd.writing"]:
        (tmp_path / name).write_text("")
    write(tmp_path / "a.csv", "new")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, ".[a].csv.0123abcd.writing", "a.csv"])
    write(tmp_path / "[a].csv", "new")
    assert sorted(os.listdir(tmp_path)) == sorted([*others, "a.csv", "[a].csv"])


def test_without_locks_nothing_is_removed(tmp_path, monkeypatch):
    """On such a file system nobody can tell whether another process is writing the file."""

    def fail(*given):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", fail)
    (tmp_path / ".a.csv.0123abcd.writing").write_text("")
    write(tmp_path / "a.csv", "new")
    assert sorted(os.listdir(tmp_path)) == [".a.csv.0123abcd.writing", "a.csv"]
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "notes.txt"):
        pass


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_only_a_plain_file_is_replaced(tmp_path, make):
    make(tmp_path / "notes.txt")
    with pytest.raises(OSError, match="not a plain file.*notes.txt"):
        write(tmp_path / "notes.txt", "new")
    assert os.listdir(tmp_path) == ["notes.txt"]
    assert not (tmp_path / "notes.txt").is_file()


def test_an_error_of_the_disk_names_the_file(tmp_path):
    with pytest.raises(OSError, match="notes.txt'$") as caught:
        write_half(tmp_path / "notes.txt", OSError(errno.ENOSPC, "No space left on device"))
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path / "notes.txt")
