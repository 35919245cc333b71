# One word per job; `make` alone prints them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= $(shell command -v python3.11 || command -v python3 || echo python3)
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
EXTRAS := bench connect delta java log numba payloads pipeline plan sim site web
LOCKS := $(foreach set,base $(EXTRAS) test,requirements/$(set).txt)
COMPILED_TESTS := $(addprefix tests/,clause core interop match net overlay robust sched wire test_native.py) $(wildcard tests/sim/test_*.py)
# The tests start hundreds of Pythons, each of which would compile the same modules again if none might keep them.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest --numprocesses=2
SEED := $(or $(SEED),$(shell od -An -N4 -tu4 /dev/urandom | tr -d ' '))

.PHONY: help shape tree install compile uncompile demo site papers pictures test test-core test-compiled test-cluster explore histories check format bench docs spec fuzz attack memory chaos lock peers clean

help: ## print this list
	@printf '\n  \033[1mTieline\033[0m: make …\n\n'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  \033[36m%-13s\033[0m %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n'

install: $(STAMP) ## make .venv with the tieline command and every tool in it

# The stamp is touched last, so an interrupted installation is repeated.
$(STAMP): $(LOCKS) pyproject.toml src/tieline/version.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Tieline needs Python 3.11 or newer, and $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
	  echo "Python's venv module is missing; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "Installing into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes $(addprefix -r ,$(LOCKS))
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable .
	@touch $@
	@echo "Ready: $(BIN)/tieline"

compile: $(STAMP) ## make machine code of the broker's hot modules, beside their source
	@$(BIN)/python native_build.py

uncompile: ## back to plain Python
	@$(or $(wildcard $(BIN)/python),$(PYTHON)) native_build.py --remove

demo: $(STAMP) ## three brokers, a microgrid that goes islanding, a planner, Spark, the page: two minutes
	@$(BIN)/tieline demo

site: $(STAMP) ## the documents as a site in build/site, which needs no server and no network
	@$(BIN)/python -m docs.site.build $(ARGS)

papers: $(STAMP) ## the five papers beside our measurements, as one file to read: build/papers.html
	@$(BIN)/python -m docs.site.book $(ARGS)

pictures: $(STAMP) ## pictures of the live page, taken while four brokers and a microgrid run: three minutes
	@$(BIN)/python -m docs.pictures.record $(ARGS)

test: $(STAMP) ## the whole test suite
	@$(PYTEST)

test-core: $(STAMP) ## the pure layers alone: no sockets, no processes, a minute
	@$(PYTEST) $(addprefix tests/,access clause conf core match sched wire)

test-cluster: $(STAMP) ## Spark on a cluster and behind Connect, kills, the demo: ten minutes
	@$(BIN)/python -m pytest -m slow tests/pipeline tests/examples tests/cli/demo tests/cli/test_doctor.py

test-compiled: compile ## the tests of the broker, run on compiled modules
	@$(PYTEST) $(COMPILED_TESTS)

explore: $(STAMP) ## the properties alone, with ten times as many examples, other ones each time
	@echo "Exploring with SEED=$(SEED)."
	@$(PYTEST) -m "hypothesis and not slow" --hypothesis-profile=explore --hypothesis-seed=$(SEED) --timeout=0 $(ARGS) || { \
	  echo "The same examples again: make explore SEED=$(SEED) ARGS='the name of the test that failed'"; exit 1; }

histories: $(STAMP) ## ten thousand histories of joined brokers in virtual time; ARGS="--count 1000 --from 5000"
	@$(BIN)/python -m tests.overlay.explore $(ARGS)

check: $(STAMP) ## style, types and the direction of imports
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(STAMP) ## let ruff tidy the code
	@$(BIN)/ruff check --fix-only --quiet
	@$(BIN)/ruff format

bench: $(STAMP) ## measure the broker beside those that are installed
	@$(BIN)/tieline bench broker $(ARGS)

docs: $(STAMP) ## write the generated pages again; with CI=true only see that they are current
	@$(BIN)/python -m docs.reference.generate $(if $(filter true,$(CI)),--check)

spec: $(STAMP) ## which statements of the specifications are claimed, tested, missing
	@$(BIN)/python -m tests.clause.report

tree: $(STAMP) ## every package and module, with the sentence that it begins with; ARGS=core/inbound for a part
	@$(BIN)/python -m docs.architecture.tree $(ARGS)

shape: $(STAMP) ## sizes, cycles and repetitions of the source, as numbers
	@$(BIN)/python -m docs.architecture.shape $(ARGS)

fuzz: $(STAMP) ## feed the decoder bytes that nobody meant
	@for target in fuzz_wire fuzz_broker fuzz_where; do $(BIN)/python -m fuzz.$$target $(ARGS); done

attack: $(STAMP) ## ten minutes of attacks on a broker and some to set them up: what honest clients notice; ARGS="--seconds 120"
	@$(BIN)/python -m tests.robust.attack $(ARGS)

memory: $(STAMP) ## fill every kind of memory that is counted, and weigh the process: twenty minutes
	@$(BIN)/python -m pytest -m slow -s --timeout=0 tests/robust/test_memory.py $(ARGS)

chaos: $(STAMP) ## ten minutes of dying, stopped and cut off brokers, and what their clients miss; ARGS="--seconds 60"
	@$(BIN)/python -m tests.robust.chaos $(ARGS)

lock: ## pin every dependency again, with hashes
	@test -x .lock/bin/pip-compile || { $(PYTHON) -m venv .lock && .lock/bin/pip install --quiet "pip-tools>=7.4"; }
	@for set in "test --extra=test $(EXTRAS:%=--extra=%)" "base --constraint=requirements/test.txt" \
	  $(foreach extra,$(EXTRAS),"$(extra) --extra=$(extra) --constraint=requirements/test.txt"); do \
	  echo "requirements/$${set%% *}.txt"; \
	  .lock/bin/pip-compile --quiet --upgrade --strip-extras --generate-hashes --allow-unsafe --no-header \
	    --no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	    --build-deps-for=editable $$([[ $$set == *" "* ]] && echo "$${set#* }") \
	    --output-file="requirements/$${set%% *}.txt" pyproject.toml; \
	done
	@.lock/bin/pip-compile --quiet --upgrade --strip-extras --generate-hashes --allow-unsafe --no-header \
	  --no-emit-options --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	  --output-file=requirements/s3.txt requirements/s3.in

.PHONY: object-store
object-store: ## install a server of the S3 API for the tests of lakes in object stores, beside the project
	@test -x .s3/bin/moto_server || { $(PYTHON) -m venv .s3 && .s3/bin/pip install --quiet --require-hashes -r requirements/s3.txt; }

peers: $(STAMP) ## install the brokers that the benchmark compares with, beside the project
	@$(BIN)/tieline bench peers

clean: uncompile ## remove what make and the tools made
	@rm -rf $(VENV) .lock .peers .s3 dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
