"""Figures as files, and matplotlib only when it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from tsee.plots import scatter


@pytest.mark.parametrize(
    "extension, start", [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PNG", b"\x89PNG")]
)
def test_formats(tmp_path, extension, start, make_map):
    path = tmp_path / f"map.{extension}"
    scatter(*make_map(3), title="A map", path=path)
    assert path.read_bytes().startswith(start)
    scatter(*make_map(3), title="A map", path=str(path))


@pytest.mark.parametrize("extension", ["png", "svg", "pdf"])
def test_lone_surrogates_become_question_marks(tmp_path, extension, make_map):
    positions, labels = make_map(3)
    labels = np.array([f"{label}\ud800" for label in labels])
    ax = scatter(positions, labels, title="A\udc80B", path=tmp_path / f"map.{extension}")
    assert ax.get_title() == "A?B"


def test_points_of_a_vector_figure_are_one_image(tmp_path):
    sizes = []
    for n in (100, 3000):
        scatter(np.random.default_rng(0).normal(size=(n, 2)), path=tmp_path / "map.svg", point_size=1)
        text = (tmp_path / "map.svg").read_text()
        assert text.count("<image") == 1
        sizes.append(text.count("<use") + text.count("<path"))
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("extension", ["png", "svg", "pdf"])
def test_the_same_bytes_each_time(tmp_path, extension, make_map):
    for name in "ab":
        scatter(*make_map(12), path=tmp_path / f"{name}.{extension}")
    assert (tmp_path / f"a.{extension}").read_bytes() == (tmp_path / f"b.{extension}").read_bytes()


def test_an_existing_file_is_replaced_only_by_a_complete_one(tmp_path, monkeypatch, make_map):
    path = tmp_path / "map.png"
    path.write_bytes(b"before")

    def full(self, target, **settings):
        Path(target).write_bytes(b"part")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Figure, "savefig", full)
    with pytest.raises(ValueError, match=r"cannot be written to '.*map.png' \(No space left on device\)"):
        scatter(*make_map(3), path=path)
    assert [file.name for file in tmp_path.iterdir()] == ["map.png"]
    assert path.read_bytes() == b"before"


def test_a_folder_is_created_but_is_not_a_figure(tmp_path, make_map):
    scatter(*make_map(3), path=tmp_path / "new" / "map.png")
    assert (tmp_path / "new" / "map.png").is_file()
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(ValueError, match=r"must be a file, but '.*folder.png' is a folder"):
        scatter(*make_map(3), path=tmp_path / "folder.png")


def test_pyplot_is_left_alone():
    code = "import sys, tsee.plots as p; p.scatter([[0, 0], [1, 1]], [0, 1]); "
    code += "assert 'matplotlib.figure' in sys.modules and 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_import_without_matplotlib():
    code = "import sys, tsee.plots; assert not {'matplotlib'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", ["matplotlib"])
def test_without_a_module(module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r'pip install "tsee\[plot\]"'):
        scatter([[0, 0], [1, 1]])
