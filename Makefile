# Data Parallelism, Proven. `make help` lists the targets.
#   PYTHON=python3.12   the interpreter to make .venv with
#   TORCH=cpu           PyTorch's CPU wheels (Linux: a tenth of the size, no NCCL)
#   UNPINNED=1          the newest versions instead of the pinned ones (a weekly check does this)

PYTHON ?= python3
VENV ?= .venv
BIN := $(abspath $(VENV))/bin
SITE := _build/html

# The same for execution, tests and the build, so that stored outputs are what every run prints:
# no GPU is used, one thread, no progress bars, no dates.
export CUDA_VISIBLE_DEVICES =
export OMP_NUM_THREADS = 1
export PYTHONHASHSEED = 0
# A day of 2026: Sphinx takes the year of the copyright from it.
export SOURCE_DATE_EPOCH = 1767225600
export TQDM_DISABLE = 1

SOURCES := $(shell find book helpers web -type f ! -name '*.pyc' ! -path '*/.ipynb_checkpoints/*') _config.yml _toc.yml

.PHONY: help book test lab notebooks preview lint bench site-report soak ddp test-gpu clean
help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18

book: _build/.book ## execute every proof and build the site
	@echo "The book is built: $(abspath $(SITE))/index.html"

_build/.book: $(VENV)/.installed $(SOURCES)
	@rm -rf $(SITE)
	$(BIN)/jupyter-book build . --all -W -n --keep-going
	@mkdir -p _build && touch $@

test: $(VENV)/.installed lint ## lint, unit tests, every chapter against its stored outputs, the site in a browser
	$(BIN)/python -m pytest tests book --nbval --nbval-current-env --nbval-cell-timeout=300 --ignore=tests/site \
	  -n 2 --dist loadfile # processes mostly wait for each other; a chapter's cells stay together, in order
	@rm -rf _build/stored
	BOOK_EXECUTE=off $(BIN)/jupyter-book build . --all -W -n --keep-going --quiet --path-output _build/stored
	SITE=_build/stored/_build/html $(BIN)/python -m pytest tests/site -m alone
	SITE=_build/stored/_build/html $(BIN)/python -m pytest tests/site -m "not alone" -n 2 # a browser mostly waits

lint: $(VENV)/.installed
	$(BIN)/ruff check --no-cache .
	$(BIN)/ruff format --no-cache --check .
	$(BIN)/python tools/notebooks.py --check

lab: $(VENV)/.installed ## open the chapters in JupyterLab (with your GPUs, if there are any)
	env -u CUDA_VISIBLE_DEVICES $(BIN)/jupyter lab book

notebooks: $(VENV)/.installed ## execute the chapters and store their outputs
	$(BIN)/python tools/notebooks.py

preview: $(VENV)/.installed ## build the site from stored outputs, in seconds
	@rm -rf _build/preview/_build/html # its pages share a style sheet, so they are written together
	BOOK_EXECUTE=off $(BIN)/jupyter-book build . -W -n --keep-going --path-output _build/preview
	@echo "Preview: $(abspath _build/preview/_build/html)/index.html"

bench: $(VENV)/.installed ## measure what the book promises about itself, as ratios in one run
	$(BIN)/python tools/bench.py

site-report: $(VENV)/.installed ## what a phone makes of the built site: Lighthouse, median of five (needs node)
	$(BIN)/python tools/site_report.py

soak: $(VENV)/.installed ## every way to fail, twenty times
	$(BIN)/python tools/soak.py

ddp: $(VENV)/.installed ## train a small GPT on every GPU, or on four CPU ranks
	env -u CUDA_VISIBLE_DEVICES $(BIN)/python -c "from helpers.processes import run; from helpers.ranks.training import train; \
	  done = run(train, timeout=3600); print(done.reason); print(done.output[0], end='')"

test-gpu: $(VENV)/.installed ## the checks that need two or more GPUs
	env -u CUDA_VISIBLE_DEVICES $(BIN)/python -m pytest tests/gpu

$(VENV)/.installed: requirements.txt pyproject.toml
	@$(PYTHON) tools/machine.py
	@test -x $(BIN)/python || { echo "Making $(VENV)"; $(PYTHON) -m venv $(VENV); }
ifeq ($(TORCH),cpu)
	$(BIN)/python -m pip install --disable-pip-version-check "$$(grep '^torch==' requirements.txt)" \
	  --index-url https://download.pytorch.org/whl/cpu
endif
ifdef UNPINNED
	sed -E '/^(jupyter-book|sphinx|myst)/!s/==.*//' requirements.txt > requirements-newest.txt
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements-newest.txt; rm requirements-newest.txt
else
	$(BIN)/python -m pip install --disable-pip-version-check -r requirements.txt
endif
	@touch $@

clean: ## remove the built site (not .venv)
	rm -rf _build
