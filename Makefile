# Two commands matter: `make demo` and `make test`. Each sets up what it needs in .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup demo unit test slow lint bench faults clean

$(VENV)/.core: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gymnasium-solver needs Python 3.11 or newer; say which: make PYTHON=python3.12 …"; exit 1; }
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@

setup: $(VENV)/.dev  ## everything for development

demo: $(VENV)/.core  ## train CartPole to its threshold
	$(BIN)/gsolve train CartPole-v1:ppo

unit: $(VENV)/.dev  ## the tests that neither train nor serve: under a minute
	$(BIN)/python -m pytest -m unit --numprocesses 2 --dist loadfile -p no:schemathesis -p no:hypothesispytest -p no:anyio

test: $(VENV)/.dev  ## all tests but the slow tier
	$(BIN)/python -m pytest -m 'not slow' --numprocesses 2 --dist loadfile

slow: $(VENV)/.dev  ## learning on real environments, minutes
	$(BIN)/python -m pytest -m slow --numprocesses 2

lint: $(VENV)/.dev  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev  ## speed against peers; needs pip install '.[bench]' first
	$(BIN)/python benchmarks/speed.py

faults: $(VENV)/.dev  ## the fault benchmark: an hour on two cores
	$(BIN)/python benchmarks/faults/run.py all --jobs 2

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
