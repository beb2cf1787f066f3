# Two commands for a newcomer: make demo, make test. CI runs make check and make test, nothing else.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: demo test test-hil test-slow check mutants format bench bench-peers results clean

demo: $(INSTALLED)
	$(BIN)/edge-ldp demo

test: $(INSTALLED)
	sh tools/install_tools.sh
	$(BIN)/pytest -m "not slow"

test-slow: $(INSTALLED)
	sh tools/install_tools.sh
	$(BIN)/pytest -m slow --timeout 3600

# HIL_PORT: a port with a meter; with HIL_FAR a second adapter, the wires of both crossed
test-hil: $(INSTALLED)
	$(BIN)/pytest tests/hil -v

check: $(INSTALLED)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pytest -q tests/test_architecture.py

# small changes to the code, one at a time: which of them does no test notice? (--help)
MUTANTS ?= --sample 150
mutants: $(INSTALLED)
	nice -n 15 $(BIN)/python tools/mutants.py $(MUTANTS)

format: $(INSTALLED)
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

bench: $(INSTALLED)
	$(BIN)/pytest benchmarks --benchmark-only --benchmark-columns=min,median,rounds

bench-peers:
	PYTHON=$(PYTHON) sh benchmarks/peers/run.sh

# the figures and tables of docs/results.md; stopped, it goes on from results/*.csv
STUDIES ?= sw topl tops sums
results: $(INSTALLED)
	for study in $(STUDIES); do $(BIN)/edge-ldp evaluate $$study --out results || exit; done
	mkdir -p docs/results
	cp results/*.png results/*.svg results/*-summary.csv results/*.md docs/results/

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) .venv-peers .foreign .node .mutants .mypy_cache .pytest_cache .ruff_cache demo-report
