"""The report, from results that exist and from none."""

from reproduction.experiments import read_catalog
from reproduction.report import write_report


def test_report_has_the_papers_numbers_next_to_ours_and_a_dash_for_missing_ones(paper, pretend):
    catalog = read_catalog(paper)
    pretend(catalog, skip=lambda run: run.settings["data"] != "fashion" or run.settings["batch_size"] != 2000)
    first = write_report(catalog, paper / "docs").read_text()
    assert "runs are done**" in first
    section = first[first.index("## Fashion (table 1)") :].split("## ")[1]
    assert "| hot-SEE | paper | 29.06 | 28.18 |\n|  | tsee | – | **7.00** |" in section
    assert "`python -m reproduction fashion`: 4 of 8 runs, 4 min on P (2 cores, 1 thread, torch 2)." in section
    assert "4 better, 0 within 0.5, 0 worse | **better so far** |" in first
    assert (paper / "docs" / "reproduction" / "maps-fashion.png").exists()
    assert not (paper / "docs" / "reproduction" / "maps-mnist.png").exists()
    pictures = {path: path.read_bytes() for path in (paper / "docs" / "reproduction").iterdir()}
    assert write_report(catalog, paper / "docs").read_text() == first
    assert all(path.read_bytes() == content for path, content in pictures.items())


def test_report_without_results(paper, command):
    result = command("report", "--folder", paper, "--docs", paper / "docs")
    assert result.exit_code == 0, result.output
    page = (paper / "docs" / "reproduction.md").read_text()
    assert "**0 of 140 runs are done**" in page
    assert "| pt-SNE, train | paper | 12.49 | 12.49 | 9.26 |" in page
    for experiment in read_catalog(paper).experiments.values():
        for table in experiment.config.get("table", []):
            for numbers in table.get("paper", {}).values():
                assert " | ".join(f"{number:.2f}" for number in numbers) in page
