# Two commands do everything on a machine with Python, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo docs notebooks reproduction test test-min test-wheel test-clustpy dist lock chromium test-slow lint bench bench-clustpy clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python examples/demo.py

# One process a core, with one thread each (tests/conftest.py).
test: lint chromium
	$(BIN)/python -m pytest -m "not slow" -n auto

# Examples run as notebooks and on Ray too.
test-slow: $(VENV)/.installed-slow
	$(BIN)/python -m pytest -m slow

$(VENV)/.installed-slow: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev,notebooks,cluster]"
	touch $@

# The site in site/, which opens from there; nothing is fetched while building.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "site/index.html"

$(VENV)/.installed-docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

# Notebooks are made from the example scripts.
notebooks: $(STAMP)
	$(BIN)/python tools/notebooks.py

# The oldest core dependencies that pyproject.toml allows, and no extras: tests that need one skip or are left out.
MIN := .venv-min
test-min:
	test -x $(MIN)/bin/python || $(PYTHON) -m venv $(MIN)
	$(MIN)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements-min.txt "pytest>=8" "hypothesis>=6"
	$(MIN)/bin/python -m pytest -m "not slow" $(CORE_TESTS)

CORE_TESTS := $(addprefix tests/test_,checkpoint.py draws.py epochs.py estimators.py faults.py geometry.py hostile_files.py interventions.py \
  kmeans.py layers.py metrics.py numbers.py objectives.py optimizer.py own_modules.py practice.py presets.py properties.py \
  reclustering.py safety.py selection.py strange_parts.py training.py values.py)

# Wheel and source archive, in dist/.
dist: $(STAMP)
	rm -rf dist build
	$(BIN)/python -m build --outdir dist .

# The wheel in a fresh environment, and tests run against it: pytest's own path to src/ is taken away.
WHEEL := .venv-wheel
test-wheel: dist
	rm -rf $(WHEEL)
	$(PYTHON) -m venv $(WHEEL)
	$(WHEEL)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/*.whl "pytest>=8" "hypothesis>=6"
	$(WHEEL)/bin/python -m pytest -m "not slow" -o pythonpath=tests $(WHEEL_TESTS)
	$(WHEEL)/bin/reclust doctor

WHEEL_TESTS := $(addprefix tests/test_,draws.py doctor.py installed.py interventions.py kmeans.py metrics.py objectives.py presets.py \
  values.py)

# ClustPy brings dependencies that this project does not want, so it lives in an environment of its own.
CLUSTPY := .venv-clustpy
$(CLUSTPY)/.installed:
	test -x $(CLUSTPY)/bin/python || $(PYTHON) -m venv $(CLUSTPY)
	$(CLUSTPY)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt clustpy==0.0.3 "pytest>=8" -e .
	touch $@

test-clustpy: $(CLUSTPY)/.installed
	$(CLUSTPY)/bin/python -m pytest tests/test_clustpy.py

# What development installs, every archive pinned by its hash.
lock: $(STAMP)
	$(BIN)/python tools/lock.py

# The HTML report is tested in a browser: Debian's is installed where this user may; elsewhere those tests are skipped.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { test "$$(id -u)" = 0 && command -v apt-get >/dev/null && \
	    { apt-get install -y -qq --no-install-recommends chromium || \
	      { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; }; }; } >/dev/null 2>&1 || \
	  echo "No Chromium here and no right to install it: tests of the HTML report in a browser are skipped."

lint: $(STAMP)
	$(BIN)/ruff check src reproduction tests examples benchmarks tools docs
	$(BIN)/mypy
	$(BIN)/lint-imports --quiet

bench: $(STAMP)
	for script in $(filter-out %clustpy_epoch.py %page.py,$(wildcard benchmarks/[a-z]*.py)); do $(BIN)/python $$script || exit 1; done
	$(BIN)/python benchmarks/page.py

bench-clustpy: $(CLUSTPY)/.installed
	$(CLUSTPY)/bin/python benchmarks/clustpy_epoch.py

# Tables, claims and figures beside the paper's, from the records under results/.
reproduction: $(STAMP)
	$(BIN)/python -m reproduction results -o docs --fill docs/how/compare.md docs/how/selection.md

clean:
	rm -rf $(VENV) build dist src/*.egg-info
