"""The runs: executed once, kept and shared."""

import json
import os
import warnings

import numpy as np
import pytest
import torch

from reproduction import runner
from reproduction.__main__ import FOLDER
from reproduction.experiments import read_catalog
from reproduction.faithful import Rule, last_fall
from reproduction.report import write_report


def test_every_run_of_the_paper_has_a_committed_result():
    catalog = read_catalog(FOLDER)
    runs, faithful = (
        {run.name: run for experiment in catalog.experiments.values() for run in getattr(experiment, arm)}
        for arm in ("runs", "faithful")
    )
    assert [name for name, run in runs.items() if runner.read_result(catalog, run) is None] == []
    found = {path.stem for path in catalog.results.iterdir()}
    assert found - set(runs) <= set(faithful)  # no result is of another run; not all of the paper's method are done
    assert all(runner.read_result(catalog, faithful[name]) is not None for name in found - set(runs))


def test_committed_runs_that_are_compared_were_given_the_same_time():
    catalog = read_catalog(FOLDER)
    for experiment in catalog.experiments.values():
        given = {}
        for run in experiment.faithful:
            result = runner.read_result(catalog, run)
            if result is not None:
                training = result["training"]
                kind = (training["limit"], training.get("products", "float32"))
                given.setdefault(run.settings["data"], set()).add(kind)
        assert all(len(kinds) == 1 for kinds in given.values()), (experiment.name, given)


def test_runs_are_kept_shared_and_resumed(folder, command, monkeypatch):
    done = []
    execute = runner._execute

    def counted(catalog, run, minutes=None):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(run.name)
        return execute(catalog, run)

    monkeypatch.setattr(runner, "_execute", counted)
    result = command("tiny", "--folder", folder)
    assert result.exit_code == 130
    assert "Stopped. Finished runs are kept in" in result.output
    assert len(list((folder / "results").glob("*.json"))) == 2

    monkeypatch.setattr(
        runner, "_execute", lambda catalog, run, minutes=None: done.append(run.name) or execute(catalog, run)
    )
    result = command("all", "--folder", folder)
    assert result.exit_code == 0, result.output
    assert len(done) == len(set(done)) == 4  # none twice, and the other experiment shares one of them
    lines = result.output.splitlines()
    assert lines[0].startswith("1/4 tiny: pt-SNE on digits, batch 200, perplexity 3: 1-NN ")
    assert [line.endswith("(kept)") for line in lines] == [True, True, False, False, True]
    assert not [path for path in (folder / "results").iterdir() if path.name.startswith(".")]

    shared = next(path for path in (folder / "results").glob("*.json") if "pt-sne-batch-200" in path.name)
    result = json.loads(shared.read_text())
    assert list(result["metrics"]) == ["knn", "map", "quality"]  # the measures of both experiments
    assert set(result["metrics"]["knn"]["values"]) == {"test", "train"}
    assert set(result["metrics"]["quality"]["values"]) == {"1", "5"}
    assert result["resolved"]["epochs"] == 1
    assert result["resolved"]["steps"] == 6
    assert result["data"]["rows"] == [1198, 599]
    assert {"processor", "cores", "threads", "torch"} <= set(result["machine"])
    with np.load(folder / "results" / result["metrics"]["map"]["file"], allow_pickle=False) as arrays:
        assert arrays["Y"].shape == (599, 2)
        assert arrays["Y"].dtype == np.float32
        assert arrays["labels"].shape == (599,)

    page = (write_report(read_catalog(folder), folder / "docs")).read_text()
    assert "**4 of 4 runs of tsee's recipe are done**" in page
    assert "**0 of 1 runs of the paper's method are done**" in page
    assert "98.76" in page
    assert (folder / "docs" / "reproduction" / "lines.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "docs" / "reproduction" / "maps.png").stat().st_size < 400_000


def test_a_changed_setting_a_new_measure_or_a_damaged_file_is_run_again(folder, pretend):
    catalog = read_catalog(folder)
    pretend(catalog)
    (run,) = catalog.experiments["other"].runs
    assert runner.read_result(catalog, run) is not None

    path = folder / "experiments" / "common.toml"
    common = path.read_text()
    path.write_text(common.replace("max_epochs = 1", "max_epochs = 2"))
    changed = read_catalog(folder)
    assert runner.read_result(changed, changed.experiments["other"].runs[0]) is None

    path.write_text(common.replace("k = [1, 5]", "k = [1, 5, 9]"))
    more = read_catalog(folder)
    assert runner.read_result(more, more.experiments["other"].runs[0]) is None

    (catalog.results / f"{run.name}.npz").unlink()
    assert runner.read_result(catalog, run) is None
    (catalog.results / f"{run.name}.json").write_text('{"settings": ')
    assert runner.read_result(catalog, run) is None


def test_a_fit_that_was_interrupted_is_no_result(folder, command, monkeypatch):
    def interrupted(*arguments, **named):
        raise KeyboardInterrupt

    monkeypatch.setattr(torch.Tensor, "backward", interrupted)  # in the first step of training
    result = command("other", "--folder", folder)
    assert result.exit_code == 130
    assert list((folder / "results").iterdir()) == []


def test_a_result_that_cannot_be_written_leaves_the_old_one(folder, monkeypatch):
    target = folder / "result.json"
    target.write_text("old")

    def full(*arguments):
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="no space"):
        runner._write(target, b"new")
    assert target.read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == ["experiments", "result.json"]


def test_speed(tmp_path):
    (tmp_path / "experiments").mkdir()
    text = (FOLDER / "experiments" / "speed.toml").read_text().replace('"mnist"', '"digits"')
    (tmp_path / "experiments" / "speed.toml").write_text(text.replace("repeats = 15", "repeats = 3"))
    catalog = read_catalog(tmp_path)
    lines = []
    runner.run_experiments(catalog, ["all"], lines.append)
    assert "deep / high-order" in lines[0]
    values = runner.read_result(catalog, catalog.experiments["speed"].runs[0])["metrics"]["speed"]["values"]
    assert tuple(values) == runner.SPEED_QUANTITIES
    deep, shallow = 64 * 500 + 500 * 500 + 500 * 2000 + 2000 * 2, 64 * 800 + 800 * 400 + 400 * 2
    assert values["multiplication ratio"] == pytest.approx(deep / shallow, abs=1e-3)
    assert values["time ratio"] == pytest.approx(values["deep"] / values["high-order"], rel=0.05)


def faithful_result(folder):
    catalog = read_catalog(folder)
    (run,) = catalog.experiments["tiny"].faithful
    return runner.read_result(catalog, run)


def test_the_papers_method_trains_as_long_as_its_loss_falls(folder, command):
    result = command("tiny", "--paper", "--folder", folder)
    assert result.exit_code == 0, result.output
    found = faithful_result(folder)
    training = found["training"]
    losses = training["losses"]
    assert training["ended by"] == "loss"
    assert found["resolved"]["epochs"] == len(losses) >= 4
    assert training["steps"] == 3 * len(losses)
    # By the rule of the config: two epochs are compared with the two before, and must be lower by a tenth.
    falls = [sum(losses[n - 2 : n]) < 0.9 * sum(losses[n - 4 : n - 2]) for n in range(4, len(losses) + 1)]
    assert falls == [True] * (len(falls) - 1) + [False]
    assert not list((folder / "unfinished").iterdir())
    assert "(kept)" in command("tiny", "--paper", "--folder", folder).output


def test_a_time_limit_ends_the_papers_method(folder, command):
    result = command("tiny", "--paper", "--folder", folder, "--minutes", "0")
    assert result.exit_code == 0, result.output
    training = faithful_result(folder)["training"]
    assert (training["ended by"], training["limit"], training["steps"]) == ("time", 0, 1)
    assert "(kept)" in command("tiny", "--paper", "--folder", folder, "--minutes", "0").output


def test_more_time_continues_a_run_that_the_limit_ended(folder, command):
    """It then ends like a run that had the time from the start."""
    command("tiny", "--paper", "--folder", folder)
    whole = faithful_result(folder)
    for path in (folder / "results").glob("paper-*"):
        path.unlink()
    command("tiny", "--paper", "--folder", folder, "--minutes", "0")
    (state,) = (folder / "unfinished").iterdir()
    assert command("tiny", "--paper", "--folder", folder, "--minutes", "0.001").exit_code == 0
    part = faithful_result(folder)["training"]
    assert (part["ended by"], part["limit"]) == ("time", 0.001)
    assert "(kept)" not in command("tiny", "--paper", "--folder", folder).output
    found = faithful_result(folder)
    assert found["metrics"] == whole["metrics"]
    assert found["training"]["losses"] == whole["training"]["losses"]
    assert not state.exists()


@pytest.mark.parametrize(
    ("course", "fall"),
    [
        ([(1, 9.0), (2, 5.0), (3, 4.0), (4, 3.0)], 0.25),
        ([(1, 9.0), (5, 5.0), (6, 3.0), (7, 3.0), (8, 2.0)], 1 - 2.5 / 4),
        ([(8, 2.0)], None),
        ([], None),
    ],
)
def test_how_much_a_loss_still_fell(course, fall):
    assert last_fall({"course": course}) == (None if fall is None else pytest.approx(fall))


def test_a_run_of_the_papers_method_that_was_stopped_is_resumed(folder, command, monkeypatch):
    """It ends like one that was not stopped, and what it took before counts."""
    command("tiny", "--paper", "--folder", folder)
    whole = faithful_result(folder)
    for path in (folder / "results").glob("paper-*"):
        path.unlink()
    monkeypatch.setattr("tsee.training.checkpoint.INTERVAL", 0.0)
    monkeypatch.setattr("reproduction.faithful.INTERVAL", 0.0)
    watch = Rule.watch

    def stopped(self, training):
        watch(self, training)
        if training.steps_done == 5:
            raise KeyboardInterrupt  # not by the rule

    with monkeypatch.context() as patch:
        patch.setattr(Rule, "watch", stopped)
        assert command("tiny", "--paper", "--folder", folder).exit_code == 130
    (state,) = (folder / "unfinished").iterdir()
    assert {path.name for path in state.iterdir()} == {"checkpoint.safetensors", "course.json"}
    assert faithful_result(folder) is None
    note = json.loads((state / "course.json").read_text())
    assert len(note["course"]) >= 3
    (state / "course.json").write_text(json.dumps({**note, "seconds": 60}))
    seen = []
    monkeypatch.setattr(Rule, "watch", lambda self, training: (seen.append(training.steps_done), watch(self, training)))
    assert command("tiny", "--paper", "--folder", folder).exit_code == 0
    assert seen[0] == 6
    found = faithful_result(folder)
    assert found["metrics"] == whole["metrics"]
    assert found["training"]["losses"] == whole["training"]["losses"]
    assert found["training"]["minutes"] >= 1


def test_only_the_runs_that_are_asked_for(folder, command):
    result = command("tiny", "--folder", folder, "--only", "method=pt-sne", "--only", "batch_size=400")
    assert result.output.count("\n") == 1
    assert "1/1 tiny: pt-SNE on digits, batch 400" in result.output


@pytest.mark.parametrize(
    ("losses", "n_steps", "falls"),
    [
        ([9, 8, 7, 6], 50, True),
        ([9, 8, 7, 7, 7], 50, True),  # too few
        ([9, 8, 7, 7, 7, 7], 50, True),
        ([9, 7, 7, 7, 7, 7], 50, True),  # 7.67 on average, then 7
        ([7.001, 7, 7, 7, 7, 7], 50, False),
        ([7.001, 7, 7, 7, 7, 7], 10, True),  # few batches: more epochs count
        ([6, 6, 6, 7, 7, 7], 50, False),
    ],
)
def test_the_rule_compares_the_last_epochs_with_as_many_before(losses, n_steps, falls):
    assert Rule(minutes=1, epochs=3, batches=100, fall=0.01).falls(losses, n_steps) == falls


def test_a_loss_that_diverges_ends_training_and_is_reported():
    rule = Rule(minutes=1)
    rule.start()
    with pytest.raises(KeyboardInterrupt):
        rule.ended([1.0], [])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("Training diverged in epoch 2", stacklevel=1)
    assert rule.ended([1.0], caught)["ended by"] == "divergence"
