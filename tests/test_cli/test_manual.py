"""The commands in the manual, run."""

import json
import re
import shlex
from pathlib import Path

import click
import pandas as pd
import pytest

from tsee import demo
from tsee.cli import main
from tsee.training import plan, stages

ROOT = Path(__file__).parents[2]
MANUAL = (ROOT / "docs" / "command-line.md").read_text()
SHELL = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def test_the_manual_is_true(run, tmp_path, monkeypatch):
    """The commands of the manual work, here with less training."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "MAX_EPOCHS", 2)
    monkeypatch.setattr(demo, "SEEDS", (0,))
    descent = stages.Descent
    monkeypatch.setattr(stages, "Descent", lambda *given, **named: descent(*given, **{**named, "n_iterations": 5}))
    results = {}
    for block in SHELL.findall(MANUAL):
        # A quoted text may span several lines.
        for command in re.findall(r'(?:[^"\n]|"[^"]*")+', block):
            program, *arguments = shlex.split(command)
            assert program == "tsee"
            results[command] = run(*arguments).stdout
    assert len(results) == 11
    assert pd.read_csv("map.csv").columns.tolist() == ["digit", "tsee0", "tsee1"]
    assert Path("map.png").read_bytes().startswith(b"\x89PNG")
    said = {command.split()[1]: output for command, output in results.items()}
    assert json.loads(said["evaluate"])["rows"] == 599
    assert "hot-see" in said["info"]


@pytest.mark.parametrize("name", main.commands)
def test_the_manual_names_every_command(name):
    assert f"`tsee {name}" in MANUAL


@pytest.mark.parametrize("name", ["fit", "transform", "update", "evaluate", "plot", "info"])
def test_the_manual_names_every_option(name):
    for option in main.commands[name].params:
        if isinstance(option, click.Option):
            assert any(text in MANUAL for text in option.opts), option.opts
