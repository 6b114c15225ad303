"""What a command imports before it does anything: seconds for which nobody has asked."""

import inspect
import subprocess
import sys
from importlib.metadata import version

import numpy as np
import pytest

import tsee
from tsee import words
from tsee.estimators import METHODS
from tsee.estimators.signatures import defaults_of
from tsee.metric import OF_FEATURES
from tsee.networks import ACTIVATIONS

SLOW = ["torch", "sklearn", "scipy", "pandas", "matplotlib", "pyarrow"]


def imported(code):
    """The slow packages that are imported when the code ends, in a Python of its own."""
    end = (
        f"import atexit, sys; atexit.register(lambda: print([m for m in {SLOW} if m in sys.modules], file=sys.stderr))"
    )
    done = subprocess.run([sys.executable, "-c", f"{end}\n{code}"], capture_output=True, text=True, check=True)
    return done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["fit", "--help"], ["transform", "--help"], ["evaluate", "--help"], ["map", "--help"]],
    ids=" ".join,
)
def test_help_imports_nothing_slow(arguments):
    assert imported(f"from tsee.cli import main; main({arguments}, prog_name='tsee')") == "[]"


def test_info_imports_nothing_slow(model):
    assert imported(f"from tsee.cli import main; main(['info', {str(model)!r}])") == "[]"


def test_the_estimators_import_no_statistics_and_no_pandas():
    names = ("scipy.stats", "pandas", "scipy.fft", "numpy.f2py", "narwhals")
    code = f"import tsee, sys; tsee.DtSEE; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("command", ["fit", "transform"])
def test_short_commands_import_no_statistics(command, model, tmp_path):
    """They take a third of the time that torch takes, and only `evaluate` has a use for them."""
    rows, out = tmp_path / "rows.npy", tmp_path / "out.npy"
    np.save(rows, np.random.default_rng(0).normal(size=(50, 4)))
    given = {"fit": ["--max-epochs", "1", "--perplexity", "5"], "transform": [str(model)]}[command]
    arguments = [command, *given, str(rows), "-o", str(out)]
    code = f"from tsee.cli import main; main({arguments}, standalone_mode=False)"
    names = ("scipy.stats", "scipy.spatial", "numpy.f2py", "pandas", "sklearn.metrics")
    code += f"\nimport sys; print([name for name in {names} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("optimizer", ["adam", "cg"])
def test_a_fit_imports_no_compiler_and_no_measures(optimizer):
    """torch's compiler takes as long as all of torch; scikit-learn's measures are for `evaluate`."""
    code = f"""
import sys
import numpy as np
import tsee, tsee.serving
X = np.random.default_rng(0).normal(size=(50, 4))
tsee.DtSEE(max_epochs=1, optimizer={optimizer!r}, perplexity=5, refinement=2).fit(X).transform(X)
print([name for name in ("torch._dynamo", "sklearn.metrics", "sklearn.neighbors") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_was_left_out_is_imported_when_it_is_used():
    """By scikit-learn itself, which holds the place of the module, and by the user."""
    code = """
import tsee
tsee.DtSEE
import sklearn.utils.fixes as fixes
import pandas, scipy.stats
assert fixes.pd.DataFrame is pandas.DataFrame
import numpy
from scipy._lib.array_api_compat import numpy as held
assert held.f2py.get_include is numpy.f2py.get_include
assert fixes.scipy.stats is scipy.stats
assert fixes._mode([1, 2, 2])[0] == 2
from sklearn.linear_model import LogisticRegression
assert LogisticRegression().fit([[0.0], [1.0]], [0, 1]).predict([[2.0]]) == [1]
see = tsee.DtSEE(max_epochs=1, refinement=2, perplexity=3).set_output(transform="pandas")
frame = pandas.DataFrame({"a": range(20), "b": range(20)})
assert isinstance(see.fit_transform(frame), pandas.DataFrame)
print("done")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "done", done.stderr


def test_a_module_left_out_says_its_version():
    """scikit-learn 1.6 asks pandas for it while it is imported itself."""
    code = """
from tsee.later import later
with later("pandas"):
    import pandas
    print(pandas.__version__)
import sys
print("pandas" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == [version("pandas"), "False"], done.stderr


def test_modules_that_are_there_already_stay_as_they_are():
    code = "import scipy.stats as first, tsee, sys; tsee.DtSEE; print(sys.modules['scipy.stats'] is first)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


@pytest.mark.parametrize("method", list(METHODS))
def test_defaults_read_from_the_source_are_those_of_the_signature(method):
    expected = {name: given.default for name, given in inspect.signature(METHODS[method]).parameters.items()}
    assert defaults_of(method) == expected
    assert list(defaults_of(method)) == list(expected)


def test_words_are_those_of_what_they_stand_for():
    assert {method: cls.__name__ for method, cls in METHODS.items()} == words.METHODS
    assert tuple(ACTIVATIONS) == words.ACTIVATIONS
    assert ("euclidean", *words.UNIT_LENGTH, *OF_FEATURES) == words.METRICS


def test_a_model_whose_files_say_nonsense_is_refused_by_name(run, model, tmp_path):
    """`info` reads little of a model; what does not fit together is left to the check of the whole."""
    import hashlib
    import json
    import shutil

    copy = shutil.copytree(model, tmp_path / "model")
    config = json.loads((copy / "config.json").read_text())
    config["history"] = 7
    said = {name: value for name, value in config.items() if name != "config_checksum"}
    config["config_checksum"] = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
    (copy / "config.json").write_text(json.dumps(config))
    assert "inconsistent" in run("info", copy, code=1).stderr
    with pytest.raises(tsee.ModelError, match="inconsistent"):
        tsee.load(copy)


def test_shapes_are_read_from_the_heading(model):
    from tsee.persistence import read_files, read_model

    shapes = read_files(model).shapes()
    assert shapes == {name: list(tensor.shape) for name, tensor in read_model(model).tensors.items()}
    assert np.prod(shapes["exemplars.inputs"]) > 0
