"""``tsee plot``: what is drawn is what `tsee.plots.scatter` is given."""

import numpy as np
import pytest

import tsee

HEADS = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}


@pytest.fixture
def drawn(monkeypatch):
    """What the scatter plot was given."""
    import tsee.plots

    calls, original = [], tsee.plots.scatter

    def scatter(Y, labels=None, **given):
        calls.append((Y, labels))
        return original(Y, labels, **given)

    monkeypatch.setattr(tsee.plots, "scatter", scatter)
    return calls


@pytest.mark.parametrize("extension", HEADS)
def test_rows_on_a_model(run, folder, model, positions, flowers, drawn, tmp_path, extension):
    path = tmp_path / f"new/map{extension}"
    result = run("plot", model, folder / "flowers.parquet", "--label", "kind", "-o", path, "--title", "Flowers")
    assert result.stdout == f"Drew 90 points: {path}\n"
    assert path.read_bytes().startswith(HEADS[extension])
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    (Y, labels) = drawn[0]
    np.testing.assert_array_equal(Y, positions)
    assert list(labels) == list(flowers["kind"])


def test_the_rows_of_the_model(run, model, drawn, tmp_path):
    run("plot", model, "-o", tmp_path / "map.png")
    np.testing.assert_array_equal(drawn[0][0], tsee.load(model).embedding_)
    assert "A model keeps no labels" in run("plot", model, "--label", "kind", "-o", tmp_path / "map.png", code=2).stderr


def test_a_model_without_positions_of_its_rows(run, folder, model_without_positions, drawn, tmp_path):
    result = run("plot", model_without_positions, "-o", tmp_path / "map.png", code=1)
    assert "keeps no positions of the rows that it was fitted with: name the DATA" in result.stderr
    run("plot", model_without_positions, folder / "flowers.npy", "-o", tmp_path / "map.png")
    assert len(drawn[0][0]) == 90


@pytest.mark.parametrize("extension", [".csv", ".parquet", ".npy", ".npz", ".h5ad"])
def test_a_map_that_transform_wrote(run, folder, model, positions, flowers, drawn, tmp_path, extension):
    data = folder / ("flowers.h5ad" if extension == ".h5ad" else "flowers.csv")
    run("transform", model, data, "--label", "kind", "-o", tmp_path / f"map{extension}")
    label = [] if extension == ".npy" else ["--label", "kind"]
    run("plot", tmp_path / f"map{extension}", *label, "-o", tmp_path / "map.png")
    np.testing.assert_allclose(drawn[0][0], positions, rtol=1e-6)
    if label:
        assert list(drawn[0][1]) == list(flowers["kind"])


def test_bad_pictures(run, folder, model, tmp_path, monkeypatch):
    assert "must end in .png, .svg or .pdf" in run("plot", model, "-o", tmp_path / "map.gif", code=2).stderr
    (tmp_path / "file").write_text("mine")
    assert "cannot be written to" in run("plot", model, "-o", tmp_path / "file" / "map.png", code=1).stderr
    assert "is not a model" in run("plot", folder / "flowers.csv", model, "-o", tmp_path / "a.png", code=2).stderr
    assert (
        "has no columns 'tsee0', 'tsee1'"
        in run("plot", folder / "flowers.csv", "-o", tmp_path / "a.png", code=1).stderr
    )
    assert "is not a tsee model" in run("plot", tmp_path / "none", "-o", tmp_path / "a.png", code=1).stderr
    np.save(tmp_path / "cube.npy", np.ones((5, 3)))
    assert (
        "has 3 dimensions, but a picture has two"
        in run("plot", tmp_path / "cube.npy", "-o", tmp_path / "a.png", code=1).stderr
    )
    # A picture that fails leaves the old one.
    (tmp_path / "a.png").write_text("old")
    assert "--point-size must be" in run("plot", model, "-o", tmp_path / "a.png", "--point-size", -1, code=1).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.png", "cube.npy", "file"]
    assert (tmp_path / "a.png").read_text() == "old"
