# `make repro` and `make test` do all the set-up there is.
PYTHON ?= python3.11
export PATH := $(CURDIR)/.venv/bin:$(PATH)
unexport PYTHONDONTWRITEBYTECODE # else each process compiles all that it imports
READY := .venv/ready
JOBS ?= 2 # stages at a time; with one GPU: make repro JOBS=1

.PHONY: help repro test cluster coverage bench ui lint gate
help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

LOCKS := requirements.lock requirements-tools.lock # what computes; what checks, logs and draws

$(READY): $(LOCKS) pyproject.toml
	$(PYTHON) -m venv .venv
	.venv/bin/pip install --quiet --no-compile $(LOCKS:%=--requirement %)
	.venv/bin/pip install --quiet --no-deps --editable .
	@touch $@

repro: $(READY) ## install, and run the whole pipeline (on the sample world, where data/ is empty)
	@test -d data || medprobe sample
	medprobe repro --jobs $(JOBS)

gate: $(READY) ## install, build the benchmarks and check the data, without any model
	.github/gate.sh

test: $(READY) ## install, and run the tests
	pytest

cluster: $(READY) ## install Ray as well, and run the tests on two nodes of this machine
	.venv/bin/pip install --quiet --no-compile --requirement requirements-ray.lock
	pytest --numprocesses=0 tests/test_cluster.py

coverage: $(READY) ## install, run the tests, and print which lines they leave out
	pytest --cov=medprobe --cov-report=term-missing:skip-covered

lint: $(READY) ## check style and types
	ruff check src tests bench
	ruff format --check src tests bench
	mypy

bench: $(READY) ## measure against the straightforward implementations; docs/performance.md explains
	python -m bench

ui: $(READY) ## bring all results into MLflow, print where its runs are, and open its pages
	medprobe ui
