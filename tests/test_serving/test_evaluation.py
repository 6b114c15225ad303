"""`evaluate_map`: the measures of `tsee.metrics` on the rows of tables."""

import numpy as np
import pytest

from tsee import metrics
from tsee.exceptions import DataFileError
from tsee.serving import ReadOptions, evaluate_map, evaluation, open_matching, placing

FEATURES = list("abcd")
LABEL = ReadOptions(label="kind")


@pytest.fixture
def evaluated(see, write, tmp_path):
    """Evaluate a table, and another to compare with, from files."""

    def evaluated(frame, train=None, options=LABEL):
        with open_matching(see, write(tmp_path / "rows.parquet", frame), options) as table:
            if train is None:
                return evaluate_map(see, table)
            with open_matching(see, write(tmp_path / "train.parquet", train), options) as train_table:
                return evaluate_map(see, table, train_table)

    return evaluated


def test_held_out_rows(frame, see, evaluated):
    train, test = frame[:40], frame[40:]
    found = evaluated(test, train)
    (X, y), (Z, t) = ((half[FEATURES].to_numpy(), half["kind"].to_numpy()) for half in (train, test))
    P, Q = see.transform(train[FEATURES]), see.transform(test[FEATURES])
    assert (found.n_rows, found.n_sample, found.n_train_rows, found.n_train_sample) == (20, 20, 40, 40)
    assert found.knn_error == metrics.knn_error(P, y, Q, t)
    assert found.quality_score == metrics.quality_score(X, P, Z, Q, k=(1, 5, 10))
    assert found.trustworthiness[10] == metrics.trustworthiness(X, P, Z, Q, k=10)
    assert found.continuity[5] == metrics.continuity(X, P, Z, Q, k=5)
    assert found.triplet_accuracy == metrics.triplet_accuracy(X, P, Z, Q)
    assert found.distance_correlation == metrics.distance_correlation(X, P, Z, Q)
    assert found.density_correlation == metrics.density_correlation(X, P, Z, Q)
    assert found.centroids == metrics.centroid_scores(X, P, y, Z, Q, t)


def test_each_row_among_the_others(frame, positions, evaluated):
    found = evaluated(frame)
    assert found.n_train_rows is None
    assert found.knn_error == metrics.knn_error(positions, frame["kind"].to_numpy())
    assert found.quality_score == metrics.quality_score(frame[FEATURES].to_numpy(), positions, k=(1, 5, 10))
    X, y = frame[FEATURES].to_numpy(), frame["kind"].to_numpy()
    assert found.density_correlation == metrics.density_correlation(X, positions)
    assert found.centroids == metrics.centroid_scores(X, positions, y)
    found = evaluated(frame, options=ReadOptions())
    assert (found.knn_error, found.centroids) == (None, None)


def test_a_sample_across_blocks(frame, see, positions, evaluated, monkeypatch):
    monkeypatch.setattr(placing, "MIN_BLOCK_ROWS", 16)
    monkeypatch.setattr(placing, "MAX_BLOCK_ROWS", 16)
    monkeypatch.setattr(placing, "MAX_SPAN", 16)
    monkeypatch.setattr(evaluation, "SAMPLE_ROWS", 30)
    found = evaluated(frame)
    assert (found.n_rows, found.n_sample) == (60, 30)
    chosen = np.sort(np.random.default_rng(0).choice(60, 30, replace=False))
    X, P = frame[FEATURES].to_numpy()[chosen], positions[chosen]
    assert found.quality_score == metrics.quality_score(X, P, k=(1, 5, 10))
    assert found.knn_error == metrics.knn_error(positions, frame["kind"].to_numpy())
    assert found.centroids == metrics.centroid_scores(X, P, frame["kind"].to_numpy()[chosen])


def test_what_is_undefined_is_none(frame, evaluated):
    found = evaluated(frame[:1].loc[[0] * 10])  # ten equal rows of one class
    assert (found.triplet_accuracy, found.distance_correlation, found.density_correlation) == (None, None, None)
    assert found.centroids is None
    assert found.quality_score.keys() == {1, 5}


def test_rows_without_a_label_and_too_few_rows(frame, evaluated):
    found = evaluated(frame.assign(kind=frame["kind"].where(frame.index >= 15)))
    assert found.n_unlabeled == 15
    assert found.centroids == evaluated(frame[15:]).centroids
    with pytest.raises(DataFileError, match="No row of .* has a label: .* 'label' parameter"):
        evaluated(frame.assign(kind=None))
    found = evaluated(frame[:6])
    assert list(found.knn_error) == [1, 5]
    assert list(found.trustworthiness) == [1]
    with pytest.raises(ValueError, match="There is only one row"):
        evaluated(frame[:1])
