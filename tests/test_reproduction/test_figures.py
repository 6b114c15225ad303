"""The report's figures: each must be of a known kind, and a panel must be one run."""

import pytest

from reproduction.claims import collect_records
from reproduction.experiments import read_catalog
from reproduction.figures import draw


@pytest.mark.parametrize(
    "figure, message",
    [
        ({"kind": "bars", "file": "a.png"}, "A figure of tiny has the kind 'bars'; it must be lines or maps"),
        ({"kind": "maps", "file": "a.png", "panels": [{"method": "pt-sne"}]}, "must match one run, but it matches 2"),
    ],
)
def test_bad_figures_are_named(folder, figure, message):
    catalog = read_catalog(folder)
    experiment = catalog.experiments["tiny"]
    with pytest.raises(ValueError, match=message):
        draw(catalog, experiment, collect_records(catalog, experiment), figure, folder)


def test_nothing_is_drawn_before_a_run_is_done(folder):
    catalog = read_catalog(folder)
    experiment = catalog.experiments["tiny"]
    for figure in experiment.config["figure"]:
        assert not draw(catalog, experiment, collect_records(catalog, experiment), figure, folder)
        assert not (folder / figure["file"]).exists()
