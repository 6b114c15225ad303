"""``tsee map``: a page of the rows, with the columns that describe them."""

import pytest


def test_rows_on_a_page(run, folder, model, tmp_path):
    path = tmp_path / "new/map.html"
    result = run("map", model, folder / "flowers.parquet", "--label", "kind", "-o", path, "--title", "Flowers")
    assert result.stdout.startswith(f"Wrote 90 points: {path} (")
    page = path.read_text()
    assert "<title>Flowers</title>" in page
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["-o", "map.png"], "must end in .html"),
        (["-o", "map.html", "--images", "28"], "not a height and a width"),
        (["-o", "map.html", "--images", "28x28"], "28x28 pictures have 784 features, but the rows have 4"),
    ],
)
def test_wrong_usage(run, folder, model, options, what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("map", model, folder / "flowers.csv", "--label", "kind", *options, code=2)
    assert what in result.stderr
    assert not list(tmp_path.iterdir())


def test_pictures(run, folder, model, tmp_path):
    plain, pictures = tmp_path / "plain.html", tmp_path / "pictures.html"
    run("map", model, folder / "flowers.csv", "--label", "kind", "-o", plain)
    run("map", model, folder / "flowers.csv", "--label", "kind", "--images", "2x2", "-o", pictures)
    assert pictures.stat().st_size > plain.stat().st_size


def test_a_page_that_cannot_be_written_is_told_before_the_work(run, folder, model, tmp_path):
    (tmp_path / "file").write_text("")
    result = run("map", model, folder / "flowers.csv", "--label", "kind", "-o", tmp_path / "file/map.html", code=1)
    assert "cannot be written" in result.stderr
