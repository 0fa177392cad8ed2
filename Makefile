# What a person does with this repository. Every target installs what it lacks (see scripts/setup).

CARGO ?= cargo
ARGS ?=
SERVERS ?=

.DEFAULT_GOAL := help
.PHONY: help demo check test soak bench release package instructions bench-update lab drivers apps fuzz lint fmt doc build

help: ## show this list
	@echo "Remora: a query cache for MySQL and MariaDB. Targets:"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## a private MariaDB, sample data, Remora in front: see it work (ARGS=--keep leaves it running)
	@scripts/setup demo
	$(CARGO) build --release --locked -p remora -p remora-lab
	@exec $(CARGO) run --release --locked --quiet -p remora-lab --bin remora-lab -- demo $(ARGS)

check: ## what to run before each commit: lints, and the tests with one server that don't take long
	@scripts/setup check
	@$(MAKE) --no-print-directory lint
	@CARGO="$(CARGO)" scripts/test --check $(ARGS)

test: ## all tests, with five real servers, and a short fuzz run (SERVERS="mysql-8.0 …": with these only)
	@scripts/setup test
	@CARGO="$(CARGO)" scripts/test $(SERVERS) $(or $(ARGS),$(if $(SERVERS),,--beside scripts/fuzz))

soak: ## the long modes: millions of checked reads, long searches, long fuzzing (MINUTES=60)
	@scripts/setup test
	@CARGO="$(CARGO)" scripts/soak $(or $(MINUTES),60) $(SERVERS)

bench: ## measure against a direct connection, HAProxy and a bare responder (ARGS=--quick for short rounds)
	@scripts/setup bench
	$(CARGO) build --release --locked -p remora -p remora-lab
	@exec $(CARGO) run --release --locked --quiet -p remora-lab --bin remora-lab -- bench $(ARGS)

release: ## build Remora for use: optimised for what a training run did (target/guided/remora)
	@CARGO="$(CARGO)" scripts/release

package: ## what Remora is installed from: an archive, a Debian package, a container image (in target/package)
	@scripts/setup package
	@CARGO="$(CARGO)" scripts/package $(ARGS)

instructions: ## count the instructions of a hit, a miss, a write …; fails if one rose by more than 3 %
	@scripts/setup instructions
	$(CARGO) build --release --locked -p remora
	@REMORA_BINARY="$${CARGO_TARGET_DIR:-target}/release/remora" \
		$(CARGO) run --locked -p remora-lab --bin remora-lab -- instructions $(ARGS)

bench-update: ## write the counted instructions to results/instructions.json; the commit says why they changed
	@$(MAKE) --no-print-directory instructions ARGS=--update

lab: ## the published experiments side by side, with a report (ARGS='e1' for one at full length; default: all --quick)
	@scripts/setup bench
	$(CARGO) build --release --locked -p remora -p remora-lab
	@exec $(CARGO) run --release --locked --quiet -p remora-lab --bin remora-lab -- run $(if $(ARGS),$(ARGS),all --quick)

drivers: ## real drivers of many languages, each directly and through Remora (ARGS='--only pymysql,mysql2')
	@scripts/setup drivers
	@drivers/install
	$(CARGO) build --locked -p remora -p remora-lab
	@exec $(CARGO) run --locked --quiet -p remora-lab --bin remora-lab -- drivers $(ARGS)

apps: ## real applications, each directly and through Remora (ARGS='--only wordpress')
	@scripts/setup apps
	@applications/install
	$(CARGO) build --release --locked -p remora -p remora-lab
	@exec $(CARGO) run --release --locked --quiet -p remora-lab --bin remora-lab -- apps $(ARGS)

fuzz: ## fuzz the decoders (ARGS=… goes to scripts/fuzz)
	@scripts/setup fuzz
	@if [ -x scripts/fuzz ]; then scripts/fuzz $(ARGS); else echo "no scripts/fuzz yet"; exit 1; fi

lint: ## formatting, the repository's own rules and clippy, warnings are errors
	@scripts/setup build
	$(CARGO) fmt --all --check
	$(CARGO) run --quiet --locked -p xtask -- tidy
	$(CARGO) tree --quiet --locked --manifest-path fuzz/Cargo.toml > /dev/null
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

fmt: ## format the code
	$(CARGO) fmt --all

doc: ## the documentation of the code, warnings are errors
	@scripts/setup build
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

build: ## an optimised Remora, in target/release/remora
	@scripts/setup build
	$(CARGO) build --release --locked -p remora
