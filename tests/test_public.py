"""The public surface, frozen: a change here is a change for users."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import tsee


def test_public_names():
    assert sorted(tsee.__all__) == [
        "DataWarning",
        "DtSEE",
        "ExportWarning",
        "HotSEE",
        "HotSNE",
        "ModelError",
        "PtSNE",
        "TrainingWarning",
        "anndata",
        "datasets",
        "load",
        "metrics",
        "onnx",
        "plots",
        "transform_batches",
    ]
    assert all(hasattr(tsee, name) for name in tsee.__all__)


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


def test_importing_tsee_does_not_import_what_it_may_not_need():
    names = (
        "matplotlib",
        "colorcet",
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


SHARED = """n_components perplexity n_inputs spare_dimensions normalization batch_size max_epochs learning_rate
    optimizer device random_state checkpoint verbose"""
DEEP = "hidden_layers activation network"
HIGH_ORDER = "n_factors n_hidden order"
EXEMPLAR = """exemplars n_exemplars seeding kmeans_iterations contrast exaggeration jitter refinement placement
    n_neighbors n_noise noise_weight"""
PARAMETERS = {
    "PtSNE": f"{SHARED} {DEEP}",
    "HotSNE": f"{SHARED} {HIGH_ORDER}",
    "DtSEE": f"{SHARED} {DEEP} {EXEMPLAR}",
    "HotSEE": f"{SHARED} {HIGH_ORDER} {EXEMPLAR}",
}


def test_parameters():
    for name, parameters in PARAMETERS.items():
        assert sorted(getattr(tsee, name)().get_params()) == sorted(parameters.split())


def test_modules_import_only_from_those_above_them():
    """As CONTRIBUTING.md has it; what a function imports when it is called may come from anywhere."""
    root = Path(__file__).parents[1]
    package = root / "src" / "tsee"
    order = re.findall(r"^    (\w+)(?:\.py|/) ", (root / "CONTRIBUTING.md").read_text(), re.MULTILINE)
    assert {path.stem for path in package.glob("*") if (path / "__init__.py").exists() or path.suffix == ".py"} == {
        *order,
        "__init__",
        "__main__",
    }
    for path in package.rglob("*.py"):
        name = path.relative_to(package).parts[0].removesuffix(".py")
        for statement in ast.parse(path.read_text()).body if name in order else []:
            if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("tsee."):
                other = (statement.module or "").split(".")[1]
                assert order.index(other) <= order.index(name), f"{path} imports {statement.module}"
