# Paydesk: every target builds .venv by itself; nothing but Python 3.11 or newer and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
REQUIREMENTS := $(VENV)/.requirements
READY := $(VENV)/.ready
PROCESSES := -n 3 --dist loadfile --no-loadscope-reorder
MYPY_WORKERS := 2
FRONT_END := src/paydesk/web/console/static/vendor/.made-from
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup run test test-long test-containers test-ha test-upgrade lint unit soak bench bench-smoke bench-history messages lock dist clean

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Build .venv from requirements.lock, bring the front-end files of package.json

$(REQUIREMENTS): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Paydesk needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Building $(VENV) (once, and when requirements.lock changes; about a minute) ..."
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	@touch $@

$(FRONT_END): $(REQUIREMENTS) package.json hatch_build.py
	@$(BIN)/python hatch_build.py
	@touch $@

$(READY): $(REQUIREMENTS) $(FRONT_END) pyproject.toml
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: $(READY) ## Start everything: database, checkout, worker, sample shop
	@exec $(BIN)/paydesk run $(ARGS)

# The lint runs beside the tests, which begin with work for one core alone; what it says stands at the end. Workers of
# mypy's, which must be there within three seconds, are not for a machine that is busy.
test: $(READY) ## Lint, and all tests, the long ones in a short form, on an embedded PostgreSQL
	@$(MAKE) --no-print-directory lint MYPY_WORKERS=0 > $(VENV)/lint.txt 2>&1 & lint=$$!; \
		$(MAKE) --no-print-directory unit; tests=$$?; \
		wait $$lint || { cat $(VENV)/lint.txt; echo "make lint fails (above)"; exit 1; }; exit $$tests

test-long: $(READY) ## The long plays in full: each fate at each point, each look of each page, more made-up examples
	@WHOLE_TESTS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PROCESSES) -m long $(ARGS)

test-ha: $(READY) ## Kill, cut off and freeze a cluster's primary while customers pay (Debian, root; a quarter of an hour)
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -s -m ha tests/ha $(ARGS)

lint: $(READY) ## Check style, types and the layers of the house
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/mypy --no-error-summary --num-workers $(MYPY_WORKERS)
	@$(BIN)/lint-imports > $(VENV)/layers.txt || { cat $(VENV)/layers.txt; exit 1; }

# Where the environment forbids to write bytecode, each process would compile all tests and their asserts again.
unit: $(READY) ## All tests without the lint step
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest $(PROCESSES) $(ARGS)

soak: $(READY) ## Kill everything at random, for some minutes (the seed is printed)
	@$(BIN)/python -m pytest -m soak $(ARGS)

test-upgrade: $(READY) ## Old and new code side by side on 3 million rows (a few minutes)
	@UPGRADE_ROWS=$${UPGRADE_ROWS:-3000000} $(BIN)/python -m pytest -q -s -m "long or not long" tests/upgrade $(ARGS)

test-containers: $(READY) ## Build the image and run deploy/compose.yaml (root, podman, runc, mmdebstrap)
	@for each in podman runc mmdebstrap catatonit; do command -v $$each > /dev/null || \
		{ echo "make test-containers needs $$each, as .ci/run installs it"; exit 1; }; done
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -m containers -s tests/deploy/test_containers.py $(ARGS)

bench: $(READY) ## Measure what the docs claim (a few minutes)
	@for each in bench/*.py; do $(BIN)/python $$each || exit 1; done

bench-smoke: $(READY) ## Run every bench from end to end, with small numbers
	@$(BIN)/python bench/smoke

bench-history: $(READY) ## What the benches reached, commit by commit
	@PYTHONPATH=bench $(BIN)/python -m history $(ARGS)

messages: $(READY) ## Collect the texts of the pages into their gettext catalogues
	@$(BIN)/python -m paydesk.web.messages

lock: ## Renew requirements.lock (needs uv)
	@command -v uv > /dev/null || { echo "make lock needs uv: https://docs.astral.sh/uv/"; exit 1; }
	@uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
		--no-annotate --upgrade --extra dev pyproject.toml --output-file requirements.lock

dist: $(READY) ## Build wheel, source and requirements.txt of the newest commit into dist/, reproducibly
	@$(BIN)/python deploy/building.py

clean: ## Remove .venv and caches (not your data in .paydesk)
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
