# Only Python >= 3.10 and make are assumed: everything else comes into .venv and the cache folder.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.10 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
READY := .venv/.ready
# The judge compiled by mypyc (hatch_build.py), beside the sources and never among them.
COMPILED := .venv/compiled
COMPILED_FROM := hatch_build.py pyproject.toml $(shell find streams schemas -name '*.py')
CAN_COMPILE = command -v $${CC:-cc} >/dev/null && \
	test -e "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h"

.DEFAULT_GOAL := help
.PHONY: help setup compiled run test lint types unit compiled-unit schemas bench-judge bench-stream bench-gateway bench-sidecar bench-state bench-replay bench-web chaos lock clean

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

compiled: $(COMPILED)/.ready ## Compile the judge into .venv/compiled, where a C compiler and the headers of Python are

$(COMPILED)/.ready: $(READY) $(COMPILED_FROM)
	@rm -rf $(COMPILED) && mkdir -p $(COMPILED)
	@if $(CAN_COMPILE); then \
		echo "Compiling the judge into $(COMPILED) …"; \
		LOOPWARDEN_COMPILE=1 $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
			--no-build-isolation --target $(COMPILED) .; \
	else \
		echo "No C compiler or no headers of Python (apt install gcc python3-dev): the judge is measured and tested as pure Python only."; \
	fi
	@touch $@

run: $(READY) ## Set up everything, start all of it, apply the recommended policy, play the demo and stay up
	$(BIN)/loopwarden up --first-policy infra/policies/recommended.json5 --demo

test: lint types unit compiled-unit ## Set up everything, run every check and every test

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy --strict
	$(BIN)/mypy

# Much of the time tests wait for brokers: a few more processes than cores.
unit: $(READY) ## pytest in several processes, against a real broker of their own
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

compiled-unit: $(COMPILED)/.ready ## The vectors, the recount, the worker and replay against what is compiled
	@test ! -d $(COMPILED)/loopwarden || { export PYTHONPATH=$(COMPILED) && \
		$(BIN)/loopwarden version | grep "judge compiled" && \
		$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder tests/worker/test_verdicts.py tests/worker/test_policies.py \
			tests/judge/test_vectors.py tests/judge/test_state_record.py tests/schemas/test_canonical.py \
			tests/schemas/test_digests.py tests/schemas/test_codec.py tests/replay tests/cli/test_in_processes.py \
			tests/cli/test_replay.py "tests/judge/test_properties.py::test_the_judge_answers_as_the_recount_does"; }

schemas: $(READY) ## Write the JSON Schemas anew from the models
	$(BIN)/python -m loopwarden_schemas.json_schemas

bench-judge: $(COMPILED)/.ready ## Microseconds per event of each stage of the judge
	PYTHONPATH=$(COMPILED) $(BIN)/python tests/bench/bench_judge.py

bench-stream: $(COMPILED)/.ready ## Events per second and latency through broker, worker and verdicts
	PYTHONPATH=$(COMPILED) $(BIN)/python tests/bench/bench_stream.py

bench-gateway: $(READY) ## What gateway and guard add to a call, and what certainty costs
	$(BIN)/python tests/bench/bench_gateway.py

bench-sidecar: $(READY) ## Milliseconds of the sidecar's answers
	$(BIN)/python tests/bench/bench_sidecar.py

bench-state: $(READY) ## What the states of 100,000 runs cost, and whether memory stays level
	$(BIN)/python tests/bench/bench_state.py

bench-replay: $(COMPILED)/.ready ## A topic judged again and compared, beside one core of the judge
	PYTHONPATH=$(COMPILED) $(BIN)/python tests/bench/bench_replay.py

bench-web: $(READY) ## The live page with ten thousand live runs: memory, events per second, milliseconds of each answer
	$(BIN)/python tests/bench/bench_web.py

SECONDS ?= 600
chaos: $(READY) ## Break workers, brokers and topics under load for SECONDS, and compare with judging the log once (SEED=n)
	$(BIN)/python -m tests.chaos.run --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

lock: $(READY) ## Resolve the dependencies anew into requirements/dev.txt
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.10 \
		--extra worker --extra sidecar --extra local --extra rocksdb --extra web --extra langchain --extra mcp \
		--extra openai-agents --extra otel --group dev \
		--custom-compile-command "make lock" pyproject.toml -o requirements/dev.txt
	@# What the image has of it, and what builds it.
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --python-version 3.10 \
		--constraints requirements/dev.txt --extra worker --extra sidecar --extra rocksdb --extra web \
		--custom-compile-command "make lock" pyproject.toml -o requirements/image.txt
	printf 'hatchling>=1.27\nmypy[mypyc]>=1.15\nsetuptools>=77\n' | $(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url \
		--python-version 3.10 --constraints requirements/dev.txt --custom-compile-command "make lock" - \
		-o requirements/build.txt

clean: ## Remove what was set up and built
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis dist
