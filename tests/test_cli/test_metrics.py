"""``--metric``: through fit, transform, evaluate and info."""

import json

import numpy as np
import pytest

import tsee
from tsee import metrics


@pytest.fixture
def bits(tmp_path):
    X = np.random.default_rng(0).random((120, 12)) < 0.4
    np.save(tmp_path / "bits.npy", X)
    np.save(tmp_path / "more.npy", X[:40])
    return X


def test_one_metric_through_all_commands(run, tmp_path, bits, quick):
    run("fit", tmp_path / "bits.npy", "--metric", "jaccard", "-o", tmp_path / "model", *quick)
    see = tsee.load(tmp_path / "model")
    assert see.metric == "jaccard"
    run("transform", tmp_path / "model", tmp_path / "more.npy", "-o", tmp_path / "map.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), see.transform(bits[:40]))
    told = json.loads(run("evaluate", tmp_path / "model", tmp_path / "bits.npy", "--json").stdout)
    Y = see.transform(bits)
    expected = metrics.quality_score(bits, Y, k=(1, 5, 10), metric="jaccard")
    assert told["quality_score"] == {str(k): score for k, score in expected.items()}
    assert told["triplet_accuracy"] == metrics.triplet_accuracy(bits, Y, metric="jaccard")
    assert told["distance_correlation"] != metrics.distance_correlation(bits, Y)
    assert json.loads(run("info", tmp_path / "model", "--json").stdout)["parameters"]["metric"] == "jaccard"


def test_a_row_that_cannot_be_compared_is_named_with_its_file(run, tmp_path, bits, quick):
    run("fit", tmp_path / "bits.npy", "--metric", "jaccard", "-o", tmp_path / "model", *quick)
    bad = bits.astype(np.float32)
    bad[7, 3] = 2.5
    np.save(tmp_path / "bad.npy", bad)
    told = run("transform", tmp_path / "model", tmp_path / "bad.npy", "-o", tmp_path / "map.npy", code=1).stderr
    assert "bad.npy', row 7 holds 2.5 in column 3" in told
    told = run("fit", tmp_path / "bad.npy", "--metric", "jaccard", "-o", tmp_path / "other", *quick, code=1).stderr
    assert "Row 7 of X holds 2.5 in column 3" in told


def test_an_unknown_metric_is_wrong_usage(run, tmp_path, bits):
    told = run("fit", tmp_path / "bits.npy", "--metric", "l1", "-o", tmp_path / "model", code=2).stderr
    assert 'It must be "euclidean", "cosine"' in told.replace("'", '"')
