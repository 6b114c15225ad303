"""``tsee fit``: what options turn into, what is saved, and the errors for bad values."""

import fcntl
import inspect
import json
import os
import pty
import re
import select
import signal
import struct
import termios
import time

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import kneighbors_graph

import tsee
import tsee.estimators
from tsee.cli.parameters import make_estimator
from tsee.estimators.parameters import PARAMETERS
from tsee.words import METHODS


@pytest.mark.parametrize("extension", [".csv", ".parquet", ".npy", ".h5ad"])
def test_a_model_of_any_file(run, folder, tmp_path, flowers, quick, extension):
    label = [] if extension == ".npy" else ["--label", "kind"]
    output = run("fit", folder / f"flowers{extension}", *label, "-o", tmp_path / "model", *quick).stdout
    assert re.fullmatch(rf"Learned a map of 90 rows by 4 features in [\d.]+ s: {tmp_path / 'model'}\n", output)
    model = tsee.load(tmp_path / "model")
    # The same as in Python, to the bit.
    X = flowers.drop(columns=["id", "kind"])
    same = tsee.DtSEE(max_epochs=1, refinement=5, hidden_layers=(8,), random_state=0).fit(X)
    np.testing.assert_array_equal(model.embedding_, same.embedding_)
    assert model.get_params() == same.get_params()
    names = None if extension == ".npy" else list(X.columns)
    assert names == (None if names is None else list(model.feature_names_in_))


def test_columns_are_chosen_and_reported(run, folder, tmp_path, quick):
    given = ["fit", folder / "flowers.csv", "-o", tmp_path / "model", *quick]
    result = run(*given, "--columns", "height, width", "--drop", "kind")
    assert list(tsee.load(tmp_path / "model").feature_names_in_) == ["height", "width"]
    note = "Left out, not among the features: 'length', 'weight'. Kept aside, an identifier: 'id'."
    assert result.stderr == f"Note on '{folder / 'flowers.csv'}': {note}\n"
    assert run(*given, "--columns", "height,width", "--quiet").output == ""


def test_the_map_too(run, folder, tmp_path, quick, flowers):
    result = run(
        "fit", folder / "flowers.csv", "--label", "kind", "-o", tmp_path / "m", "--map", tmp_path / "a.csv", *quick
    )
    assert f"The map: {tmp_path / 'a.csv'}\n" in result.stdout
    written = pd.read_csv(tmp_path / "a.csv")
    assert list(written.columns) == ["id", "kind", "tsee0", "tsee1"]
    assert (written[["id", "kind"]] == flowers[["id", "kind"]]).all(axis=None)
    positions = written[["tsee0", "tsee1"]].to_numpy(np.float32)
    np.testing.assert_array_equal(positions, tsee.load(tmp_path / "m").embedding_)


def test_sparse_rows(run, tmp_path, quick):
    scipy.sparse.save_npz(tmp_path / "a.npz", scipy.sparse.random(60, 20, 0.3, format="csr", random_state=0))
    run("fit", tmp_path / "a.npz", "-o", tmp_path / "model", *quick)
    run("transform", tmp_path / "model", tmp_path / "a.npz", "-o", tmp_path / "map.npy")
    np.testing.assert_allclose(np.load(tmp_path / "map.npy"), tsee.load(tmp_path / "model").embedding_, atol=1e-3)


def test_json(run, folder, tmp_path, quick):
    result = run("fit", folder / "flowers.parquet", "--label", "kind", "-o", tmp_path / "model", *quick, "--json")
    told = json.loads(result.stdout)
    assert {name: told[name] for name in ("model", "method", "rows", "features", "epochs", "interrupted", "map")} == {
        "model": str(tmp_path / "model"),
        "method": "dt-see",
        "rows": 90,
        "features": 4,
        "epochs": 1,
        "interrupted": False,
        "map": None,
    }
    assert np.isfinite(told["loss"])


# Parameters

VALUES = {
    "n_exemplars": "20",
    "exaggeration": "1.5",
    "global_weight": "0.4",
    "supervised": "0.5",
    "jitter": "none",
    "placement": "forward",
    "noise_weight": "2.5",
    "contrast": "noise",
    "seeding": "random",
    "hidden_layers": "16,8",
    "normalization": "none",
    "batch_size": "none",
    "device": "cpu",
    "learning_rate": "1e-2",
    "optimizer": "cg",
    "exemplars": "centers",
    "activation": "tanh",
    "checkpoint": "state",
    "start": "model",
    "standardize": "true",
    "metric": "cosine",
    "missing": "error",
}


def test_the_methods_match_the_library():
    assert list(METHODS) == list(tsee.estimators.METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_every_parameter_is_an_option(run, method):
    cls = tsee.estimators.METHODS[method]
    defaults = {key: argument.default for key, argument in inspect.signature(cls).parameters.items()}
    given = dict.fromkeys(PARAMETERS)
    own = {key: VALUES.get(key, "7") for key in defaults if key not in ("network", "verbose", "columns")}
    estimator = make_estimator(method, given | own)
    assert type(estimator) is cls
    python = {"none": None, "true": True, "16,8": (16, 8)}
    for key, text in own.items():
        value = getattr(estimator, key)
        if key in ("exaggeration", "global_weight", "supervised", "noise_weight", "learning_rate"):
            assert value == float(text)
        else:
            assert value == python.get(text, int(text) if text.isdigit() else text)
    assert make_estimator(method, given).get_params() == cls().get_params()
    help_text = run("fit", "--help").output
    for key in own:
        assert f"--{key.replace('_', '-')} " in help_text


def test_columns_in_different_units(run, write, flowers, tmp_path, quick):
    frame = flowers.assign(width=1024 * flowers["width"])
    given = ["fit", write(tmp_path / "a.csv", frame), "--label", "kind", "-o", tmp_path / "model", *quick]
    run(*given)
    assert tsee.load(tmp_path / "model").standardize is False
    run(*given, "--standardize")
    model = tsee.load(tmp_path / "model")
    assert model.standardize is True
    same = tsee.DtSEE(max_epochs=1, refinement=5, hidden_layers=(8,), random_state=0, standardize=True)
    np.testing.assert_array_equal(model.embedding_, same.fit(frame.drop(columns=["id", "kind"])).embedding_)


def test_help_is_readable(run):
    output = run("fit", "--help").output
    assert (
        output.index("\nOptions:") < output.index("Parameters of every method:") < output.index("hot-see and hot-sne:")
    )
    assert "[default:0.01;hot-seeandhot-sne:0.03]" in "".join(output.split())
    assert "--exemplars points|centers" in output
    assert "--standardize Divide each feature by its standard deviation first." in " ".join(output.split())
    assert not any(word in output for word in ("--network", "--verbose", "None", "``"))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (
            ["--n-exemplars", "many"],
            "'--n-exemplars': It must be an integer of at least 2 or none. Got 'many' instead.",
        ),
        (["--perplexity", "nan"], "'--perplexity': It must be a number of at least 1. Got 'nan' instead."),
        (["--contrast", "sample"], """'--contrast': It must be "sampled", "full" or "noise". Got 'sample' instead."""),
        (["--hidden-layers", "8,x"], "'--hidden-layers': It must be integers of at least 1 separated by commas"),
        (["--random-state", "-1"], "'--random-state': It must be an integer of at least 0 or none. Got '-1' instead."),
        (["--n-factors", "8"], "--n-factors is a parameter of hot-see and hot-sne, not of dt-see"),
        (
            ["--exemplars", "points", "--method", "pt-sne"],
            "--exemplars is a parameter of dt-see and hot-see, not of pt-sne",
        ),
        (["--method", "t-sne"], "'t-sne' is not one of 'dt-see', 'hot-see', 'pt-sne', 'hot-sne'"),
    ],
)
def test_bad_parameters_are_wrong_usage(run, folder, tmp_path, given, sentence):
    result = run("fit", folder / "flowers.csv", "-o", tmp_path / "model", *given, code=2)
    assert sentence in " ".join(result.stderr.split())
    assert not list(tmp_path.iterdir())


def test_an_unusable_device(run, folder, tmp_path):
    result = run("fit", folder / "flowers.csv", "-o", tmp_path / "model", "--device", "warp", code=1)
    assert "--device is 'warp', which torch cannot use here" in result.stderr


# Bad files and paths

TABLE = "a,b\n" + "1,2\n" * 30
BAD = {
    "ragged.csv": (TABLE + "1,2,3\n", "row 30 (line 32) has 3 fields where the header has 2"),
    "text.csv": (TABLE + "1,two\n", "row 30 (line 32), column 'b': 'two' is not a number"),
    "empty.csv": ("a,b\n", "has no rows of data"),
    "sheet.xlsx": ("PK", "is an Excel workbook: save the sheet as CSV"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_text(run, tmp_path, quick, name):
    content, sentence = BAD[name]
    (tmp_path / name).write_text(content)
    result = run("fit", tmp_path / name, "-o", tmp_path / "model", *quick, code=1)
    assert sentence in result.stderr
    assert name in result.stderr
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("name", ["flowers.parquet", "flowers.npy", "flowers.h5ad"])
def test_truncated_files(run, folder, tmp_path, quick, name):
    (tmp_path / name).write_bytes((folder / name).read_bytes()[:-100])
    result = run("fit", tmp_path / name, "-o", tmp_path / "model", *quick, code=1)
    assert f"{tmp_path / name}' is damaged, cut off, or not" in result.stderr
    assert "no file" in run("fit", tmp_path / "none.npy", "-o", tmp_path / "model", *quick, code=1).stderr


def test_nan_in_an_array(run, tmp_path, quick):
    array = np.ones((50, 3), np.float32)
    array[40, 2] = np.nan
    np.save(tmp_path / "a.npy", array)
    result = run("fit", tmp_path / "a.npy", "-o", tmp_path / "model", *quick, code=1)
    assert "a.npy' holds NaN in row 40, column 2: fill it in" in result.stderr


def test_an_unknown_label(run, folder, tmp_path):
    result = run("fit", folder / "flowers.csv", "--label", "kinds", "-o", tmp_path / "model", code=1)
    assert "has no column 'kinds': did you mean 'kind'?" in result.stderr


def test_bad_targets_are_refused_before_the_training(run, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(tsee.DtSEE, "fit", lambda self, X, y=None: pytest.fail("training began"))
    (tmp_path / "file").write_text("mine")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "thesis.txt").write_text("mine")
    data = folder / "flowers.csv"
    for path, sentence in (
        (tmp_path / "file", "exists and is not a tsee model"),
        (tmp_path / "work", "exists and is not a tsee model"),
        (tmp_path / "file" / "model", "cannot be written to"),
    ):
        assert sentence in run("fit", data, "-o", path, code=1).stderr
    for path, sentence in (
        (tmp_path / "map.txt", "choose one of the file extensions"),
        (tmp_path / "work", "choose one of the file extensions"),
        (tmp_path / "file" / "map.csv", "cannot be written to"),
        (tmp_path / "map.h5ad", "would be a copy of an .h5ad input"),
        (data, "is the data itself, which the map would replace"),
    ):
        assert sentence in run("fit", data, "-o", tmp_path / "model", "--map", path, code=1).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "work"]


# Ctrl-C


def test_interrupted_training_is_saved(process, folder, tmp_path):
    """Ctrl-C while training, on a terminal, which shows a progress bar."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    given = ["fit", folder / "flowers.csv", "--label", "kind", "-o", tmp_path / "model", "--max-epochs", 100000]
    # A background job of a shell ignores Ctrl-C, and so do its children: the tests may be one.
    code = """
        import signal
        from tsee.cli import main

        signal.signal(signal.SIGINT, signal.default_int_handler)
        main()
    """
    started = process(code, *given, "--refinement", 0, stdout=slave, stderr=slave)
    os.close(slave)
    seen, sent, deadline = b"", False, time.monotonic() + 120
    while True:
        assert time.monotonic() < deadline, seen
        if not select.select([master], [], [], 1)[0]:
            continue
        try:
            seen += os.read(master, 4096)
        except OSError:  # the other end is closed
            break
        if not sent and re.search(rb"training.*epoch=[1-9]", seen):
            started.send_signal(signal.SIGINT)
            sent = True
    os.close(master)
    assert started.wait() == 130
    text = seen.decode()
    assert re.search(r"Warning: Training was interrupted after \d+ of 100000 epochs", text)
    assert re.search(r"Interrupted after \d+ epochs. What was learned is saved: ", text)
    assert "Traceback" not in text
    model = tsee.load(tmp_path / "model")
    assert 1 <= model.n_iter_ < 100000
    assert model.embedding_.shape == (90, 2)


def test_interrupted_before_there_is_something_to_keep(run, folder, tmp_path, monkeypatch):
    def interrupted(self, X, y=None):
        raise KeyboardInterrupt

    monkeypatch.setattr(tsee.DtSEE, "fit", interrupted)
    result = run("fit", folder / "flowers.csv", "-o", tmp_path / "model", "--quiet", code=130)
    assert result.stderr == "Interrupted.\n"
    assert not (tmp_path / "model").exists()


def test_settings_for_speed(run, folder, tmp_path):
    given = ["fit", folder / "flowers.csv", "--label", "kind", "-o", tmp_path / "model", "--max-epochs", "1", "--fast"]
    run(*given, "--refinement", "7")
    model = tsee.load(tmp_path / "model")
    assert (model.hidden_layers, model.refinement) == ((128, 128, 128), 7)
    result = run(*given, "--method", "pt-sne", code=2)
    assert "pt-sne has no settings for speed" in result.stderr


@pytest.mark.parametrize("method", ["dt-see", "hot-see", "pt-sne", "hot-sne"])
def test_settings_of_the_paper(run, folder, tmp_path, method):
    given = ["fit", folder / "flowers.csv", "--label", "kind", "-o", tmp_path / "model", "--max-epochs", "1", "--paper"]
    run(*given, "--method", method, "--batch-size", "50")
    model = tsee.load(tmp_path / "model")
    assert (model.optimizer, model.n_inputs, model.normalization, model.batch_size) == ("cg", None, None, 50)
    result = run(*given, "--fast", code=2)
    assert "--fast and --paper" in result.stderr


def test_a_full_disk_at_the_end_loses_nothing(run, folder, tmp_path, quick, monkeypatch):
    """The state of the fit stays until the model is safe."""
    monkeypatch.setattr("tsee.training.checkpoint.INTERVAL", 0.0)
    state = tmp_path / "state" / "checkpoint.safetensors"
    given = ["fit", folder / "flowers.npy", "-o", tmp_path / "model", "--checkpoint", tmp_path / "state", *quick]

    def full_disk(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.rename", full_disk)
        assert "No space left on device" in run(*given, code=1).stderr
    assert state.exists()
    assert "--resume" in run(*given, code=2).stderr
    run(*given, "--resume")
    assert not state.exists()
    assert tsee.load(tmp_path / "model").n_iter_ == 1


def test_given_neighbors(run, folder, tmp_path, flowers, quick):
    X = flowers.drop(columns=["id", "kind"])
    graph = kneighbors_graph(X.to_numpy(), 20, mode="distance", metric="cosine")
    scipy.sparse.save_npz(tmp_path / "graph.npz", graph)
    given = ["fit", folder / "flowers.csv", "--label", "kind", "-o", tmp_path / "model", *quick]
    run(*given, "--neighbors", tmp_path / "graph.npz")
    same = tsee.DtSEE(max_epochs=1, refinement=5, hidden_layers=(8,), random_state=0).fit(X, neighbors=graph)
    np.testing.assert_array_equal(tsee.load(tmp_path / "model").embedding_, same.embedding_)
    np.save(tmp_path / "dense.npy", graph.toarray())
    scipy.sparse.save_npz(tmp_path / "fewer.npz", graph[:80])
    for name in ("dense.npy", "fewer.npz"):
        said = run(*given, "--neighbors", tmp_path / name, code=2).stderr
        assert "--neighbors must be a sparse matrix with a line for each of the 90 rows of DATA" in said
    scipy.sparse.save_npz(tmp_path / "negative.npz", -graph)
    assert "has a negative distance in row 0" in run(*given, "--neighbors", tmp_path / "negative.npz", code=1).stderr
    other = ["fit", folder / "flowers.csv", "-o", tmp_path / "model", "--method", "pt-sne"]
    said = run(*other, "--neighbors", tmp_path / "graph.npz", code=2).stderr
    assert "--neighbors is for dt-see and hot-see, not for pt-sne" in said


def test_distances_instead_of_rows(run, tmp_path, flowers, quick):
    distances = pairwise_distances(flowers.drop(columns=["id", "kind"]).to_numpy(), metric="canberra")
    np.save(tmp_path / "D.npy", distances)
    run("fit", tmp_path / "D.npy", "-o", tmp_path / "model", "--metric", "precomputed", *quick)
    run("transform", tmp_path / "model", tmp_path / "D.npy", "-o", tmp_path / "map.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), tsee.load(tmp_path / "model").embedding_)
    assert "NoNetwork" not in run("info", tmp_path / "model").stdout
