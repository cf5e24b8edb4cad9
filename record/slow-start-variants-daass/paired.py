"""Reads two answers of `flowstart compare --json` with the same cells, without and with DAASS, from stdin; prints a
line for each cell: the mean completion times with their 95 % intervals, and the mean numbers of dropped packets."""

import json
import sys

decoder, text = json.JSONDecoder(), sys.stdin.read()
delayed, end = decoder.raw_decode(text)
daass, _ = decoder.raw_decode(text[end:].lstrip())
for one, other in zip(delayed["cells"], daass["cells"], strict=True):
    assert one["id"] == other["id"]
    times = [cell["metrics"]["fct_ms"] for cell in (one, other)]
    drops = [cell["metrics"]["dropped_packets"]["mean"] for cell in (one, other)]
    before, after = (f"{time['mean']:.6g} ms ({time['ci95'][0]:.6g} to {time['ci95'][1]:.6g})" for time in times)
    print(f"{one['id']}: {before}, DAASS {after}, drops {drops[0]:.6g} and {drops[1]:.6g}")
