"""The public surface, frozen: a change here is a change for users."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tsee
from tsee.estimators.attributes import ATTRIBUTES, EXEMPLAR_ATTRIBUTES

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "tsee"


def test_public_names():
    assert sorted(tsee.__all__) == [
        "CheckpointError",
        "DataFileError",
        "DataWarning",
        "DtSEE",
        "ExportWarning",
        "FittedMap",
        "HotSEE",
        "HotSNE",
        "ModelError",
        "PtSNE",
        "TrainingWarning",
        "anndata",
        "datasets",
        "exceptions",
        "explorer",
        "files",
        "load",
        "metrics",
        "onnx",
        "plots",
        "serving",
        "transform_batches",
    ]
    assert all(hasattr(tsee, name) for name in tsee.__all__)


def test_public_names_of_serving():
    assert sorted(tsee.serving.__all__) == [
        "Evaluation",
        "FolderResult",
        "PlacedBlock",
        "ReadOptions",
        "evaluate_map",
        "load_model",
        "open_matching",
        "place_blocks",
        "place_folder",
        "place_table",
        "transform_batches",
    ]
    assert all(hasattr(tsee.serving, name) for name in tsee.serving.__all__)


def test_public_names_of_exceptions():
    assert sorted(tsee.exceptions.__all__) == [
        "CheckpointError",
        "DataFileError",
        "DataWarning",
        "ExportWarning",
        "ModelError",
        "NotAMatrixError",
        "PeerError",
        "RowError",
        "TrainingWarning",
        "UndefinedMeasureError",
        "UnnamedColumnsError",
    ]
    assert all(issubclass(getattr(tsee.exceptions, name), Exception) for name in tsee.exceptions.__all__)


def test_public_names_of_plots():
    assert sorted(tsee.plots.__all__) == [
        "COLORS",
        "MOST_CLASSES",
        "UNLABELED",
        "compare",
        "knn_curve",
        "quality_curve",
        "scatter",
        "training_curve",
    ]
    assert all(hasattr(tsee.plots, name) for name in tsee.plots.__all__)


def test_public_names_of_metrics():
    assert sorted(tsee.metrics.__all__) == [
        "CentroidScores",
        "centroid_scores",
        "continuity",
        "density_correlation",
        "distance_correlation",
        "knn_error",
        "map_disparity",
        "quality_score",
        "triplet_accuracy",
        "trustworthiness",
    ]
    assert all(hasattr(tsee.metrics, name) for name in tsee.metrics.__all__)


def test_importing_tsee_does_not_import_what_it_may_not_need():
    names = (
        "matplotlib",
        "PIL",
        "pyarrow",
        "h5py",
        "zarr",
        "anndata",
        "onnx",
        "onnxscript",
        "polars",
        "dask",
    )
    # scikit-learn imports pandas where it is, and pandas pyarrow; without pandas, what is imported is tsee's doing.
    code = f"import sys; sys.modules['pandas'] = None; import tsee; print([m for m in {names} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


SHARED = """n_components perplexity metric n_inputs standardize columns missing spare_dimensions normalization
    batch_size max_epochs learning_rate optimizer device random_state checkpoint verbose"""
DEEP = "hidden_layers activation network"
HIGH_ORDER = "n_factors n_hidden order"
EXEMPLAR = """exemplars n_exemplars max_memory seeding kmeans_iterations contrast exaggeration jitter refinement
    global_weight supervised start placement n_neighbors n_noise noise_weight"""
PARAMETERS = {
    "PtSNE": f"{SHARED} {DEEP}",
    "HotSNE": f"{SHARED} {HIGH_ORDER}",
    "DtSEE": f"{SHARED} {DEEP} {EXEMPLAR}",
    "HotSEE": f"{SHARED} {HIGH_ORDER} {EXEMPLAR}",
}


def test_parameters():
    for name, parameters in PARAMETERS.items():
        assert sorted(getattr(tsee, name)().get_params()) == sorted(parameters.split())


def test_names_are_there_before_any_submodule_is_imported():
    names = (
        "tsee.files.open_table",
        "tsee.explorer.write_map_page",
        "tsee.serving.place_folder",
        "tsee.exceptions.PeerError",
    )
    code = f"import tsee; print({', '.join(f'{name}.__name__' for name in names)}); print(dir(tsee))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    first, listed = done.stdout.splitlines()
    assert first == "open_table write_map_page place_folder PeerError"
    assert sorted(ast.literal_eval(listed)) == sorted([*tsee.__all__, "__version__"])


def order_of_rooms():
    return re.findall(r"^    (\w+)(?:\.py|/) ", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)


def test_contributing_lists_every_room():
    found = {path.stem for path in PACKAGE.glob("*") if (path / "__init__.py").exists() or path.suffix == ".py"}
    assert found == {*order_of_rooms(), "__init__", "__main__"}


def test_the_picture_of_the_modules_has_every_room_in_this_order():
    drawn = (ROOT / "docs" / "architecture" / "modules.svg").read_text()
    assert re.findall(r'font-size="13\.5"[^>]*>(\w+)/?<', drawn) == order_of_rooms()


def imported_rooms(path):
    """The rooms of tsee that a file imports, at the top or inside functions; types alone do not count."""
    tree = ast.parse(path.read_text())
    for_types = {
        statement
        for branch in ast.walk(tree)
        if isinstance(branch, ast.If) and ast.unparse(branch.test) == "TYPE_CHECKING"
        for statement in ast.walk(branch)
    }
    for statement in ast.walk(tree):
        if statement in for_types:
            continue
        if isinstance(statement, ast.ImportFrom) and statement.module == "tsee":
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("tsee."):
            yield statement.module.split(".")[1]
        elif isinstance(statement, ast.Import):
            yield from (alias.name.split(".")[1] for alias in statement.names if alias.name.startswith("tsee."))


def test_rooms_import_only_from_those_above_them():
    """In the order of CONTRIBUTING.md, also inside functions: so there is no cycle."""
    order = order_of_rooms()
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if name not in order:
            continue
        for other in imported_rooms(path):
            assert other in order, f"{path} imports tsee.{other}, which is no room"
            assert order.index(other) <= order.index(name), f"{path} imports tsee.{other}, which comes below"


def test_no_file_is_too_long_to_know_ones_way_in():
    files = [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    assert not [str(path) for path in files if len(path.read_text().splitlines()) > 400]


def sections(cls):
    """The entries of the sections of a docstring: {section: {heading: text}}."""
    found, section, heading = {}, None, None
    lines = inspect.cleandoc(cls.__doc__).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if set(following) == {"-"}:
            section = found.setdefault(line, {})
        elif section is not None and line and not line.startswith(" ") and set(line) != {"-"}:
            heading = line
            section[heading] = ""
        elif section is not None and heading in section and line.startswith("    "):
            section[heading] = f"{section[heading]} {line.strip()}".strip()
    return found


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_docstrings_say_what_the_table_of_parameters_says(name):
    """The docstrings are written out in the source; the table is what values are checked by."""
    cls = getattr(tsee, name)
    found = sections(cls)
    signature = inspect.signature(cls).parameters
    expected = {}
    for parameter, given in signature.items():
        default = f'"{given.default}"' if isinstance(given.default, str) else repr(given.default)
        entry = cls._described[parameter]
        expected[f"{parameter} : {entry.kind}, default={default}"] = entry.text
    assert found["Parameters"] == expected
    attributes = ATTRIBUTES | (EXEMPLAR_ATTRIBUTES if "exemplars" in signature else {})
    assert found["Attributes"] == attributes


@pytest.mark.parametrize("name", list(PARAMETERS))
def test_parameters_of_few_words_are_typed_by_them(name):
    """A parameter that takes certain words has the type Literal of these words, as editors show it."""
    cls = getattr(tsee, name)
    for parameter, given in inspect.signature(cls).parameters.items():
        words = re.findall(r'"([^"]+)"', cls._described[parameter].must_be)
        if words and parameter != "device":
            typed = re.search(r"Literal\[([^\]]*)\]", given.annotation)
            assert typed is not None, parameter
            assert re.findall(r"'([^']+)'", typed[1]) == words, parameter
