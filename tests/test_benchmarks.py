"""The page of `make bench`: complete runs, runs that cannot place new rows, and failed runs."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import tsee

PEERS = Path(__file__).parents[1] / "benchmarks" / "peers"


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.syspath_prepend(str(PEERS))
    yield
    for name in ("report", "run", "methods"):
        sys.modules.pop(name, None)


def a_run(seconds, *, new_rows=True):
    run = {"fit s": seconds, "memory beyond the data MiB": 500.0}
    run |= {"training 1-NN error %": 5.5, "training 5-NN error %": 4.0}
    if new_rows:
        run |= {"transform s": 1.5, "one row ms": 2.0, "1-NN error %": 6.0, "5-NN error %": 4.5}
        run |= {"Quality Score 10 %": 20.0, "Quality Score 100 %": 25.0}
    return run


def test_page_of_peers(peers, tmp_path, monkeypatch):
    import report

    monkeypatch.setattr(report, "DOCS", tmp_path)
    failed = {"failed": "stopped after 3600 s"}
    forward = {"forward: transform s": 0.05, "forward: one row ms": 0.7, "forward: 1-NN error %": 7.0}
    forward |= {"forward: 5-NN error %": 5.0}
    runs = {
        "mnist": {
            "tsee": a_run(60.0) | forward,
            "tsee, fast": a_run(25.0),
            "A": a_run(300.0, new_rows=False),
            "B": failed,
            "C": a_run(50.0),
        },
        "cells-10000": {"tsee": a_run(5.0), "B": a_run(6.0)},
        "cells-1000000": {"tsee": a_run(400.0), "B": failed},
    }
    report.write_report({"machine": {"cores": 2}, "runs": runs})
    lines = (tmp_path / "benchmarks.md").read_text().splitlines()
    assert any(line.startswith("| **tsee** | 60 s | 1.50 s | 2.0 ms | 500 MiB | 6.0 / 4.5 % |") for line in lines)
    assert any(line.endswith("| - | 0.05 s | 0.7 ms | - | 7.0 / 5.0 % | - | - |") for line in lines)
    assert any(line.startswith("| &nbsp;&nbsp;its network alone | - |") for line in lines)
    assert "| | fit | 10,000 new rows |" in (tmp_path / "benchmarks.md").read_text()
    assert any(line.endswith("C 30 (1.0).") for line in lines)
    assert any(line.startswith("| A | 300 s | - | - | 500 MiB | - | 5.5 / 4.0 % |") for line in lines)
    assert "| B | 6 s, 500 MiB, 20.0 / 25.0 % | stopped after 3600 s |" in lines
    assert "The clusters are separate on every map: the largest error of 1-NN is 6.0 %." in lines
    assert any(line.startswith("| B (stopped after 3600 s) | - |") for line in lines)
    assert {path.name for path in (tmp_path / "benchmarks").iterdir()} == {"mnist.png", "growth.png"}
    assert not any("triplet" in line for line in lines)  # these runs are of before it was measured


def test_page_of_peers_with_the_large_shape(peers, tmp_path, monkeypatch):
    import report

    monkeypatch.setattr(report, "DOCS", tmp_path)
    shape = {"triplet accuracy": 0.671, "distance correlation": 0.5, "density correlation": 0.4}
    shape |= {"centroid triplets": 0.75}
    runs = {
        "tsee": a_run(60.0) | shape | {"forward: 1-NN error %": 7.0, "forward: 5-NN error %": 5.0},
        "A": a_run(50.0),
    }
    report.write_report({"machine": {"cores": 2}, "runs": {"mnist": runs}})
    lines = (tmp_path / "benchmarks.md").read_text().splitlines()
    assert any(line.startswith("| **tsee** |") and line.endswith("| 0.67 / 0.75 | 0.50 / 0.40 |") for line in lines)
    assert any(line.startswith("| A |") and line.endswith("| - | - |") for line in lines)
    assert any("The large shape of a map is measured on the training rows" in line for line in lines)
    table = lines.index("## MNIST") + 2
    assert {line.count("|") for line in lines[table : table + 5]} == {11}  # header, line, and three rows


def test_the_page_is_of_the_runs_that_are_kept(peers):
    """`python benchmarks/peers/run.py report` writes it."""
    import report
    import run

    assert (PEERS.parents[1] / "docs" / "benchmarks.md").read_text() == report.page(json.loads(run.RESULT.read_text()))


def test_what_is_measured_of_a_peer(peers):
    import run

    rows, kinds = run.cells(600)
    data = tsee.datasets.Split(rows[:400], kinds[:400], rows[400:], kinds[400:])
    found = run.judge(data, rows[:400, :2], None)
    assert found["triplet accuracy"] == round(tsee.metrics.triplet_accuracy(rows[:400], rows[:400, :2]), 4)
    assert {"distance correlation", "density correlation", "centroid triplets"} <= set(found)
    assert "1-NN error %" not in found
    assert set(found) < set(run.judge(data, rows[:400, :2], rows[400:, :2]))


def test_synthetic_cells_are_the_same_every_time(peers):
    import run

    rows, kinds = run.cells(70_000)
    again, _ = run.cells(70_000)
    assert rows.shape == (70_000, 50)
    assert rows.dtype == np.float32
    assert np.array_equal(rows, again)
    counts = np.bincount(kinds)
    assert counts.max() > 20 * counts[counts > 0].min()


def test_every_method_that_is_run_is_known(peers):
    import methods
    import run

    assert {*run.OURS, *run.PEERS} == set(methods.METHODS)
