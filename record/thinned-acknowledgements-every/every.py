"""What `flowstart run --json` prints for one acknowledgement per 1, 2 and 10 packets, one after the other: the FCT of each
cell, with its 95 % interval, how many times as long it is as with one for every second, what was sent twice, and when
startup ended."""

import json
import sys

decoder, text, at, runs = json.JSONDecoder(), sys.stdin.read().rstrip(), 0, []
while at < len(text):
    run, end = decoder.raw_decode(text[at:])
    at += end
    while at < len(text) and text[at].isspace():
        at += 1
    runs.append({cell["id"]: cell for cell in run["cells"]})


def number(value):
    return "none" if value is None else f"{value:.6g}"


def mean(cell, name):
    return (cell["metrics"].get(name) or {}).get("mean")


for index in range(0, len(runs), 3):
    protocol = next(iter(runs[index].values()))["resolved"]["transport"]["policies"]["protocol"]
    for cells in runs[index : index + 3]:
        for name, cell in cells.items():
            every = cell["resolved"]["transport"]["policies"]["ack"]["every"]
            low, high = cell["metrics"]["fct_ms"]["ci95"]
            times = mean(cell, "fct_ms") / mean(runs[index + 1][name], "fct_ms")
            print(
                f"{protocol}/every={every}/{name.replace('/taildrop', '').replace('/none', '')}: "
                f"{number(mean(cell, 'fct_ms'))} ms ({number(low)} to {number(high)}), {number(times)} times, "
                f"{number(mean(cell, 'inflation'))} sent twice, ended at {number(mean(cell, 'exit_ms'))} ms"
            )
