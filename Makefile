# What a person needs: `make run` does the main job, `make test` checks everything. Both set up what they need.

RESULTS := results/$(shell date +%Y%m%d-%H%M%S)
FLOWSTART := target/release/flowstart
FUZZ_SECONDS ?= 60
SET ?= held-out
PARTS ?= 8
# The QUIC stacks that are not compiled unless asked for.
HOSTS := --features flowstart-quic/quinn,flowstart-quic/s2n-quic
# What loads programs into the kernel, where that can be: for root on a Linux whose kernel describes its types (BTF).
KERNEL := $(shell [ "$$(id -u)" -eq 0 ] && [ -e /sys/kernel/btf/vmlinux ] && echo --features flowstart/tcp)

.PHONY: run test test-kernel test-slurm lint same-results bench bench-quic bench-report load parity interop browser fuzz
.PHONY: study study-predict judge record full setup install install-capi packages python docs site browser-site

# The Blitzstart paper's Table 1, all cells with fewer repetitions, on the terminal and as an HTML report.
run: setup
	@echo "Building: 4 to 15 minutes on two cores, the last of them silent, then the runs take seconds."
	cargo build --release --locked -p flowstart
	$(FLOWSTART) run scenarios/blitzstart-table1.toml --reps 10 --out $(RESULTS)

# Where programs can be loaded into the kernel these are also the tests of its TCP: one build for all.
test: setup
	@scripts/setup python
	@if [ -n "$(KERNEL)" ]; then scripts/setup kernel; \
	else echo "SKIPPED: the schemes in the kernel's TCP, for root and BTF are needed: make test-kernel" >&2; fi
	cargo test --workspace $(HOSTS) $(KERNEL) --locked

# The schemes in the kernel's TCP, loaded into this kernel and taken out again; other connections do not notice.
test-kernel:
	@scripts/setup kernel
	cargo test -p flowstart-bpf --features kernel --locked
	cargo test -p flowstart --features tcp --test tcp --test kernel_studies --locked

# A study on a Slurm of its own, on this machine and for root: the results are those of threads.
test-slurm:
	@scripts/setup slurm
	cargo build --release --locked -p flowstart-python
	scripts/slurm-test

# Table 1 with the paper's 30 repetitions, and every validation.
study: setup
	cargo build --release --locked -p flowstart
	$(FLOWSTART) run scenarios/blitzstart-table1.toml --out $(RESULTS)
	$(FLOWSTART) validate

# Predict, CoDel, PIE and the oracle in all 12,096 cells of the load-transient grid, with paced flows at gains 2 and 1.
study-predict: setup
	mkdir -p $(RESULTS)
	for gain in 2 1; do \
		cargo run --release --locked -p flowstart-validate --no-default-features --example predict_grid -- \
			$$gain 2 > $(RESULTS)/predict-$$gain.csv || exit 1; done

# A scheme beside all others on the held-out cells: make judge SCHEME=more-start RECORDINGS=DIR. Hours; a part that was
# stopped goes on. Run it once for each version that is called finished.
judge: setup
	@test -n "$(SCHEME)" || { echo "usage: make judge SCHEME=NAME [SET=design] [RECORDINGS=DIR] [PARTS=8]" >&2; exit 2; }
	cargo build --release --locked -p flowstart
	for part in $$(seq $(PARTS)); do $(FLOWSTART) judge "$(SCHEME)" --set $(SET) --part $$part/$(PARTS) --resume \
		$(if $(RECORDINGS),--recordings "$(RECORDINGS)") --out results/judge-$(SCHEME) > /dev/null || exit 1; done
	$(FLOWSTART) judge "$(SCHEME)" --from results/judge-$(SCHEME)/$(SET)-*-of-$(PARTS).jsonl

# Every record of record/ anew, or those that NAME names: what stands behind the numbers that texts publish. Hours.
record: setup
	@[ -z "$(KERNEL)" ] || scripts/setup kernel
	cargo build --release --locked -p flowstart $(KERNEL)
	scripts/record $(NAME)

# What .ci/run leaves out: every record (all scenarios with their repetitions, all validations), the whole grid of
# Predict, benchmarks, load, and other programs' QUIC. A day on two cores; what it prints stays in results/.
full:
	mkdir -p $(RESULTS)
	for part in record study-predict bench bench-quic bench-report load parity interop fuzz; do \
		$(MAKE) $$part > $(RESULTS)/$$part.txt 2>&1 && echo "$$part: done" || { echo "$$part: FAILED"; failed=1; }; \
	done; echo "see $(RESULTS)"; [ -z "$$failed" ]

# Data packets per second of user CPU, the cost of an acknowledgement in each scheme, and criterion's report.
bench: setup
	cargo run --release --locked -p flowstart-sim --example speed
	cargo bench --locked -p flowstart-core
	cargo bench --locked -p flowstart-sim

# Throughput and CPU time over the loopback interface, ten pairs of this program's CUBIC and noq's own.
bench-quic: setup
	cargo build --release --locked -p flowstart
	$(FLOWSTART) perf pairs --size 1GB --pairs 10

# Two thousand connections at once: times of handshakes, and memory beside what `--connection-memory` states.
load: setup
	cargo test --release --locked -p flowstart --test load -- --ignored --nocapture --test-threads 1

# Completion times in real time beside simulated ones, as root: every scheme of noq and of the kernel's TCP, four links,
# three sizes.
parity: setup
	@scripts/setup kernel
	cargo build --release --locked -p flowstart --features tcp
	FLOWSTART=$(FLOWSTART) scripts/parity quic --reps 3
	FLOWSTART=$(FLOWSTART) scripts/parity tcp --reps 5

# CPU time and memory of comparisons with --out as a ratio to those without.
bench-report: setup
	cargo build --release --locked -p flowstart
	FLOWSTART=$(FLOWSTART) scripts/bench-report

# The QUIC client and server against aioquic, curl and Chromium; what cannot be installed is skipped.
interop: setup
	cargo build --release --locked -p flowstart
	FLOWSTART=$(FLOWSTART) scripts/interop/run

# Reports in Chromium: layout on phones and wide screens, hovering, sorting, the dark scheme, paper.
browser:
	@scripts/setup browser
	@[ -z "$(KERNEL)" ] || scripts/setup kernel
	cargo build --workspace $(HOSTS) $(KERNEL) --locked --bins
	scripts/browser/run

# The lab in the browser as files in target/site, for any web server; the simulator runs as WebAssembly.
site: setup
	@scripts/setup site
	scripts/site

# That site in Chromium: its pages as those of `flowstart ui`, and its results beside those of the command.
browser-site: site
	@scripts/setup browser
	cargo build --locked -p flowstart
	scripts/browser/site

# Every parser of input and the controller, FUZZ_SECONDS each.
fuzz: setup
	FUZZ_SECONDS=$(FUZZ_SECONDS) scripts/fuzz run

# Whether two builds give the same results: make same-results OLD=PROGRAM [NEW=PROGRAM], NEW being this tree by default.
NEW ?= $(FLOWSTART)
same-results: setup
	@test -n "$(OLD)" || { echo "usage: make same-results OLD=PROGRAM [NEW=PROGRAM]" >&2; exit 2; }
	$(if $(filter $(FLOWSTART),$(NEW)),cargo build --release --locked -p flowstart)
	scripts/same-results $(OLD) $(NEW)

# The Python package against the libraries that read its tables and run its sweeps, and its notebook executed anew. To
# use it: pip install ./crates/flowstart-python
python:
	@scripts/setup python
	cargo test -p flowstart-python --locked
	target/python-venv/bin/python crates/flowstart-python/examples/execute

# The documentation as a site in target/docs, with the reports of some scenarios.
docs:
	@scripts/setup docs
	cargo build --release --locked -p flowstart
	NO_MKDOCS_2_WARNING=1 target/docs-venv/bin/python scripts/docs $(FLOWSTART)

# Packages of Debian and RPM, an image, the wheel, and every crate as a registry would get it: made in target/packages,
# each installed and tried. All of it is compiled for this system, for musl, for Python and from the crates' packages:
# an hour or more on two cores. NAME="deb wheel" makes only these.
packages: setup
	@scripts/setup packages
	scripts/packages $(NAME)

# The command with manual pages and completions; DESTDIR is for packages.
PREFIX ?= /usr/local
install: setup
	cargo build --release --locked -p flowstart
	scripts/install target/release "$(PREFIX)" "$(DESTDIR)"

# The library for hosts in C: header, shared and static library, and what pkg-config says. DESTDIR is for packages.
install-capi: setup
	cargo build --release --locked -p flowstart-capi
	scripts/install-capi target/release "$(PREFIX)" "$(DESTDIR)"

lint:
	@scripts/setup lint
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	scripts/check-columns
	cargo clippy --workspace $(HOSTS) --all-targets --locked -- -D warnings
	[ -z "$(KERNEL)" ] || cargo clippy --workspace $(HOSTS) $(KERNEL) --all-targets --locked -- -D warnings
	cargo check --manifest-path fuzz/Cargo.toml --target-dir target/fuzz --locked
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace $(HOSTS) --no-deps --locked
	scripts/check-crates

setup:
	@scripts/setup
