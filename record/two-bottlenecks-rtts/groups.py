"""Mean FCTs of near newcomers (60 ms) and far ones (160 ms), and how many times as fast they are as with the first scheme.
The argument is `flows.csv` of `flowstart run two-bottlenecks --out`."""

import csv
import sys

times = {}
with open(sys.argv[1], newline="") as file:
    for flow in csv.DictReader(file):
        link, _, size, _, beside, arrival = flow["cell"].split("/", 5)
        group = "near" if float(flow["rtt_ms"]) < 100 else "far"
        where = (link, size, beside.split(",")[0], "one" if "flows=1" in arrival else "four", group)
        times.setdefault(where, {}).setdefault(flow["scheme"], []).append(float(flow["fct_ms"]))
for where, schemes in times.items():
    means = {scheme: sum(values) / len(values) for scheme, values in schemes.items()}
    baseline = next(iter(means.values()))
    for scheme, mean in means.items():
        print(f"{scheme}/{'/'.join(where)}: {mean:.6g} ms, {baseline / mean:.6g} times")
