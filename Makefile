# make setup | demo | test | test-all | lab | app | notebooks | papers | site | release | lint | bench | doctor | clean
# Everything lives in .venv (1.7 GB, some minutes); after the first set-up, lint, site and papers no target but release needs the network.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The stamp is a copy of the pyproject.toml that was installed, so that a checkout which only touches the file is free.
STAMP := $(VENV)/installed-pyproject.toml
MOTES := $(VENV)/installed-motes
SITE := $(VENV)/installed-site
PUBLISH := $(VENV)/installed-publish
# Tests wait for other processes a third of their time, so three workers keep two cores busy.
WORKERS ?= 3
FAMILY_SEED ?=
NOTEBOOKS = $(shell find notebooks -name '*.ipynb' -not -path '*/.ipynb_checkpoints/*' 2>/dev/null | sort)
PAPERS = $(wildcard notebooks/papers/*.ipynb)

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all lab app notebooks papers site release lint lint-python lint-javascript test-pythons bench doctor clean

help:
	@echo 'make demo       the first experiment: metrics, out/demo.html, out/demo.png'
	@echo 'make lab        JupyterLab, on the notebook that has the lab'
	@echo 'make app        the lab in the browser, without code'
	@echo 'make notebooks  run every notebook into out/notebooks/*.html'
	@echo 'make papers     the papers with their artifacts, into out/papers (PAPERS_ARGS=--small: drafts)'
	@echo 'make site       the web site, into out/site (after make notebooks, with the outputs of notebooks)'
	@echo 'make release    wheel, sdist, site and notes of the tag at this commit, built and tried, into out/release'
	@echo 'make test       lint, type check, tests, notebooks (WORKERS=N PYTEST_ARGS=...)'
	@echo 'make test-all   make test, then long tests, random networks, full notebooks (FAMILY_SEED=N repeats the draws)'
	@echo 'make test-pythons  quick tests and golden hashes on every Python from 3.11 to 3.13 found here'
	@echo 'make lint       ruff, mypy, biome and tsc alone'
	@echo 'make bench      benchmarks/run.py'
	@echo 'make doctor     what is installed, what is missing, how to get it'
	@echo 'make setup      .venv with everything (the other targets do it when needed)'
	@echo 'make clean      remove what was made, but not .venv'

setup: $(STAMP) $(MOTES)

$(STAMP): pyproject.toml
	@if ! cmp -s pyproject.toml $@; then PYTHON="$(PYTHON)" sh scripts/setup.sh $(VENV) && cp pyproject.toml $@; fi
	@touch $@

# The interpreter of virtual motes. Without Node.js there are none, and nothing else misses them.
$(MOTES): hardware/virtual/package-lock.json
	@if command -v npm >/dev/null 2>&1; then \
	  npm ci --silent --no-audit --no-fund --prefix hardware/virtual || \
	    echo 'make setup: without virtual motes, for npm could not install their interpreter (see above)' >&2; \
	else \
	  echo 'make setup: without virtual motes, for npm is missing: apt-get install npm (macOS: brew install node)' >&2; \
	fi
	@mkdir -p $(@D) && touch $@

# Sphinx and its theme (40 MB), for the web site alone; the converter of formulas, for publishing alone.
$(SITE) $(PUBLISH): $(VENV)/installed-%: $(STAMP)
	@if command -v uv >/dev/null 2>&1; then \
	  uv pip install --quiet --python $(BIN)/python -e '.[$*]'; \
	else \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'; \
	fi
	@touch $@

demo: setup
	@$(BIN)/workbench demo

lab: setup
	@$(BIN)/workbench lab

app: setup
	@$(BIN)/workbench app

doctor: setup
	@$(BIN)/workbench doctor

lint: setup
	@$(MAKE) --no-print-directory -j2 lint-python lint-javascript

lint-python:
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet
	@$(BIN)/mypy --no-error-summary

# The browser's scripts: a linter and a type checker, which npm installs on first use (7 s).
lint-javascript:
	@if ! command -v npm >/dev/null 2>&1; then \
	  echo 'make lint: JavaScript is not checked, for npm is missing: apt-get install npm (macOS: brew install node)' >&2; \
	else \
	  cd scripts/javascript && \
	  { [ -x node_modules/.bin/tsc ] || npm install --silent --no-package-lock --no-audit --no-fund; } && \
	  node_modules/.bin/biome lint --error-on-warnings --log-level=warn ../../workbench ../../hardware && \
	  node_modules/.bin/tsc --project .; \
	fi

# A file's tests keep to one worker: what they share (a run, Chromium) is made once.
# tests/conftest.py sorts the files, and says which of them keep together. Byte code is written even where the environment
# says otherwise: hundreds of tests start a Python of their own.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder \
	--nbmake --nbmake-timeout=3600

# The fast engine is compiled on one core while mypy keeps the other one busy; a test that needs it earlier waits for it.
test: setup
	@$(BIN)/workbench warm >/dev/null 2>&1 &
	@$(MAKE) --no-print-directory lint
	@$(PYTEST) -m 'not family' $(PYTEST_ARGS)

# "hypothesis" is the marker that Hypothesis gives to every property test.
test-all: test $(SITE)
	@$(PYTEST) -m 'family or hypothesis' --hypothesis-profile=family $(if $(FAMILY_SEED),--family-seed $(FAMILY_SEED)) $(PYTEST_ARGS)

test-pythons: setup
	@sh scripts/pythons.sh

# The pages need no network: Bokeh comes inside them, and what else Jupyter would fetch is left out (but for formulas,
# which stay TeX offline). The executed notebooks are kept beside them, for the web site.
notebooks: setup
	@mkdir -p out/notebooks
	@for notebook in $(NOTEBOOKS); do \
	  name=out/notebooks/$$(basename "$$notebook" .ipynb); \
	  $(BIN)/jupyter nbconvert --execute --to notebook --output-dir out/notebooks --log-level ERROR \
	    --ExecutePreprocessor.store_widget_state=False "$$notebook" || exit 1; \
	  $(BIN)/jupyter nbconvert --to html --log-level ERROR --HTMLExporter.require_js_url= "$$name.ipynb" || exit 1; \
	  echo "$$name.html"; \
	done

# Each paper as a page, a PDF and an artifact (docs/PUBLISHING.md).
papers: setup $(PUBLISH)
	@for notebook in $(PAPERS); do \
	  $(BIN)/workbench publish "$$notebook" --out "out/papers/$$(basename "$$notebook" .ipynb)" $(PAPERS_ARGS) || exit 1; \
	done

site: setup $(SITE)
	@$(BIN)/python -m scripts.site

# It uploads nothing. RELEASE_ARGS: --no-site, --no-trial, --all-pythons.
release: setup $(SITE)
	@$(BIN)/python -m scripts.release $(RELEASE_ARGS)

bench: setup
	@if [ -f benchmarks/run.py ]; then $(BIN)/python benchmarks/run.py; \
	 else echo 'there are no benchmarks here: benchmarks/run.py is missing'; fi

clean:
	rm -rf out build dist results spark-warehouse metastore_db derby.log
	rm -rf .pytest_cache .hypothesis .mypy_cache .ruff_cache
	find workbench tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +
