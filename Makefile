# Two commands matter: `make lessons` and `make test`. Both do all the set-up themselves.

PYTHON ?= python3       # any Python from 3.10 on; a CUDA build of torch that it already has is kept
HOST ?= 127.0.0.1
PORT ?=                 # empty: 2718, or the next free port
JOBS ?= 2               # processes that run the tests side by side; 0 for none
PIP_ARGS ?=             # passed to pip, for instance an index with CPU builds of torch

# Words after a value would become part of it.
override PYTHON := $(strip $(PYTHON))
override HOST := $(strip $(HOST))
override PORT := $(strip $(PORT))
override JOBS := $(strip $(JOBS))

BIN := .venv/bin
SET_UP := pyproject.toml constraints.txt tools/set_up.py
LESSONS := $(wildcard lessons/[0-9]*.py)

.DEFAULT_GOAL := help
.PHONY: help lessons test lint wheel clean

help:  ## show this list
	@echo "make TARGET, where TARGET is"
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "  %-9s %s\n", $$1, $$2}'
	@echo "Variables: PYTHON=$(PYTHON) HOST=$(HOST) PORT=$(or $(PORT),2718 or the next free one) PIP_ARGS=$(PIP_ARGS)"

# One stamp per set of packages. set_up.py also writes the stamps of the smaller sets, so nothing is installed twice.
.venv/ready-lessons .venv/ready-test .venv/ready-dev: .venv/ready-%: $(SET_UP)
	@$(PYTHON) tools/set_up.py $* $(PIP_ARGS)

lessons: .venv/ready-lessons  ## open the course in a browser
	@$(BIN)/gpututor lessons --host $(HOST) $(if $(PORT),--port $(PORT))

test: .venv/ready-test  ## run the tests (GPUTUTOR_REQUIRE_BROWSER=1: fail without Chromium, ..._BUBBLEWRAP=1: without bubblewrap)
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

lint: .venv/ready-dev  ## ruff, formatting, types, notebooks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(if $(LESSONS),$(BIN)/marimo check --strict $(LESSONS))

wheel: .venv/ready-dev  ## build the wheel and the source archive into dist/
	$(BIN)/python -m build --installer pip --outdir dist .

clean:  ## remove .venv and everything built or cached
	rm -rf .venv dist build .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
