"""``tsee demo``."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

import tsee
from tsee import demo
from tsee.cli import main
from tsee.training import plan


@pytest.fixture
def short(monkeypatch):
    """The demonstration with less training; test_quality is about the quality of its maps."""
    monkeypatch.setattr(demo, "SEEDS", (0, 1))
    monkeypatch.setattr(plan, "MAX_EPOCHS", 3)


def test_demo(short, tmp_path):
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(("DtSEE", "HotSEE"))] == [
        [name, what] for name in ("DtSEE", "HotSEE") for what in ("seed", "seed", "median")
    ]
    assert "<html" in (tmp_path / "out" / "digits.html").read_text()[:500]
    assert len((tmp_path / "out" / "digits.csv").read_text().splitlines()) == 1199
    assert (tmp_path / "out" / "new.csv").read_text().startswith("pixel0,pixel1,")
    assert (tmp_path / "out" / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert tsee.load(tmp_path / "out" / "model").transform(tsee.datasets.load_digits().x_test).shape == (599, 2)


def test_demo_as_json(short, tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "SEEDS", (0,))
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path), "--json"])
    told = json.loads(result.stdout)
    assert [(fit["method"], fit["seed"]) for fit in told["fits"]] == [("DtSEE", 0), ("HotSEE", 0)]
    digits, see = tsee.datasets.load_digits(), tsee.load(told["model"])
    errors = tsee.metrics.knn_error(see.embedding_, digits.y_train, see.transform(digits.x_test), digits.y_test, k=1)
    assert told["fits"][0]["knn_error"]["1"] == errors[1]
    assert all(Path(told[name]).is_file() for name in ("picture", "page", "data", "held_out"))


def test_demo_to_an_unwritable_folder(short, tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(main, ["demo", "-o", str(tmp_path / "file" / "out")])
    assert result.exit_code == 1
    assert "Error: The model cannot be written to" in result.output
    assert "Traceback" not in result.output
