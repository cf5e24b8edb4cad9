# What a person needs: `make run` does the main job, `make test` checks everything. Both set up what they need.

RESULTS := results/$(shell date +%Y%m%d-%H%M%S)
FLOWSTART := target/release/flowstart

.PHONY: run test lint bench study setup

# The Blitzstart paper's Table 1, all cells with fewer repetitions, on the terminal and as an HTML report.
run: setup
	cargo build --release --locked -p flowstart
	$(FLOWSTART) run scenarios/blitzstart-table1.toml --reps 10 --out $(RESULTS)

test: setup
	cargo test --workspace --locked

# Table 1 with the paper's 30 repetitions, and every validation.
study: setup
	cargo build --release --locked -p flowstart
	$(FLOWSTART) run scenarios/blitzstart-table1.toml --out $(RESULTS)
	$(FLOWSTART) validate

# Data packets per second of user CPU, and criterion's report.
bench: setup
	cargo run --release --locked -p flowstart-sim --example speed
	cargo bench --locked -p flowstart-sim

lint: setup
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

setup:
	@scripts/setup
