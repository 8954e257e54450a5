# `make demo` runs real goals; `make test` and `make check` must pass for each change. Needs Python 3.11 or newer with venv.

.PHONY: help demo setup test test-all check format docs bench e2e-k8s lock clean
.SHELLFLAGS := -ec
BIN := .venv/bin
# The first interpreter that is new enough; `make PYTHON=/path/to/python3.12 demo` chooses another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
# Install the versions of uv.lock. Other packages stay in .venv, so that one .venv serves all targets.
SYNC := $(BIN)/uv sync --quiet --frozen --inexact --extra laptop
# uv trusts the certificates of the system. Each process stores compiled modules for the next one.
export UV_SYSTEM_CERTS := 1
unexport PYTHONDONTWRITEBYTECODE

help:  ## List the targets.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

demo: $(BIN)/uv  ## Run real goals on a real file with the whole system, kill an agent on the way, and stop everything.
	@$(SYNC) --no-dev
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh

setup: $(BIN)/uv  ## Install the project, and what tests and checks need, into .venv.
	@$(SYNC)

test: setup  ## Run the tests.
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

SUITE ?= browser chart chaos faults frameworks http model nightly package torch
test-all: setup  ## Run the tests that take long or need large packages, or some of them: SUITE="browser chart".
	$(SYNC) $(patsubst %,--group %,$(filter browser chart model torch,$(SUITE)))
	$(if $(filter torch,$(SUITE)),$(INSTALL_TORCH))
	for suite in $(SUITE); do $(BIN)/pytest -n 2 --dist loadfile -m $$suite; done

# The version of the lock without its hash: the CPU build of torch is another file of that version, and needs no CUDA.
INSTALL_TORCH = $(BIN)/uv export --quiet --frozen --no-hashes --no-emit-project --extra sentence-transformers -o .venv/torch.txt && \
	$(BIN)/python -m pip install --quiet --constraint .venv/torch.txt sentence-transformers torch

check: setup  ## Check format, lint, types, import layers, sizes, the lock and generated pages.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.ratchet
	$(BIN)/uv lock --quiet --check
	for page in cli group metrics models policies protocol settings subjects; do $(BIN)/python -m tools.$${page}_page --check docs/$$page.md; done

format: setup  ## Format the code and correct what ruff can correct.
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

docs: setup  ## Build the documentation into build/site; a broken link, anchor or name is an error.
	$(SYNC) --group docs
	$(BIN)/properdocs build --strict --config-file mkdocs.yml

bench: setup  ## Measure the main figures (5 min), or one benchmark: BENCHMARK=turns ARGS="…" (ARGS=--help explains).
ifdef BENCHMARK
	$(BIN)/python -m benchmarks.$(BENCHMARK) $(ARGS)
else
	$(BIN)/python -m benchmarks.cold_start --starts 2
	$(BIN)/python -m benchmarks.turns --members 4 32 --turns 40 400 --agents 4:40 --peers 40
	$(BIN)/python -m benchmarks.saturation --groups 1 64 --messages 5000
	$(BIN)/python -m benchmarks.density --agents 1 100 --seconds 5
endif

e2e-k8s: setup  ## Install the chart on the cluster of KUBECONFIG, test it, scale it, upgrade it, disturb it and remove it.
	$(SYNC) --group chart
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pytest -m k8s -s -x tests/k8s

lock: $(BIN)/uv  ## Write the newest versions that pyproject.toml allows into uv.lock.
	$(BIN)/uv lock --upgrade

clean:  ## Remove everything that make created.
	rm -rf .venv build dist out .ioa .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/uv:
	@[ -n "$(PYTHON)" ] || { echo "IoA needs Python 3.11 or newer with venv. Install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "Installing IoA into .venv (once) ..."
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile uv==0.13.9
