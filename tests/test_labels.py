"""Labels: how they change neighbors, how they spread, what is refused, and that held-out rows are judged honestly."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits

from tests.quick import quick
from tsee import DtSEE, HotSEE
from tsee.affinities import Affinities
from tsee.exceptions import DataWarning
from tsee.labels import (
    NUMBERS_WIDTH,
    PASSED_ON,
    SPREAD_NEIGHBORS,
    SPREAD_STEPS,
    Labels,
    _links,
    classified,
    read_labels,
    spread,
    spread_misses,
)
from tsee.metrics import knn_error

DIGITS, CLASSES = load_digits(return_X_y=True)


def neighbors(n=40, k=6, seed=0):
    rng = np.random.default_rng(seed)
    indices = np.array([rng.choice(np.delete(np.arange(n), row), k, replace=False) for row in range(n)])
    probabilities = rng.dirichlet(np.ones(k), n)
    return Affinities(torch.from_numpy(indices), torch.from_numpy(probabilities).float())


def differences(values, numbers):
    """How much each pair of labels differs, in a plain loop."""
    n = len(values)
    apart, values = np.zeros((n, n)), np.asarray(values, dtype=np.float64)
    for i in range(n):
        for j in range(n):
            if values[i] >= 0 and values[j] >= 0:
                gap = (values[i] - values[j]) / NUMBERS_WIDTH
                apart[i, j] = 1 - np.exp(-(gap**2) / 2) if numbers else float(values[i] != values[j])
    return apart


def weighed(found, apart, weight):
    expected = np.zeros(found.probabilities.shape)
    for i, row in enumerate(found.indices.numpy()):
        terms = found.probabilities[i].double().numpy() * (1 - weight * apart[i, row])
        expected[i] = terms / terms.sum() if terms.sum() > 1e-6 else found.probabilities[i].numpy()
    return expected


@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_neighbors_whose_labels_differ_count_less(numbers, weight):
    found, rng = neighbors(), np.random.default_rng(1)
    values = rng.random(40) if numbers else rng.integers(3, size=40).astype(float)
    values[rng.choice(40, 10, replace=False)] = -1
    values = torch.tensor(values, dtype=torch.float32)
    labels = Labels(values, 0 if numbers else 3, weight)
    result = labels.weigh(found, values, values)
    np.testing.assert_allclose(result.probabilities, weighed(found, differences(values, numbers), weight), atol=1e-5)
    assert torch.equal(result.indices, found.indices)


def test_a_row_without_neighbors_of_its_class_keeps_those_it_has():
    found = Affinities(torch.tensor([[1, 2], [0, 2], [0, 1]]), torch.tensor([[0.7, 0.3]] * 3))
    values = torch.tensor([0.0, 1.0, 1.0])
    result = Labels(values, 2, 1.0).weigh(found, values, values)
    np.testing.assert_allclose(result.probabilities, [[0.7, 0.3], [0, 1], [0, 1]])


@pytest.mark.parametrize("numbers", [False, True])
def test_labels_spread_to_unknown_rows_by_random_walks(numbers):
    found, n, rng = neighbors(k=20), 40, np.random.default_rng(2)
    values = rng.random(n) if numbers else rng.integers(3, size=n).astype(float)
    unknown = rng.random(n) < 0.6
    values[unknown] = -1
    one_way = np.zeros((n, n))
    near = found.indices[:, :SPREAD_NEIGHBORS].numpy()
    np.put_along_axis(one_way, near, found.probabilities[:, :SPREAD_NEIGHBORS].double().numpy() ** 2, 1)
    steps = (one_way + one_way.T) / (one_way + one_way.T).sum(1, keepdims=True)
    first = np.stack([np.ones(n), values], 1) if numbers else np.eye(3)[values.astype(int)]
    first[unknown] = 0
    soft = first.copy()
    for _ in range(SPREAD_STEPS):
        soft = np.where(unknown[:, None], PASSED_ON * steps @ soft, first)
    found_soft = spread(_links(found), torch.from_numpy(first).float(), torch.from_numpy(unknown))
    np.testing.assert_allclose(found_soft, soft, atol=1e-5)
    if numbers:
        mean = soft[:, 1] / soft[:, 0]
        apart = soft[:, :1] * soft[:, 0] * (1 - np.exp(-(((mean[:, None] - mean) / NUMBERS_WIDTH) ** 2) / 2))
    else:
        apart = np.array(
            [[sum(a * b for c, a in enumerate(x) for d, b in enumerate(y) if c != d) for y in soft] for x in soft]
        )
    labels = Labels(torch.from_numpy(values).float(), 0 if numbers else 3, 0.8)
    result = labels.weigh_exemplars(found, labels.values)
    np.testing.assert_allclose(result.probabilities, weighed(found, apart, 0.8), atol=1e-5)


def one_hot(classes, unknown):
    labels = torch.nn.functional.one_hot(torch.as_tensor(classes).long()).float()
    labels[torch.as_tensor(unknown)] = 0
    return labels, torch.as_tensor(unknown)


def test_known_labels_are_judged_as_if_each_had_been_left_out():
    rng = np.random.default_rng(3)
    X, classes = torch.from_numpy(rng.normal(size=(60, 4))).float(), rng.integers(3, size=60)
    X[:, 0] += 2 * torch.from_numpy(classes)
    labels, unknown = one_hot(classes, np.arange(60) >= 50)
    _, misses = classified(X, labels, unknown)
    # The same by 50 regressions, of which each leaves one row out, for every shrinkage and sharpness.
    apart = (X[:50, None] - X[None, :50]).double().square().sum(2).numpy()
    K = np.exp(-apart / X[:50].double().numpy().var(0).sum())
    prior = np.eye(3)[classes[:50]].mean(0)
    Y, best = np.eye(3)[classes[:50]] - prior, (np.inf, 1.0)
    for shrinkage in (1e-3, 1e-2, 1e-1, 1.0):
        left_out = np.empty((50, 3))
        for row in range(50):
            rest = np.delete(np.arange(50), row)
            # All rows are centers, also the one that is left out.
            a = np.linalg.solve(K[rest].T @ K[rest] + shrinkage * (K + 1e-6 * np.eye(50)), K[rest].T @ Y[rest])
            left_out[row] = K[row] @ a
        for power in range(-6, 6):
            scores = np.log(prior) + 2.0**power * left_out
            chances = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
            loss = -np.log(chances[np.arange(50), classes[:50]]).mean()
            best = min(best, (loss, (chances.argmax(1) != classes[:50]).mean()))
    assert misses == pytest.approx(best[1])


def test_chances_of_classes_that_mean_nothing_are_their_shares():
    classes = np.random.default_rng(0).permutation(CLASSES)
    labels, unknown = one_hot(classes, np.arange(len(classes)) >= 600)
    chances, misses = classified(torch.from_numpy(DIGITS).float(), labels, unknown)
    assert misses > 0.8
    np.testing.assert_allclose(chances.sum(1), 1, atol=1e-5)
    assert chances.max() < 0.3


def test_the_order_of_known_rows_changes_no_judgment(monkeypatch):
    """Labels often come in turn, and every second or tenth row has the same one."""
    monkeypatch.setattr("tsee.labels.MOST_KNOWN", 200)
    rng = np.random.default_rng(5)
    classes = np.arange(1000) % 10
    inputs = torch.from_numpy(classes[:, None] + rng.normal(size=(1000, 1))).float()
    labels, unknown = one_hot(classes, np.arange(1000) >= 400)
    near = Affinities(torch.cdist(inputs, inputs).argsort(1)[:, 1:21], torch.full((1000, 20), 0.05))
    order = torch.from_numpy(np.append(rng.permutation(400), np.arange(400, 1000)))
    mixed = Affinities(torch.argsort(order)[near.indices[order]], near.probabilities)
    in_turn = spread_misses(_links(near), labels, unknown), classified(inputs, labels, unknown)[1]
    shuffled = (
        spread_misses(_links(mixed), labels[order], unknown),
        classified(inputs[order], labels[order], unknown)[1],
    )
    np.testing.assert_allclose(in_turn, shuffled, atol=0.1)


@pytest.mark.parametrize("apart", [0, 1e-6])
def test_known_rows_that_are_nearly_equal(apart):
    rng = np.random.default_rng(0)
    X = rng.gamma(1, 1, size=(1500, 10))
    X[:400] = rng.gamma(1, 1, size=10) * 4 + apart * rng.normal(size=(400, 10))
    y = np.full(1500, -1)
    y[:400] = rng.integers(0, 2, 400)
    see = quick(DtSEE, supervised=1.0).fit(X, y)
    assert np.isfinite(see.embedding_).all()


def test_unknown_labels_are_told_by_whichever_finds_more_of_the_known_ones():
    rng, unknown = np.random.default_rng(4), np.arange(300) >= 100
    classes = rng.integers(2, size=300)
    inputs = torch.from_numpy(classes[:, None] * 3.0 + rng.normal(size=(300, 1))).float()
    values = torch.from_numpy(np.where(unknown, -1, classes)).float()
    labels, (first, hidden) = Labels(values, 2, 1.0), one_hot(classes, unknown)
    blind, told = neighbors(300, 20), classified(inputs, first, torch.as_tensor(unknown))[0]
    assert spread_misses(_links(blind), first, hidden) > 0.3  # its neighbors are drawn at random
    told[~hidden] = first[~hidden]
    theirs = told[blind.indices]
    apart = 1 - (told[:, None] * theirs).sum(2)
    result = labels.weigh_exemplars(blind, values, inputs).probabilities
    expected = blind.probabilities * (1 - apart)
    np.testing.assert_allclose(result, expected / expected.sum(1, keepdim=True), atol=1e-4)
    # Where inputs tell nothing, labels spread as without them.
    noise = torch.from_numpy(rng.normal(size=(300, 1))).float()
    near = Affinities(torch.cdist(inputs, inputs).argsort(1)[:, 1:21], torch.full((300, 20), 0.05))
    same = labels.weigh_exemplars(near, values, noise).probabilities
    np.testing.assert_array_equal(same, labels.weigh_exemplars(near, values).probabilities)


@pytest.mark.parametrize(
    "y",
    [
        [3, 5, -1, 3],
        np.array([3.0, 5.0, np.nan, 3.0]),
        np.array([3.0, 5.0, -1, 3.0]),
        ["a", "b", None, "a"],
        ["a", "b", float("nan"), "a"],  # which numpy alone would turn into text
        ("a", "b", np.nan, "a"),
        np.array(["a", "b", "", "a"]),
        pd.Series(["a", "b", pd.NA, "a"], dtype="string"),
        pd.Series(["a", "b", None, "a"], dtype="category"),
        pd.Series([1, 2, pd.NA, 1], dtype="Int64"),
        torch.tensor([3, 5, -1, 3]),
        np.array([[3], [5], [-1], [3]]),
        np.ma.masked_array([3, 5, 7, 3], [False, False, True, False]),
    ],
)
def test_classes_of_every_kind(y):
    labels = read_labels(y, 4, 1.0)
    assert labels.n_classes == 2
    first, second = labels.values[0], labels.values[1]
    assert first != second
    assert labels.values.tolist() == [first, second, -1, first]


def test_numbers_count_by_their_rank():
    labels = read_labels([0.5, -1.0, np.nan, 1e9, 0.5], 5, 1.0)
    assert labels.n_classes == 0
    np.testing.assert_allclose(labels.values, [0.5, 0.125, -1, 0.875, 0.5])


@pytest.mark.parametrize(
    ("y", "says"),
    [
        (None, "given no labels"),
        ([1, 2], "one label for each of the 4 rows"),
        ([-1, -1, -1, -1], "no label that is known"),
        ([None] * 4, "no label that is known"),
        (np.zeros(4, "M8[D]"), "classes or numbers"),
        (np.zeros(4, complex), "classes or numbers"),
        ([("a", 1), ("b", 2), None, ("a", 1)], "one label for each of the 4 rows"),
    ],
)
def test_labels_that_are_refused(y, says):
    with pytest.raises(ValueError, match=says):
        read_labels(y, 4, 0.5)


def test_equal_labels_are_noticed():
    with pytest.warns(DataWarning, match="All known labels of y are equal"):
        read_labels(["a", "a", None], 3, 0.5)


@pytest.mark.parametrize("parameters", [{"exemplars": "centers"}, {"contrast": "full"}])
def test_labels_need_rows_as_exemplars_and_neighbors(parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'supervised' parameter of DtSEE must be 0 with {name}="):
        DtSEE(supervised=0.5, **parameters).fit(DIGITS[:50], CLASSES[:50])


def test_labels_are_ignored_unless_they_count():
    see = quick(DtSEE)
    expected = see.fit_transform(DIGITS[:200])
    np.testing.assert_array_equal(see.fit_transform(DIGITS[:200], ["nonsense"]), expected)
    assert (quick(DtSEE, supervised=0.5).fit_transform(DIGITS[:200], CLASSES[:200]) != expected).any()


@pytest.mark.parametrize("parameters", [{}, {"refinement": 0}, {"n_exemplars": 300}, {"contrast": "noise"}])
@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_every_form_takes_labels(cls, parameters):
    known = np.where(np.arange(400) % 2, CLASSES[:400], -1)
    see = quick(cls, supervised=1.0, **parameters).fit(DIGITS[:400], known)
    assert np.isfinite(see.transform(DIGITS[400:420])).all()
    assert (see.embedding_ != quick(cls, **parameters).fit(DIGITS[:400]).embedding_).any()


def test_numbers_order_the_map():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 5)), rng.random(600)
    X[:, 0] += 2 * y
    apart = []
    for weight in (0.0, 1.0):
        Y = DtSEE(max_epochs=1, supervised=weight, random_state=0).fit_transform(X, y)
        nearest = np.argsort(((Y[:, None] - Y) ** 2).sum(2), 1)[:, 1:6]
        apart.append(np.abs(y[nearest] - y[:, None]).mean())
    assert apart[1] < 0.7 * apart[0]


def test_labels_that_mean_nothing_part_the_rows_of_fit_but_tell_nothing_of_others():
    shuffled = np.random.default_rng(0).permutation(CLASSES)
    see = DtSEE(max_epochs=1, supervised=1.0, random_state=0).fit(DIGITS[:900], shuffled[:900])
    assert knn_error(see.embedding_, shuffled[:900], k=5)[5] < 0.6  # the trap
    assert knn_error(see.embedding_, shuffled[:900], see.transform(DIGITS[900:]), shuffled[900:], k=5)[5] > 0.85


def test_labels_do_not_harm_rows_that_are_held_out():
    errors = {}
    for weight in (0.0, 1.0):
        see = DtSEE(max_epochs=1, supervised=weight, random_state=0).fit(DIGITS[:900], CLASSES[:900])
        errors[weight] = knn_error(see.embedding_, CLASSES[:900], see.transform(DIGITS[900:]), CLASSES[900:], k=5)[5]
        if weight:
            assert knn_error(see.embedding_, CLASSES[:900], k=5)[5] < 0.005
    assert errors[1.0] <= errors[0.0] + 0.003
