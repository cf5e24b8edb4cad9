"""What coarse hints cost: the FCT over that with the exact hint, in the geometric mean of the links. Standard input is
what `flowstart run quantized-hints --json` prints."""

import json
import math
import sys

times = {cell["id"]: cell["metrics"]["fct_ms"]["mean"] for cell in json.load(sys.stdin)["cells"]}
costs = {}
for cell, time in times.items():
    link, rest = cell.split("/", 1)
    exact, coarse, steps = link.partition(",hint_steps=")
    if coarse:
        costs.setdefault(f"hint_steps={steps}/{rest}", []).append(time / times[f"{exact}/{rest}"])
for cell, ratios in costs.items():
    print(f"{cell}: {math.prod(ratios) ** (1 / len(ratios)):.6g} times, at most {max(ratios):.6g}")
