"""``tsee update``: a model takes in the rows of a file."""

import json

import numpy as np
import pandas as pd
import pytest

import tsee


@pytest.fixture
def halves(flowers, tmp_path, run, quick):
    """A model of all flowers but the irises, and a file with all of them, its columns in another order."""
    known = flowers[flowers["kind"] != "iris"]
    known.to_csv(tmp_path / "known.csv", index=False)
    flowers[["kind", "weight", "height", "length", "width", "id"]].to_csv(tmp_path / "all.csv", index=False)
    run("fit", tmp_path / "known.csv", "--label", "kind", "-o", tmp_path / "model", *quick, "-q")
    return tmp_path


def test_the_model_takes_the_rows_in(halves, run):
    before = (halves / "model" / "model.safetensors").read_bytes()
    said = run(
        *("update", halves / "model", halves / "all.csv", "--label", "kind", "-o", halves / "more"),
        *("--map", halves / "map.csv", "--json", "-q"),
    )
    told = json.loads(said.stdout)
    assert (halves / "model" / "model.safetensors").read_bytes() == before
    old, grown = tsee.load(halves / "model"), tsee.load(halves / "more")
    assert (told["rows"], told["n_rows"], told["n_exemplars"]) == (150, 90, 90)
    assert told["n_new_kind"] == 30
    assert told["moved_95"] == 0
    assert np.array_equal(grown.embedding_[:60], old.embedding_)
    assert grown.get_params()["verbose"] is False
    assert grown.get_params()["checkpoint"] is None
    written = pd.read_csv(halves / "map.csv")
    assert written["kind"].tolist() == pd.read_csv(halves / "all.csv")["kind"].tolist()
    np.testing.assert_allclose(written[["tsee0", "tsee1"]], grown.embedding_[60:], atol=1e-3)


def test_it_says_what_happened(halves, run):
    said = run("update", halves / "model", halves / "all.csv", "--label", "kind", "-o", halves / "model").stdout
    assert "Took in 90 rows, now 150" in said
    assert "of a new kind: 30" in said
    assert "Old exemplars moved by 0.00%" in said
    said = run("update", halves / "model", halves / "all.csv", "-o", halves / "again", "--forget", "2").stdout
    assert "Forgotten exemplars: 60." in said
    assert tsee.load(halves / "again").map_.row_counts == (0, 90, 90)


def test_what_cannot_be_updated_is_said(halves, run, quick):
    data = halves / "known.csv"
    run("fit", data, "--label", "kind", "-o", halves / "pairs", "--method", "pt-sne", "--max-epochs", "1", "-q")
    failed = run("update", halves / "pairs", data, "-o", halves / "more", code=1)
    assert "PtSNE cannot be updated" in failed.stderr
    pd.read_csv(data).drop(columns="width").to_csv(halves / "narrow.csv", index=False)
    failed = run("update", halves / "model", halves / "narrow.csv", "-o", halves / "more", code=1)
    assert "width" in failed.stderr
    failed = run("update", halves / "model", data, "-o", halves / "more", "--forget", "1", code=1)
    assert "leaves 0 of 60 exemplars" in failed.stderr
    run("update", halves / "model", data, "-o", halves / "more", "--hold", "2", code=2)
    run("update", halves / "model", data, "-o", halves / "more", "--resume", code=2)
    assert not (halves / "more").exists()


def test_a_damaged_model_is_said(halves, run):
    config = halves / "model" / "config.json"
    config.write_text(config.read_text().replace('"format_version": 3', '"format_version": 99'))
    failed = run("update", halves / "model", halves / "all.csv", "-o", halves / "more", code=1)
    assert "has format 99, and this tsee reads format 3" in failed.stderr
