"""How many runs of each cell wait for a timeout, and the mean time of the page in those that do and in those that do not.
The argument is `flows.csv` of `flowstart run page-versions --out`."""

import csv
import sys

cells = {}
with open(sys.argv[1], newline="") as file:
    for flow in csv.DictReader(file):
        waits = int(flow["timeouts"]) > 0
        cells.setdefault(flow["cell"], {False: [], True: []})[waits].append(float(flow["fct_ms"]))


def mean(values):
    """The mean; nothing of no values."""
    return f"{sum(values) / len(values):.6g}" if values else ""


for cell, runs in cells.items():
    print(f"{cell}: {len(runs[True])} runs with a timeout, {mean(runs[True])} ms, {mean(runs[False])} ms without")
