"""Neighbors that the user found: the layout keeps them, and new rows are placed among them."""

import pickle

import numpy as np
import pytest
import scipy.sparse
import torch
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors, kneighbors_graph
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tsee
from tests.quick import quick
from tsee import DtSEE, HotSEE
from tsee.metrics import knn_error, quality_score
from tsee.neighbors import GivenNeighbors


def found(X, k, queries=None, **options):
    """A pair of indices and distances. Without queries, no row is its own neighbor."""
    index = NearestNeighbors(n_neighbors=k, algorithm="brute", **options).fit(X)
    distances, indices = index.kneighbors(queries)
    return indices, distances


def with_itself(indices, distances):
    """As PyNNDescent and faiss have it."""
    n = len(indices)
    return np.c_[np.arange(n), indices], np.c_[np.zeros(n), distances]


def shuffled(indices, distances):
    order = np.random.default_rng(0).permuted(np.tile(np.arange(indices.shape[1]), (len(indices), 1)), axis=1)
    return np.take_along_axis(indices, order, 1), np.take_along_axis(distances, order, 1)


def padded(indices, distances):
    n = len(indices)
    return np.c_[np.full(n, -1), indices, np.full(n, -1)], np.c_[np.full(n, np.nan), distances, np.full(n, np.inf)]


def as_matrix(indices, distances, n):
    starts = np.arange(0, indices.size + 1, indices.shape[1])
    return scipy.sparse.csr_array((distances.ravel(), indices.ravel(), starts), shape=(len(indices), n))


@pytest.mark.parametrize("cls", [DtSEE, HotSEE])
def test_the_neighbors_of_the_model_itself_give_its_map(cls, digits):
    X, _, X_new, _ = digits
    own = quick(cls, refinement=40).fit(X)
    given = quick(cls, refinement=40)
    positions = given.fit_transform(X, neighbors=found(X, 72))
    assert own.perplexity_ == given.perplexity_ == 36
    # The same probabilities up to rounding, which the descent amplifies for a few rows.
    extent = np.ptp(own.embedding_)
    assert np.median(np.abs(positions - own.embedding_)) < 2e-3 * extent
    np.testing.assert_array_equal(given.embedding_, positions)
    assert np.median(np.abs(given.transform(X_new) - own.transform(X_new))) < 2e-3 * extent
    assert given.n_exemplars_ == len(X)


@pytest.mark.parametrize("change", [with_itself, shuffled, padded])
def test_the_order_does_not_matter_nor_the_row_itself_nor_missing_ones(change, digits):
    X = digits[0]
    pair = found(X, 45)
    expected = quick(DtSEE).fit_transform(X, neighbors=pair)
    np.testing.assert_array_equal(quick(DtSEE).fit_transform(X, neighbors=change(*pair)), expected)


@pytest.mark.parametrize("kind", ["csr_matrix", "csr_array", "csc_array", "coo_array", "lil_array"])
def test_a_pair_is_a_sparse_matrix_of_any_kind(kind, digits):
    X = digits[0]
    graph = kneighbors_graph(X, 45, mode="distance")
    expected = quick(DtSEE).fit_transform(X, neighbors=found(X, 45))
    given = getattr(scipy.sparse, kind)(graph)
    np.testing.assert_array_equal(quick(DtSEE).fit_transform(X, neighbors=given), expected)
    tensors = tuple(torch.from_numpy(part) for part in found(X, 45))
    np.testing.assert_array_equal(quick(DtSEE).fit_transform(X, neighbors=tensors), expected)


def test_the_unit_of_distances_does_not_matter(digits):
    X = digits[0]
    indices, distances = found(X, 45)
    expected = quick(DtSEE).fit_transform(X, neighbors=(indices, distances))
    for unit in (2.0**-600, 2.0**600):
        np.testing.assert_array_equal(quick(DtSEE).fit_transform(X, neighbors=(indices, distances * unit)), expected)


def test_the_map_keeps_the_given_neighbors_and_not_those_of_the_features(digits):
    """Neighbors of other features, which X does not show."""
    X = digits[0]
    other = np.random.default_rng(0).normal(size=(len(X), 3))
    see = DtSEE(random_state=0, max_epochs=1, global_weight=0).fit(X, neighbors=found(other, 60))
    assert quality_score(other, see.embedding_, k=10)[10] > 0.4
    assert quality_score(X, see.embedding_, k=10)[10] < 0.1


def test_neighbors_at_distance_zero_are_neighbors():
    """A sparse matrix stores them, and does not show them."""
    X = np.repeat(np.random.default_rng(0).normal(size=(30, 4)), 2, axis=0)
    graph = kneighbors_graph(X, 12, mode="distance")
    assert (graph.data == 0).any()
    nearest, squared = GivenNeighbors.checked(graph, 60, 60, first=0).nearest(torch.arange(60), 2)
    assert nearest[:, 0].tolist() == [row ^ 1 for row in range(60)]
    assert (squared[:, 0] == 0).all()
    assert (squared[:, 1] > 0).all()


def test_rows_may_have_different_numbers_of_neighbors(digits):
    X = digits[0]
    graph = NearestNeighbors(radius=36.0).fit(X).radius_neighbors_graph(mode="distance")
    graph = graph.maximum(kneighbors_graph(X, 2, mode="distance"))
    counts = np.diff(graph.indptr)
    assert counts.min() < 5 < 60 < counts.max()
    see = DtSEE(random_state=0, max_epochs=1).fit(X, neighbors=graph)
    assert see.perplexity_ < 30
    assert quality_score(X, see.embedding_, k=10)[10] > 0.3


def test_the_perplexity_fits_the_neighbors(digits):
    X = digits[0]
    assert quick(DtSEE).fit(X, neighbors=found(X, 15)).perplexity_ == 10
    assert quick(DtSEE, n_neighbors=9).fit(X, neighbors=found(X, 15)).perplexity_ == 6
    with pytest.warns(UserWarning, match="The 'perplexity' parameter is 20, too large for 15 given neighbors"):
        quick(DtSEE, perplexity=20).fit(X, neighbors=found(X, 15))


def test_new_rows_are_placed_among_their_given_neighbors(digits):
    X, _, X_new, _ = digits
    see = quick(DtSEE, refinement=40, n_inputs=None).fit(X, neighbors=found(X, 60))
    pair = found(X, 20, X_new)
    positions = see.transform(X_new, neighbors=pair)
    # Two roads to one answer: the search in X finds the same neighbors.
    np.testing.assert_allclose(positions, see.transform(X_new), atol=1e-3 * np.ptp(positions))
    np.testing.assert_array_equal(see.transform(X_new, neighbors=as_matrix(*pair, len(X))), positions)
    more = see.transform(X_new, neighbors=found(X, 33, X_new))  # all but a few, whose twentieth ties with the next
    assert (more == positions).all(1).mean() > 0.97
    # Each is independent of the others, and a row of fit has its position.
    for row in (0, 7):
        one = tuple(part[row : row + 1] for part in pair)
        np.testing.assert_array_equal(see.transform(X_new[row : row + 1], neighbors=one), positions[row : row + 1])
    np.testing.assert_array_equal(see.transform(X, neighbors=found(X, 20, X)), see.embedding_)


def test_rows_with_few_neighbors_are_placed_as_if_there_were_no_others(digits):
    X, _, X_new, _ = digits
    see = quick(DtSEE).fit(X)
    indices, distances = found(X, 20, X_new)
    counts = 1 + np.arange(len(X_new)) % 20
    missing = np.arange(20) >= counts[:, None]
    together = see.transform(X_new, neighbors=(np.where(missing, -1, indices), distances))
    for count in (1, 2, 3, 11):
        rows = counts == count
        few = see.transform(X_new[rows], neighbors=(indices[rows, :count], distances[rows, :count]))
        np.testing.assert_array_equal(together[rows], few)
    nearest = see.embedding_[indices[counts == 1, 0]]
    np.testing.assert_allclose(together[counts == 1], nearest, atol=1e-4 * np.ptp(nearest))


def test_a_saved_map_places_rows_among_given_neighbors(digits, tmp_path):
    X, _, X_new, _ = digits
    see = quick(DtSEE).fit(X, neighbors=found(X, 30))
    see.save(tmp_path / "model")
    for kept in (tsee.load(tmp_path / "model"), pickle.loads(pickle.dumps(see))):
        pair = found(X, 20, X_new)
        np.testing.assert_array_equal(kept.transform(X_new, neighbors=pair), see.transform(X_new, neighbors=pair))
        np.testing.assert_array_equal(kept.transform(X_new), see.transform(X_new))
        np.testing.assert_array_equal(kept.embedding_, see.embedding_)


def test_every_row_is_an_exemplar(monkeypatch, digits):
    """Also if there are so many that otherwise only some of them would be."""
    X = digits[0]
    monkeypatch.setattr("tsee.estimators.automatic.AUTO_POINTS", 100)
    assert quick(DtSEE).fit(X).n_exemplars_ == 100
    assert quick(DtSEE).fit(X, neighbors=found(X, 30)).n_exemplars_ == 600


@pytest.mark.parametrize(
    "parameters", [{"contrast": "noise", "n_noise": 20}, {"refinement": 0}, {"placement": "forward"}]
)
def test_other_forms_keep_given_neighbors(parameters, digits):
    X, _, X_new, _ = digits
    see = quick(DtSEE, **parameters).fit(X, neighbors=found(X, 60))
    assert np.isfinite(see.transform(X_new)).all()


def test_in_a_pipeline(digits):
    X = digits[0]
    steps = make_pipeline(StandardScaler(), quick(DtSEE))
    positions = steps.fit_transform(X, dtsee__neighbors=found(X, 60))
    scaled = StandardScaler().fit_transform(X)
    np.testing.assert_array_equal(positions, quick(DtSEE).fit_transform(scaled, neighbors=found(X, 60)))


def test_a_resumed_fit_needs_the_same_neighbors(tmp_path, digits):
    X = digits[0]
    see = quick(DtSEE, checkpoint=tmp_path)
    see.fit(X, neighbors=found(X, 60))
    identity = see._checkpoint.identity
    again = quick(DtSEE, checkpoint=tmp_path / "other").fit(X, neighbors=shuffled(*found(X, 60)))
    assert again._checkpoint.identity == identity
    changed = quick(DtSEE, checkpoint=tmp_path / "third").fit(X, neighbors=found(X, 59))
    assert changed._checkpoint.identity["neighbors"] != identity["neighbors"]


PEERS = """
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import kneighbors_graph
import tsee
X = load_digits().data[:400]
graph = kneighbors_graph(X, 30, mode="distance", metric="cosine")
own = slice(rank * len(X) // size, (rank + 1) * len(X) // size)
see = tsee.DtSEE(random_state=0, max_epochs=2, refinement=30).fit(X[own], neighbors=graph[own])
if rank == 0:
    np.save(sys.argv[1], see.transform(X))
"""


def test_two_processes_have_the_neighbors_of_their_own_rows(tmp_path, peers):
    for size in (1, 2):
        peers.run(PEERS, size, tmp_path / f"{size}.npy")
    alone, together = np.load(tmp_path / "1.npy"), np.load(tmp_path / "2.npy")
    assert np.median(np.linalg.norm(together - alone, axis=1)) < 0.02 * np.ptp(alone)


def test_naive_order():
    """Sorted by distance, then by number, without the row itself."""
    generator = np.random.default_rng(0)
    indices = np.array([generator.permutation(40)[:9] for _ in range(40)])
    distances = generator.integers(0, 4, indices.shape).astype(float)
    distances[generator.random(indices.shape) < 0.1] = np.inf
    given = GivenNeighbors.checked((indices, distances), 40, 40, first=0)
    for row in range(40):
        pairs = [(d, i) for i, d in zip(indices[row], distances[row], strict=True) if i != row and d < np.inf]
        nearest, squared = given.nearest(torch.tensor([row]), 9)
        count = int(given.counts[row])
        assert nearest[0, :count].tolist() == [i for _, i in sorted(pairs)]
        expected = np.array([d for d, _ in sorted(pairs)])
        unit = 2.0 ** np.ceil(np.log2(expected[-1] + 1e-9))
        np.testing.assert_allclose(squared[0, :count], (expected / unit) ** 2, rtol=1e-6)
        assert torch.isinf(squared[0, count:]).all()


GOOD = found(np.random.default_rng(0).normal(size=(50, 3)), 12)


def spoiled(row, column, index=None, distance=None):
    indices, distances = (part.copy() for part in GOOD)
    if index is not None:
        indices[row, column] = index
    if distance is not None:
        distances[row, column] = distance
    return indices, distances


ALONE = np.where(np.arange(50)[:, None] == 7, -1, GOOD[0])
TWICE = scipy.sparse.coo_array((np.ones(100), (np.arange(100) % 50, (np.arange(100) + 1) % 50)), shape=(50, 50))
BAD = {
    "a dense matrix": (np.ones((50, 50)), r"must be a sparse matrix of distances, .* or a pair of arrays \(indices, "),
    "three arrays": ((*GOOD, GOOD[0]), "or a pair of arrays .* Got tuple instead"),
    "a word": ("neighbors", "or a pair of arrays .* Got str instead"),
    "fewer rows": (
        tuple(part[:49] for part in GOOD),
        r"a line for each of the 50 rows of X. Got shapes \(49, 12\) and",
    ),
    "other distances": (
        (GOOD[0], GOOD[1][:, :5]),
        r"of the same shape, .* Got shapes \(50, 12\) and \(50, 5\) instead",
    ),
    "a matrix of fewer rows": (
        as_matrix(*GOOD, 50)[:49],
        r"must be a matrix of shape \(50, 50\), .* \(49, 50\) instead",
    ),
    "a matrix of more columns": (as_matrix(*GOOD, 51), r"a column for each row of fit. Got shape \(50, 51\) instead"),
    "distances first": (GOOD[::-1], "whose first array holds integers. Got float64 instead: scikit-learn and faiss"),
    "complex": ((GOOD[0], GOOD[1] * 1j), "must hold distances, which are real numbers. Got complex128 instead"),
    "a complex matrix": (as_matrix(*GOOD, 50) * 1j, "must hold distances, which are real numbers. Got complex128"),
    "a number too large": (spoiled(3, 2, index=50), "names row 50 as a neighbor of row 3, .* from 0 to 49: -1 stands"),
    "a number too small": (spoiled(3, 2, index=-2), "names row -2 as a neighbor of row 3, "),
    "NaN": (spoiled(3, 2, distance=np.nan), r"has a distance that is NaN in row 3 \(counted from 0\): leave"),
    "negative": (
        spoiled(4, 2, distance=-0.5),
        r"has a negative distance in row 4 \(counted from 0\): give distances, ",
    ),
    "NaN in a matrix": (as_matrix(*spoiled(3, 2, distance=np.nan), 50), "has a distance that is NaN in row 3"),
    "negative in a matrix": (as_matrix(*spoiled(4, 2, distance=-1), 50), "has a negative distance in row 4"),
    "twice": (spoiled(5, 2, index=GOOD[0][5, 1]), f"has row {GOOD[0][5, 1]} twice as a neighbor of row 5 .* keep one"),
    "twice in a matrix": (TWICE, "has several distances for the same two rows: keep one of them"),
    "no neighbors": ((ALONE, GOOD[1]), r"has no neighbor for row 7 \(counted from 0\) besides itself: give it one, or"),
    "no neighbors in a matrix": (as_matrix(np.where(ALONE < 0, 7, ALONE)[:, :1], GOOD[1][:, :1], 50), "for row 7 "),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_neighbors_get_one_sentence(what):
    neighbors, sentence = BAD[what]
    X = np.random.default_rng(0).normal(size=(50, 3))
    see = quick(DtSEE)
    for call in (see.fit, see.fit_transform):
        with pytest.raises(ValueError, match=f"^The 'neighbors' parameter .*{sentence}") as error:
            call(X, neighbors=neighbors)
        assert str(error.value).count(". ") <= 1, "one sentence, and what came instead"
    assert not hasattr(see, "map_")


def test_what_given_neighbors_do_not_go_with():
    X = np.random.default_rng(0).normal(size=(50, 3))
    for parameters, sentence in (
        ({"exemplars": "centers"}, "The 'exemplars' parameter of DtSEE must be \"points\" with given neighbors"),
        (
            {"n_exemplars": 20},
            "The 'n_exemplars' parameter of DtSEE must be None with given neighbors, .* Got 20 instead",
        ),
        ({"contrast": "full"}, 'The \'contrast\' parameter of DtSEE must be "sampled" or "noise" with given neighbors'),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            quick(DtSEE, **parameters).fit(X, neighbors=GOOD)
    see = quick(DtSEE, n_exemplars=20).fit(X)
    with pytest.raises(
        ValueError,
        match="^The 'neighbors' parameter of transform needs a map on which every row is an exemplar.* 20 .* 50",
    ):
        see.transform(X, neighbors=GOOD)
    full = quick(DtSEE, n_exemplars=50).fit(X).update(X[:10])  # which are only placed
    with pytest.raises(ValueError, match="this one has 50 exemplars of 60 rows"):
        full.transform(X, neighbors=GOOD)
    with pytest.raises(ValueError, match="a line for each of the 49 rows of X"):
        quick(DtSEE).fit(X).transform(X[:49], neighbors=GOOD)


def test_labels_weigh_given_neighbors_and_given_distances(digits):
    X, y, _, _ = digits
    D = pairwise_distances(X)
    for fit in (
        lambda **given: quick(DtSEE, refinement=100, **given).fit(X, y, neighbors=found(X, 60)),
        lambda **given: quick(DtSEE, refinement=100, metric="precomputed", **given).fit(D, y),
    ):
        plain, weighed = fit().embedding_, fit(supervised=0.9).embedding_
        assert knn_error(weighed, y, k=1)[1] < knn_error(plain, y, k=1)[1]
