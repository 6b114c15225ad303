"""What is published: a wheel and an sdist, built and installed into environments of their own."""

import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

# The demonstration and more, as a user of the installed package would call it, with little training.
TRIED = """
import sys
from pathlib import Path
import tsee, tsee.demo
from tsee.training import plan
assert Path(tsee.__file__).is_relative_to(sys.prefix), tsee.__file__
tsee.demo.SEEDS, plan.MAX_EPOCHS = (0,), 2
tsee.demo.run_demo(Path("demo"), print)
see = tsee.load("demo/model")
data = tsee.datasets.load_digits()
tsee.plots.scatter(see.transform(data.x_test), data.y_test, path="map.pdf")
see.to_html("map.html", columns={"digit": data.y_train})
assert "<html" in Path("map.html").read_text()[:500]
print("tried", tsee.__version__)
"""


def run(*command, **named):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"MPLBACKEND": "Agg"}
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=environment, **named)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist, from a copy of the sources: builds leave folders behind."""
    folder = tmp_path_factory.mktemp("package")
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a checkout")
    for name in listed.stdout.splitlines():
        if name.startswith(("src/", "pyproject", "README", "LICENSE")) and (ROOT / name).is_file():
            target = folder / "sources" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes((ROOT / name).read_bytes())
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", cwd=folder / "sources")
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


@pytest.mark.slow
def test_the_wheel_holds_all_files_of_the_package(built):
    wheel, sdist = built
    held = set(zipfile.ZipFile(wheel).namelist())
    sources = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src" / "tsee").rglob("*.py")}
    assert sources <= held
    assert {"tsee/py.typed", "tsee/explorer/web/page.html", "tsee/explorer/web/explorer.min.js"} <= held
    assert not [name for name in held if "/tests/" in name or name.endswith((".pyc", ".ipynb"))]
    with tarfile.open(sdist) as archive:
        names = {name.split("/", 1)[-1] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "src/tsee/explorer/web/page.html"} <= names


@pytest.mark.slow
@pytest.mark.parametrize("kind", [0, 1], ids=["wheel", "sdist"])
def test_it_works_in_an_environment_of_its_own(built, kind, tmp_path):
    """The dependencies are those of this environment, by a path file; the package is only what was built."""
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    python = tmp_path / "venv" / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    dependencies = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site / "dependencies.pth").write_text("\n".join(dependencies) + "\n")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--ignore-installed"]
    run(python, "-m", "pip", "install", *options, built[kind])
    assert f"tried {PROJECT['version']}" in run(python, "-c", TRIED, cwd=tmp_path)
    command = tmp_path / "venv" / "bin" / "tsee"
    assert run(command, "--version").split()[-1] == PROJECT["version"]
    run(command, "transform", "demo/model", "demo/new.csv", "--label", "digit", "-o", "map.csv", cwd=tmp_path)
    assert (tmp_path / "map.csv").read_text().splitlines()[0] == "digit,tsee0,tsee1"


def test_the_conda_recipe_has_the_dependencies_of_the_package():
    recipe = (ROOT / "packaging" / "conda-forge" / "recipe.yaml").read_text()
    listed = re.search(r"  run:\n((?:    - .*\n)+)", recipe)[1]
    found = {line.strip("- ").replace(" ", "").replace("pytorch", "torch") for line in listed.splitlines()}
    assert found - {"python>=${{python_min}}"} == set(PROJECT["dependencies"])
    assert f'version: "{PROJECT["version"]}"' in recipe


def test_one_version_everywhere():
    assert f"version: {PROJECT['version']}" in (ROOT / "CITATION.cff").read_text()


def test_lower_bounds_are_written_out():
    done = run(sys.executable, ROOT / "packaging" / "oldest.py").split()
    assert "numpy==2.0" in done
    assert all("==" in line for line in done)
    assert {re.split(r"[=\[]", line)[0] for line in done} >= {"torch", "numpy", "scipy", "scikit-learn", "click"}
