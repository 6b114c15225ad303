"""The report, from results that exist and from none."""

import json

from reproduction.__main__ import FOLDER
from reproduction.experiments import read_catalog
from reproduction.report import write_report


def test_report_has_the_papers_numbers_next_to_ours_and_a_dash_for_missing_ones(paper, pretend):
    catalog = read_catalog(paper)
    pretend(catalog, skip=lambda run: run.settings["data"] != "fashion" or run.settings["batch_size"] != 2000)
    first = write_report(catalog, paper / "docs").read_text()
    assert "are done**" in first
    section = first[first.index("## Fashion (table 1)") :].split("## ")[1]
    assert "| its method | – | **7.00** |" in section
    assert (
        "| hot-SEE | paper | 29.06 | 28.18 |\n|  | its method | – | **7.00** |\n|  | tsee | – | **7.00** |" in section
    )
    assert "`python -m reproduction fashion`: 4 of 8 runs, 4 min on P (2 cores, 1 thread, torch 2)." in section
    assert (
        "4 better, 0 within 0.5, 0 worse | **better** | 4 better, 0 within 0.5, 0 worse | **better so far** |" in first
    )
    assert (paper / "docs" / "reproduction" / "maps-fashion.png").exists()
    assert not (paper / "docs" / "reproduction" / "maps-mnist.png").exists()
    pictures = {path: path.read_bytes() for path in (paper / "docs" / "reproduction").iterdir()}
    assert write_report(catalog, paper / "docs").read_text() == first
    assert all(path.read_bytes() == content for path, content in pictures.items())


def test_report_without_results(paper, command):
    result = command("report", "--folder", paper, "--docs", paper / "docs")
    assert result.exit_code == 0, result.output
    page = (paper / "docs" / "reproduction.md").read_text()
    assert "**0 of 140 runs of tsee's recipe are done**" in page
    assert "**0 of 59 runs of the paper's method are done**" in page
    assert page.index("does it hold?") < page.index("runs of tsee's recipe are done")  # the verdicts come first
    assert "**holds" not in page
    assert "| pt-SNE, train | paper | 12.49 | 12.49 | 9.26 |" in page
    for experiment in read_catalog(paper).experiments.values():
        for table in experiment.config.get("table", []):
            for numbers in table.get("paper", {}).values():
                assert " | ".join(f"{number:.2f}" for number in numbers) in page


def test_report_says_which_runs_of_the_papers_method_were_cut_short_and_why_a_claim_fails(paper, pretend):
    path = paper / "experiments" / "fashion.toml"
    lines = [line for line in path.read_text().splitlines() if not line.startswith("why_paper")]
    path.write_text("\n".join([*lines, 'why_paper = "It is short."', ""]))  # of the last claim
    catalog = read_catalog(paper)
    methods = {"pt-sne": 5.0, "hot-sne": 6.0, "dt-see": 7.0, "hot-see": 4.0}
    pretend(
        catalog,
        lambda run: methods[run.settings["method"]],
        skip=lambda run: run.settings["data"] != "fashion" or "arm" not in run,
    )
    for run in catalog.experiments["fashion"].faithful[:2]:
        file = catalog.results / f"{run.name}.json"
        result = json.loads(file.read_text())
        training = {"ended by": "time", "limit": 3, "steps": 7, "course": [[1, 9.0], [2, 5.0], [3, 4.0], [4, 3.0]]}
        file.write_text(json.dumps({**result, "training": training}))
    page = write_report(catalog, paper / "docs").read_text()
    assert "A time limit of 3 min of the processor ended 2 of them while the loss still fell." in page
    assert "in 0 of 1 comparisons | **does not hold so far** | – | **not run** |" in page
    reasons = page[page.index("## What does not hold, and why") :].split("## ")[1]
    assert reasons.count("\n- ") == 1
    assert "(the paper's method: in 0 of 1 comparisons). It is short. More time may change this." in reasons
    assert "**5.00\\***" in page  # of a run that was cut short
    assert "pt-SNE on Fashion, batch 2,000, perplexity 3: 7 batches, 25.0 %; hot-SNE on Fashion" in page
    assert "**4.00**" in page


def test_every_claim_that_does_not_hold_has_a_sentence_that_says_why(tmp_path):
    """In the report of the committed results."""
    page = write_report(read_catalog(FOLDER), tmp_path).read_text()
    verdicts = [line.split(" | ") for line in page.splitlines() if line.startswith("| ") and "](#" in line]
    reasons = page[page.index("## What does not hold, and why") :].split("## ")[1]
    assert len(verdicts) > 20
    for text, _, _, _, theirs, _, ours in verdicts:
        for who, word in (("the paper's method", theirs), ("tsee's recipe", ours)):
            if any(part in word for part in ("not hold", "in part")):
                who = "both" if "2.5 times as fast" in text else who
                assert f"- {text.removeprefix('| ')} ({who}: " in reasons
