"""The command on tables with words and gaps, and with labels that count."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

import tsee
from tsee.files import parquet


def test_a_table_with_words_and_gaps(run, tmp_path, quick):
    rows = "".join(f"{i},{'red' if i % 3 else 'blue'},{i % 7 if i % 5 else ''}\n" for i in range(60))
    (tmp_path / "table.csv").write_text("age,color,visits\n" + rows)
    shown = run("fit", tmp_path / "table.csv", "--dry-run", "--categorical", "visits", "--weight", "age=2").output
    assert [line.split()[:3] for line in shown.splitlines()[1:]] == [
        ["age", "number", "2"],
        ["color", "category", "1"],
        ["visits", "category", "1"],
    ]
    told = json.loads(run("fit", tmp_path / "table.csv", "--dry-run", "--json", "--drop", "age").stdout)
    assert [(column["name"], column["kind"]) for column in told["columns"]] == [
        ("color", "category"),
        ("visits", "number"),
    ]
    assert told["rows"] == 60
    assert told["columns"][1]["gaps"] == 0.2
    result = run("fit", tmp_path / "table.csv", "-o", tmp_path / "model", "--map", tmp_path / "map.csv", *quick)
    assert "color" in result.stderr
    run("transform", tmp_path / "model", tmp_path / "table.csv", "-o", tmp_path / "new.csv")
    old, new = (pd.read_csv(tmp_path / name) for name in ("map.csv", "new.csv"))
    np.testing.assert_allclose(new[["tsee0", "tsee1"]], old[["tsee0", "tsee1"]], atol=1e-4)
    assert new["color"].tolist() == old["color"].tolist() == ["red" if i % 3 else "blue" for i in range(60)]
    (tmp_path / "other.csv").write_text("age,color\n3,red\n")
    failed = run("transform", tmp_path / "model", tmp_path / "other.csv", "-o", tmp_path / "x.csv", code=1)
    assert "lacks columns that the model was fitted with: 'visits'" in failed.stderr
    refused = run("fit", tmp_path / "table.csv", "--missing", "error", "-o", tmp_path / "none", *quick, code=1)
    assert "row 0 (line 2), column 'visits': the value is missing" in refused.stderr
    for wrong in (["--weight", "age"], ["--numeric", "age", "--categorical", "age"], []):
        run("fit", tmp_path / "table.csv", *wrong, *([] if not wrong else ["-o", tmp_path / "none"]), code=2)


def test_labels_that_count(run, write, flowers, tmp_path, quick):
    path = write(tmp_path / "flowers.csv", flowers)
    run("fit", path, "--label", "kind", "--supervised", "1", "-o", tmp_path / "model", *quick)
    model = tsee.load(tmp_path / "model")
    assert model.supervised == 1
    run("fit", path, "--label", "kind", "-o", tmp_path / "plain", *quick)
    assert (model.embedding_ != tsee.load(tmp_path / "plain").embedding_).any()
    done = run("fit", path, "--drop", "kind", "--supervised", "1", "-o", tmp_path / "none", *quick, code=2)
    assert "--supervised needs --label" in done.output


def test_the_advice_follows_the_sentence_on_what_was_kept_aside(run, tmp_path, quick, monkeypatch):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 3)), columns=list("abc")).assign(id=np.arange(60))
    frame.to_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr(parquet, "GROUP_BYTES", 100)
    told = run("fit", tmp_path / "table.parquet", "-o", tmp_path / "model", *quick).stderr
    assert "Kept aside, an identifier: 'id'. To keep it: --weight id=1. The row groups are large" in told


@pytest.mark.parametrize("words", [False, True])
def test_identifiers_are_kept_aside_in_one_sentence(run, tmp_path, quick, words):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 3)), columns=["age", "height", "pulse"])
    if words:
        frame["color"] = rng.choice(["red", "blue"], 60)
    frame.to_csv(tmp_path / "without.csv", index=False)
    frame["Order"] = rng.permutation(60)
    frame["row #"] = np.arange(60)
    frame.to_csv(tmp_path / "table.csv", index=False)
    given = ["fit", tmp_path / "table.csv", "-o", tmp_path / "model", *quick]
    sentence, advice = "Kept aside, an identifier: 'Order', 'row #'.", "--weight Order=1 --weight 'row #=1'"
    assert run(*given, "--map", tmp_path / "map.csv").stderr.count(f"{sentence} To keep them: {advice}.") == 1
    assert pd.read_csv(tmp_path / "map.csv")["Order"].tolist() == frame["Order"].tolist()
    assert "Order" not in tsee.load(tmp_path / "model").map_.feature_names
    maps = []
    for name in ("table.csv", "without.csv"):
        told = run("transform", tmp_path / "model", tmp_path / name, "-o", tmp_path / "new.csv").output
        assert (sentence in told) == (name == "table.csv" and not words)
        assert "--weight" not in told
        maps.append(pd.read_csv(tmp_path / "new.csv")[["tsee0", "tsee1"]])
    np.testing.assert_array_equal(*maps)
    assert "an identifier" in run("fit", tmp_path / "table.csv", "--dry-run").stdout
    assert sentence not in run(*given, *shlex.split(advice)).stderr
    assert {"Order", "row #"} <= set(tsee.load(tmp_path / "model").map_.feature_names)
