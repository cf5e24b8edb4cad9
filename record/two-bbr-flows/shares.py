"""The newcomer's share of what leaves the bottleneck, over two seconds each, by the time since its start. Standard
input is what `flowstart trace` prints of two flows, the second of which starts so many seconds later as the second argument says."""

import csv
import sys

sent = {}
for event in csv.DictReader(sys.stdin):
    after = float(event["time_ms"]) / 1000 - float(sys.argv[2])
    if event["event"] == "departed" and after >= 0:
        both = sent.setdefault(int(after / 2) * 2, [0, 0])
        both[int(event["flow"])] += int(event["bytes"])
for start, both in sorted(sent.items()):
    print(f"{sys.argv[1]}, {start} s: {100 * both[1] / sum(both):.6g} %")
