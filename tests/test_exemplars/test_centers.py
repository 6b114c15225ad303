"""Centers equal a naive k-means, are well seeded, distinct and never empty; data is read in order.

The references work in float64, one row or one distance at a time.
"""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from tsee import exemplars
from tsee.exemplars import choose_centers, choose_points
from tsee.metric import euclidean

CPU = torch.device("cpu")


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(n, d, seed=0):
    return torch.randn(n, d, generator=seeded(seed))


def blobs(sizes, d=8, seed=0):
    """Well separated Gaussian clusters of the given sizes."""
    middles = 20 * torch.randn(len(sizes), d, generator=seeded(1000 + seed))
    return torch.repeat_interleave(middles, torch.tensor(sizes), 0) + normal(sum(sizes), d, seed)


def naive_distances(X, E):
    return (X.double()[:, None, :] - E.double()[None, :, :]).square().sum(2)


def naive_kmeans(X, E, n_iterations):
    """k-means in float64, but for its centers, which are float32 as they are in tsee."""
    X, E = X.double(), E.double()
    for _ in range(n_iterations):
        labels = naive_distances(X, E).argmin(1)
        E = torch.stack([X[labels == j].mean(0) for j in range(len(E))]).float().double()
    least, labels = naive_distances(X, E).min(1)
    return E, torch.bincount(labels, minlength=len(E)), float(least.sum())


def by_first_column(positions, counts):
    order = positions[:, 0].argsort()
    return positions[order], counts[order]


def rows_of(A):
    return {tuple(row) for row in A.tolist()}


# --- points


@pytest.mark.parametrize(("n_rows", "n_exemplars"), [(100, 1), (100, 30), (100, 99)])
def test_points_are_distinct_and_ascending(n_rows, n_exemplars):
    points = choose_points(n_rows, n_exemplars, seeded())
    assert points.dtype == torch.int64
    assert points.shape == (n_exemplars,)
    assert (points.diff() > 0).all()
    assert points[0] >= 0
    assert points[-1] < n_rows


@pytest.mark.parametrize("n_exemplars", [7, 8, 1000])
def test_points_are_all_rows_if_there_are_no_more(n_exemplars):
    assert choose_points(7, n_exemplars, seeded()).tolist() == list(range(7))


def test_every_row_is_equally_likely_a_point():
    generator = seeded()
    times = torch.zeros(20)
    for _ in range(4000):
        times[choose_points(20, 5, generator)] += 1
    # each is binomial with mean 1000 and standard deviation 27
    assert (times - 1000).abs().max() < 5 * 27


# --- k-means updates


@pytest.mark.parametrize("offset", [0.0, 3000.0])
@pytest.mark.parametrize("n_iterations", [0, 1, 2, 8])
def test_updates_equal_a_naive_loop(n_iterations, offset):
    X = normal(700, 5) + offset
    centers = choose_centers(X, 15, seeding="random", n_iterations=n_iterations, generator=seeded(3))
    start = X[choose_points(700, 15, seeded(3))]
    E, counts, inertia = naive_kmeans(X, start, n_iterations)
    E, counts = by_first_column(E, counts)
    positions, own_counts = by_first_column(centers.positions, centers.counts)
    assert positions.dtype == torch.float32
    torch.testing.assert_close(positions.double(), E, rtol=1e-6, atol=1e-6)
    assert own_counts.tolist() == counts.tolist()
    assert centers.inertia == pytest.approx(inertia, rel=1e-6)


def test_counts_and_inertia_belong_to_the_returned_positions():
    X = blobs([200, 30, 500])
    centers = choose_centers(X, 20, n_iterations=3, generator=seeded())
    least, labels = naive_distances(X, centers.positions).min(1)
    assert centers.counts.tolist() == torch.bincount(labels, minlength=20).tolist()
    assert centers.inertia == pytest.approx(float(least.sum()), rel=1e-5)


def test_progress_counts_the_updates():
    made = []
    choose_centers(normal(2000, 4), 30, n_iterations=6, generator=seeded(), progress=made.append)
    assert made == [1, 2, 3, 4, 5, 6]


def test_centers_at_rest_end_the_updates():
    X = normal(300, 3)
    made = []
    centers = choose_centers(X, 5, n_iterations=10_000, generator=seeded(), progress=made.append)
    assert 0 < len(made) < 1000
    E, _, _ = naive_kmeans(X, centers.positions, 1)
    torch.testing.assert_close(centers.positions.double(), E, rtol=1e-6, atol=1e-6)


# --- empty clusters


@pytest.mark.parametrize("n_iterations", [0, 1, 5])
def test_empty_clusters_are_refilled(n_iterations):
    X = blobs([100, 100, 100])
    start = torch.cat([X[:2], torch.full((3, 8), 1e4) + normal(3, 8)])  # three that no row is nearest to
    centers = exemplars._kmeans(X, start, n_iterations, CPU, euclidean)
    assert len(centers.positions) == 5
    assert (centers.counts > 0).all()
    assert centers.counts.sum() == 300
    assert centers.positions.max() < 1e3


@pytest.mark.parametrize("unit", [1.0, 2.0**-20])
def test_refill_takes_the_farthest_row_of_the_widest_clusters(unit):
    # Clusters about 0, 100, 200 and 300, reaching 5, 9, 2 and, with its only row, 20.
    X = torch.tensor([0, 5, 4.9, 100, 91, 91, 200, 202, 320]).reshape(-1, 1)
    E = torch.tensor([0, 1e6, 100, 200, 2e6, 300]).reshape(-1, 1)
    X, E = unit * X, unit * E
    refilled = exemplars._refill(X, E, exemplars._assign(X, E, CPU, euclidean)) / unit
    assert sorted(refilled.flatten().tolist()) == [0, 5, 91, 100, 200, 300]
    assert refilled[[0, 2, 3, 5]].flatten().tolist() == [0, 100, 200, 300]


def test_refill_leaves_what_no_row_is_left_for():
    X = torch.tensor([0.0, 0.0, 100.0, 200.0, 203.0]).reshape(-1, 1)
    E = torch.tensor([0.0, 1e6, 100.0, 200.0, 2e6]).reshape(-1, 1)
    refilled = exemplars._refill(X, E, exemplars._assign(X, E, CPU, euclidean))
    assert refilled.flatten().tolist() == [0, 203, 100, 200, 2e6]
    centers = exemplars._kmeans(X, E, 3, CPU, euclidean)
    assert centers.positions.flatten().tolist() == [0, 100, 200, 203]
    assert centers.counts.tolist() == [2, 1, 1, 1]


def test_a_refilled_center_takes_part_in_the_updates():
    X = blobs([100, 100, 100])
    start = torch.cat([X[:1], X[100:101], torch.full((1, 8), 1e4)])
    centers = exemplars._kmeans(X, start, 3, CPU, euclidean)
    means, _ = by_first_column(X.reshape(3, 100, 8).mean(1), centers.counts)
    torch.testing.assert_close(by_first_column(centers.positions, centers.counts)[0], means)


def test_equal_centers_become_one_however_ties_are_broken(monkeypatch):
    X = torch.tensor([1.0, 1.0, 1.0, 4.0]).reshape(-1, 1)
    labels = torch.tensor([0, 2, 2, 1])
    split = exemplars._Clusters(labels, torch.zeros(4), torch.zeros(3, 1), torch.tensor([1, 1, 2]))
    monkeypatch.setattr(exemplars, "_assign", lambda X, E, device, metric: split)
    centers = exemplars._kmeans(X, X[[0, 3, 1]], 0, CPU, euclidean)
    assert centers.positions.flatten().tolist() == [1, 4]
    assert centers.counts.tolist() == [3, 1]


def test_more_empty_clusters_than_full_ones():
    X = normal(400, 4)
    start = torch.cat([X[:1], torch.full((7, 4), 1e4) + normal(7, 4)])
    centers = exemplars._kmeans(X, start, 6, CPU, euclidean)
    assert len(centers.positions) == 8
    assert (centers.counts > 0).all()


# --- duplicates and small data


@pytest.mark.parametrize("seeding", ["k-means||", "random"])
def test_no_more_centers_than_distinct_rows(seeding):
    distinct = normal(9, 4)
    X = distinct[torch.randint(9, (500,), generator=seeded())]
    centers = choose_centers(X, 40, seeding=seeding, generator=seeded())
    assert rows_of(centers.positions) == rows_of(distinct)
    assert centers.counts.sum() == 500
    assert centers.inertia == 0


@pytest.mark.parametrize("seeding", ["k-means||", "random"])
@pytest.mark.parametrize("n_iterations", [0, 10])
def test_duplicates_do_not_cost_centers(seeding, n_iterations):
    # Half the rows are equal, so that a random subset holds that row many times.
    X = torch.cat([torch.ones(300, 3), normal(300, 3)])
    centers = choose_centers(X, 50, seeding=seeding, n_iterations=n_iterations, generator=seeded())
    assert len(rows_of(centers.positions)) == len(centers.positions) == 50
    assert (centers.counts > 0).all()


@pytest.mark.parametrize("seeding", ["k-means||", "random"])
@pytest.mark.parametrize("n_exemplars", [6, 7, 100])
def test_as_many_exemplars_as_rows_or_more_gives_the_rows(seeding, n_exemplars):
    X = normal(6, 3) + 100
    centers = choose_centers(X, n_exemplars, seeding=seeding, generator=seeded())
    assert rows_of(centers.positions) == rows_of(X)
    assert centers.counts.tolist() == [1] * 6
    assert centers.inertia == 0


@pytest.mark.parametrize("seeding", ["k-means||", "random"])
def test_one_exemplar_is_the_mean(seeding):
    X = normal(200, 3) + 5
    centers = choose_centers(X, 1, seeding=seeding, generator=seeded())
    torch.testing.assert_close(centers.positions, X.mean(0, keepdim=True))
    assert centers.counts.tolist() == [200]


def test_one_row():
    centers = choose_centers(torch.tensor([[1.0, 2.0]]), 3, generator=seeded())
    assert centers.positions.tolist() == [[1.0, 2.0]]
    assert centers.counts.tolist() == [1]


def test_distances_of_every_magnitude_are_all_found():
    # In every round one row carries nearly all of the potential, so that the rounds must continue.
    X = torch.cat([torch.zeros(1000, 17), torch.diag(10.0 ** torch.arange(-8, 9))])
    centers = choose_centers(X, 18, n_iterations=0, generator=seeded())
    assert rows_of(centers.positions) == rows_of(X)
    assert centers.inertia == 0


# --- seeding


def naive_candidates(X, n_exemplars, generator):
    """The row numbers of the candidates, one row and one distance at a time."""
    X = X.double()

    def draw(n):
        return torch.rand(n, dtype=torch.float64, generator=generator).tolist()

    chosen = [int(draw(1)[0] * len(X))]
    for _ in range(exemplars.ROUNDS):
        squared = [min(float((x - X[c]).square().sum()) for c in chosen) for x in X]
        limit = [min(1, exemplars.OVERSAMPLING * n_exemplars * s / sum(squared)) for s in squared]
        chosen += [i for i, u in enumerate(draw(len(X))) if u < limit[i]]
    return chosen


@pytest.mark.parametrize("seed", range(4))
def test_candidates_equal_a_naive_loop(seed):
    X = blobs([60, 10, 5], d=3)
    candidates, _ = exemplars._candidates(X, 12, seeded(seed), CPU, euclidean)
    assert rows_of(candidates) == rows_of(X[naive_candidates(X, 12, seeded(seed))])


def test_rounds_end_when_the_candidates_are_just_enough():
    X = blobs([60, 10, 5], d=3)
    naive = {seed: naive_candidates(X, 1, seeded(seed)) for seed in range(40)}
    just_enough = [seed for seed, rows in naive.items() if len(rows) == 1]
    assert just_enough
    for seed in just_enough:
        candidates, _ = exemplars._candidates(X, 1, seeded(seed), CPU, euclidean)
        assert rows_of(candidates) == rows_of(X[naive[seed]])


def test_candidates_are_weighted_by_the_rows_nearest_to_them():
    X = blobs([300, 300, 20])
    candidates, weights = exemplars._candidates(X, 40, seeded(), CPU, euclidean)
    assert 40 < len(candidates) < 200
    assert weights.sum() == 620
    labels = naive_distances(X, candidates).argmin(1)
    assert weights.tolist() == torch.bincount(labels, minlength=len(candidates)).tolist()


def test_candidates_are_distinct_if_rows_are_not():
    X = torch.randint(3, (3000, 3), generator=seeded()).float()  # 27 distinct rows
    candidates, weights = exemplars._candidates(X, 20, seeded(), CPU, euclidean)
    assert 20 <= len(candidates) == len(rows_of(candidates)) <= 27
    assert weights.sum() == 3000


def test_candidates_are_distinct_if_products_cannot_tell_them_apart():
    # Half the rows are 2,000 away from the others and 0.01 apart: a difference that float32 products lose.
    X = 0.01 * torch.arange(60.0).reshape(-1, 1) + torch.tensor([-1000.0, 1000.0]).repeat(30).reshape(-1, 1)
    for seed in range(5):
        candidates, weights = exemplars._candidates(X, 50, seeded(seed), CPU, euclidean)
        assert 50 <= len(candidates) == len(rows_of(candidates))
        assert weights.sum() == 60
        assert (weights > 0).all()


def test_weighted_kmeans_plusplus_draws_as_enumerated():
    """Two seeds of five points: the frequencies are the probabilities worked out by hand."""
    C = torch.tensor([[0.0], [1.0], [3.0], [7.0], [50.0]])
    w = torch.tensor([2, 5, 1, 3, 0])  # the last stands for no rows
    squared = (C - C.T).square()
    expected = torch.zeros(5, 5)
    for i in range(5):
        odds = w * squared[i] / (w * squared[i]).sum()
        potential = (w * torch.minimum(squared[i], squared)).sum(1)
        for a in range(5):
            for b in range(5):  # the better of two drawn
                better = a if potential[a] <= potential[b] else b
                expected[i, better] += w[i] / w.sum() * odds[a] * odds[b]
    generator = seeded()
    n_draws = 4000
    times = torch.zeros(5, 5)
    for _ in range(n_draws):
        first, second = exemplars._kmeans_plusplus(C, w, 2, generator, CPU, euclidean).tolist()
        times[first, second] += 1
    deviation = (expected * (1 - expected) / n_draws).sqrt()
    assert ((times / n_draws - expected).abs() <= 5 * deviation).all()
    assert times[:, 4].sum() == times[4].sum() == 0


def test_weighted_kmeans_plusplus_chooses_distinct_points():
    # Points that float32 products cannot tell apart: the odds run out before there are enough seeds.
    C = torch.cat([normal(5, 3), torch.full((20, 3), 7.0) + 1e-6 * normal(20, 3)])
    chosen = exemplars._kmeans_plusplus(C, torch.ones(25), 20, seeded(), CPU, euclidean).tolist()
    assert len(set(chosen)) == 20
    assert set(range(5)) < set(chosen)


def test_products_of_pairs_are_the_same_kept_or_not(monkeypatch):
    C, w = normal(80, 6), torch.randint(1, 9, (80,), generator=seeded())
    kept = exemplars._kmeans_plusplus(C, w, 30, seeded(), CPU, euclidean)
    monkeypatch.setattr(exemplars, "MAX_PAIRS", 0)
    assert exemplars._kmeans_plusplus(C, w, 30, seeded(), CPU, euclidean).tolist() == kept.tolist()


def test_seeds_are_rows_and_find_every_blob():
    X = blobs([2000] + [8] * 30)
    seeds = choose_centers(X, 62, n_iterations=0, generator=seeded())
    random = choose_centers(X, 62, seeding="random", n_iterations=0, generator=seeded())
    assert rows_of(seeds.positions) <= rows_of(X)
    near = naive_distances(X, seeds.positions).min(1).values
    assert near.max() < 100  # a blob is within, the next is about 6,000 away
    assert random.inertia > 10 * seeds.inertia


@pytest.mark.parametrize("n_exemplars", [12, 60])
def test_inertia_is_close_to_scikit_learn(n_exemplars):
    X = blobs([400, 200, 100, 50, 50, 50, 50, 20, 20, 20, 20, 20])

    def peer(seed):
        model = KMeans(n_exemplars, init="k-means++", n_init=1, max_iter=10, tol=0, random_state=seed)
        return model.fit(X.numpy()).inertia_

    own = np.mean([choose_centers(X, n_exemplars, generator=seeded(s)).inertia for s in range(4)])
    assert own < 1.03 * min(peer(seed) for seed in range(4))


# --- randomness


@pytest.mark.parametrize("seeding", ["k-means||", "random"])
def test_the_seed_decides(seeding):
    X = normal(1000, 6)
    first, same, other = (choose_centers(X, 40, seeding=seeding, generator=seeded(s)) for s in (1, 1, 2))
    assert torch.equal(first.positions, same.positions)
    assert torch.equal(first.counts, same.counts)
    assert first.inertia == same.inertia
    assert not rows_of(first.positions) & rows_of(other.positions)


@pytest.mark.parametrize("seeding", ["k-means||", "random"])
def test_global_generators_are_untouched(seeding):
    torch_state, numpy_state = torch.get_rng_state(), np.random.get_state()  # noqa: NPY002
    choose_centers(normal(500, 4), 20, seeding=seeding, generator=seeded())
    choose_points(100, 10, seeded())
    assert torch.equal(torch.get_rng_state(), torch_state)
    for before, after in zip(numpy_state, np.random.get_state(), strict=True):  # noqa: NPY002
        assert np.array_equal(before, after)
