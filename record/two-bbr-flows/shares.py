"""When a flow that starts beside another gets its share of what leaves the bottleneck, over two seconds each. Standard
input is what `flowstart trace` prints of two flows; the arguments are a name and the newcomer's start in seconds."""

import csv
import sys

sent = {}
for event in csv.DictReader(sys.stdin):
    after = float(event["time_ms"]) / 1000 - float(sys.argv[2])
    if event["event"] == "departed" and after >= 0:
        both = sent.setdefault(int(after / 2) * 2, [0, 0])
        both[int(event["flow"])] += int(event["bytes"])
shares = {start: both[1] / sum(both) for start, both in sorted(sent.items()) if start <= 60}
first = min(start for start, share in shares.items() if share >= 0.4)
print(f"{sys.argv[1]}: 40 % after {first} s;", ", ".join(f"{100 * shares[at]:.6g} % after {at} s" for at in (10, 20, 40, 60)))
