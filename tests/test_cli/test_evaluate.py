"""``tsee evaluate``: the measures of `tsee.metrics` on what the files hold."""

import json

import numpy as np
import pytest

import tsee
from tsee import metrics

COLUMNS = ["width", "length", "height", "weight"]


@pytest.fixture(scope="module")
def halves(folder, flowers, write):
    write(folder / "train.csv", flowers[:60])
    write(folder / "test.csv", flowers[60:])
    return flowers[:60], flowers[60:]


def test_held_out_rows(run, folder, model, halves):
    result = run("evaluate", model, folder / "test.csv", "--label", "kind", "--train", folder / "train.csv", "--json")
    told = json.loads(result.stdout)
    (X, y), (Z, t) = ((half[COLUMNS].to_numpy(), half["kind"].to_numpy()) for half in halves)
    see = tsee.load(model)
    P, Q = see.transform(halves[0][COLUMNS]), see.transform(halves[1][COLUMNS])
    assert told["rows"] == told["sample"] == 30
    assert told["train_rows"] == told["train_sample"] == 60
    assert told["knn_error"] == as_text(metrics.knn_error(P, y, Q, t))
    assert told["quality_score"] == as_text(metrics.quality_score(X, P, Z, Q, k=(1, 5, 10)))
    assert told["trustworthiness"]["10"] == metrics.trustworthiness(X, P, Z, Q, k=10)
    assert told["continuity"]["5"] == metrics.continuity(X, P, Z, Q, k=5)
    assert told["triplet_accuracy"] == metrics.triplet_accuracy(X, P, Z, Q)
    assert told["distance_correlation"] == metrics.distance_correlation(X, P, Z, Q)
    assert told["density_correlation"] == metrics.density_correlation(X, P, Z, Q)
    assert told["centroids"] == metrics.centroid_scores(X, P, y, Z, Q, t)._asdict()


def as_text(values):
    return {str(k): value for k, value in values.items()}


def test_the_table(run, folder, model, halves):
    output = run("evaluate", model, folder / "test.csv", "--label", "kind", "--train", folder / "train.csv").stdout
    lines = output.splitlines()
    assert lines[0] == f"30 rows, compared with the 60 of '{folder / 'train.csv'}'."
    assert lines[2].split() == ["Neighbors", "k", "=", "1", "k", "=", "5", "k", "=", "10"]
    names = ["k-NN error", "Quality Score", "trustworthiness", "continuity"]
    assert [line[:20].strip() for line in lines[3:7]] == names
    assert all(cell.endswith("%") for cell in lines[3][20:44].split())
    names = ["triplet accuracy", "distance correlation", "density correlation"]
    names += ["centroid neighbors", "centroid triplets", "centroid correlation"]
    assert lines[8] == "The large shape"
    assert [line[:20].strip() for line in lines[9:]] == names
    assert all(-1 <= float(line[20:28]) <= 1 for line in lines[9:])
    assert all("is best" in line for line in lines[3:7] + lines[9:])  # whether high or low is good
    assert all(len(line) <= 80 for line in lines[1:])
    output = run("evaluate", model, folder / "flowers.npy").stdout  # no label, no k-NN error
    assert output.startswith("90 rows, each compared with the others.\n")
    assert "k-NN" not in output
    assert "centroid" not in output
    assert "triplet accuracy" in output


def test_a_sample_is_reported(run, folder, model, monkeypatch):
    monkeypatch.setattr("tsee.serving.evaluation.SAMPLE_ROWS", 40)
    result = run("evaluate", model, folder / "flowers.h5ad", "--label", "kind")
    assert result.stdout.endswith("\nAll except the k-NN error are measured on a sample of 40 rows.\n")


def test_npz_with_keys(run, tmp_path, quick, flowers):
    X, y = flowers[COLUMNS].to_numpy(), flowers["kind"].to_numpy(str)
    path = tmp_path / "a.npz"
    np.savez(path, x_train=X[:60], y_train=y[:60], x_test=X[60:], y_test=y[60:])
    run("fit", path, "--key", "x_train", "--label", "y_train", "-o", tmp_path / "model", *quick)
    given = ["--key", "x_test", "--label", "y_test", "--train", path, "--train-key", "x_train"]
    told = json.loads(run("evaluate", tmp_path / "model", path, *given, "--train-label", "y_train", "--json").stdout)
    assert (told["rows"], told["train_rows"]) == (30, 60)


def test_rows_without_a_label_and_too_few_rows(run, write, flowers, model, tmp_path):
    path = write(tmp_path / "a.parquet", flowers.assign(kind=flowers["kind"].where(flowers.index >= 15)))
    result = run("evaluate", model, path, "--label", "kind", "--json")
    assert "15 rows without a label are left out of the k-NN error and the centroids." in result.stderr
    assert json.loads(result.stdout)["unlabeled"] == 15
    path = write(tmp_path / "b.parquet", flowers.assign(kind=None))
    result = run("evaluate", model, path, "--label", "kind", code=1)
    assert f"No row of '{path}' has a label: name another column by --label." in result.stderr
    path = write(tmp_path / "c.csv", flowers[:6])
    told = json.loads(run("evaluate", model, path, "--label", "kind", "--json").stdout)
    assert list(told["knn_error"]) == ["1", "5"]
    assert list(told["trustworthiness"]) == ["1"]
    path = write(tmp_path / "d.csv", flowers[:1])
    assert "There is only one row" in run("evaluate", model, path, "--label", "kind", code=1).stderr
