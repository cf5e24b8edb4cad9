"""Mean FCTs of transfers by size: those that fit into 10 packets, into 32, into 100, and larger ones; how many times as
fast they are as with the first scheme (the geometric mean over repetitions, with a 95 % interval that holds for all
loads and schemes of such sizes at once); and the share of all transfers whose first round trip has more than 10, and
more than 32 packets. The argument is `flows.csv` of `flowstart run heavy-tail --out`."""

import csv
import math
import sys

PACKET = 1460
GROUPS = {"to10": (0, 10), "to32": (10, 32), "to100": (32, 100), "larger": (100, math.inf)}
# Two-sided 1 - 0.05 / 15 of Student's t with 9 degrees of freedom: ten repetitions, and Bonferroni's intervals for
# three loads and five schemes.
QUANTILE = 3.954
# A handshake that took longer waited for its timeout of a second: the path has 200 ms and a queue of 200 ms.
LOST_MS = 900
# Bytes in the first round trip, of 200 ms; slow start has ten packets.
FIRST = {
    "slow-start": 10 * PACKET,
    "initial-start:iw=32": 32 * PACKET,
    "initial-start:iw=100": 100 * PACKET,
    "jump-start:threshold=64KiB": 65536,
    "jump-start": math.inf,
    "more-start:source=oracle": 250_000,
}

times, sizes = {}, {}
with open(sys.argv[1], newline="") as file:
    for flow in csv.DictReader(file):
        load, size, scheme = flow["cell"].split(":load=")[1].split(",")[0], int(flow["size_bytes"]), flow["scheme"]
        group = next(name for name, (low, high) in GROUPS.items() if low * PACKET < size <= high * PACKET)
        runs = times.setdefault((load, group), {}).setdefault(scheme, {})
        total = runs.setdefault(flow["rep"], [0, 0.0, 0, 0.0])
        total[0] += 1
        total[1] += float(flow["fct_ms"])
        # A handshake that lost a packet waited for a timeout, too.
        if int(flow["timeouts"] or 0) == 0 and float(flow["handshake_rtt_ms"]) < LOST_MS:
            total[2] += 1
            total[3] += float(flow["fct_ms"])
        sizes.setdefault(scheme, []).append(size)

for (load, group), schemes in times.items():
    means = {scheme: {rep: run[1] / run[0] for rep, run in runs.items()} for scheme, runs in schemes.items()}
    baseline = next(iter(means.values()))
    for scheme, runs in schemes.items():
        count = sum(run[0] for run in runs.values())
        mean = sum(run[1] for run in runs.values()) / count
        without = sum(run[2] for run in runs.values())
        rest = sum(run[3] for run in runs.values()) / without
        logs = [math.log(baseline[rep] / one) for rep, one in means[scheme].items()]
        middle = sum(logs) / len(logs)
        spread = math.sqrt(sum((one - middle) ** 2 for one in logs) / (len(logs) - 1) / len(logs)) * QUANTILE
        low, high = (math.exp(middle + sign * spread) for sign in (-1, 1))
        print(
            f"{scheme}/{group}/load={load}: {mean:.6g} ms, {math.exp(middle):.6g} times ({low:.6g} to {high:.6g}), "
            f"{1 - without / count:.6g} with a timeout, the others {rest:.6g} ms"
        )
for scheme, drawn in sizes.items():
    shares = [sum(min(size, FIRST[scheme]) > packets * PACKET for size in drawn) / len(drawn) for packets in (10, 32)]
    share_of_bytes = sum(size for size in drawn if size > 32 * PACKET) / sum(drawn)
    print(f"{scheme}/first: {shares[0]:.6g} above 10, {shares[1]:.6g} above 32, {share_of_bytes:.6g} of the bytes")
