# What a person needs: `make run` does the main job, `make test` checks everything. Both set up what they need.

RESULTS := results/$(shell date +%Y%m%d-%H%M%S)
FLOWSTART := target/release/flowstart
FUZZ_SECONDS ?= 60

.PHONY: run test lint bench bench-quic interop fuzz study setup

# The Blitzstart paper's Table 1, all cells with fewer repetitions, on the terminal and as an HTML report.
run: setup
	cargo build --release --locked -p flowstart
	$(FLOWSTART) run scenarios/blitzstart-table1.toml --reps 10 --out $(RESULTS)

test: setup
	cargo test --workspace --features flowstart-quic/quinn --locked

# Table 1 with the paper's 30 repetitions, and every validation.
study: setup
	cargo build --release --locked -p flowstart
	$(FLOWSTART) run scenarios/blitzstart-table1.toml --out $(RESULTS)
	$(FLOWSTART) validate

# Data packets per second of user CPU, the cost of an acknowledgement in each scheme, and criterion's report.
bench: setup
	cargo run --release --locked -p flowstart-sim --example speed
	cargo bench --locked -p flowstart-core
	cargo bench --locked -p flowstart-sim

# Throughput and CPU time over the loopback interface, ten pairs of this program's CUBIC and noq's own.
bench-quic: setup
	cargo build --release --locked -p flowstart
	$(FLOWSTART) perf pairs --size 1GB --pairs 10

# The QUIC client and server against aioquic and Chromium; what cannot be installed is skipped.
interop: setup
	cargo build --release --locked -p flowstart
	FLOWSTART=$(FLOWSTART) scripts/interop/run

# Every parser of input, FUZZ_SECONDS each. Needs nightly and cargo-fuzz.
fuzz: setup
	@cargo +nightly fuzz --version >/dev/null 2>&1 || { \
	    echo "please install: rustup toolchain install nightly; cargo install cargo-fuzz" >&2; exit 1; }
	@set -e; for target in $$(cargo +nightly fuzz list); do \
	    echo "$$target, $(FUZZ_SECONDS) s"; \
	    mkdir -p fuzz/corpus/$$target; \
	    cargo +nightly fuzz run $$target fuzz/corpus/$$target fuzz/seeds/$$target -- \
	        -max_total_time=$(FUZZ_SECONDS) -max_len=4096 -verbosity=0; \
	done

lint: setup
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --features flowstart-quic/quinn --all-targets --locked -- -D warnings
	cargo clippy -p flowstart-lab --no-default-features --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --features flowstart-quic/quinn --no-deps --locked

setup:
	@scripts/setup
