"""A file is replaced whole or stays as it was, and nothing else is left behind."""

import os

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
