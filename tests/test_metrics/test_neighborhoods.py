"""The measures against naive loops, against scikit-learn, and at their extremes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.manifold
import torch
from sklearn.neighbors import KNeighborsClassifier

from tsee.metrics import continuity, knn_error, quality_score, spaces, trustworthiness

N, M = 90, 40


def make_space(columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(N, columns)), generator.normal(size=(M, columns))


def orders(train: np.ndarray, test: np.ndarray | None) -> list[list[int]]:
    """For each point the training rows, nearest first, not counting itself: one loop, double precision."""
    result = []
    for i, point in enumerate(train if test is None else test):
        others = [j for j in range(len(train)) if test is not None or j != i]
        result.append(sorted(others, key=lambda j: float(((train[j] - point) ** 2).sum())))
    return result


def naive_knn_error(Y_train, y_train, Y_test, y_test, k):
    wrong = 0
    labels = y_train if Y_test is None else y_test
    for label, order in zip(labels, orders(Y_train, Y_test), strict=True):
        votes = Counter(y_train[j] for j in order[:k])
        tied = [c for c in votes if votes[c] == max(votes.values())]
        wrong += min(tied, key=lambda c: next(p for p, j in enumerate(order) if y_train[j] == c)) != label
    return wrong / len(labels)


def naive_rank_score(neighbors, ranks, k):
    n = len(ranks[0])
    excess = sum(max(0, rank.index(j) + 1 - k) for near, rank in zip(neighbors, ranks, strict=True) for j in near[:k])
    return 1 - 2 * excess / (len(ranks) * k * (2 * n - 3 * k + 1))


class TestAgainstLoops:
    @pytest.mark.parametrize("columns", [2, 5])  # by tree and by products
    def test_knn_error(self, columns, held_out):
        Y_train, Y_test = make_space(columns, seed=2)
        labels = np.random.default_rng(3).integers(4, size=N + M)
        y_train, y_test = labels[:N], labels[N:]
        args = (Y_train, y_train, Y_test, y_test) if held_out else (Y_train, y_train, None, None)
        errors = knn_error(*args, k=range(1, 31))
        assert list(errors) == list(range(1, 31))
        for k, error in errors.items():
            assert error == pytest.approx(naive_knn_error(*args, k), abs=1e-12)

    def test_quality_score(self, data, held_out):
        args = data if held_out else (*data[:2], None, None)
        X_order, Y_order = orders(args[0], args[2]), orders(args[1], args[3])
        for k, score in quality_score(*args, k=(1, 2, 10, 60)).items():
            shares = [len({*x[:k]} & {*y[:k]}) / k for x, y in zip(X_order, Y_order, strict=True)]
            assert score == pytest.approx(np.mean(shares), abs=1e-12)

    @pytest.mark.parametrize("k", [1, 5, 44])
    def test_trustworthiness_and_continuity(self, data, held_out, k):
        args = data if held_out else (*data[:2], None, None)
        X_order, Y_order = orders(args[0], args[2]), orders(args[1], args[3])
        assert trustworthiness(*args, k=k) == pytest.approx(naive_rank_score(Y_order, X_order, k), abs=1e-12)
        assert continuity(*args, k=k) == pytest.approx(naive_rank_score(X_order, Y_order, k), abs=1e-12)

    def test_blocks_do_not_matter(self, data, monkeypatch):
        labels = np.arange(N) % 3, np.arange(M) % 3
        whole = (
            knn_error(data[1], labels[0], data[3], labels[1], k=(1, 7)),
            quality_score(*data, k=(1, 7)),
            trustworthiness(*data),
            continuity(*data[:2]),
        )
        monkeypatch.setattr(spaces, "BLOCK_ENTRIES", 1000)
        blocks = (
            knn_error(data[1], labels[0], data[3], labels[1], k=(1, 7)),
            quality_score(*data, k=(1, 7)),
            trustworthiness(*data),
            continuity(*data[:2]),
        )
        assert blocks == whole


class TestAgainstScikitLearn:
    @pytest.mark.parametrize("k", [1, 3, 7])
    def test_knn_error_without_ties(self, k):
        Y_train, Y_test = make_space(2, seed=4)
        y_train, y_test = Y_train[:, 0] > 0.3, Y_test[:, 0] > 0  # two classes and odd k: no ties
        peer = KNeighborsClassifier(k).fit(Y_train, y_train).score(Y_test, y_test)
        assert knn_error(Y_train, y_train, Y_test, y_test, k=k) == {k: pytest.approx(1 - peer)}

    @pytest.mark.parametrize("k", [1, 5, 20])
    def test_in_sample(self, data, k):
        X, Y = data[:2]
        peer = sklearn.manifold.trustworthiness(X, Y, n_neighbors=k)
        assert trustworthiness(X, Y, k=k) == pytest.approx(peer, abs=1e-12)
        peer = sklearn.manifold.trustworthiness(Y, X, n_neighbors=k)
        assert continuity(X, Y, k=k) == pytest.approx(peer, abs=1e-12)


class TestExtremes:
    def test_a_perfect_map(self, held_out):
        X_train, X_test = make_space(2, seed=5)
        turn = np.array([[0, 3], [-3, 0]])
        args = [X_train, X_train @ turn + 100, X_test, X_test @ turn + 100]
        args = args if held_out else args[:2]
        assert quality_score(*args, k=(1, 20)) == {1: 1, 20: 1}
        assert trustworthiness(*args, k=20) == 1
        assert continuity(*args, k=20) == 1

    def test_the_worst_map_of_held_out_points_is_0(self):
        X_train = np.arange(10.0)[:, None]
        assert trustworthiness(X_train, -X_train, [[-0.1]], [[-9.1]], k=5) == pytest.approx(0, abs=1e-12)
        assert continuity(X_train, -X_train, [[-0.1]], [[-9.1]], k=5) == pytest.approx(0, abs=1e-12)

    def test_a_random_map_is_at_chance(self):
        generator = np.random.default_rng(6)
        X, Y = generator.normal(size=(1500, 20)), generator.normal(size=(1500, 2))
        args = (X[:1000], Y[:1000], X[1000:], Y[1000:])
        labels = generator.integers(10, size=1500)
        error = knn_error(Y[:1000], labels[:1000], Y[1000:], labels[1000:], k=1)[1]
        assert error == pytest.approx(0.9, abs=0.05)
        assert quality_score(*args, k=100)[100] == pytest.approx(0.1, abs=0.01)
        assert trustworthiness(*args, k=10) == pytest.approx(0.5, abs=0.03)
        assert continuity(*args, k=10) == pytest.approx(0.5, abs=0.03)


class TestVotes:
    def test_of_tied_classes_the_nearest_wins(self):
        Y_train = [[1.0, 0], [2.0, 0], [3.0, 0], [4.0, 0], [5.0, 0]]
        y_train = ["far", "near", "near", "far", "other"]
        errors = knn_error(Y_train, y_train, [[0.0, 0.0]], ["far"], k=(1, 2, 3, 4, 5))
        assert errors == {1: 0, 2: 0, 3: 1, 4: 0, 5: 0}

    def test_one_and_two_neighbors_agree(self):
        Y_train, Y_test = make_space(2, seed=7)
        errors = knn_error(Y_train, np.arange(N) % 5, Y_test, np.arange(M) % 5, k=(1, 2))
        assert errors[1] == errors[2]

    @pytest.mark.parametrize("columns", [2, 5])
    def test_a_point_is_never_its_own_neighbor(self, columns):
        copies = np.repeat(np.arange(10.0), 8)[:, None] * np.ones(columns)  # more copies than neighbors
        y = np.arange(80)
        assert knn_error(copies, y, k=(1, 3)) == {1: 1, 3: 1}
        assert knn_error(copies, y // 8, k=(1, 7)) == {1: 0, 7: 0}

    @pytest.mark.parametrize(
        "kind",
        [
            lambda y: [f"class {v}" for v in y],
            lambda y: np.array([f"class {v}" for v in y], dtype=object),
            lambda y: pd.Series(y).astype("category"),
            lambda y: torch.from_numpy(y),
            lambda y: y.astype(float),
        ],
    )
    def test_labels_of_any_kind(self, kind):
        Y_train, Y_test = make_space(2, seed=8)
        y_train, y_test = np.arange(N) % 3, np.arange(M) % 3
        expected = knn_error(Y_train, y_train, Y_test, y_test)
        assert knn_error(Y_train, kind(y_train), Y_test, kind(y_test)) == expected

    def test_classes_unknown_in_training_are_errors(self):
        assert knn_error([[0.0], [1.0]], ["a", "a"], [[0.0], [1.0]], ["a", "b"], k=1) == {1: 0.5}


class TestInputs:
    @pytest.mark.parametrize(
        "kind",
        [
            np.asfortranarray,
            torch.from_numpy,
            pd.DataFrame,
            scipy.sparse.csr_matrix,
            scipy.sparse.csc_array,
            lambda X: X.astype(np.float32),
            lambda X: X.astype(np.int64)[:, ::-1],
            lambda X: torch.from_numpy(X).bfloat16(),  # exact for whole numbers up to 255
            lambda X: X.tolist(),
        ],
    )
    @pytest.mark.parametrize("columns", [40, 100])  # in double and in single precision
    def test_images_of_any_kind(self, kind, columns):
        generator = np.random.default_rng(9)
        X_train, X_test = (generator.integers(256, size=(n, columns), dtype=np.uint8) for n in (N, M))
        Y_train, Y_test = make_space(2, seed=10)
        expected = (
            quality_score(X_train, Y_train, X_test, Y_test, k=(1, 9)),
            trustworthiness(X_train, Y_train, X_test, Y_test),
        )
        X_train, X_test = kind(X_train), kind(X_test)
        assert quality_score(X_train, Y_train, X_test, Y_test, k=(1, 9)) == expected[0]
        assert trustworthiness(X_train, Y_train, X_test, Y_test) == pytest.approx(expected[1], abs=1e-12)

    def test_inputs_are_left_alone(self, data):
        copies = [X.copy() for X in data]
        for X in data:
            X.flags.writeable = False
        tensors = [torch.from_numpy(X) for X in copies]
        trustworthiness(*data), trustworthiness(*tensors)
        for X, copy, tensor in zip(data, copies, tensors, strict=True):
            np.testing.assert_array_equal(X, copy)
            np.testing.assert_array_equal(X, tensor.numpy())

    @pytest.mark.parametrize("columns", [2, 5])
    def test_tight_clusters_far_apart(self, columns):
        generator = np.random.default_rng(11)
        centers = 100 * generator.normal(size=(5, columns)) + 1000
        Y = centers.repeat(40, axis=0) + 1e-3 * generator.normal(size=(200, columns))
        k = 5
        assert trustworthiness(Y, Y.copy(), k=k) == 1
        side = Y[:, 0] > np.repeat(Y[:, 0].reshape(5, 40).mean(1), 40)  # told apart only within a cluster
        peer = KNeighborsClassifier(k).fit(Y[::2], side[::2]).score(Y[1::2], side[1::2])
        assert knn_error(Y[::2], side[::2], Y[1::2], side[1::2], k=k) == {k: pytest.approx(1 - peer)}

    @pytest.mark.parametrize(
        "change, message",
        [
            ({"Y_test": None}, "Y_test and y_test must be given together"),
            ({"y_train": [0]}, "y_train must hold one label for each of the 3 rows of Y_train. Got shape"),
            ({"y_train": [[0], [1], [2]]}, r"y_train .* Got shape \(3, 1\) instead"),
            ({"y_test": [0, 1]}, "y_test must hold one label for each of the 1 rows of Y_test"),
            ({"y_train": [0, 1, np.nan]}, "y_train must not contain missing labels"),
            ({"y_test": [None]}, "y_test must not contain missing labels"),
            ({"k": 0}, "The 'k' parameter of knn_error must be .* from 1 to 3, .* Got 0 instead"),
            ({"k": 4}, "The 'k' parameter of knn_error .* Got 4 instead"),
            ({"k": 3, "Y_test": None, "y_test": None}, "The 'k' parameter .* from 1 to 2, .* Got 3 instead"),
            ({"k": [1, 1.5]}, "The 'k' parameter .* Got 1.5 instead"),
            ({"k": True}, "The 'k' parameter .* Got True instead"),
            ({"k": "5"}, "The 'k' parameter .* Got '5' instead"),
            ({"k": ()}, "The 'k' parameter of knn_error must hold at least one"),
            ({"Y_train": [0.0, 1, 2]}, r"Y_train must be a matrix .* Got shape \(3,\) instead"),
            ({"Y_train": np.empty((0, 2))}, "Y_train must be a matrix with at least one row"),
            ({"Y_train": [[0.0], [1], [np.nan]]}, "Y_train must not contain NaN or infinity"),
            ({"Y_test": [[-np.inf]]}, "Y_test must not contain NaN or infinity"),
            ({"Y_test": [[0.0, 1.0]]}, "Y_test must have as many columns as Y_train. Got 2 and 1 instead"),
            ({"Y_train": [["a"], ["b"], ["c"]]}, "Y_train must contain real numbers"),
            ({"Y_train": torch.zeros(3, 1, dtype=torch.cfloat)}, "Y_train must contain real numbers"),
        ],
    )
    def test_bad_input_of_knn_error(self, change, message):
        good = {"Y_train": [[0.0], [1], [2]], "y_train": [0, 1, 2], "Y_test": [[0.0]], "y_test": [0], "k": 1}
        with pytest.raises(ValueError, match=message):
            knn_error(**good | change)

    @pytest.mark.parametrize("function", [quality_score, trustworthiness, continuity])
    @pytest.mark.parametrize(
        "change, message",
        [
            ({"X_test": None}, "X_test and Y_test must be given together"),
            ({"Y_train": np.eye(9)[:8]}, "X_train and Y_train must have the same .* Got 9 and 8 instead"),
            ({"Y_test": np.eye(9)[:3]}, "X_test and Y_test must have the same .* Got 2 and 3 instead"),
            ({"X_test": np.eye(2)}, "X_test must have as many columns as X_train. Got 2 and 9 instead"),
            ({"X_train": np.zeros((9, 4, 4))}, r"X_train.reshape\(len\(X_train\), -1\)"),
            ({"X_train": np.full((9, 9), np.nan)}, "X_train must not contain NaN or infinity"),
            ({"Y_test": np.full((2, 9), np.inf)}, "Y_test must not contain NaN or infinity"),
            ({"k": 0}, "The 'k' parameter of {name} must be .* Got 0 instead"),
            ({"k": 10}, "The 'k' parameter of {name} must be .* Got 10 instead"),
            ({"k": 2.0}, "The 'k' parameter of {name} must be .* Got 2.0 instead"),
        ],
    )
    def test_bad_input_of_the_others(self, function, change, message):
        train, test = np.eye(9), np.eye(9)[:2]
        good = {"X_train": train, "Y_train": train, "X_test": test, "Y_test": test, "k": 3}
        with pytest.raises(ValueError, match=message.replace("{name}", function.__name__)):
            function(**good | change)

    def test_rank_scores_take_at_most_half(self):
        assert 0 <= trustworthiness(np.eye(9), np.eye(9), k=4) <= 1
        with pytest.raises(ValueError, match="from 1 to 4, half of the training points"):
            trustworthiness(np.eye(9), np.eye(9), k=5)
