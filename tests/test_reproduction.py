"""The paper's experiments: what the configs ask for, what is run and kept, and what the report makes of it."""

import inspect
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tsee.cli import main
from tsee.reproduction import runner
from tsee.reproduction.claims import cells, expected, judge, records
from tsee.reproduction.experiments import METHODS, Run, expand, matches, read_book
from tsee.reproduction.report import write_report

REPRODUCTION = Path(__file__).parent.parent / "reproduction"
RUNS = {
    "batch-size": 56,
    "batch-size-perplexity-10": 40,
    "perplexity": 40,
    "fashion": 8,
    "maps": 10,
    "noise-contrastive": 4,
    "seeding": 6,
    "knn": 3,
    "quality-scores": 3,
    "test-sets": 3,
    "speed": 1,
    "robustness": 20,
}
TINY = """
title = "Tiny"
paper = "table 0"
measures = ["knn", "map"]

[[grid]]
data = "digits"
method = ["pt-sne", "hot-see"]
batch_size = [200, 400]

[[table]]
measure = "knn"
where = { part = "test", k = 1 }
rows = { method = ["pt-sne", "hot-see"] }
columns = { batch_size = [200, 400] }
paper = { pt-sne = [98.76, 0.12] }

[[figure]]
kind = "lines"
file = "lines.png"
measure = "knn"
where = { part = "test", k = 1 }
panels = [{ data = "digits" }]
x = "batch_size"
lines = "method"

[[figure]]
kind = "maps"
file = "maps.png"
panels = [{ method = "pt-sne", batch_size = 200 }, { method = "hot-see", batch_size = 400 }]

[[claim]]
text = "All is well"
check = "cells"
"""
OTHER = """
number = 1
title = "Other"
measures = ["quality"]

[[grid]]
data = "digits"
method = "pt-sne"
batch_size = 200
"""
COMMON = """
[[setting]]
seed = 0
perplexity = 3.0
max_epochs = 1

[[setting]]
when = { method = ["hot-see", "dt-see"] }
exemplars = "centers"
n_exemplars = 50
kmeans_iterations = 1

[[setting]]
when = { batch_size = { at_least = 400 } }
learning_rate = 0.02

[measures.knn]
k = [1, 3]

[measures.quality]
k = [1, 5]

[names]
pt-sne = "pt-SNE"
batch_size = "batch"

[report]
tolerance = 0.5
"""


@pytest.fixture
def folder(tmp_path):
    """A reproduction of two experiments on digits, of one epoch each."""
    place = tmp_path / "reproduction"
    (place / "experiments").mkdir(parents=True)
    for name, text in {"common": COMMON, "tiny": TINY, "other": OTHER}.items():
        (place / "experiments" / f"{name}.toml").write_text(text)
    return place


def command(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


def pretend(book, value=lambda run: 7.0, skip=lambda run: False):
    """Write results as the runner does, without running anything."""
    book.results.mkdir(exist_ok=True)
    runs = {run.digest: run for experiment in book.experiments.values() for run in experiment.runs}
    for run in runs.values():
        if skip(run):
            continue
        metrics = {}
        for measure, options in book.wanted[run.digest].items():
            metrics[measure] = {"options": options, "values": {}}
            for keys in expected(measure, options):
                *outer, last = map(str, keys.values())
                level = metrics[measure]["values"]
                for key in outer:
                    level = level.setdefault(key, {})
                level[last] = value(run)
            if measure == "map":
                metrics[measure]["file"] = f"{run.name}.npz"
                places = np.random.default_rng(0).random((40, 2))
                np.savez(book.results / f"{run.name}.npz", Y=places, labels=np.arange(40) % 10)
        result = {
            "settings": run.settings,
            "metrics": metrics,
            "seconds": {"fit": 60.0},
            "machine": dict(processor="P", cores=2, threads=1, torch="2"),
        }
        (book.results / f"{run.name}.json").write_text(json.dumps(result))


# The configs


def test_the_configs_ask_for_the_runs_of_the_paper():
    book = read_book(REPRODUCTION)
    assert {name: len(experiment.runs) for name, experiment in book.experiments.items()} == RUNS
    assert len(book.wanted) == 145


def test_every_parameter_is_one_that_its_estimator_takes():
    for experiment in read_book(REPRODUCTION).experiments.values():
        for run in experiment.runs:
            if run.settings.get("kind") != "speed":
                estimator = METHODS[run.settings["method"]]
                assert set(run.parameters) <= set(inspect.signature(estimator).parameters)
                assert {"max_epochs", "batch_size", "perplexity", "learning_rate"} <= set(run.parameters)


def test_tables_claims_and_figures_of_the_configs_are_of_one_cell_each(tmp_path):
    shutil.copytree(REPRODUCTION / "experiments", tmp_path / "experiments")
    book = read_book(tmp_path)
    pretend(book)
    for experiment in book.experiments.values():
        found = records(book, experiment)
        for table in experiment.config.get("table", []):
            rows = list(cells(found, table))
            assert all(cell.ours is not None for _, line in rows for cell in line)
            named = {" ".join(map(str, values)) for values, _ in rows}
            assert set(table.get("paper", {})) <= named  # no number of the paper is lost to a typing error
        for claim in experiment.config.get("claim", []):
            assert judge(book, experiment, found, claim).word in ("agree", "better", "in part", "not")


def test_tables_4_and_5_the_maps_and_the_ten_test_sets_share_runs():
    book = read_book(REPRODUCTION)
    digests = {name: {run.digest for run in experiment.runs} for name, experiment in book.experiments.items()}
    assert digests["knn"] == digests["quality-scores"] == digests["test-sets"] < digests["maps"]
    for digest in digests["knn"]:
        assert set(book.wanted[digest]) == {"knn", "quality", "test-sets", "map"}
    speed = book.experiments["speed"].runs[0]
    assert set(book.wanted[speed.digest]) == {"speed"}


def test_settings_apply_in_order_and_the_grid_wins(folder):
    runs = {
        (run.settings["method"], run.settings["batch_size"]): run for run in read_book(folder).experiments["tiny"].runs
    }
    assert "n_exemplars" not in runs["pt-sne", 200]
    assert runs["hot-see", 200].settings["n_exemplars"] == 50
    assert "learning_rate" not in runs["pt-sne", 200]
    assert runs["pt-sne", 400].settings["learning_rate"] == 0.02
    common = {"setting": [{"seed": 0, "perplexity": 3}]}
    (run,) = expand({"grid": [{"data": "digits", "method": "pt-sne", "perplexity": 5}]}, common)
    assert run.settings["perplexity"] == 5


def test_matches():
    assert matches({}, {})
    assert matches({"a": 1, "b": [1, 2], "c": {"at_least": 1, "at_most": 3}}, {"a": 1, "b": 2, "c": 3})
    assert not matches({"a": 1}, {})
    assert not matches({"b": [1, 2]}, {"b": 3})
    assert not matches({"c": {"at_least": 1}}, {"c": 0})
    assert not matches({"c": {"at_most": 3}}, {"c": 4})


def test_a_run_is_known_by_its_settings_in_any_order():
    a = Run({"data": "digits", "method": "pt-sne", "seed": 0, "perplexity": 3})
    b = Run({"perplexity": 3, "seed": 0, "method": "pt-sne", "data": "digits"})
    assert a.name == b.name
    assert a.name != Run({**a.settings, "seed": 1}).name
    assert a.name.startswith("digits-pt-sne-perplexity-3-")


@pytest.mark.parametrize(
    "text, message",
    [
        ('title = "T"\nmeasures = ["knn"]', "must have 'grid'"),
        ('title = "T"\nmeasures = ["size"]\n[[grid]]', "asks for the measure 'size', and there are knn"),
        ('title = "T"\nmeasures = ["knn"]\n[[grid]]\ndata = "digits"\nmethod = "umap"', "method is 'umap'"),
        (
            'title = "T"\nmeasures = ["knn"]\n[[grid]]\ndata = "digits"\nmethod = "pt-sne"\nn_exemplars = 3',
            "PtSNE has no parameter 'n_exemplars'",
        ),
        ("title = ", "is not TOML"),
    ],
)
def test_bad_configs_are_named(folder, text, message):
    (folder / "experiments" / "bad.toml").write_text(text)
    result = command("all", "--folder", folder)
    assert result.exit_code == 1
    assert "bad.toml" in result.output
    assert message in result.output


# The runs


def test_runs_are_kept_shared_and_resumed(folder, monkeypatch):
    done = []
    execute = runner._execute

    def counted(book, run):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(run.name)
        return execute(book, run)

    monkeypatch.setattr(runner, "_execute", counted)
    result = command("tiny", "--folder", folder)
    assert result.exit_code == 130
    assert "Stopped. Finished runs are kept in" in result.output
    assert len(list((folder / "results").glob("*.json"))) == 2

    monkeypatch.setattr(runner, "_execute", lambda book, run: done.append(run.name) or execute(book, run))
    result = command("all", "--folder", folder)
    assert result.exit_code == 0, result.output
    assert len(done) == len(set(done)) == 4  # none twice, and the other experiment's is one of them
    lines = result.output.splitlines()
    assert lines[0].startswith("1/4 tiny: pt-SNE on digits, batch 200, perplexity 3: 1-NN ")
    assert [line.endswith("(kept)") for line in lines] == [True, True, False, False, True]
    assert not [path for path in (folder / "results").iterdir() if path.name.startswith(".")]

    shared = next(path for path in (folder / "results").glob("*.json") if "pt-sne-batch-200" in path.name)
    result = json.loads(shared.read_text())
    assert list(result["metrics"]) == ["knn", "map", "quality"]  # the union of what both ask for
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

    page = (write_report(read_book(folder), folder / "docs")).read_text()
    assert "**4 of 4 runs are done**" in page
    assert "98.76" in page
    assert (folder / "docs" / "reproduction" / "lines.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "docs" / "reproduction" / "maps.png").stat().st_size < 400_000


def test_a_changed_setting_a_new_measure_or_a_damaged_file_is_run_again(folder):
    book = read_book(folder)
    pretend(book)
    (run,) = book.experiments["other"].runs
    assert runner.read_result(book, run) is not None

    path = folder / "experiments" / "common.toml"
    path.write_text(COMMON.replace("max_epochs = 1", "max_epochs = 2"))
    changed = read_book(folder)
    assert runner.read_result(changed, changed.experiments["other"].runs[0]) is None

    path.write_text(COMMON.replace("k = [1, 5]", "k = [1, 5, 9]"))
    more = read_book(folder)
    assert runner.read_result(more, more.experiments["other"].runs[0]) is None

    (book.results / f"{run.name}.npz").unlink()
    assert runner.read_result(book, run) is None
    (book.results / f"{run.name}.json").write_text('{"settings": ')
    assert runner.read_result(book, run) is None


def test_a_fit_that_was_interrupted_is_no_result(folder, monkeypatch):
    from tsee import training

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "_adam_step", interrupted)
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
    assert [path.name for path in folder.iterdir()] == ["experiments", "result.json"] or len(
        list(folder.iterdir())
    ) == 2


def test_speed(tmp_path):
    (tmp_path / "experiments").mkdir()
    text = (REPRODUCTION / "experiments" / "speed.toml").read_text().replace('"mnist"', '"digits"')
    (tmp_path / "experiments" / "speed.toml").write_text(text.replace("repeats = 15", "repeats = 3"))
    book = read_book(tmp_path)
    lines = []
    runner.run_experiments(book, ["all"], lines.append)
    assert "deep / high-order" in lines[0]
    values = runner.read_result(book, book.experiments["speed"].runs[0])["metrics"]["speed"]["values"]
    assert tuple(values) == runner.SPEED_QUANTITIES
    deep, shallow = 64 * 500 + 500 * 500 + 500 * 2000 + 2000 * 2, 64 * 800 + 800 * 400 + 400 * 2
    assert values["multiplication ratio"] == pytest.approx(deep / shallow, abs=1e-3)
    assert values["time ratio"] == pytest.approx(values["deep"] / values["high-order"], rel=0.05)


# The report


def test_report_has_the_papers_numbers_beside_ours_and_a_dash_for_what_is_missing(tmp_path):
    shutil.copytree(REPRODUCTION / "experiments", tmp_path / "experiments")
    book = read_book(tmp_path)
    pretend(book, skip=lambda run: run.settings["data"] != "fashion" or run.settings["batch_size"] != 2000)
    first = write_report(book, tmp_path / "docs").read_text()
    assert "runs are done**" in first
    section = first[first.index("## Fashion (table 1)") :].split("## ")[1]
    assert "| hot-SEE | paper | 29.06 | 28.18 |\n|  | tsee | – | **7.00** |" in section
    assert "`tsee reproduce fashion`: 4 of 8 runs, 4 min on P (2 cores, 1 thread, torch 2)." in section
    assert "4 better, 0 within 0.5, 0 worse | **better, so far** |" in first
    assert (tmp_path / "docs" / "reproduction" / "maps-fashion.png").exists()
    assert not (tmp_path / "docs" / "reproduction" / "maps-mnist.png").exists()
    pictures = {path: path.read_bytes() for path in (tmp_path / "docs" / "reproduction").iterdir()}
    assert write_report(book, tmp_path / "docs").read_text() == first
    assert all(path.read_bytes() == content for path, content in pictures.items())


def test_report_without_results(tmp_path):
    shutil.copytree(REPRODUCTION / "experiments", tmp_path / "experiments")
    result = command("report", "--folder", tmp_path, "--docs", tmp_path / "docs")
    assert result.exit_code == 0, result.output
    page = (tmp_path / "docs" / "reproduction.md").read_text()
    assert "**0 of 145 runs are done**" in page
    assert "| pt-SNE, train | paper | 12.49 | 12.49 | 9.26 |" in page
    for experiment in read_book(tmp_path).experiments.values():
        for table in experiment.config.get("table", []):
            for numbers in table.get("paper", {}).values():
                assert " | ".join(f"{number:.2f}" for number in numbers) in page


# For each kind of check: values by method, and the verdict.
CLAIMS = [
    ({"check": "below", "limit": 10}, {"a": [1, 9]}, "agree"),
    ({"check": "below", "limit": 10}, {"a": [1, 10]}, "not"),
    ({"check": "range", "at_least": 5}, {"a": [1, 9]}, "agree"),
    ({"check": "range", "at_most": 5}, {"a": [1, 9]}, "not"),
    ({"check": "steadier"}, {"a": [1, 2], "b": [1, 5]}, "agree"),
    ({"check": "steadier"}, {"a": [1, 6], "b": [1, 5]}, "not"),
    ({"check": "better", "by": ["k"]}, {"a": [1, 2], "b": [2, 3]}, "agree"),
    ({"check": "better", "by": ["k"]}, {"a": [1, 4], "b": [2, 3]}, "in part"),
    ({"check": "better", "by": ["k"], "higher_is_better": True}, {"a": [1, 2], "b": [2, 3]}, "not"),
    ({"check": "near", "by": ["k"], "within": 0.4}, {"a": [1, 2], "b": [1.3, 2]}, "agree"),
    ({"check": "near", "by": ["k"], "within": 0.4}, {"a": [1, 2], "b": [1.5, 2]}, "in part"),
    ({"check": "ratio", "paper": 2.5, "within": 0.2}, {"a": [2.4]}, "agree"),
    ({"check": "ratio", "paper": 2.5, "within": 0.2}, {"a": [3]}, "better"),
    ({"check": "ratio", "paper": 2.5, "within": 0.2}, {"a": [2]}, "not"),
    ({"check": "below", "limit": 10}, {"a": [1, None]}, "agree, so far"),
    ({"check": "below", "limit": 10}, {"a": [None]}, "–"),
    ({"check": "range", "at_least": 5}, {"a": [1, 9, None]}, "–"),
    ({"check": "steadier"}, {"a": [1, None], "b": [1, 5]}, "–"),
]


@pytest.mark.parametrize("claim, values, word", CLAIMS)
def test_checks(folder, claim, values, word):
    book = read_book(folder)
    found = [
        {"measure": "knn", "method": method, "k": k, "value": value}
        for method, numbers in values.items()
        for k, value in enumerate(numbers)
    ]
    claim = {
        **claim,
        "measure": "knn",
        "where": {"method": "a"},
        **({"than": {"method": "b"}} if "b" in values else {}),
    }
    assert judge(book, book.experiments["tiny"], found, claim).word == word


@pytest.mark.parametrize(
    "errors, word",
    [([90, 0.5], "agree"), ([98.5, 0.4], "agree"), ([99.9, 9], "not"), ([90, 9], "in part"), ([90, 0], "agree")],
)
def test_cells_are_compared_within_the_tolerance(folder, errors, word):
    book = read_book(folder)
    pretend(book, lambda run: errors[run.settings["batch_size"] == 400])
    experiment = book.experiments["tiny"]
    assert judge(book, experiment, records(book, experiment), {"check": "cells"}).word == word


def test_a_cell_is_the_mean_over_seeds_and_never_over_anything_else(folder):
    path = folder / "experiments" / "tiny.toml"
    path.write_text(TINY.replace('data = "digits"\n', 'data = "digits"\nseed = [0, 1]\n', 1))
    book = read_book(folder)
    assert len(book.experiments["tiny"].runs) == 8
    pretend(book, lambda run: 10.0 + run.settings["seed"])
    experiment = book.experiments["tiny"]
    found = records(book, experiment)
    ((_, first), _) = cells(found, experiment.config["table"][0])
    assert [cell.ours for cell in first] == [10.5, 10.5]
    table = {**experiment.config["table"][0], "where": {"part": "test"}}
    with pytest.raises(ValueError, match="is not one cell"):
        list(cells(found, table))


# The command


def test_list(folder):
    result = command("--list", "--folder", folder)
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "tiny     0 of   4 runs  Tiny (table 0)",
        "other    0 of   1 runs  Other (not in the paper)",
    ]


def test_an_unknown_name(folder):
    result = command("tiny", "large", "--folder", folder)
    assert result.exit_code == 1
    assert result.output == "Error: There is no experiment 'large'; there are tiny, other, and all.\n"
    assert not (folder / "results").exists()


def test_outside_a_checkout(tmp_path):
    result = command("all", "--folder", tmp_path / "none")
    assert result.exit_code == 1
    assert result.output.startswith("Error: There is no folder")
    assert "in a checkout of tsee" in result.output


def test_missing_data_are_told_in_the_words_of_the_data_sets(folder, monkeypatch):
    def missing():
        raise OSError("Digits could not be downloaded: set TSEE_DATA.")

    monkeypatch.setitem(runner.LOADERS, "digits", missing)
    runner._load.cache_clear()
    result = command("tiny", "--folder", folder)
    assert result.exit_code == 1
    assert result.output == "Error: Digits could not be downloaded: set TSEE_DATA.\n"
