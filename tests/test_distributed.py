"""Several processes are as good as one: sums, gradients, exemplars, maps; and a lost peer is noticed."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import tsee
from tsee import distributed
from tsee.exemplars import choose_centers
from tsee.metrics import knn_error
from tsee.preprocessing import Inputs, fit_preprocessing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="gloo processes are started as on Linux and macOS")
# Shares of the rows, uneven on purpose.
CUTS = {2: [0, 700, 1797], 4: [0, 300, 900, 1000, 1797]}


def test_alone_everything_is_as_it_was():
    values = torch.arange(3.0)
    assert distributed.world_size() == 1
    assert distributed.rank() == 0
    for function in (
        distributed.all_sum,
        distributed.all_sum_with_gradient,
        distributed.all_gather,
        distributed.broadcast,
    ):
        assert function(values) is values
    assert distributed.all_offset(7) == (0, 7)
    assert distributed.all_sum(7) == 7
    assert distributed.all_max(2.5) == 2.5


def test_sums_rows_and_shares(peers):
    script = """
    import json
    from tsee import distributed
    mine = torch.full((rank + 1, 2), float(rank), requires_grad=True)
    rows = distributed.all_gather(mine)
    (rows * torch.arange(len(rows))[:, None] * (rank + 1)).sum().backward()
    print(json.dumps(dict(
        total=distributed.all_sum(torch.tensor([1, rank])).tolist(), largest=distributed.all_max(-rank),
        share=distributed.all_offset(rank + 1), count=distributed.all_sum(rank),
        first=int(distributed.broadcast(torch.tensor(rank + 5))),
        rows=rows[:, 0].tolist(), gradient=mine.grad[:, 0].tolist(),
    )))
    """
    first, second = map(json.loads, peers.run(script, 2))
    assert first["total"] == second["total"] == [2, 1]
    assert first["largest"] == second["largest"] == 0
    assert (first["share"], second["share"]) == ([0, 3], [1, 3])
    assert first["count"] == second["count"] == 1
    assert first["first"] == second["first"] == 5
    assert first["rows"] == second["rows"] == [0, 1, 1]
    assert (first["gradient"], second["gradient"]) == ([0], [3, 6])  # what both processes make of a row


GRADIENTS = """
import numpy as np
from tsee.affinities import conditional_probabilities
from tsee.batches import Batch
from tsee.networks import DeepNetwork, HighOrderNetwork
from tsee.objectives import Pairwise, choice_loss, distance_loss, exemplar_loss, noise_contrastive_loss, sampled_loss
from tsee.training.optimizers import sum_gradients

def draw(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))

pairwise = Pairwise(5.0, torch.device("cpu"))
X, D, E, T = draw(60, 5, seed=1), draw(60, 5, seed=2), draw(20, 5, seed=3), draw(60, 2, seed=4)
P = conditional_probabilities(draw(60, 20, seed=5).square(), 3.0)
near = torch.arange(8).expand(60, 8)
noise = 8 + torch.randint(12, (60, 6), generator=torch.Generator().manual_seed(6))
Q = conditional_probabilities(draw(60, 8, seed=7).square(), 3.0)
own = torch.arange(60) % 25
own[own >= 20] = -1
cuts = {1: [0, 60], 2: [0, 13, 60], 4: [0, 5, 30, 31, 60]}[size]
mine = slice(cuts[rank], cuts[rank + 1])
found = {}
for network in (DeepNetwork(5, 2, (16, 16)), HighOrderNetwork(5, 2, 12, 10)):
    network = network.double()
    for i, p in enumerate(network.parameters()):
        p.data = draw(*p.shape, seed=100 + i) / 4
    losses = {
        "full": lambda: exemplar_loss(network(X[mine]), network(E), P[mine], own[mine]),
        "noise": lambda: noise_contrastive_loss(
            network(X[mine]), network(E)[near[mine]], network(E)[noise[mine]], Q[mine], 2.0
        ),
        "sampled": lambda: sampled_loss(network(X[mine]), network(D[mine]), exaggeration=2.0),
        "weighted": lambda: sampled_loss(network(X[mine]), network(D[mine]), weights=1 + own[mine].abs().double()),
        "distance": lambda: distance_loss(network(X[mine]), T[mine]),
        "choice": lambda: choice_loss(network.hidden(X[mine]).log_softmax(1), near[mine], Q[mine]),
        "pairwise": lambda: pairwise.loss(network, pairwise.prepared(Batch({"inputs": X[mine]}, 0))),
    }
    for name, loss in losses.items():
        network.zero_grad()
        value = loss()
        value.backward()
        sum_gradients(network.parameters())
        gradient = torch.cat([p.grad.flatten() for p in network.parameters() if p.grad is not None])
        found[f"{type(network).__name__} {name}"] = torch.cat([value.detach()[None], gradient]).numpy()
if rank == 0:
    np.savez(sys.argv[1], **found)
"""


def test_several_processes_have_the_gradient_of_one(tmp_path, peers):
    for size in (1, 2, 4):
        peers.run(GRADIENTS, size, tmp_path / f"{size}.npz")
    alone = np.load(tmp_path / "1.npz")
    assert len(alone.files) == 14
    for size in (2, 4):
        several = np.load(tmp_path / f"{size}.npz")
        for name in alone.files:
            np.testing.assert_allclose(several[name][0], alone[name][0], rtol=1e-12)
            away = np.linalg.norm(several[name] - alone[name]) / np.linalg.norm(alone[name])
            assert away < 1e-10, (size, name, away)


CONJUGATE = """
import numpy as np
from tsee.affinities import conditional_probabilities
from tsee.networks import DeepNetwork
from tsee.objectives import exemplar_loss
from tsee.training.conjugate import ConjugateGradient

def draw(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))

X, E = draw(60, 5, seed=1), draw(20, 5, seed=3)
P = conditional_probabilities(draw(60, 20, seed=5).square(), 3.0)
cuts = {1: [0, 60], 2: [0, 13, 60], 4: [0, 5, 30, 31, 60]}[size]
mine = slice(cuts[rank], cuts[rank + 1])
network = DeepNetwork(5, 2, (16, 16), generator=torch.Generator().manual_seed(0)).double()
optimizer = ConjugateGradient(network.parameters())
losses = [optimizer.step(lambda: exemplar_loss(network(X[mine]), network(E), P[mine])) for _ in range(3)]
weights = torch.cat([p.detach().flatten() for p in network.parameters()]).numpy()
np.savez(f"{sys.argv[1]}/{size}-{rank}.npz", losses=losses, weights=weights)
"""


def test_the_line_searches_of_several_processes_are_those_of_one(tmp_path, peers):
    for size in (1, 2, 4):
        peers.run(CONJUGATE, size, tmp_path)
    alone = np.load(tmp_path / "1-0.npz")
    assert alone["losses"][-1] < alone["losses"][0]
    for size in (2, 4):
        for rank in range(size):
            several = np.load(tmp_path / f"{size}-{rank}.npz")
            np.testing.assert_allclose(several["losses"], alone["losses"], rtol=1e-9)
            np.testing.assert_allclose(several["weights"], alone["weights"], rtol=1e-6, atol=1e-8)


EXEMPLARS = """
import numpy as np
from sklearn.datasets import load_digits
from tsee.exemplars import choose_centers
from tsee.preprocessing import Inputs, fit_preprocessing
cuts = [int(cut) for cut in sys.argv[2].split(",")]
X = load_digits().data[cuts[rank] : cuts[rank + 1]]
preprocessing = fit_preprocessing(X, 20, torch.Generator().manual_seed(0))
inputs = Inputs(X, preprocessing)[:]
careful, random = (
    choose_centers(inputs, 30, seeding=seeding, generator=torch.Generator().manual_seed(1))
    for seeding in ("k-means||", "random")
)
if rank == 0:
    np.savez(
        sys.argv[1], basis=preprocessing.basis, mean=preprocessing.mean, careful=careful.positions,
        random=random.positions, counts=careful.counts, inertia=careful.inertia,
    )
"""


def test_several_processes_choose_the_exemplars_of_one(tmp_path, peers):
    X = load_digits().data
    preprocessing = fit_preprocessing(X, 20, torch.Generator().manual_seed(0))
    inputs = Inputs(X, preprocessing)[:]
    alone = [
        choose_centers(inputs, 30, seeding=seeding, generator=torch.Generator().manual_seed(1))
        for seeding in ("k-means||", "random")
    ]
    for size, cuts in CUTS.items():
        peers.run(EXEMPLARS, size, tmp_path / f"{size}.npz", ",".join(map(str, cuts)))
        several = np.load(tmp_path / f"{size}.npz")
        np.testing.assert_allclose(several["mean"], preprocessing.mean, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(several["basis"], preprocessing.basis, atol=1e-4)
        np.testing.assert_allclose(several["careful"], alone[0].positions, atol=1e-3)
        np.testing.assert_allclose(several["random"], alone[1].positions, atol=1e-3)
        np.testing.assert_array_equal(several["counts"], alone[0].counts)
        np.testing.assert_allclose(several["inertia"], alone[0].inertia, rtol=1e-5)


FIT = """
import json
import numpy as np
from sklearn.datasets import load_digits
import tsee
cuts = [int(cut) for cut in sys.argv[2].split(",")]
X, y = (part[cuts[rank] : cuts[rank + 1]] for part in load_digits(return_X_y=True))
for i, (method, parameters) in enumerate(json.loads(sys.argv[3])):
    see = getattr(tsee, method)(random_state=0, **parameters).fit(X, y)
    if rank == 0:
        see.save(f"{sys.argv[1]}/{i}")
    np.save(f"{sys.argv[1]}/{i}-{rank}.npy", see.embedding_)
"""


LAYOUT = """
import sys, torch
sys.path.insert(0, ROOT)
from tests.test_layout.naive import clusters, neighbors_of
from tsee.layout import Descent, large_shape
found = []
for n, n_components in ((300, 2), (5000, 2), (5000, 3), (5000, 4)):
    X = clusters(n, 30.0, 5, seed=1)
    settings = dict(pull=0.3, n_iterations=100, exaggeration=1.0)
    descent = Descent(large_shape(X, n_components), neighbors_of(X), **settings)
    for _ in range(4):
        descent.step()
    found += [descent.positions, descent.state()["layout.velocity"]]
"""


def test_several_processes_lay_out_as_one(tmp_path, peers):
    """All pairs, both grids, and samples; each process moves a part of the exemplars."""
    alone = {"ROOT": ""}
    exec(LAYOUT, alone)
    root = f"ROOT = {str(Path(__file__).parent.parent)!r}"
    peers.run(f"{root}\n{LAYOUT}\ntorch.save(found, {str(tmp_path)!r} + f'/{{rank}}.pt')", 2)
    for number in range(2):
        for one, many in zip(alone["found"], torch.load(tmp_path / f"{number}.pt"), strict=True):
            torch.testing.assert_close(many, one, rtol=1e-3, atol=1e-4 * float(one.abs().max()))


@pytest.mark.parametrize("size", [2, 4])
def test_every_method_fits_on_several_processes(size, tmp_path, peers):
    small = dict(max_epochs=2, batch_size=256)
    methods = [
        ("DtSEE", small),
        ("DtSEE", dict(small, placement="forward")),
        ("HotSEE", dict(small, n_exemplars=300)),
        ("DtSEE", dict(small, supervised=1.0, n_exemplars=900)),
        ("DtSEE", dict(small, exemplars="centers", n_exemplars=50)),
        ("DtSEE", dict(small, contrast="full", n_exemplars=100)),
        ("DtSEE", dict(small, contrast="noise", n_exemplars=300)),
        ("DtSEE", dict(max_epochs=1, batch_size=512, optimizer="cg")),
        ("PtSNE", small),
        ("HotSNE", small),
    ]
    cuts = CUTS[size]
    peers.run(FIT, size, tmp_path, ",".join(map(str, cuts)), json.dumps(methods))
    X = load_digits().data
    for i in range(len(methods)):
        see = tsee.load(tmp_path / str(i))
        for rank in range(size):
            positions = np.load(tmp_path / f"{i}-{rank}.npy")  # each process has the positions of its own rows
            np.testing.assert_allclose(see.transform(X[cuts[rank] : cuts[rank + 1]]), positions, rtol=1e-4, atol=1e-3)


def test_two_processes_make_as_good_a_map_as_one(tmp_path, peers):
    X, y = load_digits(return_X_y=True)
    small = dict(max_epochs=30, hidden_layers=[64, 64])
    methods = [("DtSEE", dict(small, refinement=0)), ("PtSNE", dict(small, batch_size=128))]
    peers.run(FIT, 2, tmp_path, ",".join(map(str, CUTS[2])), json.dumps(methods))
    for i, (method, parameters) in enumerate(methods):
        several = np.concatenate([np.load(tmp_path / f"{i}-{rank}.npy") for rank in range(2)])
        alone = [getattr(tsee, method)(random_state=seed, **parameters).fit(X).embedding_ for seed in range(2)]
        errors = [knn_error(positions, y, k=5)[5] for positions in alone]
        found = knn_error(several, y, k=5)[5]
        assert found < max(errors) + 0.015, (method, found, errors)


def test_a_share_that_is_too_small_is_reported(peers):
    script = """
    from sklearn.datasets import load_digits
    import tsee
    X = load_digits().data
    try:
        tsee.DtSEE(batch_size=16).fit(X[:1700] if rank == 0 else X[1700:1705])
    except ValueError as error:
        print(error)
    """
    for output in peers.run(script, 2):
        assert "too few of the 1705 rows" in output


FIT_DIGITS = """
import os, signal, time
from sklearn.datasets import load_digits
import tsee
from tsee import batches as store
batches, seen = store.Store.batches, []
def counted(self, n_steps, epoch, skip=0):
    seen.append(epoch)
    if len(seen) == 3 and rank == int(sys.argv[2]):
        if sys.argv[1] == "slow":
            time.sleep(5)
        else:
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    yield from batches(self, n_steps, epoch, skip)
store.Store.batches = counted
X = load_digits().data
tsee.DtSEE(max_epochs=4, random_state=0, refinement=0, hidden_layers=(8,)).fit(X[rank::size])
"""


@pytest.mark.parametrize(
    "what, who, says",
    [
        ("SIGKILL", 1, "Another process of the fit has ended or cannot be reached (noticed by process 0: "),
        ("SIGSTOP", 1, "Process 1 of the fit does not answer (noticed by process 0, after 2 seconds)"),
        ("SIGSTOP", 0, "The process that connects all processes of the fit (without torchrun, process 0) does not"),
        ("slow", 1, None),
    ],
)
def test_a_peer_that_is_lost_ends_in_an_error_but_not_one_that_is_slow(peers, monkeypatch, what, who, says):
    monkeypatch.setenv("TSEE_TIMEOUT", "2")
    processes = peers.start(FIT_DIGITS, 2, what, who)
    try:
        _, errors = processes[1 - who].communicate(timeout=55)  # the limit of the group itself is 60 seconds
        if says is None:
            assert processes[1 - who].returncode == 0, errors
            return
        assert processes[1 - who].returncode == 1
        assert f"tsee.exceptions.PeerError: {says}" in errors
        assert "Start all processes again" in errors.splitlines()[-1]
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def test_the_limit_must_be_a_number(monkeypatch):
    for given in ("soon", "0", "-3", "inf", "nan"):
        monkeypatch.setenv("TSEE_TIMEOUT", given)
        with pytest.raises(ValueError, match=f"TSEE_TIMEOUT must be a number of seconds above 0. Got '{given}'"):
            distributed.peers._timeout()
    monkeypatch.setenv("TSEE_TIMEOUT", "2.5")
    assert distributed.peers._timeout() == 2.5


def test_every_process_says_what_differs(peers):
    script = """
    import numpy as np, pandas as pd
    import tsee
    rows = np.random.default_rng(0).normal(size=(40, 6))
    def one(cls=tsee.DtSEE, X=rows, **parameters):
        try:
            cls(max_epochs=1, **parameters).fit(X)
        except ValueError as error:
            print(error)
    one(X=rows[:, : 5 + rank])
    one(perplexity=5.0 + rank)
    one(cls=(tsee.DtSEE, tsee.HotSNE)[rank])
    one(hidden_layers=(8,) * (rank + 1))
    one(X=pd.DataFrame(rows, columns=list("abcdef" if rank else "abdcef")))
    one(network=torch.nn.Linear(6, 2, bias=bool(rank)))
    torch.manual_seed(rank)
    own = tsee.DtSEE(max_epochs=1, network=torch.nn.Linear(6, 2)).fit(rows).network_
    print(own.weight.tolist())
    """
    first, second = peers.run(script, 2, timeout=120)
    assert first == second  # also the weights of a network of the user's own, which start from the first process's
    found = [
        ("the number of features of X", 5, 6),
        ("the 'perplexity' parameter", 5.0, 6.0),
        ("the method", "DtSEE", "HotSNE"),
        ("the 'hidden_layers' parameter", "(8,)", "(8, 8)"),
        ("the name of column 2 of X", "d", "c"),
        ("the shapes of the network's weights", "{'weight': (2, 6)}", "{'weight': (2, 6), 'bias': (2,)}"),
    ]
    assert first.splitlines()[:-1] == [
        f"The processes of the fit differ: {name} is {one} in process 0, and {two} in process 1. Start all of them "
        "with the same parameters, columns and versions."
        for name, one, two in found
    ]
