# Two targets are all that a newcomer needs: `make reproduce` and `make test`. CONTRIBUTING.md says what each is for.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
INSTALL := $(PIP) install --constraint constraints.txt

.PHONY: help reproduce test lint types unit docs picture acceptance mutation bench notebooks clean

help:
	@echo "make reproduce [QUICK=1] [OUT=DIR] [WORKERS=K]   sweep, Figures 2, 4, 5 and report.md"
	@echo "make test                                        lint, strict types, all tests"
	@echo "CONTRIBUTING.md has the others: docs, picture, acceptance, mutation, bench, notebooks, clean"

# the main job: sweep, figures 2, 4, 5 and report.md in results/; QUICK=1 takes a reduced action space, OUT=DIR another folder
reproduce: $(VENV)/.core
	$(BIN)/fgrpo reproduce $(if $(QUICK),--quick) $(if $(OUT),--out $(OUT)) $(if $(WORKERS),--workers $(WORKERS))

# what every change must pass
test: lint types unit

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# mypy does not see an editable install through the folder map, so it is given a plain one; build/lib would keep files that are gone
types: $(VENV)/.dev
	rm -rf .typecheck build/lib build/bdist.*
	$(PIP) install --no-deps --no-build-isolation --target .typecheck .
	MYPYPATH=.typecheck $(BIN)/mypy --package fgrpo

unit: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

# the site in build/site, warnings are errors; a test builds it, too
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

# docs/figure_4.png, the picture of README and site, from the results of `make reproduce`
picture: $(VENV)/.dev
	$(BIN)/fgrpo figure 4 --out results
	$(BIN)/python docs/picture.py results

# every property test of theory/ with EXAMPLES examples, the engines by law, the oldest TRL, a real model; writes docs/acceptance.json
# PARTS=properties, sparse, torch, trl or smollm2 (or several with commas) for some of it
EXAMPLES ?= 1500
acceptance: $(VENV)/.dev
	$(BIN)/python tests/acceptance.py --examples $(EXAMPLES) $(if $(PARTS),--parts $(PARTS))

# how many small changes of theory/ the tests notice; MODULES=weights,updates for some modules, SAMPLE=0.2 SEED=1 for a part
mutation: $(VENV)/.dev
	$(BIN)/python tests/mutation.py $(if $(MODULES),--modules $(MODULES)) $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED))

# speed, as ratios of interleaved runs
bench: $(VENV)/.dev
	$(BIN)/python benchmarks/tail_miss.py
	$(BIN)/python benchmarks/simulator.py
	$(BIN)/python benchmarks/torch_cpu.py
	$(BIN)/python benchmarks/trainer.py

# executes the notebooks at full size and stores them with their outputs; NAMES="1_tail_miss 2_lemmas" for some of them
notebooks: $(VENV)/.dev
	$(BIN)/python notebooks/refresh.py $(NAMES)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(INSTALL) --editable .[dev]
	touch $@ $(VENV)/.core

clean:
	rm -rf build dist .typecheck .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
