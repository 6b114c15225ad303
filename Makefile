# Everything is installed into .venv; `make` lists what there is to do.
PYTHON ?= python3
PYTEST_ARGS ?=
EXPERIMENTS ?= all
# Another place to take torch from, for instance the CPU builds, which spare Linux some GB of CUDA:
#   make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu
TORCH_INDEX ?=

VENV := .venv
PEERS := .venv-peers
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
INSTALL := $(PIP) install --quiet --constraint constraints.txt

export MPLBACKEND ?= Agg

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:  # two pips in one .venv get in each other's way
.PHONY: help demo test lint format reproduce bench bench-quick clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "  Options: PYTHON=python3.12, PYTEST_ARGS='-m \"not slow\"', EXPERIMENTS='knn maps', TORCH_INDEX=<url>"

demo: $(VENV)/.demo  ## install tsee, then learn a map of the bundled digits
	$(BIN)/tsee demo

# The map's page is tested in Debian's Chromium; where it cannot be installed, those tests skip.
CHROMIUM = command -v chromium || { [ "$$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq -y install chromium; }

test: lint  ## ruff, mypy and the whole test suite
	@{ $(CHROMIUM); } >/dev/null 2>&1 || true
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --timeout=900 --numprocesses=auto --maxprocesses=8 $(PYTEST_ARGS)

lint: $(VENV)/.test  ## ruff and mypy only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.test  ## put the code into ruff's form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reproduce: $(VENV)/.test  ## the paper's experiments that have no result yet (hours), and docs/reproduction.md
	$(BIN)/python -m reproduction $(EXPERIMENTS) report

bench: $(VENV)/.test $(PEERS)/.made  ## tsee and its peers on the same data (hours), and docs/benchmarks.md
	$(BIN)/python benchmarks/peers/run.py all --peers $(PEERS)/bin/python
	$(BIN)/python benchmarks/peers/run.py report

bench-quick: $(VENV)/.test  ## has a change made anything slower? Two minutes
	$(BIN)/python benchmarks/quick.py

clean:  ## remove .venv, caches and build products
	rm -rf $(VENV) $(PEERS) build dist src/*.egg-info .pytest_cache .ruff_cache .mypy_cache
	find src tests benchmarks reproduction docs -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# Stamps, the later ones resting on the earlier: the environment; torch, alone and first, so that
# nothing else can pull in a build of it that is not pinned; tsee with what each target needs.
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

# The peers want versions of their own; torch is the same.
$(PEERS)/.made: constraints.txt benchmarks/peers/requirements.txt
	$(PYTHON) -m venv --clear $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet $(if $(TORCH_INDEX),--index-url $(TORCH_INDEX)) \
	  "$$(grep '^torch==' constraints.txt)"
	$(PEERS)/bin/python -m pip install --quiet --requirement benchmarks/peers/requirements.txt
	@touch $@
