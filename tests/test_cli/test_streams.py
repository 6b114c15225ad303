"""``-``: data from standard input, maps as CSV to standard output, and nothing else there."""

import io
import os
import subprocess

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import tsee
from tsee.cli import main


@pytest.fixture
def pipe(tmp_path, monkeypatch):
    """Type ``tsee ... < file``; no copy of a stream may be left."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))

    def pipe(*arguments, data=b"", code=0):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=data)
        assert result.exit_code == code, (result.output, result.exception)
        assert not list((tmp_path / "temporary").rglob("*standard*"))
        return result

    return pipe


@pytest.mark.parametrize("extension", [".csv", ".parquet", ".npy", ".h5ad"])
def test_transform_from_one_to_the_other(pipe, folder, model, positions, extension):
    data = (folder / f"flowers{extension}").read_bytes()
    label = [] if extension == ".npy" else ["--label", "kind"]
    result = pipe("transform", model, "-", *label, "-o", "-", data=data)
    frame = pd.read_csv(io.StringIO(result.stdout))
    np.testing.assert_array_equal(frame[["tsee0", "tsee1"]].to_numpy(np.float32), positions)
    assert list(frame.columns[:-2]) == {".npy": [], ".h5ad": ["index", "kind"]}.get(extension, ["id", "kind"])
    assert "Placed 90 rows in " in result.stderr
    if extension == ".npy":
        assert result.stderr.startswith("Note on 'standard input': ")


def test_a_folder_to_standard_output_is_one_map(pipe, folder, model, positions, tmp_path):
    (tmp_path / "parts").mkdir()
    for part, rows in (("a", slice(0, 40)), ("b", slice(40, 90))):
        np.save(tmp_path / f"parts/{part}.npy", np.load(folder / "flowers.npy")[rows])
    frame = pd.read_csv(io.StringIO(pipe("transform", model, tmp_path / "parts", "-o", "-", "--quiet").stdout))
    np.testing.assert_array_equal(frame.to_numpy(np.float32), positions)


def test_fit_update_and_their_maps(pipe, folder, tmp_path, quick):
    data = (folder / "flowers.csv").read_bytes()
    given = ["--label", "kind", "-o", tmp_path / "model"]
    fitted = pipe("fit", "-", *given, "--map", "-", *quick, data=data)
    frame = pd.read_csv(io.StringIO(fitted.stdout))
    assert list(frame.columns) == ["id", "kind", "tsee0", "tsee1"]
    np.testing.assert_array_equal(
        frame[["tsee0", "tsee1"]].to_numpy(np.float32), tsee.load(tmp_path / "model").embedding_
    )
    assert "Learned a map of 90 rows" in fitted.stderr
    updated = pipe("update", tmp_path / "model", "-", *given, "--map", "-", data=data)
    assert pd.read_csv(io.StringIO(updated.stdout)).shape == (90, 4)
    assert "Took in 90 rows" in updated.stderr


def test_evaluate_plot_and_map(pipe, folder, model, tmp_path):
    data = (folder / "flowers.csv").read_bytes()
    measured = pipe("evaluate", model, folder / "flowers.csv", "--label", "kind", "--train", "-", data=data)
    assert "90 rows, compared with the 90 of 'standard input'." in measured.stdout
    assert (
        "90 rows, each compared with the others." in pipe("evaluate", model, "-", "--label", "kind", data=data).stdout
    )
    picture = tmp_path / "map.png"
    map_ = pipe("transform", model, "-", "--label", "kind", "-o", "-", data=data).stdout
    for arguments, given in ((["-"], map_.encode()), ([model, "-"], data)):
        assert "Drew 90 points" in pipe("plot", *arguments, "--label", "kind", "-o", picture, data=given).stdout
    assert "Wrote 90 points" in pipe("map", model, "-", "-o", tmp_path / "map.html", data=data).stdout


def test_errors_name_the_stream(pipe, model):
    result = pipe("transform", model, "-", "-o", "-", data=b"width,length,height,weight\n1,2,3,4\n1,2,x,4\n", code=1)
    assert result.stdout == ""
    assert result.stderr == (
        "Error: 'standard input', row 1 (line 3), column 'height': 'x' is not a number: correct it, or drop the "
        "column.\n"
    )
    assert "'standard input' has no rows of data" in pipe("transform", model, "-", "-o", "-", code=1).stderr


def test_what_cannot_be_streamed(pipe, folder, model, monkeypatch, quick):
    data = folder / "flowers.csv"
    for arguments, what in (
        (["fit", data], "a model, which is a folder"),
        (["update", model, data], "a model, which is a folder"),
        (["demo"], "a model, which is a folder"),
        (["plot", model], "a picture"),
        (["map", model, data], "a page"),
        (["export", model], "an ONNX file"),
    ):
        stderr = pipe(*arguments, "-o", "-", code=2).stderr
        assert f"Standard output takes a map as CSV, but not {what}." in stderr
    assert "read only once" in pipe("evaluate", model, "-", "--train", "-", data=data.read_bytes(), code=2).stderr
    assert "would mix on standard output" in pipe("transform", model, data, "-o", "-", "--json", code=2).stderr
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "Several processes cannot read" in pipe("transform", model, "-", "-o", "-", code=2).stderr


def test_a_file_of_that_name(run, folder, model, positions, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "-").mkdir()
    np.save(tmp_path / "-/a.npy", np.load(folder / "flowers.npy"))
    run("transform", model, "./-", "-o", "map.npy")
    np.testing.assert_array_equal(np.load("map.npy"), positions)


def test_a_reader_that_has_seen_enough(process, folder, model):
    """As in ``tsee transform model - -o - | head``."""
    reading, writing = os.pipe()
    os.close(reading)
    code = "from tsee.__main__ import main; main()"
    with open(folder / "flowers.csv", "rb") as data:
        given = dict(stdin=data, stdout=writing, stderr=subprocess.PIPE)
        started = process(code, "transform", model, "-", "-o", "-", "--quiet", **given)
        os.close(writing)
        assert started.stderr.read() == b""
        assert started.wait(60) == 1
