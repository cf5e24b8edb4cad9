"""Mean FCTs of near hosts (RTTs up to 54 ms), far hosts (150 ms and more) and mid-sized transfers (10 KB to 1 MB), and
what a scheme saves there. The argument is `flows.csv` of `flowstart run mixed-rtts --out`."""

import csv
import sys

GROUPS = {
    "near": lambda flow: int(flow["rtt_ms"]) <= 54,
    "far": lambda flow: int(flow["rtt_ms"]) >= 150,
    "mid-sized": lambda flow: 10_000 <= int(flow["size_bytes"]) <= 1_000_000,
}

times = {}
with open(sys.argv[1], newline="") as file:
    for flow in csv.DictReader(file):
        arrival = flow["cell"].split(":load=")[1].split(",")[0]
        for group in (name for name, contains in GROUPS.items() if contains(flow)):
            times.setdefault((arrival, group), {}).setdefault(flow["scheme"], []).append(float(flow["fct_ms"]))
for (arrival, group), schemes in times.items():
    means = {scheme: sum(values) / len(values) for scheme, values in schemes.items()}
    baseline = next(iter(means.values()))
    for scheme, mean in means.items():
        saved, speedup = baseline - mean, baseline / mean
        print(f"{scheme}/{group}/load={arrival}: {mean:.6g} ms, saves {saved:.6g} ms, {speedup:.6g} times")
