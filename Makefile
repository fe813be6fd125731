# `make demo` and `make test` need only Python, git and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: demo test test-slow test-min test-wheel test-clustpy lint dist release docs notebooks reproduction \
  chromium bench bench-clustpy clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Each stamp stands for the packages of one extra in .venv.
$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python $(PIP) -e ".[plot]"
	touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python $(PIP) -e ".[dev]"
	touch $@ $(VENV)/.demo

$(VENV)/.slow: $(VENV)/.dev
	$(BIN)/python $(PIP) -e ".[slow]"
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python $(PIP) -e ".[docs]"
	touch $@

demo: $(VENV)/.demo
	$(BIN)/python examples/demo.py

# One process per core with one thread each, see tests/conftest.py.
test: lint chromium
	$(BIN)/python -m pytest -m "not slow" -n auto

# Long trainings, notebooks, Ray, and the tests of extras that are not installed for `make test`.
test-slow: $(VENV)/.slow
	$(BIN)/python -m pytest -m "slow or extras"

lint: $(VENV)/.dev
	$(BIN)/ruff check src reproduction tests examples benchmarks tools docs
	$(BIN)/mypy
	$(BIN)/lint-imports

# The oldest dependencies that pyproject.toml allows, without extras.
MIN := .venv-min
CORE_TESTS := tests/test_draws.py tests/test_geometry.py tests/test_metrics.py tests/test_properties.py \
  tests/test_version_0_1.py $(addprefix tests/,conformance estimators interventions objectives \
  representations training utils)
test-min:
	test -x $(MIN)/bin/python || $(PYTHON) -m venv $(MIN)
	$(MIN)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-min.txt "pytest>=8" "hypothesis>=6"
	$(MIN)/bin/python -m pytest -m "not slow" $(CORE_TESTS)

# Wheel and source archive in dist/.
dist: $(VENV)/.dev
	$(BIN)/python $(PIP) build twine
	rm -rf dist build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

# The version and the changelog of a release, as in `make release VERSION=0.2.0`; its tag is published by the workflow.
release:
	$(PYTHON) tools/release.py $(VERSION)

# The wheel in a fresh environment; pythonpath without src, so that the tests import the wheel.
WHEEL := .venv-wheel
WHEEL_TESTS := tests/test_installed.py tests/test_draws.py tests/test_metrics.py \
  tests/cli/test_installation.py tests/objectives tests/interventions tests/utils
test-wheel: dist
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python $(PIP) dist/*.whl "pytest>=8" "hypothesis>=6"
	$(WHEEL)/bin/python -m pytest -m "not slow" -o pythonpath=tests $(WHEEL_TESTS)
	$(WHEEL)/bin/reclust doctor

# ClustPy needs other dependencies, so it has its own environment.
CLUSTPY := .venv-clustpy
$(CLUSTPY)/.installed:
	test -x $(CLUSTPY)/bin/python || $(PYTHON) -m venv $(CLUSTPY)
	$(CLUSTPY)/bin/python $(PIP) clustpy==0.0.3 "pytest>=8" -e .
	touch $@

test-clustpy: $(CLUSTPY)/.installed
	$(CLUSTPY)/bin/python -m pytest tests/interventions/adapters/test_clustpy.py

bench-clustpy: $(CLUSTPY)/.installed
	$(CLUSTPY)/bin/python benchmarks/clustpy_epoch.py

# HTML reports are tested in Chromium, installed from Debian if possible; otherwise these tests skip.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -y -qq --no-install-recommends chromium || \
	      { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }; }; } >/dev/null 2>&1 || \
	  echo "Chromium is missing: tests of HTML reports in a browser are skipped."

# The site, in site/index.html.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

# Notebooks from the example scripts.
notebooks: $(VENV)/.demo
	$(BIN)/python tools/notebooks.py

# Tables, claims and figures beside those of the paper, from the records in results/.
reproduction: $(VENV)/.dev
	$(BIN)/python -m reproduction results -o docs --fill docs/how/compare.md docs/how/selection.md

bench: $(VENV)/.dev
	for script in $(filter-out %clustpy_epoch.py %page.py,$(wildcard benchmarks/[a-z]*.py)); do $(BIN)/python $$script || exit 1; done
	$(BIN)/python benchmarks/page.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info
