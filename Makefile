# Two commands do everything, set-up included, on a fresh Debian or Ubuntu machine:
#   make lab    bring up the lab on this computer, deploy it, verify it
#   make test   run the tests: linters, unit, golden, wheel, lab, virtual machines
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
# The lab makes machines, bridges and mounts: those steps need root. The VM lab needs none.
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)
SITE ?= inventory/lab
VM_SITE ?= inventory/vmlab
UNIT := $(BIN)/pytest --numprocesses auto --dist worksteal
# molecule finds its tools on PATH, and its shared configuration in a git checkout only.
MOLECULE := env PATH="$(CURDIR)/$(BIN):$$PATH" molecule --base-config .config/molecule/config.yml

.PHONY: help setup lab lab-down vmlab vmlab-down check unit test test-lab test-vm test-vm-faults
.PHONY: test-scenario test-training wheel bench bench-vm lock clean

help:  ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:  ## Install what is missing: system packages, the virtualenv, hpcsite.
	@scripts/setup

lab: setup  ## Bring up the lab (SITE=inventory/lab), deploy it and verify it.
	$(SUDO) $(BIN)/hpcsite lab up $(SITE)
	$(SUDO) $(BIN)/hpcsite deploy $(SITE)
	$(SUDO) $(BIN)/hpcsite verify $(SITE)

lab-down: setup  ## Remove the lab; the caches, secrets and stored runs stay.
	$(SUDO) $(BIN)/hpcsite lab down $(SITE)

vmlab: setup  ## The same with virtual machines (VM_SITE=inventory/vmlab), without root.
	$(BIN)/hpcsite lab up $(VM_SITE)
	$(BIN)/hpcsite deploy $(VM_SITE)
	$(BIN)/hpcsite verify $(VM_SITE)

vmlab-down: setup  ## Remove the virtual machines; the caches, secrets and stored runs stay.
	$(BIN)/hpcsite lab down $(VM_SITE)

check: setup  ## Linters, types, unit and golden tests: seconds, no root.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/yamllint --strict .
	ANSIBLE_INVENTORY=inventory/lab PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline
	$(UNIT)

# What is cheap first. CI has 45 minutes, so test-scenario and test-vm-faults are run by hand.
test: check test-lab test-vm  ## All that CI runs, some of which needs root.

test-lab: setup  ## The tests that need root: the lab, images, and the built wheel.
	$(SUDO) $(BIN)/pytest --numprocesses 2 --dist loadfile -m "lab and not vm" tests/integration

test-scenario: setup  ## Molecule's scenario default: the lab of containers, needs root.
	$(SUDO) $(MOLECULE) test -s default

test-vm: setup  ## Molecule's scenario vm: the lab of virtual machines, without root.
	$(MOLECULE) test -s vm

test-vm-faults: setup  ## The VM lab itself under faults: taken ports, killed machines.
	$(BIN)/pytest -m vm tests/integration

test-training: setup  ## PyTorch in the lab, trained through Slurm: needs root, 2 minutes.
	$(SUDO) $(BIN)/pytest -m training tests/integration

unit: setup  ## Unit and golden tests only.
	$(UNIT)

wheel: setup  ## Build the wheel and the sdist into dist/.
	$(BIN)/python -m build

bench: setup  ## Measure lab, deploy, verify on the lab of containers; prints JSON.
	$(SUDO) $(BIN)/python bench/run.py nspawn

bench-vm: setup  ## Measure image, lab, deploy, verify on virtual machines; prints JSON.
	$(BIN)/python bench/run.py vm

lock:  ## Resolve requirements/dev.lock anew (needs uv).
	uv pip compile --quiet --universal --upgrade --python-version 3.11 --extra dev \
	  --generate-hashes --no-header pyproject.toml --output-file requirements/dev.lock

clean:  ## Remove what the build and the tests leave.
	rm -rf $(VENV) dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis .ansible
