"""``tsee transform`` of a folder: the options reach `tsee.serving.place_folder`, and its result is reported."""

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def shards(flowers, write, tmp_path):
    """The flowers in six Parquet files."""
    folder = tmp_path / "shards"
    folder.mkdir()
    for i in range(6):
        write(folder / f"part-{i}.parquet", flowers[15 * i : 15 * (i + 1)])
    return folder


def maps(folder):
    return pd.concat([pd.read_parquet(path) for path in sorted(folder.glob("*.parquet"))], ignore_index=True)


def test_a_map_for_each_file(run, model, shards, flowers, positions, tmp_path):
    result = run("transform", model, shards, "--label", "kind", "-o", tmp_path / "maps")
    assert result.stdout.startswith("Placed 90 rows of 6 files in ")
    assert result.stderr.count("Kept aside") == 1
    found = maps(tmp_path / "maps")
    assert list(found) == ["id", "kind", "tsee0", "tsee1"]
    assert found["id"].tolist() == flowers["id"].tolist()
    np.testing.assert_allclose(found[["tsee0", "tsee1"]].to_numpy(), positions, atol=1e-5)


def test_what_was_done_before_is_reported(run, model, shards, tmp_path):
    given = ["transform", model, shards, "--label", "kind", "-o", tmp_path / "maps"]
    run(*given)
    (tmp_path / "maps" / "part-3.parquet").unlink()
    result = json.loads(run(*given, "--json").stdout)
    assert result["files"] == {"placed": 1, "already_placed": 5, "elsewhere": 0}
    assert result["rows"] == 15
    output = run(*given).stdout
    assert output.splitlines()[1] == "Files that had a map already: 6. Files that other workers are placing: 0."


def test_other_settings_are_refused(run, model, shards, tmp_path):
    given = ["transform", model, shards, "--label", "kind", "-o", tmp_path / "maps"]
    run(*given)
    assert "a different 'placement'" in run(*given, "--placement", "forward", code=1).stderr
    assert "a different 'novelty'" in run(*given, "--novelty", code=1).stderr
    assert "a different 'label', 'drop'" in run(*given[:3], *given[5:], "--drop", "kind", code=1).stderr


def test_a_bad_file_does_not_stop_the_others(run, model, shards, tmp_path):
    bad = shards / "part-0.parquet"
    bad.write_bytes(bad.read_bytes()[:100])
    result = run("transform", model, shards, "--label", "kind", "-o", tmp_path / "maps", code=1)
    assert f"1 of the files could not be placed; all the others were. '{bad}' is damaged" in result.stderr
    assert len(maps(tmp_path / "maps")) == 75
