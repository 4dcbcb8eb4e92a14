# `make repro` and `make test` do all the set-up there is. The workflows on GitHub and `.ci/run` only
# call targets of this file.
SHELL := bash
.SHELLFLAGS := -o pipefail -ec
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
# The first Python that fits, as what an activated .venv was made with: .venv is replaced by it.
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11; do \
	$$name -c '$(FITS)' 2> /dev/null && $$name -c 'import sys; print(sys._base_executable)' && break; done)
export PATH := $(CURDIR)/.venv/bin:$(PATH)
unexport PYTHONDONTWRITEBYTECODE # else each process compiles all that it imports
READY := .venv/ready
JOBS ?= 2 # stages at a time; with one GPU: make repro JOBS=1
PROCESSES ?= 2 # test files at a time

.PHONY: help install repro verify gate pull-request test test-all kernel test-fast cluster lm-eval coverage lint bench ui site dist wheel
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

LOCKS := requirements.lock requirements-tools.lock # what computes; what checks, logs and draws

# A first installation that fails, or is stopped, leaves no half .venv.
$(READY): $(LOCKS) pyproject.toml
	@if [[ ! -e $@ ]]; then python=$(PYTHON); \
	  $${python:-false} -c '$(FITS)' || { echo "make: $${python:-no python3 here} is no Python 3.11," \
	    "3.12 or 3.13: install one, or name one: make install PYTHON=/path/to/python" >&2; exit 2; }; \
	  echo "installing into .venv with $$($$python --version), $$python; this takes minutes"; \
	  trap 'rm -rf .venv' EXIT; \
	  $$python -m venv --clear .venv; \
	fi; \
	.venv/bin/pip install --quiet --no-compile $(LOCKS:%=--requirement %); \
	.venv/bin/pip install --quiet --no-deps --editable .; \
	touch $@; trap - EXIT

install: $(READY) ## install everything into .venv

repro: $(READY) ## install, and run the whole pipeline (on the sample world, where data/ is empty)
	@test -d data || medprobe sample
	medprobe repro --jobs $(JOBS)

verify: repro ## the same, and check that nothing is left to run and no number moved
	again=$$(medprobe repro --jobs $(JOBS)); tail -n 3 <<< "$$again"; \
	[[ $$again == *"Data and pipelines are up to date."* ]]
	python -m bench.moved

gate: $(READY) ## install, build the benchmarks and check the data, without any model
	@test -d data || medprobe sample
	medprobe gate

pull-request: $(READY) ## get the data that data.dvc names, run the gate on them, and write a summary
	.ci/pull-request

# Whole files go to the processes, those that conftest.py puts first at first.
PYTEST := pytest --numprocesses=$(PROCESSES) --dist=loadfile --no-loadscope-reorder

test: $(READY) ## install, and run the tests and the examples in docstrings
	$(PYTEST) --doctest-modules -m "not full" tests bench src

test-all: test ## the same, and the tests that take long: whole projects, documents, the browser
	$(PYTEST) -m full tests

kernel: $(READY) ## install, and run the kernel's own tests without the folders of papers/ and extensions/
	PYTHONPATH=tests python -m bench.taken_out

test-fast: $(READY) ## install, and run the tests that start neither DVC nor a browser and take under a second
	$(PYTEST) -m "not dvc and not browser and not slow and not full" tests bench

cluster: $(READY) ## install Ray as well, and run the tests on two nodes of this machine
	.venv/bin/pip install --quiet --no-compile --requirement requirements-ray.lock
	pytest tests/sample_project/test_cluster.py

lm-eval: $(READY) ## install lm-evaluation-harness apart, and run the exported tasks with it
	$(PYTHON) -m venv build/lm-eval
	build/lm-eval/bin/pip install --quiet 'lm_eval[hf]' minicons
	MEDPROBE_LM_EVAL=$(CURDIR)/build/lm-eval/bin/lm-eval pytest tests/extensions/exchange/test_lm_eval.py

coverage: $(READY) ## install, run the tests, and print which lines they leave out
	$(PYTEST) --doctest-modules --cov=medprobe --cov-report=term-missing:skip-covered tests bench src

lint: $(READY) ## check style and types
	ruff check
	ruff format --check
	mypy

bench: $(READY) ## measure speed: against simple code, at the paper's size, on a GPU; docs/reference/performance.md explains
	python -m bench.methods
	python -m bench.paper_size
	python -m bench.gpu

ui: $(READY) ## bring all results into MLflow, print where its runs are, and open its pages
	medprobe ui

site: $(READY) ## install what builds the documents' site, and build it into build/site, links checked
	.venv/bin/pip install --quiet --no-compile --requirement requirements-site.lock
	python -m mkdocs build

dist: ## build the wheel and the source archive into dist/; TAG=v1.2.3 must be its version
ifdef TAG
	grep --fixed-strings --line-regexp 'version = "$(TAG:v%=%)"' pyproject.toml
	grep --fixed-strings '## [$(TAG:v%=%)]' CHANGELOG.md
endif
	$(PYTHON) -m venv build/dist
	build/dist/bin/pip install --quiet build
	build/dist/bin/python -m build

wheel: ## install the wheel of dist/ as users do, in an environment of its own, and use it
	.github/wheel.sh dist/medprobe-*.whl $(PYTHON)
