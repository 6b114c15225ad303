"""``python -m reproduction``."""

from reproduction import runner


def test_without_a_name_the_experiments_are_listed(folder, command):
    assert command("--folder", folder).output == command("--list", "--folder", folder).output


def test_list(folder, command):
    result = command("--list", "--folder", folder)
    assert result.exit_code == 0
    assert result.output.splitlines() == [
        "tiny     0 of   4 runs    0 of   1 runs of the paper's method  Tiny (table 0)",
        "other    0 of   1 runs    0 of   0 runs of the paper's method  Other (not in the paper)",
    ]


def test_an_unknown_name(folder, command):
    result = command("tiny", "large", "--folder", folder)
    assert result.exit_code == 1
    assert result.output == "Error: There is no experiment 'large'; choose from tiny, other, or all.\n"
    assert not (folder / "results").exists()


def test_outside_a_checkout(tmp_path, command):
    result = command("all", "--folder", tmp_path / "none")
    assert result.exit_code == 1
    assert result.output.startswith("Error: There is no folder")
    assert "of a checkout of tsee" in result.output


def test_missing_data_are_reported_in_the_words_of_the_loader(folder, command, monkeypatch):
    def missing():
        raise OSError("Digits could not be downloaded: set TSEE_DATA.")

    monkeypatch.setitem(runner.LOADERS, "digits", missing)
    runner._load.cache_clear()
    result = command("tiny", "--folder", folder)
    assert result.exit_code == 1
    assert result.output == "Error: Digits could not be downloaded: set TSEE_DATA.\n"
