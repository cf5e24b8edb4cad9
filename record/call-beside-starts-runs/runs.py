"""In how many runs of each cell the call lacks a frame, and in how many one is not shown; the mean of the longest freeze in
those. The argument is `flows.csv` of `flowstart run call-beside-starts --out`."""

import csv
import sys

cells = {}
with open(sys.argv[1], newline="") as file:
    for flow in csv.DictReader(file):
        lost, not_shown = float(flow["call_lost"]) > 0, float(flow["call_not_shown"]) > 0
        cells.setdefault(flow["cell"], []).append((lost, not_shown, float(flow["call_longest_freeze_ms"])))
for cell, runs in cells.items():
    freezes = [freeze for _, not_shown, freeze in runs if not_shown]
    mean = f"{sum(freezes) / len(freezes):.6g}" if freezes else ""
    print(f"{cell}: {sum(run[0] for run in runs)} runs lack a frame, {len(freezes)} do not show one, frozen {mean} ms")
