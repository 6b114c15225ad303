"""Numbers for the tables, and verdicts on claims."""

import pytest

from reproduction.claims import cells, collect_records, judge
from reproduction.experiments import read_catalog

# For each kind of check: values by method, and the verdict.
CLAIMS = [
    ({"check": "below", "limit": 10}, {"a": [1, 9]}, "holds"),
    ({"check": "below", "limit": 10}, {"a": [1, 10]}, "does not hold"),
    ({"check": "range", "at_least": 5}, {"a": [1, 9]}, "holds"),
    ({"check": "range", "at_most": 5}, {"a": [1, 9]}, "does not hold"),
    ({"check": "steadier"}, {"a": [1, 2], "b": [1, 5]}, "holds"),
    ({"check": "steadier"}, {"a": [1, 6], "b": [1, 5]}, "does not hold"),
    ({"check": "better", "by": ["k"]}, {"a": [1, 2], "b": [2, 3]}, "holds"),
    ({"check": "better", "by": ["k"]}, {"a": [1, 4], "b": [2, 3]}, "holds in part"),
    ({"check": "better", "by": ["k"], "higher_is_better": True}, {"a": [1, 2], "b": [2, 3]}, "does not hold"),
    ({"check": "near", "by": ["k"], "within": 0.4}, {"a": [1, 2], "b": [1.3, 2]}, "holds"),
    ({"check": "near", "by": ["k"], "within": 0.4}, {"a": [1, 2], "b": [1.5, 2]}, "holds in part"),
    ({"check": "ratio", "paper": 2.5, "within": 0.2}, {"a": [2.4]}, "holds"),
    ({"check": "ratio", "paper": 2.5, "within": 0.2}, {"a": [3]}, "better"),
    ({"check": "ratio", "paper": 2.5, "within": 0.2}, {"a": [2]}, "does not hold"),
    ({"check": "below", "limit": 10}, {"a": [1, None]}, "holds so far"),
    ({"check": "below", "limit": 10}, {"a": [None]}, "not run"),
    ({"check": "range", "at_least": 5}, {"a": [1, 9, None]}, "not run"),
    ({"check": "steadier"}, {"a": [1, None], "b": [1, 5]}, "not run"),
    ({"check": "steadier"}, {"a": [1, None, 2], "b": [1, 4, 5]}, "not run"),
    ({"check": "steadier"}, {"a": [1, None, 2], "b": [1, None, 5]}, "holds so far"),
    ({"check": "steadier"}, {"a": [1], "b": [5]}, "not run"),
    ({"check": "range", "at_most": 5}, {"a": [1]}, "not run"),
]


@pytest.mark.parametrize("claim, values, word", CLAIMS)
def test_checks(folder, claim, values, word):
    catalog = read_catalog(folder)
    records = [
        {"measure": "knn", "method": method, "k": k, "batch_size": k, "value": value}
        for method, numbers in values.items()
        for k, value in enumerate(numbers)
    ]
    claim = {
        **claim,
        "measure": "knn",
        "where": {"method": "a"},
        **({"than": {"method": "b"}} if "b" in values else {}),
    }
    assert judge(catalog, catalog.experiments["tiny"], records, claim).word == word


@pytest.mark.parametrize(
    "errors, word",
    [
        ([90, 0.5], "holds"),
        ([98.5, 0.4], "holds"),
        ([99.9, 9], "does not hold"),
        ([90, 9], "holds in part"),
        ([90, 0], "holds"),
    ],
)
def test_cells_are_compared_within_the_tolerance(folder, pretend, errors, word):
    catalog = read_catalog(folder)
    pretend(catalog, lambda run: errors[run.settings["batch_size"] == 400])
    experiment = catalog.experiments["tiny"]
    assert judge(catalog, experiment, collect_records(catalog, experiment), {"check": "cells"}).word == word


def test_a_cell_is_the_mean_over_seeds_and_never_over_anything_else(folder, pretend):
    path = folder / "experiments" / "tiny.toml"
    path.write_text(path.read_text().replace('data = "digits"\n', 'data = "digits"\nseed = [0, 1]\n', 1))
    catalog = read_catalog(folder)
    assert len(catalog.experiments["tiny"].runs) == 8
    pretend(catalog, lambda run: 10.0 + run.settings["seed"])
    experiment = catalog.experiments["tiny"]
    records = collect_records(catalog, experiment)
    ((_, first), _) = cells(records, experiment.config["table"][0])
    assert [cell.ours for cell in first] == [10.5, 10.5]
    table = {**experiment.config["table"][0], "where": {"part": "test"}}
    with pytest.raises(ValueError, match="must describe one cell"):
        list(cells(records, table))


def test_a_verdict_says_if_a_time_limit_ended_one_of_its_runs(folder):
    catalog = read_catalog(folder)
    records = [{"measure": "knn", "method": "a", "value": 3, "short": short} for short in (False, True)]
    claim = {"check": "below", "limit": 10, "measure": "knn", "where": {"method": "a"}}
    experiment = catalog.experiments["tiny"]
    assert judge(catalog, experiment, records, claim).word == "holds so far"
    assert judge(catalog, experiment, records[:1], claim).word == "holds"
    assert judge(catalog, experiment, records, {**claim, "limit": 2}).word == "does not hold so far"
    assert judge(catalog, experiment, records[:1], {**claim, "limit": 2}).word == "does not hold"
