# Two commands do everything, set-up included, on a fresh Debian or Ubuntu machine:
#   make lab    bring up the lab on this computer, deploy it, verify it
#   make test   run all tests: linters, unit, golden, wheel, lab
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
# The lab makes machines, bridges and mounts: those steps need root.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
SITE ?= inventory/lab

.PHONY: help setup lab lab-down check unit test test-lab wheel bench lock clean

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Install what is missing: system packages, the virtualenv, hpcsite.
	@scripts/setup

lab: setup  ## Bring up the lab (SITE=inventory/lab), deploy it and verify it.
	$(SUDO) $(BIN)/hpcsite lab up $(SITE)
	$(SUDO) $(BIN)/hpcsite deploy $(SITE)
	$(SUDO) $(BIN)/hpcsite verify $(SITE)

lab-down: setup  ## Remove the lab; the caches, secrets and stored runs stay.
	$(SUDO) $(BIN)/hpcsite lab down $(SITE)

check: setup  ## Linters, types, unit and golden tests: seconds, no root.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict .
	ANSIBLE_INVENTORY=inventory/lab PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline
	$(BIN)/pytest

test: check test-lab  ## All tests; the lab tests need root and take minutes.

test-lab: setup  ## The tests that need the lab, and those of the built wheel.
	$(SUDO) $(BIN)/pytest -m lab tests/integration

unit: setup  ## Unit and golden tests only.
	$(BIN)/pytest

wheel: setup  ## Build the wheel and the sdist into dist/.
	$(BIN)/python -m build

bench: setup  ## Measure lab, deploy, verify; prints JSON.
	$(SUDO) $(BIN)/python bench/run.py

lock:  ## Resolve requirements/dev.lock anew (needs uv).
	uv pip compile --quiet --universal --upgrade --python-version 3.11 --extra dev \
	  --generate-hashes --no-header pyproject.toml --output-file requirements/dev.lock

clean:  ## Remove what the build and the tests leave.
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis .ansible
