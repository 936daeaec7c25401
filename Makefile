# Everything sets itself up in .venv; run any target on a fresh machine, and again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test check lock clean

demo: $(READY)
	$(BIN)/dlperf-orch provision local
	$(BIN)/dlperf-orch sweep smoke --inventory local

test: $(READY)
	sh tests/cluster/install.sh
	$(BIN)/python -m pytest

check: $(READY)
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m coverage run -m pytest -m "not cluster"
	$(BIN)/python -m coverage report

# Pins and hashes of everything but PyTorch itself, whose builds differ between machines; its pin
# is the extra `demo` in pyproject.toml.
lock: $(READY)
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --unsafe-package torch --no-header \
	    --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-annotate --no-config \
	    --extra dev --extra demo --output-file requirements.lock pyproject.toml
	sed -i '/^# WARNING/,$$d' requirements.lock # it warns of torch, which is left out on purpose

$(READY): pyproject.toml requirements.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-build-isolation -e '.[demo]'
	touch $(READY)

clean:
	rm -rf $(VENV) .dlperf dist
