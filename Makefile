# Only Python >= 3.10 and make are assumed: everything else comes into .venv and the cache folder.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help setup run test lint types unit schemas bench-judge bench-stream bench-gateway bench-sidecar lock clean

help: ## Say what can be made
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Set up .venv from the locked requirements

$(READY): requirements/dev.txt pyproject.toml
	@test -n "$(PYTHON)" || { echo "Loopwarden needs Python >= 3.10: none found (say make PYTHON=/path/to/python3)"; exit 1; }
	@echo "Setting up .venv with $(PYTHON) …"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

run: $(READY) ## Set up everything, start all of it, apply the recommended policy, play the demo and stay up
	$(BIN)/loopwarden up --first-policy infra/policies/recommended.json5 --demo

test: lint types unit ## Set up everything, run every check and every test

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy --strict
	$(BIN)/mypy

unit: $(READY) ## pytest, against a real broker of its own
	$(BIN)/pytest

schemas: $(READY) ## Write the JSON Schemas anew from the models
	$(BIN)/python -m loopwarden_schemas.json_schemas

bench-judge: $(READY) ## Microseconds per event of each stage of the judge
	$(BIN)/python tests/bench/bench_judge.py

bench-stream: $(READY) ## Events per second and latency through broker, worker and verdicts
	$(BIN)/python tests/bench/bench_stream.py

bench-gateway: $(READY) ## What gateway and guard add to a call, and what certainty costs
	$(BIN)/python tests/bench/bench_gateway.py

bench-sidecar: $(READY) ## Milliseconds of the sidecar's answers
	$(BIN)/python tests/bench/bench_sidecar.py

lock: $(READY) ## Resolve the dependencies anew into requirements/dev.txt
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.10 \
		--extra worker --extra sidecar --extra local --group dev --custom-compile-command "make lock" \
		pyproject.toml -o requirements/dev.txt

clean: ## Remove what was set up and built
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
