# Needs Rust (cargo), Python 3.11 or later with venv, and make. Everything else goes into .venv and target.

PYTHON ?= python3
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
BUILT := $(VENV)/.built
BENCH_BUILT := $(VENV)/.built-bench
VOCABULARIES_INSTALLED := $(VENV)/.vocabularies
RUST := $(shell find weighted_gss dwa_runtime compiler bindings -name '*.rs' -o -name Cargo.toml)
FUZZ_SECONDS ?= 300
BENCH_SAMPLE ?= 300
HOST = $(shell rustc -vV | sed -n 's/^host: //p' | tr a-z- A-Z_)
ROUNDTRIP_TEXTS ?= 10000

# Packages that ship real tokenizers. Only their files are read, so what they depend on is not installed.
VOCABULARIES := dashscope==2.0.2 litellm==1.110.2 mistral-common==1.13.1

# The wheel and the Rust tests share profile, features and target folder, so that dependencies are built once. (That is
# why the tests take the whole workspace: without the bindings, some dependencies would lack features and be rebuilt.)
CARGO_TEST := cargo test --release --workspace
MATURIN := env -u CONDA_PREFIX VIRTUAL_ENV=$(VENV) $(BIN)/maturin develop --release

.DEFAULT_GOAL := help
.PHONY: help demo test check bench maskbench fuzz fuzz-slow fuzz-load valgrind sql roundtrip clean

help: ## Say what each target does
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(BUILT) ## Decode 200 SQL statements under masks and judge them, then 200 for each of three roles
	@echo "demo: compiling sql_core, decoding 200 statements under masks, judging them with sqlglot and Lark; then three roles"
	@$(BIN)/python -m glrgrid.demo

test: $(BUILT) $(VOCABULARIES_INSTALLED) ## Run the Rust and the Python tests
	@echo "test: running the Rust tests, then the Python tests"
	@$(CARGO_TEST)
	@$(BIN)/python -m pytest -n auto --dist worksteal

check: $(BUILT) ## Check formatting, lints and types
	@echo "check: formatting, lints and types of Rust and Python"
	@cargo fmt --all --check
	@cargo clippy --release --workspace --all-targets -- -D warnings
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

bench: $(BENCH_BUILT) ## Measure SQL and JSON Schema beside other engines and write bench/RESULTS.md: half an hour
	@echo "bench: 1,094 SQL statements, then $(BENCH_SAMPLE) schemas; results go to bench/out and bench/RESULTS.md"
	@$(BIN)/python -m bench sql_tail
	@$(BIN)/python -m bench maskbench --sample $(BENCH_SAMPLE)
	@$(BIN)/python bench/results.py

maskbench: $(BUILT) ## Hold JSON Schema against all of MaskBench's schemas under GLRGRID_DATA
	@test -n "$(GLRGRID_DATA)" || { echo "error: GLRGRID_DATA names no folder; see CONTRIBUTING.md"; exit 1; }
	@echo "maskbench: 2,000 schemas with their instances in four spellings, in processes of their own"
	@$(BIN)/python tests/python/maskbench.py --jobs 2 --expected tests/corpus/maskbench.txt \
		$(GLRGRID_DATA)/maskbench/dev.jsonl.gz

fuzz: $(BUILT) ## Hold the engine against the reference on random grammars for FUZZ_SECONDS
	@echo "fuzz: comparing masks with the reference on new random grammars for $(FUZZ_SECONDS) seconds"
	@GLRGRID_FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m pytest -q -s tests/python/test_exactness.py

fuzz-slow: $(BUILT) ## The same with ten times the cases of the tests, always the same ones
	@echo "fuzz-slow: comparing masks with the reference on 6,000 random grammars in each lexer mode"
	@GLRGRID_FUZZ_TIMES=10 $(BIN)/python -m pytest -q -s tests/python/test_exactness.py

fuzz-load: ## Look for artifacts that do harm when they are loaded, for FUZZ_SECONDS, with cargo-fuzz
	@cargo fuzz --version >/dev/null 2>&1 || \
		{ echo "error: there is no cargo-fuzz; cargo install cargo-fuzz, rustup toolchain install nightly"; exit 1; }
	@echo "fuzz-load: loading changed artifacts for $(FUZZ_SECONDS) seconds"
	@cargo run --quiet --release --manifest-path fuzz/Cargo.toml --bin seeds fuzz/corpus/load
	@cargo +nightly fuzz run load -- -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=2048

valgrind: ## Load forged artifacts under valgrind
	@command -v valgrind >/dev/null || { echo "error: there is no valgrind"; exit 1; }
	@echo "valgrind: loading forged artifacts and decoding with those that load"
	@CARGO_TARGET_$(HOST)_RUNNER="valgrind --quiet --error-exitcode=1 --suppressions=$(CURDIR)/compiler/tests/valgrind.supp" \
		$(CARGO_TEST) --test forged -- --test-threads=1

sql: $(BUILT) ## Hold SQL policies against SQLite, at length: half an hour
	@echo "sql: 10,000 statements a role, parsed, run and watched by SQLite; all gold queries; the exhaustive speller"
	@$(BIN)/python -m pytest -q -m full tests/python/test_sql_policy.py tests/python/test_sql_acceptance.py \
		tests/python/test_sql_checker.py tests/python/test_sql_differential.py

roundtrip: $(BUILT) $(VOCABULARIES_INSTALLED) ## Encode ROUNDTRIP_TEXTS texts with every real tokenizer there is
	@echo "roundtrip: encoding $(ROUNDTRIP_TEXTS) texts with real tokenizers, comparing what the tokens spell"
	@GLRGRID_ROUNDTRIP_TEXTS=$(ROUNDTRIP_TEXTS) $(BIN)/python -m pytest -q tests/python/test_vocab_real.py

clean: ## Remove the virtual environment and everything that was built
	@echo "clean: removing .venv, target, caches and the built module"
	@rm -rf .venv target bench/out glrgrid/_native*.so .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find glrgrid tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	@echo "setup: making the virtual environment .venv"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "error: $(PYTHON) is older than Python 3.11; name a newer one with make PYTHON=..."; exit 1; }
	@command -v cargo >/dev/null || \
		{ echo "error: there is no cargo; install Rust from https://rustup.rs"; exit 1; }
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'maturin>=1.9,<2'
	@touch $@

$(BUILT): $(VENV)/.created $(RUST) Cargo.toml Cargo.lock pyproject.toml
	@echo "build: compiling the native module (a minute or two the first time) and installing the package into .venv"
	@$(MATURIN) --extras demo,test,check
	@touch $@

$(VOCABULARIES_INSTALLED): $(BUILT) Makefile
	@echo "setup: installing packages that ship tokenizers, for tests"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(VOCABULARIES)
	@touch $@

$(BENCH_BUILT): $(BUILT)
	@echo "build: installing the engines that are measured beside it"
	@$(MATURIN) --extras bench
	@touch $@
