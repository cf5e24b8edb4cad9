"""How much sooner objects end with Quick-Start, by their size: the median of the ratios of the same object's times. The
argument is `flows.csv` of `flowstart run quick-start-durations --out`."""

import csv
import statistics
import sys

SIZES = [(1, 3), (10, 29), (30, 60), (30, 120), (120, 300)]
PACKET = 1460

without, ratios = {}, {}
with open(sys.argv[1], newline="") as file:
    flows = [flow for flow in csv.DictReader(file) if flow["fct_ms"]]
for flow in flows:
    if flow["scheme"].startswith("slow-start"):
        without[flow["link"], flow["rep"], flow["flow"]] = float(flow["fct_ms"])
for flow in flows:
    same = without.get((flow["link"], flow["rep"], flow["flow"]))
    if not flow["scheme"].startswith("quick-start") or same is None:
        continue
    for smallest, largest in SIZES:
        if smallest * PACKET <= int(flow["size_bytes"]) <= largest * PACKET:
            ratios.setdefault((flow["link"], smallest, largest), []).append(same / float(flow["fct_ms"]))
for (link, smallest, largest), values in sorted(ratios.items()):
    print(f"{link}/{smallest} to {largest} packets: {len(values)} objects, {statistics.median(values):.6g} times")
