# The commands of this repository; `make help` lists them.

CARGO ?= cargo
PYTHON ?= python3
TARGET_DIR := $(abspath $(or $(CARGO_TARGET_DIR),target))
# Dependencies of the benches' peer double every build, so only the bench commands build it.
NOT_PEER := --workspace --exclude plugd-bench-peer

.DEFAULT_GOAL := help
.PHONY: help demo test check bench bench-quick bench-sdks cost cost-build cost-layers cost-record chaos fuzz install clean tools examples release others peers

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: tools ## build, then run the whole story on real processes (under a minute after the build)
	$(CARGO) build -p plugd -p plugd-example-patrol -p plugd-example-tickets -p plugd-example-trip
	@$(MAKE) --no-print-directory examples
	PLUGD="$(TARGET_DIR)/debug/plugd" tests/demo.sh

test: tools ## build what the tests need, then run all of them
	$(CARGO) build --bins
	@$(MAKE) --no-print-directory examples
	PYTHON=$(PYTHON) tests/sdks.sh test
	$(CARGO) test $(NOT_PEER)
	$(CARGO) test -p plugd-sdk --features async --test asynchronous

check: tools ## formatting, lints, docs, layout, licences, syntax of the fixtures
	$(CARGO) fmt --all --check
	$(CARGO) clippy --all-targets $(NOT_PEER) -- -D warnings
	$(CARGO) clippy -p plugd-sdk --features async --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --no-deps $(NOT_PEER)
	$(CARGO) test -p plugd-tests --test tidy
	tests/tidy/licences.sh
	tests/tidy/syntax.sh
	PYTHON=$(PYTHON) tests/sdks.sh check

bench: tools release others peers ## measure everything and write docs/performance.md
	"$(TARGET_DIR)/release/plugd-bench" full

bench-sdks: tools others peers ## a handler in each language, against a bare loop and MCP servers, in under a minute
	@$(CARGO) build --quiet --release -p plugd-bench
	@"$(TARGET_DIR)/release/plugd-bench" sdks

bench-quick: tools release ## the main figures as `name: value` lines, under two minutes
	@"$(TARGET_DIR)/release/plugd-bench" quick

cost: tools ## count a call's instructions and system calls and compare them with those recorded
	@if lib=$$(tests/cost/valgrind.sh "$(COST_TOOLS)"); then \
	  $(MAKE) --no-print-directory cost-build && $(call with_lib,check); \
	else \
	  echo "SKIPPED: what a call costs was not compared" >&2; \
	  [ "$${PLUGD_TEST_REQUIRE_ALL:-}" != 1 ] || { echo "PLUGD_TEST_REQUIRE_ALL=1 allows no skip" >&2; exit 1; }; \
	fi

cost-record: tools cost-build ## record them anew, where a change of them is meant
	@lib=$$(tests/cost/valgrind.sh "$(COST_TOOLS)") && $(call with_lib,record)

cost-layers: tools cost-build ## print what each layer of a call costs, and where its instructions are
	@lib=$$(tests/cost/valgrind.sh "$(COST_TOOLS)") && $(call with_lib,layers)

SECONDS ?= 60
KILLS ?= 2
chaos: tools ## kill plugins and the daemon under load (SECONDS=60 KILLS=2 SEED=…), see what holds
	$(CARGO) build -p plugd -p plugd-chaos
	"$(TARGET_DIR)/debug/plugd-chaos" --seconds $(SECONDS) --kills $(KILLS) $(if $(SEED),--seed $(SEED))

FUZZ_SECONDS ?= 120
fuzz: ## look for bytes that break the protocol's promises (needs nightly and cargo-fuzz; FUZZ_SECONDS=120)
	cd protocol && for target in decoder message manifest; do \
	  mkdir -p fuzz/target/found/$$target && \
	  $(CARGO) +nightly fuzz run $$target fuzz/target/found/$$target fuzz/corpus/$$target wire/v1 -- \
	    -max_total_time=$(FUZZ_SECONDS) -max_len=8192 || exit 1; \
	done

install: ## install the plugd program, and its launcher beside it, with cargo
	$(CARGO) install --path runtime/cli --locked
	$(call with_musl,$(CARGO) install --path runtime/launcher --locked --target)

clean: ## remove everything that was built
	$(CARGO) clean
	rm -rf example-plugins/*/bin

# The steps the commands above share.

tools:
	@command -v $(CARGO) >/dev/null || { \
	  echo "plugd needs the Rust toolchain: install it with rustup (see rust-lang.org/tools/install)" >&2; exit 1; }
	@command -v $(PYTHON) >/dev/null || { \
	  echo "plugd needs python3 for its example plugins: apt-get install python3, or your system's way" >&2; exit 1; }

# `install` puts a new file in place, so a plugin that is running keeps its own.
examples:
	@for name in patrol tickets trip; do \
	  install -D -m 755 "$(TARGET_DIR)/debug/$$name" example-plugins/$$name/bin/$$name || exit 1; \
	done
	@if ! command -v go >/dev/null; then \
	  echo "SKIPPED: go is not installed: the examples search and vocabulary are not built" >&2; exit 0; \
	fi; \
	for name in search vocabulary; do \
	  (cd example-plugins/$$name && go build -buildvcs=false -o "$(TARGET_DIR)/debug/example-$$name" .) && \
	  install -D -m 755 "$(TARGET_DIR)/debug/example-$$name" example-plugins/$$name/bin/$$name || exit 1; \
	done

# Apart, so that the features the peer wants of tokio do not reach what is measured.
release:
	@$(CARGO) build --quiet --release -p plugd -p plugd-bench
	@$(CARGO) build --quiet --release -p plugd-bench-peer
	@$(call with_musl,$(CARGO) build --quiet --release -p plugd-launcher --target) && \
	  install -m 755 "$(TARGET_DIR)/$(MUSL)/release/plugd-launcher" "$(TARGET_DIR)/release/plugd-launcher"

# Where valgrind's tools are unpacked if the installed ones are too old, and how the guard runs with them.
COST_TOOLS = $(TARGET_DIR)/cost-tools
with_lib = { [ -z "$$lib" ] || export VALGRIND_LIB="$$lib"; "$(TARGET_DIR)/measured/plugd-cost" $(1); }

# One command, so that features are those of the program wherever it is counted.
cost-build:
	@$(CARGO) build --quiet --profile measured -p plugd -p plugd-launcher -p plugd-bench -p plugd-cost --bin plugd --bin plugd-launcher --bin raw_echo \
	  --bin echo_plugin --bin plugd-cost --bin hold_plugin --bin cost_client

# What the bench runs of other languages. What is missing there, it says itself, and measures the rest.
others:
	@rm -f "$(TARGET_DIR)"/release/go_loop "$(TARGET_DIR)"/release/go_sdk
	@if command -v go >/dev/null; then cd tests/bench/programs/go && \
	  go build -o "$(TARGET_DIR)/release/go_loop" ./loop && go build -o "$(TARGET_DIR)/release/go_sdk" ./sdk || \
	  echo "the echoes in Go cannot be built: the bench goes on without them" >&2; fi

# MCP servers for the bench to compare with, from PyPI and npm; minutes at most, and never part of the tests.
PEERS = $(TARGET_DIR)/bench-peers
PROGRAMS = tests/bench/programs
peers:
	@mkdir -p "$(PEERS)/node"
	@{ test -x "$(PEERS)/python/bin/pip" || $(PYTHON) -m venv "$(PEERS)/python"; } && \
	  timeout 300 "$(PEERS)/python/bin/pip" install --quiet --disable-pip-version-check \
	    -r $(PROGRAMS)/python/requirements.txt || \
	  echo "FastMCP cannot be installed: nothing will be compared with it" >&2
	@install -m 644 $(PROGRAMS)/node/package.json $(PROGRAMS)/node/peer.js "$(PEERS)/node" && \
	  timeout 300 npm install --prefix "$(PEERS)/node" --silent --no-audit --no-fund --prefer-offline || \
	  echo "the MCP SDK for Node cannot be installed: nothing will be compared with it" >&2

# Statically against musl, the launcher starts several times faster (docs/decisions/0007-launcher.md).
MUSL = $(shell uname -m)-unknown-linux-musl
with_musl = rustup target add $(MUSL) >/dev/null 2>&1 && $(1) $(MUSL) || { \
	  echo "no $(MUSL) to build the small launcher for: plugd does its work, and plugins start more slowly" >&2; }
