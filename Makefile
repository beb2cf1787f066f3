# Two commands for a newcomer: make demo, make test. CI runs make check and make test, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PROJECTS := pyproject.toml agent/pyproject.toml aggregator/pyproject.toml firmware_stubs/pyproject.toml studies/pyproject.toml
DEMO := -e . -e ./agent -e ./aggregator -e ./firmware_stubs
ALL := -e ".[dev]" -e ./agent -e "./aggregator[archive,console,oidc,postgres,sign]" -e ./firmware_stubs -e ./studies

# hundreds of processes start in the tests: their bytecode is kept, as it is for a user
export PYTHONDONTWRITEBYTECODE :=

.PHONY: demo test screenshots test-hil test-slow test-lowest check mutants format bench bench-peers results clean

# More processes than two cores: many tests wait, for a meter or for a clock.
FAST := -n 4 --dist worksteal -p no:benchmark -m "not slow"

# KEEP=1: the fleet goes on, and the console shows it, until Ctrl-C; all that the tests need is not waited for
READY := $(or $(wildcard $(INSTALLED)),$(VENV)-demo/.installed)
demo: $(READY)
	$(dir $(READY))bin/edge-ldp demo $(if $(KEEP),--stay)

test: $(INSTALLED)
	sh tools/install_tools.sh
	$(BIN)/pytest $(FAST)

test-slow: $(VENV)/.spark
	sh tools/install_tools.sh slow
	$(BIN)/pytest -m slow --timeout 3600

# the pictures of docs/console.md, made by the tests of the pages
screenshots: $(INSTALLED)
	SCREENSHOTS=docs/console $(BIN)/pytest -p no:benchmark -m "not slow" tests/aggregator/console/test_pages.py tests/aggregator/console/test_pictures.py

# HIL_PORT: a port with a meter; with HIL_FAR a second adapter, the wires of both crossed
test-hil: $(INSTALLED)
	$(BIN)/pytest tests/hil -v

# the fast tests with the lowest versions that we ask for, in an environment of its own; what is
# old may warn of what is new (Matplotlib of pyparsing) and forget to close
test-lowest: .venv-lowest/.installed
	.venv-lowest/bin/pytest $(FAST) -W default::DeprecationWarning -W default::ResourceWarning

check: $(INSTALLED)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/vulture
	$(BIN)/python tools/sizes.py || true

# small changes to the code's heart, one at a time: which of them does no test notice? (--help)
MUTANTS ?= --sample 300 --modules edge_ldp/device agent/claims aggregator/counting edge_ldp/sums
mutants: $(INSTALLED)
	nice -n 15 $(BIN)/python tools/mutants.py $(MUTANTS)

format: $(INSTALLED)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(INSTALLED)
	$(BIN)/pytest benchmarks --benchmark-only --benchmark-columns=min,median,rounds

bench-peers:
	PYTHON=$(PYTHON) sh benchmarks/peers/run.sh

# the figures and points of docs/results.md and docs/results/papers.md (tables: results/*.md); stopped, it goes on from results/*.csv
STUDIES ?= sw topl tops sums
results: $(INSTALLED)
	for study in $(STUDIES); do $(BIN)/edge-ldp evaluate $$study --out results || exit; done
	mkdir -p docs/results
	cp results/*.png results/*-summary.csv docs/results/

$(INSTALLED): $(PROJECTS) constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt $(ALL)
	touch $@

# pip makes half a gigabyte of wheel of Spark: for the slow tests alone
$(VENV)/.spark: $(INSTALLED)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e "./aggregator[spark]"
	touch $@

$(VENV)-demo/.installed: $(PROJECTS) constraints.txt
	$(PYTHON) -m venv $(VENV)-demo
	$(VENV)-demo/bin/pip install --quiet --disable-pip-version-check -c constraints.txt $(DEMO)
	touch $@

.venv-lowest/.installed: $(PROJECTS) tools/lowest.py
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) tools/lowest.py > .venv-lowest/constraints.txt
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check -c .venv-lowest/constraints.txt $(ALL)
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-demo .venv-lowest .venv-peers .foreign .homeassistant .homeassistant.lock .node .mutants .mypy_cache .pytest_cache .ruff_cache demo-report
