"""The slowest 5 % of a cell's flows, of all repetitions: their mean FCT, with and without the handshake. The argument
is `flows.csv` of `flowstart run lying-clients --out`."""

import csv
import sys

cells = {}
with open(sys.argv[1], newline="") as file:
    for flow in csv.DictReader(file):
        cells.setdefault(flow["cell"], []).append((float(flow["fct_ms"]), float(flow["fct_request_ms"])))
for cell, flows in cells.items():
    slowest = sorted(flows)[-max(1, round(len(flows) / 20)):]
    with_handshake, without = (sum(times) / len(slowest) for times in zip(*slowest))
    print(f"{cell}: {with_handshake:.6g} ms, {without:.6g} ms without the handshake")
