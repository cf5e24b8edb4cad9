"""Means over repetitions of what `flowstart explain --json` printed for each of them, one after the other."""

import json
import sys

decoder, text, runs = json.JSONDecoder(), sys.stdin.read(), {}
while text.strip():
    cells, end = decoder.raw_decode(text.lstrip())
    text = text.lstrip()[end:]
    for cell in cells:
        runs.setdefault(cell["cell"], []).append({"fct": cell["fct_ms"], **cell["causes"]})
for cell, causes in runs.items():
    mean = {name: sum(run[name] for run in causes) / len(causes) for name in ("fct", "unused_capacity", "others_queue", "other")}
    print(f"{cell}: " + ", ".join(f"{name} {value:.1f} ms" for name, value in mean.items()))
