"""``tsee transform``: the same positions as in Python, in a file that is complete or not there."""

import itertools
import json

import h5py
import numpy as np
import pandas as pd
import pytest

import tsee


def read(path):
    """The positions in a map file, and the names of its other columns."""
    if path.suffix == ".npy":
        return np.load(path), []
    if path.suffix == ".h5ad":
        with h5py.File(path) as file:
            return file["obsm/X_tsee"][:], list(file["obs"].attrs["column-order"])
    frame = pd.read_csv(path) if path.suffix == ".csv" else pd.read_parquet(path)
    return frame[["tsee0", "tsee1"]].to_numpy(np.float32), list(frame.columns[:-2])


@pytest.mark.parametrize(
    ("input_", "output"),
    # An .h5ad map is a copy of an .h5ad input.
    [*itertools.product((".csv", ".parquet", ".npy", ".h5ad"), (".csv", ".parquet", ".npy")), (".h5ad", ".h5ad")],
)
def test_from_any_file_to_any(run, folder, model, positions, tmp_path, input_, output):
    label = [] if input_ == ".npy" else ["--label", "kind"]
    path = tmp_path / f"new/map{output}"  # the folder is made
    result = run("transform", model, folder / f"flowers{input_}", *label, "-o", path)
    assert result.stdout.startswith("Placed 90 rows in ")
    found, kept = read(path)
    np.testing.assert_array_equal(found, positions)
    identifier = [] if output == ".h5ad" else ["index"] if input_ == ".h5ad" else ["id"]
    assert kept == ([] if ".npy" in (input_, output) else [*identifier, "kind"])
    if input_ == ".npy":
        assert "Its columns have no names; they are taken in the order of the model's features." in result.stderr


def test_placement_by_the_network(run, folder, model, flowers, tmp_path):
    run("transform", model, folder / "flowers.csv", "-o", tmp_path / "a.npy", "--placement", "forward", "--quiet")
    forward = tsee.load(model).set_params(placement="forward").transform(flowers.drop(columns=["id", "kind"]))
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), forward)


def test_columns_are_matched_by_name(run, write, flowers, model, positions, tmp_path):
    frame = flowers[["weight", "kind", "width", "id", "height", "length"]].assign(depth=1.0)
    write(tmp_path / "other.csv", frame)
    result = run("transform", model, tmp_path / "other.csv", "-o", tmp_path / "map.csv")
    found, kept = read(tmp_path / "map.csv")
    np.testing.assert_array_equal(found, positions)
    assert kept == ["kind", "id"]
    assert "Left out, not among the features: 'depth'." in result.stderr
    with h5py.File(tmp_path / "more.h5ad", "w") as file:
        file["X"] = frame[["depth", "weight", "width", "height", "length"]].to_numpy(np.float32)
        file["var/_index"] = ["depth", "weight", "width", "height", "length"]
        file["obs/_index"] = frame["id"].astype(str).to_list()
    result = run("transform", model, tmp_path / "more.h5ad", "-o", tmp_path / "map.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), positions)
    assert "Left out, not among the features: 1 of 5 variables." in result.stderr
    # Other names, in the model's order.
    renamed = frame.rename(columns=str.upper)
    write(tmp_path / "other.csv", renamed)
    given = ["transform", model, tmp_path / "other.csv", "-o", tmp_path / "map.csv"]
    run(*given, "--columns", "WIDTH,LENGTH,HEIGHT,WEIGHT", "--label", "KIND")
    np.testing.assert_array_equal(read(tmp_path / "map.csv")[0], positions)
    result = run(*given, "--columns", "WIDTH,LENGTH", code=1)
    sentence = (
        "has 2 features ('WIDTH', 'LENGTH'), but the model was fitted with 4: choose them with --columns, or leave "
    )
    assert f"{sentence}some out with --label or --drop." in result.stderr


def test_missing_columns_are_named(run, write, flowers, model, tmp_path):
    path = write(tmp_path / "less.csv", flowers.drop(columns=["width", "height"]))
    result = run("transform", model, path, "-o", tmp_path / "map.csv", code=1)
    assert f"'{path}' has no columns 'width', 'height': " in result.stderr
    assert not (tmp_path / "map.csv").exists()


def test_a_model_of_unnamed_columns(run, folder, tmp_path, quick):
    run("fit", folder / "flowers.npy", "-o", tmp_path / "model", *quick)
    run("transform", tmp_path / "model", folder / "flowers.csv", "-o", tmp_path / "map.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), tsee.load(tmp_path / "model").embedding_)


def test_json(run, folder, model, tmp_path):
    told = json.loads(run("transform", model, folder / "flowers.npy", "-o", tmp_path / "a.csv", "--json").stdout)
    assert (told["map"], told["rows"]) == (str(tmp_path / "a.csv"), 90)


def test_placement_of_a_method_without_exemplars(run, folder, tmp_path, quick):
    given = [option for option in quick if option not in ("--refinement", "5")]
    run("fit", folder / "flowers.csv", "-o", tmp_path / "model", "--method", "pt-sne", *given)
    given = ["transform", tmp_path / "model", folder / "flowers.csv", "-o", tmp_path / "map.npy", "--placement"]
    run(*given, "forward")
    assert "PtSNE has no exemplars, which refined placement needs" in run(*given, "refined", code=1).stderr
    assert "leave out --novelty" in run(*given, "forward", "--novelty", code=1).stderr
    assert "is not one of 'refined', 'forward'" in run(*given, "best", code=2).stderr


def test_a_failure_leaves_the_old_map(run, write, flowers, model, tmp_path, monkeypatch):
    out = tmp_path / "map.csv"
    out.write_text("old")
    far = flowers.copy()
    far.loc[70, "width"] = np.float32(3e38)
    far.loc[70, "height"] = np.float32(-3e38)
    path = write(tmp_path / "far.parquet", far)
    result = run("transform", model, path, "-o", out, code=1)
    assert f"'{path}', row 70 is too far from the data of fit to be placed: check its values." in result.stderr
    path = write(tmp_path / "nan.parquet", flowers.assign(width=flowers["width"].where(flowers.index != 80)))
    assert "row 80, column 'width'" in run("transform", model, path, "-o", out, code=1).stderr

    def fails(error):
        def write(self, kept, positions):
            raise error

        return write

    path = write(tmp_path / "good.csv", flowers)
    monkeypatch.setattr("tsee.files.writing._TextSink.write", fails(OSError(28, "No space left on device")))
    result = run("transform", model, path, "-o", out, code=1)
    assert f"cannot be written to '{out}' (No space left on device), and an existing file is unchanged" in result.stderr
    monkeypatch.setattr("tsee.files.writing._TextSink.write", fails(KeyboardInterrupt()))
    assert run("transform", model, path, "-o", out, "--quiet", code=130).stderr == "Interrupted.\n"
    assert out.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["far.parquet", "good.csv", "map.csv", "nan.parquet"]


def test_bad_targets_are_refused_before_the_work(run, folder, model, tmp_path, monkeypatch):
    monkeypatch.setattr(tsee.FittedMap, "place", lambda self, X: pytest.fail("placing began"))
    (tmp_path / "file").write_text("mine")
    data = folder / "flowers.csv"
    for path, sentence in (
        (tmp_path / "map.xlsx", "choose one of the file extensions"),
        (tmp_path / "file" / "map.csv", "cannot be written to"),
        (tmp_path / "map.h5ad", "would be a copy of an .h5ad input"),
        (data, "is the data itself"),
    ):
        assert sentence in run("transform", model, data, "-o", path, code=1).stderr


def test_an_h5ad_file_can_hold_its_own_map(run, write, flowers, model, positions, tmp_path):
    path = write(tmp_path / "a.h5ad", flowers)
    run("transform", model, path, "-o", path)
    np.testing.assert_array_equal(read(path)[0], positions)
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["X"], flowers.drop(columns=["id", "kind"]))


@pytest.mark.parametrize("extension", [".csv", ".parquet"])
def test_novelty_is_a_column(run, folder, model, tmp_path, extension):
    path = tmp_path / f"map{extension}"
    run("transform", model, folder / "flowers.csv", "--label", "kind", "--novelty", "-o", path)
    found = pd.read_csv(path) if extension == ".csv" else pd.read_parquet(path)
    assert found.columns[-3:].tolist() == ["tsee0", "tsee1", "novelty"]
    assert found["novelty"].between(0, 1).all()
    result = run(
        "transform", model, folder / "flowers.csv", "--label", "kind", "--novelty", "-o", tmp_path / "a.npy", code=1
    )
    assert "--novelty adds a column, which" in result.stderr
