# Every target does its own set-up: a virtual environment in .venv, then the pinned install.

PYTHON ?= python3
BIN := .venv/bin
# Two test workers, on every machine: what a run does never depends on the number of cores.
PYTEST := $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: study test test-all check format clean

study: .venv/installed
	@echo "Running the extrapolation study."
	@$(BIN)/python -m studies.extrapolation $(ARGS)

test: .venv/installed-dev
	@echo "Running the tests, without the slow ones."
	@$(PYTEST) -m "not slow" $(ARGS)

test-all: .venv/installed-dev
	@echo "Running every test."
	@$(PYTEST) $(ARGS)

check: .venv/installed-dev
	@echo "Checking format, style, types and the direction of imports."
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/pyright
	@$(BIN)/lint-imports

format: .venv/installed-dev
	@echo "Formatting the code and sorting its imports."
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:
	@echo "Removing the virtual environment and every cache."
	@rm -rf .venv build dist *.egg-info .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@echo "Making the virtual environment .venv."
	@$(PYTHON) -m venv .venv

# torch goes first and alone: its pin picks the build, and the rest then finds it in place.
.venv/torch: constraints.txt | .venv/bin/python
	@echo "Installing torch; this takes the longest."
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@touch $@

.venv/installed: pyproject.toml .venv/torch
	@echo "Installing the sandbox with the pinned versions."
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

.venv/installed-dev: pyproject.toml .venv/torch
	@echo "Installing the sandbox with the pinned versions and the tools for tests."
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	@touch $@ .venv/installed
