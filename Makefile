# Everything is installed into .venv. `make` alone lists the targets.
PYTHON ?= python3
PYTEST_ARGS ?=
EXPERIMENTS ?= all
# Another package index for torch, for instance the CPU builds, which save gigabytes of CUDA packages on Linux:
#   make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=

VENV := .venv
PEERS := .venv-peers
OLDEST := .venv-oldest
# What depends on the versions: estimators, numbers, files, saved models, the command, figures and pages.
OLDEST_TESTS ?= tests/test_estimators tests/test_data.py tests/test_numbers.py tests/test_files tests/test_persistence \
  tests/test_metrics tests/test_plots tests/test_preprocessing tests/test_cli tests/test_public.py
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
INSTALL := $(PIP) install --quiet --constraint constraints.txt

export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:  # two pips must not install into one .venv at the same time
.PHONY: help demo test test-oldest lint format docs package reproduce bench bench-quick clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  Options: PYTHON=python3.12, PYTEST_ARGS='-m \"not slow\"', EXPERIMENTS='knn maps', TORCH_INDEX=<url>"

demo: $(VENV)/.demo  ## install tsee, then learn a map of the bundled digits
	$(BIN)/tsee demo

# The HTML page is tested in Debian's Chromium. If it cannot be installed, these tests are skipped.
CHROMIUM = command -v chromium || { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq -y install chromium; }

test: lint  ## run ruff, mypy and all tests
	@{ $(CHROMIUM); } >/dev/null 2>&1 || true
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --timeout=900 --numprocesses=auto --maxprocesses=8 $(PYTEST_ARGS)

# Lower bounds only of what tsee imports; pandas and anndata, which the tests use, in the first versions for that numpy.
test-oldest:  ## run the tests with the lowest versions that pyproject.toml allows
	$(PYTHON) -m venv --clear $(OLDEST)
	$(PYTHON) packaging/oldest.py > $(OLDEST)/requirements.txt
	$(OLDEST)/bin/python -m pip install --quiet $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) \
	  --requirement $(OLDEST)/requirements.txt "setuptools>=77" wheel pytest pytest-timeout pytest-xdist pandas polars anndata ipykernel nbclient
	$(OLDEST)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	OMP_NUM_THREADS=1 $(OLDEST)/bin/python -m pytest --timeout=900 --numprocesses=auto --maxprocesses=8 \
	  -m "not slow" $(OLDEST_TESTS) $(PYTEST_ARGS)

lint: $(VENV)/.test  ## run ruff and mypy only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test  ## format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# -W: a warning is an error. The tutorials are run, but only if they or the code of their cells have changed.
docs: $(VENV)/.test  ## build the documentation into the folder site; open site/index.html
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going -q -b html -d build/docs docs site

package: $(VENV)/.test  ## build the wheel and the sdist into the folder dist
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist

reproduce: $(VENV)/.test  ## run the paper's experiments (hours) and write docs/reproduction.md
	$(BIN)/python -m reproduction $(EXPERIMENTS) report

bench: $(VENV)/.test $(PEERS)/.made  ## compare tsee with other methods (hours) and write docs/benchmarks.md
	$(BIN)/python benchmarks/peers/run.py all --peers $(PEERS)/bin/python
	$(BIN)/python benchmarks/peers/run.py report

bench-quick: $(VENV)/.test  ## check in two minutes that nothing became slower
	$(BIN)/python benchmarks/quick.py

clean:  ## remove .venv, caches and build products
	rm -rf $(VENV) $(PEERS) $(OLDEST) build dist site docs/reference src/*.egg-info .pytest_cache .ruff_cache .mypy_cache
	find src tests benchmarks reproduction docs -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# Stamp files, each of which depends on the one before it: the environment; torch, alone and first, so that
# no other package can pull in a build of it that is not pinned; tsee with what each target needs.
$(VENV)/.made:
	@command -v $(PYTHON) >/dev/null || \
	  { echo "No '$(PYTHON)' here. Name a Python 3.11 or newer: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "tsee needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)." \
	         "Name another: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/.torch: $(VENV)/.made constraints.txt
	$(INSTALL) --upgrade pip setuptools
	$(INSTALL) $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch
	@touch $@

$(VENV)/.demo: $(VENV)/.torch pyproject.toml
	$(INSTALL) --no-build-isolation --editable '.[plot]'
	@touch $@

$(VENV)/.test: $(VENV)/.torch pyproject.toml
	$(INSTALL) --no-build-isolation --editable '.[test]'
	@touch $@

# The other methods need their own versions of packages; torch is the same.
$(PEERS)/.made: constraints.txt benchmarks/peers/requirements.txt
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) \
	  "$$(grep '^torch==' constraints.txt)"
	$(PEERS)/bin/python -m pip install --quiet --requirement benchmarks/peers/requirements.txt
	@touch $@
