# Two commands do everything on a machine with Python, git and make: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test test-slow lint bench bench-clustpy clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $(STAMP)

demo: $(STAMP)
	$(BIN)/python examples/demo.py

test: lint
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m slow

lint: $(STAMP)
	$(BIN)/ruff check src tests examples benchmarks
	$(BIN)/mypy

bench: $(STAMP)
	for script in $(filter-out benchmarks/clustpy_epoch.py,$(wildcard benchmarks/[a-z]*.py)); do $(BIN)/python $$script || exit 1; done

# ClustPy brings dependencies that this project does not want, so it lives in an environment of its own.
bench-clustpy:
	test -x .venv-clustpy/bin/python || $(PYTHON) -m venv .venv-clustpy
	.venv-clustpy/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt clustpy==0.0.3 -e .
	.venv-clustpy/bin/python benchmarks/clustpy_epoch.py

clean:
	rm -rf $(VENV) build dist src/*.egg-info
