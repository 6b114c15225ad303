"""The README's lines, run as they stand; and its table, from the runs that are kept."""

import json
import re
import runpy
import shlex
from pathlib import Path

import numpy as np
import pytest

import tsee
from tsee import demo
from tsee.training import plan, stages

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
START = (ROOT / "docs" / "start.md").read_text()
NOTEBOOK = (ROOT / "docs" / "notebook.md").read_text()


def blocks(text, language):
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def short(monkeypatch, tmp_path):
    """A folder of one's own, and less training: these tests are about whether lines run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SEEDS", (0,))
    monkeypatch.setattr(plan, "MAX_EPOCHS", 2)
    descent = stages.Descent
    monkeypatch.setattr(stages, "Descent", lambda *given, **named: descent(*given, **{**named, "n_iterations": 5}))
    return tmp_path


def test_ten_lines_of_python(short):
    (block,) = blocks(README, "python")
    names = {}
    exec(block, names)
    assert len([line for line in block.splitlines() if line]) == 10
    assert names["Y"].shape == (1198, 2)
    assert names["Y"].dtype == np.float32
    assert (short / "digits.png").read_bytes().startswith(b"\x89PNG")
    assert "<html" in (short / "digits.html").read_text()[:500]
    assert np.array_equal(tsee.load("model").transform(tsee.datasets.load_digits().x_test), names["Z"])


def test_start_in_five_minutes(short):
    names = {}
    for block in blocks(START, "python"):
        exec(block, names)
    assert Path("digits.onnx").exists()
    assert isinstance(names["see"], tsee.DtSEE)


def test_a_map_in_a_pipeline(short):
    """The lines of docs/notebook.md."""
    (block,) = (block for block in blocks(NOTEBOOK, "python") if "GridSearchCV" in block)
    names = {"tsee": tsee, "data": tsee.datasets.load_digits()}
    *lines, last = block.splitlines()
    exec("\n".join(lines), names)
    best, score = eval(last, names)
    assert best["dtsee__perplexity"] in (15, 36)
    assert score > 0.8
    placed = names["search"].best_estimator_[0].set_params(placement="forward")  # as the page says, without a fit
    assert placed.transform(names["data"].x_test).shape == (599, 2)


@pytest.mark.parametrize("text", [README, START], ids=["readme", "start"])
def test_one_command(short, text):
    from click.testing import CliRunner

    from tsee.cli import main

    (block,) = (block for block in blocks(text, "sh") if "tsee fit" in block)
    for line in block.splitlines():
        program, *arguments = shlex.split(line, comments=True)
        assert program == "tsee"
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == 0, result.output
    assert (short / "map.csv").read_text().splitlines()[0] == "digit,tsee0,tsee1"
    assert len((short / "map.csv").read_text().splitlines()) == 600
    assert "<html" in (short / "map.html").read_text()[:500]


def test_the_readme_is_short_and_keeps_the_two_commands():
    assert len(README.splitlines()) < 110
    install = "".join(blocks(README, "sh"))
    assert re.search(r"^make demo ", install, re.MULTILINE)
    assert re.search(r"^make test ", install, re.MULTILINE)
    assert "pip install tsee\n" in install


def test_the_links_of_the_readme_lead_somewhere():
    for address in re.findall(r"\]\(([^)]+)\)", README):
        assert address.startswith("https://") or (ROOT / address).exists(), address


def test_the_table_of_peers_is_of_the_runs_that_are_kept():
    """`python benchmarks/peers/run.py report` writes it."""
    written = runpy.run_path(str(ROOT / "benchmarks" / "peers" / "readme.py"))
    runs = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text())["runs"]["mnist"]
    assert written["readme_table"](runs) in README


def test_extras_that_are_named_exist():
    import tomllib

    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for text in (README, START):
        named = set(re.findall(r"tsee\[(\w+)\]", text)) | set(re.findall(r"`\[(\w+)\]`", text))
        assert named
        assert named <= set(extras)
