"""The forms of the loss: what each keeps for a row, what it draws, and that it agrees with the formula."""

import pytest
import torch
from torch import nn

from tsee.affinities import conditional_probabilities, joint_probabilities
from tsee.batches import Batch
from tsee.data import slices as data
from tsee.exemplars import Exemplars
from tsee.objectives import (
    Full,
    Neighborhoods,
    Noise,
    Pairwise,
    Sampled,
    exemplar_loss,
    pairwise_loss,
    sampled_loss,
)

CPU = torch.device("cpu")


def draw(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return nn.Linear(4, 2)


@pytest.fixture
def rows():
    return draw(60, 4)


@pytest.fixture(params=["points", "centers"])
def exemplars(request, rows):
    """Every other row, or points that are not rows."""
    indices = torch.arange(0, 60, 2)
    return Exemplars(rows[indices], indices) if request.param == "points" else Exemplars(draw(30, 4, seed=1))


def batch_of(form, rows, epoch=0, chosen=slice(None)):
    columns = {"inputs": rows, **form.columns(rows, slice(0, len(rows)))}
    return Batch({name: values[chosen] for name, values in columns.items()}, epoch)


def own_of(exemplars, n=60):
    own = torch.full((n,), -1)
    if exemplars.indices is not None:
        own[exemplars.indices] = torch.arange(len(exemplars))
    return own


def test_own_tells_which_exemplar_a_row_is(exemplars):
    if exemplars.indices is None:
        assert exemplars.own(slice(0, 60)) is None
        return
    own = own_of(exemplars)
    for part in (slice(0, 60), slice(7, 8), slice(13, 50), slice(59, 60)):
        assert torch.equal(exemplars.own(part), own[part])
    # The rows of a second process: its rows 0 to 19 are the rows 40 to 59 of all.
    assert torch.equal(exemplars.own(slice(0, 20), start=40), own[40:])


def test_pairwise_is_its_formula(network, rows):
    form = Pairwise(5.0, CPU)
    assert form.columns(rows, slice(0, 60)) == {}
    expected = pairwise_loss(network(rows), joint_probabilities(rows, 5.0))
    torch.testing.assert_close(form.loss(network, form.prepared(batch_of(form, rows))), expected)


def test_full_is_its_formula_from_the_precisions_it_keeps(network, rows, exemplars):
    form = Full(exemplars, 0, 5.0, CPU)
    chosen = torch.tensor([3, 10, 40, 41])
    found = form.loss(network, form.prepared(batch_of(form, rows, chosen=chosen)))
    own = own_of(exemplars)
    squared = (rows.double()[:, None] - exemplars.inputs.double()).square().sum(2)
    squared[own >= 0, own[own >= 0]] = torch.inf
    P = conditional_probabilities(squared, 5.0).float()
    expected = exemplar_loss(network(rows[chosen]), network(exemplars.inputs), P[chosen], own[chosen])
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def noise_of(exemplars, n_noise=4000, k=6, weight="auto"):
    return Noise(Neighborhoods(exemplars, 0, 3.0, k), n_noise, weight, CPU, torch.Generator().manual_seed(0))


def test_noise_is_drawn_evenly_from_all_that_are_neither_near_nor_the_row_itself(rows, exemplars):
    form = noise_of(exemplars)
    form.n_noise = 4000  # many more than there are, to see how often each comes
    columns = form.columns(rows, slice(0, 60))
    near, own = columns["near"].long(), columns["own"].long() if "own" in columns else None
    drawn = form.draw(near, own)
    assert drawn.shape == (60, 4000)
    for i in range(60):
        allowed = set(range(30)) - set(near[i].tolist())
        if own is not None:
            allowed -= {int(own[i])}
            if own[i] < 0:  # one exemplar, the last of the others, is never drawn by a row that is not an exemplar
                allowed -= {max(allowed)}
        counts = torch.bincount(drawn[i], minlength=30)
        assert set(torch.nonzero(counts).flatten().tolist()) == allowed
        expected = 4000 / len(allowed)
        assert (counts[counts > 0] - expected).abs().max() < 6 * expected**0.5


def test_noise_weighs_its_draws_for_all_others(exemplars):
    n_others = 30 - 6 - (exemplars.indices is not None)
    assert noise_of(exemplars, n_noise=4).weight == n_others / 4
    assert noise_of(exemplars, n_noise=4, weight=2.5).weight == 2.5
    assert noise_of(exemplars, n_noise=1000).n_noise == n_others
    assert noise_of(exemplars, n_noise=1000).weight == 1.0


def test_noise_estimates_the_full_normalizer(network, rows):
    """Over many draws the exponential of the loss minus its attraction is the full sum, without bias."""
    exemplars = Exemplars(draw(30, 4, seed=1))
    form = noise_of(exemplars, n_noise=3, k=29)
    full = Full(exemplars, 0, 3.0, CPU)
    few, all_of = batch_of(form, rows), batch_of(full, rows)
    with torch.no_grad():
        found = torch.stack([form.loss(network, form.prepared(few)) for _ in range(300)])
        expected = full.loss(network, full.prepared(all_of))
    # 29 of 30 are near, and the one that is left is drawn with weight 1: only probabilities that were cut differ.
    assert (found.max() - found.min()) < 1e-6
    assert abs(float(found.mean() - expected)) < 0.05


def sampled_of(exemplars, **changes):
    settings = dict(n_rows=60, n_epochs=20, jitter=0.0, exaggeration=1.5, device=CPU) | changes
    around = Neighborhoods(exemplars, 0, 4.0, 12, remember=exemplars.indices is not None)
    return Sampled(around, generator=torch.Generator().manual_seed(0), **settings)


def test_draws_are_stratified(rows, exemplars):
    """Over the epochs an exemplar of probability p is drawn p times their number, give or take less than two."""
    form = sampled_of(exemplars)
    drawn = form.columns(rows, slice(0, 60))["drawn"].long()
    assert drawn.shape == (60, 20)
    found, own = form.neighborhoods.find(rows, slice(0, 60))
    for i in range(60):
        counts = torch.bincount(drawn[i], minlength=30)[found.indices[i]]
        expected = 20 * found.probabilities[i]
        assert ((counts - expected).abs() < 2).all()  # independent draws would often be off by more
        assert counts.sum() == 20  # nothing but neighbors is drawn
        assert own is None or own[i] < 0 or not (drawn[i] == own[i]).any()
    # Each epoch is a fair draw of its own: the strata come in a random order.
    positions = (drawn[:, :, None] == found.indices[:, None]).float().argmax(2).float()
    correlation = torch.corrcoef(torch.stack([positions[:, :10].mean(1), positions[:, 10:].mean(1)]))[0, 1]
    assert abs(positions[:, :10].mean() - positions[:, 10:].mean()) < 0.5
    assert torch.isfinite(correlation)


def test_sampled_is_its_formula_in_each_epoch(network, rows, exemplars):
    form = sampled_of(exemplars)
    batch = batch_of(form, rows, epoch=23)  # the draws of 20 epochs repeat
    others = exemplars.inputs[batch["drawn"][:, 3].long()]
    expected = sampled_loss(network(rows), network(others), exaggeration=1.5)
    torch.testing.assert_close(form.loss(network, form.prepared(batch)), expected)


def test_jitter_is_in_proportion_to_the_distance_from_the_drawn_exemplar(rows, exemplars):
    form = sampled_of(exemplars, jitter=0.3, n_rows=60)
    drawn = batch_of(form, rows)["drawn"][:, 0].long()
    others = exemplars.inputs[drawn]
    moved = torch.stack([form.jittered(rows, drawn, 0.3)[0] - rows for _ in range(2000)])
    expected = 0.3 * (rows - others).norm(dim=1)
    torch.testing.assert_close(moved.square().sum(2).mean(0).sqrt(), expected, rtol=0.1, atol=1e-6)
    assert sampled_of(exemplars, jitter=None, n_rows=500).jitter == 0.5
    assert sampled_of(exemplars, jitter=None, n_rows=4000).jitter == 0.25
    assert sampled_of(exemplars, jitter=None, n_rows=4000).jitter_of_targets == 0.5


def test_the_neighbors_of_exemplars_are_remembered(rows):
    exemplars = Exemplars(rows[::2], torch.arange(0, 60, 2))
    around = Neighborhoods(exemplars, 0, 4.0, 12, remember=True)
    found, own = Neighborhoods(exemplars, 0, 4.0, 12).find(rows, slice(0, 60))
    remembered = around.of_exemplars()
    assert torch.equal(remembered.indices, found.indices[::2].int())
    assert torch.equal(remembered.probabilities, found.probabilities[::2])
    for part in (slice(0, 25), slice(25, 60)):
        again, mine = around.find(rows[part], part)
        assert torch.equal(mine, own[part])
        assert torch.equal(again.indices, found.indices[part])
        assert torch.equal(again.probabilities, found.probabilities[part])


def test_a_process_knows_its_rows_by_their_numbers_over_all_processes(rows, exemplars):
    """The rows 40 to 59 of all are the rows 0 to 19 of the second process."""
    for make in (lambda start: Full(exemplars, start, 5.0, CPU), lambda start: noise_from(exemplars, start)):
        whole, part = make(0).columns(rows, slice(0, 60)), make(40).columns(rows[40:], slice(0, 20))
        assert part.keys() == whole.keys()
        assert ("own" in part) == (exemplars.indices is not None)
        for name, column in part.items():
            torch.testing.assert_close(column, whole[name][40:])


def noise_from(exemplars, start):
    return Noise(Neighborhoods(exemplars, start, 3.0, 6), 5, "auto", CPU, torch.Generator().manual_seed(0))


def test_the_precisions_of_blocks_are_those_of_all_rows(monkeypatch, rows, exemplars):
    form = Full(exemplars, 0, 5.0, CPU)
    whole = form.columns(rows, slice(0, 60))
    monkeypatch.setattr(data, "BLOCK_ENTRIES", 25 * len(exemplars))  # two whole blocks and a part
    torch.testing.assert_close(form.columns(rows, slice(0, 60)), whole)
    assert whole["beta"].dtype == torch.float64
