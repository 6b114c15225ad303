"""The file that is written."""

from __future__ import annotations

import base64
import errno
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

from tsee.exceptions import DataFileError
from tsee.explorer import write_map_page
from tsee.explorer.packing import unpack

WEB = Path(write_map_page.__code__.co_filename).parent / "web"


def test_the_file_is_self_contained(simple):
    content = simple.read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:,)""", content.partition("<body>")[0])
    assert "connect-src 'none'" in content
    assert "Permission to use, copy, modify" in content.rpartition("</script>")[2]  # the licenses of the software in it
    assert not re.search(r"\{\{\w+\}\}", content)
    script = content.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in content


def test_the_script_was_made_of_these_sources():
    """If this fails: run src/tsee/explorer/web/build.sh, and commit the files that it writes."""
    sources = [WEB / "build.sh", WEB / "package-lock.json", *sorted((WEB / "source").iterdir())]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    assert (WEB / "explorer.min.js").read_text(encoding="utf-8").startswith(f"// {digest}\n")


def test_an_existing_file_is_replaced_or_left(fitted, clusters, tmp_path):
    path = tmp_path / "map.html"
    path.write_text("mine")
    with pytest.raises(ValueError, match="positions"):
        write_map_page(fitted, [[1, 2, 3]], path)
    assert path.read_text() == "mine"
    assert write_map_page(fitted, clusters[0], path) == path
    assert path.read_text().startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["map.html"]


def test_the_same_map_gives_the_same_file(fitted, clusters, tmp_path):
    one, two = (write_map_page(fitted, clusters[0], tmp_path / name).read_bytes() for name in "ab")
    assert one == two


def test_positions_are_kept_to_a_65535th(fitted, clusters, tmp_path):
    content = write_map_page(fitted, clusters[0], tmp_path / "map.html").read_text()
    description, arrays = unpack(re.search(r'id="payload">([^<]+)<', content)[1])
    positions = arrays["positions"].reshape(-1, 2) / 65535 * description["extent"] + description["low"]
    assert np.abs(positions - clusters[0]).max() <= description["extent"] / 65535 * 0.51


@pytest.mark.parametrize(
    "wrong, error, words",
    [
        (dict(positions=[[1.0, np.nan]]), ValueError, "'positions'.*NaN"),
        (dict(positions=np.zeros((3, 3))), ValueError, r"'positions'.*shape \(3, 3\)"),
        (dict(positions=np.zeros((0, 2))), ValueError, "'positions'"),
        (dict(columns=[1, 2]), TypeError, "'columns'.*list"),
        (dict(columns={"kind": ["a"]}), ValueError, r"'kind'.*120 rows.*shape \(1,\)"),
        (dict(columns={"1": range(120), 1: range(120)}), ValueError, "two columns '1'"),
        (dict(features=["a"]), ValueError, "'features'.*64.*1 names"),
        (dict(images=np.zeros((5, 2, 2))), ValueError, r"'images'.*shape \(5, 2, 2\)"),
        (dict(images=np.zeros((120, 2, 2, 2))), ValueError, "'images'.*1 or 3 colors"),
        (dict(title=3), TypeError, "'title'.*int"),
    ],
)
def test_wrong_parameters_are_named(fitted, clusters, tmp_path, wrong, error, words):
    parameters = {"positions": clusters[0], **wrong}
    with pytest.raises(error, match=words):
        write_map_page(fitted, path=tmp_path / "map.html", **parameters)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_is_reported_with_the_file(fitted, clusters, tmp_path, monkeypatch):
    def fail(*given, **named):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "map.html"
    path.write_text("mine")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", fail)
        with pytest.raises(
            DataFileError, match=r"page cannot be written to '.*map.html' \(No space .*: choose a folder"
        ):
            write_map_page(fitted, clusters[0], path)
    with pytest.raises(DataFileError, match=r"page cannot be written to '.*absent/map.html'"):
        write_map_page(fitted, clusters[0], tmp_path / "absent" / "map.html")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("map.html", "mine")]


def test_lone_surrogates_become_question_marks(fitted, clusters, tmp_path):
    columns = {"kin\udc80d": ["a\ud800"] * 60 + ["b"] * 60, "note": [f"{i}\udfff" for i in range(120)]}
    features = [f"pixel\udcff{i}" for i in range(64)]
    path = tmp_path / "map\udcff.html"
    write_map_page(fitted, clusters[0], path, title="A\udc80B", columns=columns, features=features)
    content = path.read_text(encoding="utf-8")
    assert "<title>A?B</title>" in content
    description, _ = unpack(re.search(r'id="payload">([^<]+)<', content)[1])
    assert description["title"] == "A?B"
    assert [column["name"] for column in description["columns"]] == ["kin?d", "note"]
    assert description["columns"][0]["names"] == ["a?", "b"]
