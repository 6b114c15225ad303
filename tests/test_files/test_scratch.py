"""Temporary files are removed with their table; a full disk is reported."""

import numpy as np

from tsee.files import open_table


def test_temporary_files_are_removed_with_the_table(tmp_path, monkeypatch, refused, good_csv):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    (tmp_path / "a.csv").write_text(good_csv)
    with open_table(tmp_path / "a.csv"):
        assert len(list((tmp_path / "scratch").iterdir())) == 1
    assert list((tmp_path / "scratch").iterdir()) == []
    table = open_table(tmp_path / "a.csv")
    assert len(list((tmp_path / "scratch").iterdir())) == 1
    rows, names = table.rows, table.other_columns
    del table
    assert names["city"][5] == "town"  # the other parts can still be read
    assert rows[5:6] == 5.5
    del rows, names
    assert list((tmp_path / "scratch").iterdir()) == []
    refused(tmp_path / "a.csv", "no column", label="nothing")
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_full_disk_while_unpacking(tmp_path, run):
    np.savetxt(tmp_path / "a.csv", np.random.default_rng(0).normal(size=(2000, 4)), delimiter=",")
    code = f"""
        import resource
        from tsee.exceptions import DataFileError
        from tsee.files import open_table
        resource.setrlimit(resource.RLIMIT_FSIZE, (10000, 10000))
        try:
            open_table({str(tmp_path / "a.csv")!r})
        except DataFileError as error:
            print(error)
    """
    assert "set TMPDIR to a folder on a larger disk" in run(code)
