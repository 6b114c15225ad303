"""The configs: the runs that they ask for, and the errors in bad configs."""

import inspect

import pytest

from reproduction.__main__ import FOLDER
from reproduction.claims import cells, collect_records, judge
from reproduction.experiments import METHODS, Run, expand, matches, read_catalog

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
    "robustness": 15,
}


def test_the_configs_ask_for_the_runs_of_the_paper():
    catalog = read_catalog(FOLDER)
    assert {name: len(experiment.runs) for name, experiment in catalog.experiments.items()} == RUNS
    recipe, faithful = (
        {run.digest for experiment in catalog.experiments.values() for run in getattr(experiment, arm)}
        for arm in ("runs", "faithful")
    )
    assert (len(recipe), len(faithful), len(recipe & faithful)) == (140, 59, 0)
    assert set(catalog.wanted) == recipe | faithful


def test_a_run_of_the_papers_method_has_all_of_its_settings_and_no_others():
    runs = [run for experiment in read_catalog(FOLDER).experiments.values() for run in experiment.faithful]
    for run in runs:
        estimator = METHODS[run.settings["method"]]
        expected = estimator.paper(**run.parameters).get_params()
        given = {"perplexity", "batch_size", "n_exemplars", "contrast", "seeding"}
        given |= {"n_neighbors", "n_noise", "noise_weight"} if run.settings.get("contrast") == "noise" else set()
        for name, value in estimator.paper().get_params().items():
            if name not in given:
                assert expected[name] == value or list(expected[name]) == list(value), name
        assert "max_epochs" not in run.settings  # a rule ends it
        assert run.settings["arm"] == "paper"
        assert run.name.startswith(f"paper-{run.settings['data']}-")


def test_every_parameter_is_one_that_its_estimator_takes():
    for experiment in read_catalog(FOLDER).experiments.values():
        for run in experiment.runs:
            if run.settings.get("kind") != "speed":
                estimator = METHODS[run.settings["method"]]
                assert set(run.parameters) <= set(inspect.signature(estimator).parameters)
                assert {"max_epochs", "batch_size", "perplexity", "learning_rate"} <= set(run.parameters)


def test_tables_claims_and_figures_of_the_configs_are_of_one_cell_each(paper, pretend):
    catalog = read_catalog(paper)
    pretend(catalog)
    for experiment in catalog.experiments.values():
        records = collect_records(catalog, experiment)
        for table in experiment.config.get("table", []):
            rows = list(cells(records, table))
            assert all(cell.ours is not None for _, line in rows for cell in line)
            named = {" ".join(map(str, values)) for values, _ in rows}
            assert set(table.get("paper", {})) <= named  # no number of the paper is lost to a typo
        for claim in experiment.config.get("claim", []):
            assert judge(catalog, experiment, records, claim).word in (
                "holds",
                "better",
                "holds in part",
                "does not hold",
            )


def test_tables_4_and_5_the_maps_and_the_ten_test_sets_share_runs():
    catalog = read_catalog(FOLDER)
    digests = {name: {run.digest for run in experiment.runs} for name, experiment in catalog.experiments.items()}
    assert digests["knn"] == digests["quality-scores"] == digests["test-sets"] < digests["maps"]
    for digest in digests["knn"]:
        assert set(catalog.wanted[digest]) == {"knn", "quality", "test-sets", "map"}
    speed = catalog.experiments["speed"].runs[0]
    assert set(catalog.wanted[speed.digest]) == {"speed"}


def test_settings_apply_in_order_and_the_grid_wins(folder):
    runs = {
        (run.settings["method"], run.settings["batch_size"]): run
        for run in read_catalog(folder).experiments["tiny"].runs
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
        ('title = "T"\nmeasures = ["size"]\n[[grid]]', "asks for the measure 'size'; it must be one of knn"),
        ('title = "T"\nmeasures = ["knn"]\n[[grid]]\ndata = "digits"\nmethod = "umap"', "method is 'umap'"),
        (
            'title = "T"\nmeasures = ["knn"]\n[[grid]]\ndata = "digits"\nmethod = "pt-sne"\nn_exemplars = 3',
            "PtSNE has no parameter 'n_exemplars'",
        ),
        ("title = ", "is not TOML"),
    ],
)
def test_bad_configs_are_named(folder, command, text, message):
    (folder / "experiments" / "bad.toml").write_text(text)
    result = command("all", "--folder", folder)
    assert result.exit_code == 1
    assert "bad.toml" in result.output
    assert message in result.output
