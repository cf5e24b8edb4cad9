"""Counts in a flows.csv the runs whose handshake and whose data waited for a timeout, for each cell."""

import collections
import csv
import sys

# A handshake takes an RTT of 60 ms and a queue of 100 ms; the shortest timeout is 300 ms.
WAITED_MS = 250

cells = collections.defaultdict(list)
for row in csv.DictReader(open(sys.argv[1])):
    cells[row["cell"]].append(row)
for cell, rows in cells.items():
    handshakes = sum(float(row["fct_ms"]) - float(row["fct_request_ms"]) > WAITED_MS for row in rows)
    data = sum(int(row["timeouts"]) > 0 for row in rows)
    print(f"{cell}: {len(rows)} runs, {handshakes} handshakes, {data} data")
