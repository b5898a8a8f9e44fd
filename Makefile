# One command each. Every target builds what it needs in .venv and says what it does; `make help` lists them.
# Works with GNU make 3.81 and newer, on Linux and macOS.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PIP := $(PY) -m pip --disable-pip-version-check -qq
ARGS ?=

# Stamps: empty files that remember what has been done, so that a second call is quick.
CREATED := $(VENV)/.created
INSTALLED := $(VENV)/.installed
TEST_TOOLS := $(VENV)/.test-tools
DEV_TOOLS := $(VENV)/.dev-tools

# The extension is rebuilt when one of these changes. Python files are used in place and need nothing.
NATIVE := $(wildcard native/*.c native/*.h)

.PHONY: help demo test check bench bench-peers experiments leakage dev sanitize clean
.DEFAULT_GOAL := help

help:
	@echo "make demo      two parties train SecureBoost under encryption on real data (under two minutes)"
	@echo "make test      all tests                         make test ARGS='-k packing' for some of them"
	@echo "make check     style and types: ruff, mypy, clang-format"
	@echo "make bench     time the operations               make bench ARGS='-k encrypt' for some of them"
	@echo "make bench-peers  our Paillier beside others', in one run (installs them in .venv-peers; some minutes)"
	@echo "make experiments  the papers' tables and growth of cost into docs/results (resumable; minutes to hours)"
	@echo "                  ARGS='trees fate' for some of them"
	@echo "make leakage   what each party can infer, by attacks on what it saw (some minutes)"
	@echo "make dev       everything for development: environment, build, tools, git hook"
	@echo "make sanitize  crypto tests with AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make clean     remove what was built (not $(VENV); remove that by hand to start from nothing)"
	@echo ""
	@echo "PYTHON=python3.12 make ... chooses the interpreter. The first call downloads what is needed."

demo: $(INSTALLED)
	@$(PY) examples/05_quickstart_breast_cancer.py $(ARGS)

test: $(INSTALLED) $(TEST_TOOLS)
	@echo "== Running the tests, on all cores"
	@$(PY) -m pytest tests -n auto --dist loadfile $(ARGS)

check: $(INSTALLED) $(TEST_TOOLS) $(DEV_TOOLS)
	@echo "== Style (ruff)"
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@echo "== Types (mypy)"
	@$(PY) -m mypy
	@echo "== C style (clang-format)"
	@$(BIN)/clang-format --dry-run -Werror $(NATIVE) $(wildcard native/check/*.[ch])
	@echo "== All clean"

bench: $(INSTALLED) $(TEST_TOOLS)
	@echo "== Timing; the columns are per call"
	@$(PY) -m pytest benchmarks -o python_files='bench_*.py test_*.py' --benchmark-only \
	    --benchmark-columns=min,median,stddev,rounds --benchmark-sort=name --benchmark-group-by=func -q $(ARGS)

bench-peers: $(INSTALLED)
	@echo "== Paillier libraries side by side; for a fair table leave the machine alone meanwhile"
	@$(PY) benchmarks/peers/run.py $(ARGS)

experiments: $(INSTALLED) $(TEST_TOOLS)
	@$(PY) benchmarks/experiments $(ARGS)

leakage: $(INSTALLED)
	@echo "== Training, attacking what each party saw, and writing docs/results/leakage.md"
	@$(PY) benchmarks/leakage/run.py $(ARGS)

dev: $(INSTALLED) $(TEST_TOOLS) $(DEV_TOOLS)
	@hooks=`git rev-parse --git-path hooks 2>/dev/null` || exit 0; \
	if [ -n "`git config core.hooksPath`" ] || [ -e "$$hooks/pre-commit" ]; then \
	    echo "== Your git hooks are left as they are"; \
	else \
	    mkdir -p "$$hooks" && printf '#!/bin/sh\nexec make --no-print-directory check\n' > "$$hooks/pre-commit" && \
	    chmod +x "$$hooks/pre-commit" && echo "== 'make check' now runs before every commit (git hook)"; \
	fi
	@echo "== Ready: $(PY)"

sanitize: $(INSTALLED) $(TEST_TOOLS)
	@echo "== Crypto tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@PYTHON="$(CURDIR)/$(PY)" bash native/sanitize.sh $(ARGS)

clean:
	@rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .benchmarks .hypothesis
	@rm -f $(INSTALLED)
	@find . -path ./$(VENV) -prune -o -name __pycache__ -type d -exec rm -rf {} +
	@echo "== Removed what was built; $(VENV) stays (rm -rf $(VENV) to start from nothing)"

# ---- the environment ----------------------------------------------------------------------------------------------

$(CREATED):
	@command -v $(PYTHON) >/dev/null 2>&1 || \
	    { echo "$(PYTHON) was not found. Install Python 3.11 or newer, or name yours: make PYTHON=/path/to/python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "vfltree needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version 2>&1`. Name a newer one: make PYTHON=python3.12 ..."; exit 1; }
	@command -v cc >/dev/null 2>&1 || command -v gcc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 || \
	    { echo "No C compiler was found. Debian/Ubuntu: apt install build-essential python3-dev; macOS: xcode-select --install"; exit 1; }
	@echo "== Making a Python environment in $(VENV) (`$(PYTHON) --version`)"
	@test -x $(PY) || $(PYTHON) -m venv $(VENV) || \
	    { rm -rf $(VENV); echo "Python could not make an environment. On Debian/Ubuntu: apt install python3-venv"; exit 1; }
	@$(PY) -m pip --version >/dev/null
	@touch $@

# The build tools live in the environment (no build isolation), so that rebuilding after a change in native/ takes
# seconds and no network.
$(INSTALLED): $(CREATED) $(NATIVE) CMakeLists.txt pyproject.toml constraints.txt
	@if [ ! -e $(VENV)/.build-tools ]; then \
	    echo "== Downloading build tools and libraries (numpy, numba with LLVM, scikit-learn, pandas: about 200 MB)."; \
	    echo "   The first time this can take some minutes, without a sign of life."; \
	    $(PIP) install -c constraints.txt 'scikit-build-core>=0.11' 'cmake>=3.18' ninja && touch $(VENV)/.build-tools; \
	fi
	@echo "== Building the C extension and installing vfltree (in place: changed Python files count at once)"
	@$(PIP) install -c constraints.txt --no-build-isolation -e . || \
	    { echo "The build failed; the reason is above. Missing Python.h? Debian/Ubuntu: apt install python3-dev"; exit 1; }
	@touch $@

# Extras are installed by themselves, read from pyproject.toml, so that the extension is not built again for them.
define install_extra
$(PY) -c 'import sys, tomllib; \
    print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")' \
    $(1) > $@.txt && $(PIP) install -c constraints.txt -r $@.txt && touch $@
endef

$(TEST_TOOLS): $(CREATED) pyproject.toml constraints.txt | $(INSTALLED)
	@echo "== Downloading what the tests need (pytest, phe, xgboost, torch: can take some minutes)"
	@$(call install_extra,test)

$(DEV_TOOLS): $(CREATED) pyproject.toml constraints.txt | $(INSTALLED)
	@echo "== Downloading tools for style and types (ruff, mypy, clang-format)"
	@$(call install_extra,dev)
